"""Data sets: rows of named, typed fields."""

import errno
import json
import math
import os
import pickle
import random
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import ingot
from ingot._core import Writer as NativeWriter
from ingot.codecs import Codec, codec_of

SPEC = {
    "image": "array(uint8,4,4,3)",
    "label": "int",
    "caption": "utf8",
    "score": "float?",
    "frames": "bytes[]",
    "ids": "int[]",
    "vector": "array",
    "note": "utf8?",
    "words": "utf8[]?",
    "extra": "json",
}


def _row(k):
    rng = np.random.default_rng(k)
    row = {
        "image": rng.integers(0, 256, (4, 4, 3), np.uint8),
        "label": k,
        "caption": f"cat {k}",
        "frames": [b"%d" % k * j for j in range(k % 7)],
        "ids": list(range(k % 5)),
        "vector": rng.random((k % 3, 2)).astype(np.float32),
        "extra": {"k": [k, None, "é"]},
    }
    row |= {"score": k / 2} if k % 2 else {}
    row |= {"note": f"n{k}"} if k % 3 == 0 else {}
    return row | ({"words": ["a"] * (k % 4)} if k % 4 else {})


ROWS = [_row(k) for k in range(200)]


def same(found, expected):
    """Whether a value that was read is the one that was written."""
    if isinstance(expected, np.ndarray) or isinstance(found, np.ndarray):
        return np.array_equal(np.asarray(found), np.asarray(expected))
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return found == expected and type(found) is type(expected)


def check_row(found, expected, names=SPEC):
    assert list(found) == list(names)
    for name in names:
        assert same(found[name], expected.get(name)), name


@pytest.fixture(params=["one.ingot", "many"])
def path(request, tmp_path):
    path = tmp_path / request.param
    options = {"shard_rows": 33} if request.param == "many" else {}
    with ingot.DatasetWriter(path, SPEC, **options) as writer:
        for k, row in enumerate(ROWS):
            assert writer.append(row) == k
    return path


def test_rows_come_back(path):
    ds = ingot.open(path)
    assert isinstance(ds, ingot.Dataset)
    assert (len(ds), dict(ds.spec)) == (len(ROWS), SPEC)
    for k in (0, 1, 32, 33, 34, 199):
        check_row(ds[k], ROWS[k])
        check_row(ds[k - 200], ROWS[k])
        check_row(ds[np.int64(k)], ROWS[k])
    for found, expected in zip(ds, ROWS, strict=True):
        check_row(found, expected)
    assert "200 rows" in repr(ds)


def test_a_batch_is_stacked_where_that_can_be(path):
    ds = ingot.open(path)
    order = random.Random(0).choices(range(-200, 200), k=77)
    for indices in (order, np.array(order), tuple(order)):
        batch = ds[indices]
        assert list(batch) == list(SPEC)
        for name in SPEC:
            assert len(batch[name]) == 77
            for value, k in zip(batch[name], order, strict=True):
                assert np.array_equal(value, ROWS[k][name]) if name in ROWS[k] else value is None
    assert (batch["image"].shape, batch["image"].dtype) == ((77, 4, 4, 3), np.uint8)
    assert (batch["label"].shape, batch["label"].dtype) == ((77,), np.int64)
    assert ds[[1, 3, 5]]["score"] == [0.5, 1.5, 2.5]
    assert ds[[2, 3]]["score"] == [None, 1.5]
    assert ds[[9, 4]]["ids"].shape == (2, 4)
    assert isinstance(ds[[9, 5]]["ids"], list)
    assert ds[[4, 1]]["vector"].shape == (2, 1, 2)
    empty = ds[[]]
    assert empty["image"].shape == (0, 4, 4, 3)
    assert (empty["caption"], empty["frames"]) == ([], [])


def test_only_what_is_wanted_is_read(path):
    ds = ingot.open(path)
    check_row(ds[6, ["label", "caption"]], ROWS[6], ["label", "caption"])
    check_row(ds[6, {"label": True, "image": False}], ROWS[6], ["label"])
    assert ds[6, {"frames": range(2, 4)}] == {"frames": [b"66", b"666"]}
    assert ds[6, {"frames": slice(4, None)}] == {"frames": ROWS[6]["frames"][4:]}
    assert ds[6, {"frames": range(4, 99)}] == {"frames": ROWS[6]["frames"][4:]}
    assert ds[4, {"ids": range(1, 3)}]["ids"].tolist() == [1, 2]
    assert ds[[1, 2], ["label"]]["label"].tolist() == [1, 2]
    assert list(ds[3:9, ["label"]][-1]) == ["label"]
    assert ds[6, {}] == {}


def test_a_row_says_what_it_has(path):
    ds = ingot.open(path)
    for k in (3, 6, 100):
        available = ds.available(k)
        assert available["label"] is True
        assert available["frames"] == range(k % 7)
        assert available["ids"] == range(k % 5)
        assert available["score"] is bool(k % 2)
        check_row(
            ds[k, {n: part for n, part in available.items() if part is not False}],
            ROWS[k],
            [n for n, part in available.items() if part is not False],
        )


def test_parts_are_data_sets(path):
    ds = ingot.open(path)
    part = ds[190:20:-7]
    assert isinstance(part, ingot.Dataset)
    expected = ROWS[190:20:-7]
    assert len(part) == len(expected)
    for found, row in zip(part, expected, strict=True):
        check_row(found, row)
    assert part[[0, -1]]["label"].tolist() == [190, expected[-1]["label"]]
    assert part.column("label").tolist() == [row["label"] for row in expected]
    assert list(part.select("caption", "label")[0]) == ["caption", "label"]
    taken = ds.take([9, 3, -1])
    assert taken.column("label").tolist() == [9, 3, 199]
    assert taken[1:].column("label").tolist() == [3, 199]
    assert len(ds[5:5]) == 0


def test_columns_come_from_the_index(path):
    ds = ingot.open(path)
    assert ds.column("label").tolist() == list(range(200))
    assert ds.column("score")[3] == 1.5
    even = ds.where(lambda label: label % 20 == 0, "label")
    assert [row["label"] for row in even] == list(range(0, 200, 20))
    both = ds.where(lambda label, score: (label > 100) & (score > 90), "label", "score")
    assert both.column("label").tolist() == [k for k in range(101, 200) if k % 2 and k > 180]
    with pytest.raises(TypeError, match=r"'frames' is bytes\[\], expected numbers, text or arrays"):
        ds.column("frames")
    with pytest.raises(ValueError, match="one boolean for each of 200 rows"):
        ds.where(lambda label: label[:5] == 1, "label")


def test_bad_indices_are_reported(path):
    ds = ingot.open(path)
    for index in (200, -201, 2**70):
        with pytest.raises(IndexError, match="out of range"):
            ds[index]
        with pytest.raises(IndexError, match="out of range"):
            ds[[0, index]]
    for index in ("x", 1.5, None, {"label"}):
        with pytest.raises(TypeError):
            ds[index]
    with pytest.raises(KeyError, match="no field 'nothing'"):
        ds[0, ["nothing"]]
    with pytest.raises(TypeError, match="expected a sequence"):
        ds[0, {"label": range(3)}]
    with pytest.raises(ValueError, match="must go up, got"):
        ds[0, {"frames": range(3, 0, -1)}]
    with pytest.raises(TypeError, match=r"where\(mask\)"):
        ds[np.ones(200, bool)]


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"label": "3"}, TypeError, "row 1: field 'label': expected an int, got str"),
        ({"label": True}, TypeError, "expected an int, got a bool"),
        ({"label": 2**63}, ValueError, "does not fit into 64 bits"),
        ({"caption": b"x"}, TypeError, "expected a str, got bytes"),
        ({"image": np.zeros((4, 4), np.uint8)}, ValueError, r"shape \(4, 4, 3\), got \(4, 4\)"),
        ({"image": np.full((4, 4, 3), 300)}, ValueError, "do not fit uint8"),
        ({"image": np.zeros((4, 4, 3))}, TypeError, "an array of uint8, got float64"),
        ({"frames": b"abc"}, TypeError, "expected a list of values, got bytes"),
        ({"frames": ["abc"]}, TypeError, "field 'frames': expected bytes, got str"),
        ({"vector": np.array(["a"])}, TypeError, "an array of numbers"),
        ({"label": None}, ValueError, "field 'label' is missing"),
        ({"what": 1}, ValueError, "unknown field 'what'"),
        ({"extra": math.nan}, ValueError, "row 1: field 'extra'"),
        ({"caption": "\ud800"}, ValueError, "row 1: field 'caption'"),
    ],
)
def test_a_bad_row_is_rejected_whole(tmp_path, change, kind, words):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, SPEC) as writer:
        writer.append(ROWS[0])
        with pytest.raises(kind, match=words):
            writer.append(ROWS[1] | change)
        assert writer.append(ROWS[1]) == 1
    ds = ingot.open(path)
    assert len(ds) == 2
    check_row(ds[1], ROWS[1])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "at least one field"),
        ({"a": "nothing"}, "field 'a': unknown type 'nothing'"),
        ({"a": "int[][]"}, "unknown type"),
        ({"a": "array(object,3)"}, "array of numbers"),
        ({"a": "array(nothing,3)"}, "'array\\(nothing,3\\)'"),
        ({"": "int"}, "invalid field name"),
        ({"a?": "int"}, "invalid field name"),
        ({"a": 3}, "a type must be a str or a codec, got int"),
        ({3: "int"}, "invalid field name"),
    ],
)
def test_invalid_specifications_are_rejected(tmp_path, spec, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ingot.DatasetWriter(tmp_path / "x.ingot", spec)
    assert not (tmp_path / "x.ingot").exists()


def test_data_sets_grow(tmp_path):
    for name in ("x.ingot", "x"):
        path = tmp_path / name
        with ingot.DatasetWriter(path, {"a": "int"}) as writer:
            writer.extend({"a": k} for k in range(5))
        with pytest.raises(FileExistsError):
            ingot.DatasetWriter(path, {"a": "int"})
        with ingot.DatasetWriter(path, {"a": "int"}, append=True) as writer:
            assert len(writer) == 5
            assert writer.append({"a": 5}) == 5
        assert ingot.open(path).column("a").tolist() == list(range(6))
        with pytest.raises(ValueError, match="has the fields"):
            ingot.DatasetWriter(path, {"b": "int"}, append=True)
        assert ingot.open(path).column("a").tolist() == list(range(6))


def test_a_data_set_without_rows_is_one(tmp_path):
    for name in ("x.ingot", "x"):
        ingot.DatasetWriter(tmp_path / name, SPEC).close()
        ds = ingot.open(tmp_path / name)
        assert (len(ds), dict(ds.spec), list(ds)) == (0, SPEC, [])
        assert ds.column("label").tolist() == []


def test_readers_see_what_was_committed(tmp_path):
    path = tmp_path / "x"
    writer = ingot.DatasetWriter(path, {"a": "int"}, shard_rows=10, atomic=True)
    writer.extend({"a": k} for k in range(25))
    assert not (path / "dataset.json").exists()
    writer.flush()
    assert len(ingot.open(path)) == 25
    writer.extend({"a": k} for k in range(25, 60))
    assert len(ingot.open(path)) == 25
    writer.abandon()
    assert len(ingot.open(path)) == 25
    listed = {shard["name"] for shard in json.loads((path / "dataset.json").read_text())["shards"]}
    assert {entry.name for entry in path.iterdir()} == listed | {"dataset.json"}


def test_an_exception_leaves_the_files_that_are_full(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.append({"a": 1})
    with (
        pytest.raises(TypeError) as caught,
        ingot.DatasetWriter(path, {"a": "int"}, append=True, shard_rows=2) as writer,
    ):
        writer.extend([{"a": k} for k in range(2, 9)] + [{"a": "x"}])
    assert caught.value.__notes__[0] == (
        f"{path}: 7 rows are committed; DatasetWriter(path, spec, append=True) appends to them"
    )
    assert ingot.open(path).column("a").tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert len(list(path.iterdir())) == 5


def test_an_exception_leaves_the_old_data_set_if_all_or_nothing_is_asked_for(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.append({"a": 1})
    for options in ({"append": True, "atomic": True}, {"overwrite": True}):
        with (
            pytest.raises(TypeError),
            ingot.DatasetWriter(path, {"a": "int"}, shard_rows=1, **options) as writer,
        ):
            writer.extend([{"a": 2}, {"a": 3}, {"a": "x"}])
        assert ingot.open(path).column("a").tolist() == [1]
        assert len(list(path.iterdir())) == 2


def test_files_are_committed_when_they_are_full(tmp_path):
    path = tmp_path / "x"
    writer = ingot.DatasetWriter(path, {"a": "int"}, shard_rows=3)
    writer.extend({"a": k} for k in range(4))
    assert ingot.open(path).column("a").tolist() == [0, 1, 2]
    writer.abandon()
    assert ingot.open(path).column("a").tolist() == [0, 1, 2]


def test_a_directory_may_be_moved(path, tmp_path):
    moved = path.rename(tmp_path / f"moved-{path.name}")
    check_row(ingot.open(moved)[77], ROWS[77])


def _manifest(**shard):
    content = {"version": 1, "spec": {}, "shards": [shard], "metadata": {}}
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"version": 2, "spec": {}, "shards": [], "metadata": {}}',
        b'{"version": 1, "spec": {"a": 3}, "shards": [], "metadata": {}}',
        _manifest(name="../x.ingot", rows=1, nbytes=1),
        _manifest(name="/x.ingot", rows=1, nbytes=1),
        _manifest(name="x", rows="1", nbytes=1),
        _manifest(name="x", rows=-1, nbytes=1),
        b'{"version": 1, "spec": {}, "shards": [3], "metadata": {}}',
        b"\xff\xfe",
    ],
)
def test_a_false_manifest_is_rejected(tmp_path, content):
    (tmp_path / "dataset.json").write_bytes(content)
    with pytest.raises(ingot.FormatError, match=r"dataset\.json"):
        ingot.open(tmp_path)


def test_a_damaged_row_costs_itself(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, {"a": "bytes", "b": "int"}, compression=None) as writer:
        writer.extend({"a": b"%d" % k * 100, "b": k} for k in range(50))
    content = bytearray(path.read_bytes())
    content[content.index(b"17" * 50)] ^= 1
    path.write_bytes(content)
    ds = ingot.open(path)
    with pytest.raises(ingot.CorruptFileError, match="record 17: offset"):
        ds[17]
    with pytest.raises(ingot.CorruptFileError, match="record 17: offset"):
        ds[[3, 17]]
    assert ds[17, ["b"]] == {"b": 17}
    assert ds[18]["b"] == 18


def test_data_sets_pickle_and_go_into_threads_and_forks(path):
    ds = ingot.open(path)[10:150:3].select("label", "caption")
    again = pickle.loads(pickle.dumps(ds))  # noqa: S301
    assert again.column("label").tolist() == list(range(10, 150, 3))
    assert again[4] == {"label": 22, "caption": "cat 22"}
    found = []
    read = lambda: found.append(ds[[1, 2]]["caption"])  # noqa: E731
    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["cat 13", "cat 16"]] * 8
    child = os.fork()
    if child == 0:
        os._exit(0 if ds[3]["label"] == 19 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Celsius(Codec):
    name = "celsius"

    def encode(self, value):
        return f"{value:.1f}".encode()

    def decode(self, data):
        return float(data)


def test_codecs_of_one_s_own(tmp_path):
    ingot.codecs.register(Celsius())
    with pytest.raises(ValueError, match="a codec named 'celsius' is already registered"):
        ingot.codecs.register(Celsius())
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"t": "celsius", "all": "celsius[]"}) as writer:
        writer.append({"t": 21.54, "all": [1, 2.25]})
    assert ingot.open(tmp_path / "x.ingot")[0] == {"t": 21.5, "all": [1.0, 2.2]}


@pytest.mark.parametrize("kind", ["png", "jpg", "webp"])
def test_pictures(tmp_path, kind):
    rng = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(32), np.arange(24))[:, :, None] * np.array([1, 2, 3]) % 200
    pictures = [(smooth + rng.integers(0, 9)).astype(np.uint8) for _ in range(4)]
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"p": kind, "all": f"{kind}[]"}) as writer:
        writer.extend({"p": one, "all": [one] * k} for k, one in enumerate(pictures))
    ds = ingot.open(tmp_path / "x.ingot")
    batch = ds[[0, 1, 2, 3]]
    assert batch["p"].shape == (4, 32, 24, 3)
    assert [len(one) for one in batch["all"]] == [0, 1, 2, 3]
    off = np.abs(batch["p"].astype(int) - np.stack(pictures)).mean()
    assert off == 0 if kind == "png" else off < 6
    raw = codec_of(kind).encode(pictures[0])
    assert codec_of(kind).encode(raw) == raw


def test_two_writers_of_a_directory_lose_nothing(tmp_path):
    path = tmp_path / "x"
    writers = [ingot.DatasetWriter(path, {"a": "int"}) for _ in range(2)]
    for k, writer in enumerate(writers):
        writer.append({"a": k})
    writers[1].flush()
    for writer in writers:
        writer.append({"a": 5})
    writers[1].close()
    with pytest.warns(UserWarning, match="another writer has made a data set here"):
        writers[0].close()
    assert sorted(ingot.open(path).column("a")) == [0, 1, 5, 5]
    other = ingot.DatasetWriter(tmp_path / "y", {"b": "int"})
    with ingot.DatasetWriter(tmp_path / "y", {"a": "int"}) as writer:
        writer.append({"a": 1})
    other.append({"b": 1})
    with pytest.raises(ingot.FormatError, match="another writer has committed the fields"):
        other.close()
    other.abandon()


def test_a_writer_of_records_does_not_append_to_a_data_set(tmp_path):
    for spec, row in (({"a": "utf8"}, {"a": "x"}), ({"a": "int", "b": "utf8"}, {"a": 1, "b": "x"})):
        path = tmp_path / f"{len(spec)}.ingot"
        with ingot.DatasetWriter(path, spec) as writer:
            writer.append(row)
        with pytest.raises(ValueError, match=r"ingot\.DatasetWriter"):
            ingot.Writer(path, append=True)
        assert list(ingot.open(path)) == [row]


def test_a_writer_that_was_never_closed_warns_and_loses_nothing(tmp_path):
    with pytest.warns(ResourceWarning, match="never closed; 1 row is committed.* appends to it$"):
        ingot.DatasetWriter(tmp_path / "x", {"a": "int"}).append({"a": 1})
    assert ingot.open(tmp_path / "x").column("a").tolist() == [1]


def test_a_writer_that_was_never_closed_leaves_no_directory_of_its_own(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.warns(ResourceWarning, match="the files of this writer were removed"):
            ingot.DatasetWriter(tmp_path / name, {"a": "int"})
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]


@pytest.mark.parametrize("name", ["x", "x.ingot"])
def test_appending_to_nothing_without_a_spec_asks_for_one(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="no data set here; pass a spec to create one"):
        ingot.DatasetWriter(tmp_path / name, append=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["", "raise ValueError"])
@pytest.mark.parametrize("name", ["x", "x.ingot"])
def test_rows_of_a_writer_that_is_open_at_the_end_of_a_program_are_kept(tmp_path, name, ending):
    path = tmp_path / name
    code = (
        "import ingot, sys\n"
        "w = ingot.DatasetWriter(sys.argv[1], {'a': 'int'})\n"
        "w.extend({'a': k} for k in range(5))\n"
        "w.flush()\n"
        "w.append({'a': 5})\n"
        f"{ending}\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert outcome.stderr.count(f"ingot: {path}: the writer was never closed;") == 1
    ds = ingot.open(path, partial=bool(ending))
    assert ds.column("a").tolist() == list(range(6))


def test_a_commit_that_could_not_be_synced_is_final(tmp_path, monkeypatch):
    path = tmp_path / "x"
    writer = ingot.DatasetWriter(path, {"a": "int"})
    writer.append({"a": 1})
    sync = os.fsync

    def fails_for_directories(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)

    monkeypatch.setattr(os, "fsync", fails_for_directories)
    with pytest.raises(ingot.StorageError, match="write failed"):
        writer.flush()
    monkeypatch.undo()
    for call in (writer.flush, writer.close, writer.close):
        with pytest.raises(ingot.StorageError, match="this writer cannot continue"):
            call()
    writer.abandon()
    assert ingot.open(path).column("a").tolist() == [1]


def test_bytes_that_are_not_an_image_are_named(tmp_path):
    end = b"\0\0\0\0IEND\xae\x42\x60\x82"
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"p": "png", "k": "int"}) as writer:
        writer.extend({"p": b"\x89PNG\r\n\x1a\n" + end, "k": k} for k in range(3))
    ds = ingot.open(tmp_path / "x.ingot")
    for read in (lambda: ds[2], lambda: ds[[2]]):
        with pytest.raises(ingot.FormatError, match=r"x\.ingot: row 2: field 'p' is not valid png"):
            read()


def test_invalid_limits_and_names_are_rejected(tmp_path):
    for limit in ({"shard_rows": 0}, {"shard_bytes": -1}, {"shard_bytes": "much"}):
        with pytest.raises(ValueError, match=r"shard_|not a size"):
            ingot.DatasetWriter(tmp_path / "x", {"a": "int"}, **limit)
    with pytest.raises(ingot.FormatError, match="would take an Ingot file for"):
        ingot.DatasetWriter(tmp_path / "x.array_record", {"a": "int"})
    assert list(tmp_path.iterdir()) == []


def test_metadata_is_kept(tmp_path):
    for name in ("x", "x.ingot"):
        ingot.DatasetWriter(tmp_path / name, {"a": "int"}, metadata={"split": "train"}).close()
        assert ingot.open(tmp_path / name).metadata == {"split": "train"}


def test_a_list_of_booleans_is_not_a_list_of_indices(path):
    ds = ingot.open(path)
    with pytest.raises(TypeError, match=r"where\(mask\)"):
        ds[[True, False]]


def test_the_child_of_a_fork_leaves_the_data_set_to_its_parent(tmp_path):
    path = tmp_path / "x"
    writer = ingot.DatasetWriter(path, {"a": "int"}, shard_rows=2, atomic=True)
    writer.extend({"a": k} for k in range(5))
    child = os.fork()
    if child == 0:
        writer.abandon()
        try:
            writer.close()
        except ValueError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not (path / "dataset.json").exists()
    writer.close()
    assert ingot.open(path).column("a").tolist() == list(range(5))


def test_uncommitted_rows_are_not_read(tmp_path):
    path = tmp_path / "x"
    writer = ingot.DatasetWriter(path, {"a": "int"}, shard_rows=2, atomic=True)
    writer.extend({"a": k} for k in range(5))
    with pytest.raises(ingot.FormatError, match="no rows are committed"):
        ingot.open(path)
    writer.close()
    assert len(ingot.open(path)) == 5


def test_files_that_differ_from_their_manifest_are_reported(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.extend({"a": k} for k in range(5))
    manifest = json.loads((path / "dataset.json").read_text())
    changes = [({"rows": 4}, "but the manifest says 4"), ({"rows": 10**30}, "numbers below 2")]
    for change, words in changes:
        changed = manifest | {"shards": [manifest["shards"][0] | change]}
        (path / "dataset.json").write_text(json.dumps(changed))
        with pytest.raises(ingot.FormatError, match=words):
            ingot.open(path)
    (path / "dataset.json").write_text(json.dumps(manifest | {"shards": manifest["shards"] * 2}))
    with pytest.raises(ingot.FormatError, match=r"lists .+ twice"):
        ingot.open(path)
    (path / "dataset.json").write_text(json.dumps(manifest | {"shards": []}))
    with pytest.raises(ingot.FormatError, match="no rows are committed"):
        ingot.open(path)
    (path / "dataset.json").write_text("[" * 100_000)
    with pytest.raises(ingot.FormatError, match="not the manifest"):
        ingot.open(path)


def test_a_file_without_a_header_is_not_continued(tmp_path):
    path = tmp_path / "x.ingot"
    for content in (b"", b"INGOT"):
        path.write_bytes(content)
        with pytest.raises(ingot.FormatError, match="not a data set"):
            ingot.DatasetWriter(path, {"a": "int"}, append=True)
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("json", b"[" * 100_000),
        ("utf8", b"\xff"),
        ("array", b""),
        ("array", b"\x04f4,(\x01" + bytes(8)),
        ("array", b"\x03>i4\x01" + bytes(8)),
        ("array", b"\x03|O8\x01" + bytes(8)),
        ("array", b"\x03<i4\x02" + b"\xff" * 16),
        ("array(uint8,4)", b"abc"),
        ("png", b"\x89PNG"),
        ("jpg", b"\xff\xd8\xff"),
    ],
)
def test_errors_name_invalid_cells(tmp_path, kind, data):
    path = str(tmp_path / "x.ingot")
    native = NativeWriter(path, "create", "{}", None, 3, False, [("x", "cell", None, kind)])  # noqa: FBT003
    native.append_row([data])
    native.close()
    ds = ingot.open(path)
    for read in (lambda: ds[0], lambda: ds[[0]]):
        with pytest.raises(ingot.FormatError, match=r"x\.ingot: row 0: field 'x' is not valid "):
            read()


@pytest.mark.parametrize(
    "shards", ["[]", '[{"name": "x", "rows": 1, "nbytes": 1, "deleted": {"rows": 3}}]', "{}", "3"]
)
def test_a_manifest_of_a_later_version_is_rejected_by_its_version(tmp_path, shards):
    text = f'{{"shards": {shards}, "spec": {{}}, "metadata": {{}}, "version": 2}}'
    (tmp_path / "dataset.json").write_text(text)
    with pytest.raises(
        ingot.UnsupportedVersionError, match=r"unsupported version 2 \(this"
    ) as caught:
        ingot.open(tmp_path)
    assert (caught.value.found, caught.value.supported) == (2, 1)

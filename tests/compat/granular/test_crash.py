"""Leftovers of killed writers are repaired or refused, never read wrongly."""

import shutil
import signal
import subprocess
import sys

import pytest

import ingot
from ingot.compat import granular
from tests.support import DATA, FAULTS

GOLDEN = DATA / "granular" / "v3_crash"
SPEC = {"a": "utf8", "b": "utf8"}


def write(folder, rows, start=0):
    with granular.DatasetWriter(folder, SPEC, granular.encoders) as writer:
        for k in range(start, start + rows):
            writer.append({"a": f"a{k}", "b": f"long b{k}"})


def rows(folder):
    with granular.DatasetReader(folder, granular.decoders) as reader:
        found = reader[:]
    return list(zip(found["a"], found["b"], strict=True))


def test_part_of_a_record_is_cut_off(tmp_path):
    for suffix in (".bag", ".idx"):
        shutil.copy(GOLDEN / f"partial{suffix}", tmp_path / f"x{suffix}")
    before = list(granular.BagReader(tmp_path / "x.bag"))
    with granular.BagWriter(tmp_path / "x.bag") as writer:
        assert len(writer) == 2
        assert writer.append(b"other") == 2
    assert list(granular.BagReader(tmp_path / "x.bag")) == [*before, b"other"]


def test_columns_that_are_further_ahead_are_held_against_new_rows(tmp_path):
    shutil.copytree(GOLDEN / "ahead", tmp_path / "x")
    with pytest.raises(ingot.FormatError, match="inconsistent"):
        granular.DatasetReader(tmp_path / "x", None)
    there = [text.decode() for text in granular.BagReader(tmp_path / "x" / "bar.bag")]
    kinds = {"foo": "int", "bar": "utf8"}
    with granular.DatasetWriter(tmp_path / "x", kinds, granular.encoders) as writer:
        assert len(writer) == 5
        with pytest.raises(ValueError, match="column 'bar' is ahead"):
            writer.append({"foo": 5, "bar": "another"})
        for foo, bar in enumerate([*there[5:], "new"], 5):
            assert writer.append({"foo": foo, "bar": bar}) == foo
    with granular.DatasetReader(tmp_path / "x", granular.decoders) as reader:
        assert reader[:] == {"foo": list(range(8)), "bar": [*there, "new"]}


@pytest.mark.parametrize("key", SPEC)
def test_a_column_that_is_one_row_ahead_is_cut(tmp_path, key):
    write(tmp_path / "x", 3)
    with granular.BagWriter(tmp_path / "x" / f"{key}.bag") as writer:
        writer.append(b"half a row")
    write(tmp_path / "x", 1, start=3)
    assert rows(tmp_path / "x") == [(f"a{k}", f"long b{k}") for k in range(4)]


def test_a_column_that_is_lost_costs_no_other(tmp_path):
    write(tmp_path / "x", 3)
    before = (tmp_path / "x" / "b.bag").read_bytes()
    for suffix in (".bag", ".idx"):
        (tmp_path / "x" / f"a{suffix}").unlink()
    with granular.DatasetWriter(tmp_path / "x", SPEC, granular.encoders) as writer:
        assert len(writer) == 0
        with pytest.raises(ValueError, match="column 'b' is ahead"):
            writer.append({"a": "new", "b": "new"})
        writer.append({"a": "a0", "b": "long b0"})
    assert (tmp_path / "x" / "b.bag").read_bytes() == before
    write(tmp_path / "x", 2, start=1)
    assert rows(tmp_path / "x") == [(f"a{k}", f"long b{k}") for k in range(3)]


@pytest.mark.parametrize("name", ["a.bag", "a.idx", "b.bag", "b.idx"])
def test_a_file_cut_at_any_byte_never_gives_wrong_rows(tmp_path, name):
    write(tmp_path / "whole", 3)
    expected = rows(tmp_path / "whole")
    size = (tmp_path / "whole" / name).stat().st_size
    for length in range(size):
        folder = tmp_path / f"cut{length}"
        shutil.copytree(tmp_path / "whole", folder)
        with (folder / name).open("r+b") as file:
            file.truncate(length)
        with pytest.raises(ingot.FormatError):
            granular.DatasetReader(folder, granular.decoders)
        try:
            with granular.DatasetWriter(folder, SPEC, granular.encoders) as writer:
                start = len(writer)
            write(folder, 4 - start, start=start)
        except ingot.FormatError:
            assert name.endswith(".bag")
            continue
        assert name.endswith(".idx")
        assert rows(folder) == [*expected, ("a3", "long b3")]


def test_a_row_that_is_interrupted_is_cut_off(tmp_path):
    writer = granular.DatasetWriter(tmp_path / "x", SPEC, granular.encoders)
    writer.append({"a": "a0", "b": "long b0"})
    columns = writer._rows.bags
    real = columns["b"]

    class Interrupted:
        def __len__(self):
            return len(real)

        def append(self, *_, **__):
            raise KeyboardInterrupt

    columns["b"] = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        writer.append({"a": "a1", "b": "long b1"})
    columns["b"] = real
    with pytest.raises(ingot.FormatError, match="row 1 was interrupted"):
        writer.append({"a": "a2", "b": "long b2"})
    writer.close()
    assert rows(tmp_path / "x") == [("a0", "long b0")]
    write(tmp_path / "x", 1, start=1)
    assert rows(tmp_path / "x") == [("a0", "long b0"), ("a1", "long b1")]


def test_written_rows_survive_a_kill(tmp_path):
    folder = tmp_path / "x"
    command = [sys.executable, FAULTS / "append_granular.py", folder]
    told = 0
    for seed in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            told = int([writer.stdout.readline() for _ in range(20 + 31 * seed)][-1])
            writer.send_signal(signal.SIGKILL)
        kinds = {"a": "utf8", "b": "int", "c": "utf8"}
        granular.DatasetWriter(folder, kinds, granular.encoders).close()
        with granular.DatasetReader(folder, granular.decoders) as reader:
            assert len(reader) >= told
            for k in range(len(reader)):
                assert reader[k] == {"a": f"a{k}", "b": k, "c": "c" * (k % 999)}


def test_a_torn_limit_is_not_counted(tmp_path):
    write(tmp_path / "x", 3)
    for key in SPEC:
        with (tmp_path / "x" / f"{key}.idx").open("ab") as file:
            file.write(b"\1\2\3")
    assert len(rows(tmp_path / "x")) == 3
    write(tmp_path / "x", 2, start=3)
    assert rows(tmp_path / "x") == [(f"a{k}", f"long b{k}") for k in range(5)]


def test_an_old_data_set_that_was_not_closed_is_not_a_data_set(tmp_path):
    writer = granular.DatasetWriter(tmp_path / "x", {"a": "utf8[]"}, granular.encoders)
    writer.append({"a": ["x"]})
    with pytest.raises(FileNotFoundError):
        granular.DatasetReader(tmp_path / "x", granular.decoders)
    writer.close()
    assert len(granular.DatasetReader(tmp_path / "x", granular.decoders)) == 1


def old_writer(folder):
    writer = granular.DatasetWriter(folder, SPEC, granular.encoders, layout="0.21")
    writer.append({"a": "old", "b": "old"})
    return writer


def test_an_old_data_set_that_cannot_be_completed_leaves_no_columns(tmp_path):
    writer = old_writer(tmp_path / "x")
    (tmp_path / "x" / "b.bag").write_bytes(b"of somebody else")
    with pytest.raises(FileExistsError):
        writer.close()
    assert [one.name for one in (tmp_path / "x").iterdir()] == ["b.bag"]
    (tmp_path / "x" / "b.bag").unlink()
    old_writer(tmp_path / "x").close()
    assert rows(tmp_path / "x") == [("old", "old")]


def test_a_full_disk_leaves_no_columns_of_an_old_data_set(tmp_path):
    code = (
        "import resource, sys\nfrom ingot.compat import granular\n"
        "kinds = {'a': 'bytes', 'b': 'bytes'}\n"
        "with granular.DatasetWriter(sys.argv[1], kinds, None, layout='0.21') as writer:\n"
        "    writer.append({'a': b'small', 'b': bytes(1 << 20)})\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "x"], check=False, capture_output=True, text=True
    )
    assert "File too large" in ended.stderr
    assert list((tmp_path / "x").iterdir()) == []
    old_writer(tmp_path / "x").close()
    assert rows(tmp_path / "x") == [("old", "old")]


@pytest.mark.parametrize("layout", ["0.21", "0.22"])
@pytest.mark.parametrize("is_closing", [False, True])
def test_an_old_writer_that_was_killed_does_not_block_the_next(tmp_path, layout, is_closing):
    folder = tmp_path / "x"
    code = (
        "import os, sys\nfrom ingot.compat import granular\n"
        f"writer = granular.DatasetWriter(sys.argv[1], {SPEC}, granular.encoders, layout='0.21')\n"
        "writer.append({'a': 'old', 'b': 'old'})\n"
        f"if {is_closing}: writer.writers['a'].close()\n"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})"
    )
    subprocess.run([sys.executable, "-c", code, folder], check=False)
    assert (folder / "a.bag").exists() == is_closing
    with pytest.raises(FileNotFoundError):
        granular.DatasetReader(folder, granular.decoders)
    with granular.DatasetWriter(folder, SPEC, granular.encoders, layout=layout) as writer:
        assert len(writer) == 0
        writer.append({"a": "new", "b": "new"})
    assert rows(folder) == [("new", "new")]
    assert len(list(folder.iterdir())) == (4 if layout == "0.21" else 5)


def test_an_old_writer_that_was_forgotten_leaves_nothing_in_the_way(tmp_path):
    writer = old_writer(tmp_path / "x")
    with pytest.raises(ingot.StorageError, match="another writer"):
        old_writer(tmp_path / "x")
    del writer
    old_writer(tmp_path / "x").close()
    assert rows(tmp_path / "x") == [("old", "old")]


def test_bags_of_others_are_not_cleared_away(tmp_path):
    (tmp_path / "a.bag").write_bytes(b"of somebody else")
    with pytest.raises(FileExistsError):
        old_writer(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.bag"]


@pytest.mark.parametrize("name", ["a.bag", "refs.bag"])
def test_an_old_file_cut_at_any_byte_never_gives_wrong_rows(tmp_path, name):
    whole = tmp_path / "whole"
    with granular.DatasetWriter(whole, {"a": "utf8[]"}, granular.encoders) as writer:
        for k in range(3):
            writer.append({"a": [f"word {k}"] * k})
    expected = [{"a": [f"word {k}"] * k} for k in range(3)]
    for length in range((whole / name).stat().st_size):
        folder = tmp_path / f"cut{length}"
        shutil.copytree(whole, folder)
        with (folder / name).open("r+b") as file:
            file.truncate(length)
        try:
            with granular.DatasetReader(folder, granular.decoders) as reader:
                found = [reader[k] for k in range(len(reader))]
        except ingot.FormatError:
            continue
        assert found == expected[: len(found)]

"""Shards with deleted rows and files of added columns, as the engine reads them."""

import os

import numpy as np
import pytest

import ingot
from ingot import _core
from ingot.dataset.read.directory import Directory
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Spec

ROWS = 20
SPEC = {"a": "int", "t": "utf8", "score": "float?", "tags": "utf8[]?"}


def write(path, spec, rows):
    """Write a file, and return its name, its size and its id."""
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        writer.extend(rows)
    (file_id,) = _core.Rows([str(path)], partial=False).ids()
    return path.name, path.stat().st_size, file_id


def bitmap_of(deleted, rows=ROWS):
    bits = np.isin(np.arange(rows), list(deleted))
    return np.packbits(bits, bitorder="little").tobytes()


@pytest.fixture
def shards(tmp_path):
    """Return two shards: one with a bitmap and two files of columns, and a plain one."""
    first = {"a": "int", "t": "utf8"}
    name, nbytes, file_id = write(
        tmp_path / "0.ingot", first, ({"a": k, "t": f"old {k}"} for k in range(ROWS))
    )
    bitmap, deleted = tmp_path / "0.deletes", bitmap_of({0, 5, 6, 19})
    bitmap_id, bitmap_bytes = _core.write_deletes(str(bitmap), file_id, ROWS, deleted, sync=False)
    scores = ({"score": None if k % 3 else k / 2} for k in range(ROWS))
    texts = ({"t": f"new {k}"} for k in range(ROWS))
    columns = (
        (*write(tmp_path / "0.score.ingot", {"score": "float?"}, scores), ("score",)),
        (*write(tmp_path / "0.t.ingot", {"t": "utf8"}, texts), ("t",)),
    )
    rows = ({"a": k, "t": f"late {k}", "score": 1.0, "tags": ["x"] * k} for k in range(3))
    plain = write(tmp_path / "1.ingot", SPEC, rows)
    return [
        (name, ROWS, nbytes, file_id, (bitmap.name, bitmap_bytes, bitmap_id, 4), columns),
        (plain[0], 3, plain[1], plain[2]),
    ]


def opened(folder, shards):
    listing, spec = _core.Listing(shards), Spec.of(SPEC)
    native = _core.Rows.listed(str(folder), listing, spec.stored())
    directory = Directory(folder, listing, dict(SPEC), {})
    return ingot.Dataset(IngotSource.of(native, "0.ingot", directory, allow_pickle=False))


def expected():
    live = [k for k in range(ROWS) if k not in {0, 5, 6, 19}]
    old = [{"a": k, "t": f"new {k}", "score": None if k % 3 else k / 2, "tags": None} for k in live]
    late = [{"a": k, "t": f"late {k}", "score": 1.0, "tags": ["x"] * k} for k in range(3)]
    return old + late


def test_rows_batches_and_columns_are_those_that_are_left(tmp_path, shards):
    ds = opened(tmp_path, shards)
    rows = expected()
    assert len(ds) == len(rows) == 19
    assert [ds[k] for k in range(19)] == rows
    assert list(ds) == rows
    picks = [18, 3, 3, 0, 15, 7]
    assert ds[picks]["t"] == [rows[k]["t"] for k in picks]
    assert ds[picks]["tags"] == [rows[k]["tags"] for k in picks]
    assert ds.column("a").tolist() == [row["a"] for row in rows]
    assert ds.present("score").tolist() == [row["score"] is not None for row in rows]
    assert ds.lengths("tags").tolist() == [len(row["tags"] or ()) for row in rows]
    assert ds.verify().rows == 19


def test_a_child_of_a_fork_reads_the_same_rows(tmp_path, shards):
    ds = opened(tmp_path, shards)
    assert ds[4] == expected()[4]
    child = os.fork()
    if child == 0:
        os._exit(0 if list(ds) == expected() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_list_of_plain_files_has_the_content_that_saved_states_know():
    listing = _core.Listing([("a b", 1, 2, None), ("c", 3, 4, "0" * 32)])
    assert listing.content() == f"a b 1 2 -\nc 3 4 {'0' * 32}\n".encode()
    assert _core.Listing(listing.shards()).content() == listing.content()


def test_the_content_of_a_list_names_all_files(shards):
    first, second = shards
    (score, _, score_id, _), (texts, _, texts_id, _) = first[5]
    bitmap, _, bitmap_id, _ = first[4]
    lines = _core.Listing(shards).content().decode().splitlines()
    plain = " ".join(str(one) for one in first[:4])
    assert lines[0] == (
        f"{plain} -{bitmap}:{bitmap_id}:4 +{score}:{score_id}:score +{texts}:{texts_id}:t"
    )
    assert lines[1] == " ".join(str(one) for one in second)


def test_a_list_returns_what_it_was_given_as_values_that_can_be_hashed(shards):
    listing = _core.Listing(shards)
    assert listing.shards() == [shards[0], (*shards[1], None, ())]
    assert hash(listing.shard(0)) == hash(shards[0])
    assert listing.names() == ["0.ingot", "1.ingot"]
    assert listing.files() == [
        "0.ingot",
        "0.deletes",
        "0.score.ingot",
        "0.t.ingot",
        "1.ingot",
    ]


def test_the_sizes_of_all_files_are_compared(tmp_path, shards):
    listing = _core.Listing(shards)
    sizes = {name: (tmp_path / name).stat().st_size for name in listing.files()}
    assert listing.nbytes == sum(sizes.values())
    assert listing.odd(str(tmp_path)) is None
    for number, name in [(0, "0.deletes"), (0, "0.t.ingot"), (1, "1.ingot")]:
        path = tmp_path / name
        data = path.read_bytes()
        path.write_bytes(data[:-1])
        assert listing.odd(str(tmp_path)) == (number, name, sizes[name], sizes[name] - 1)
        path.unlink()
        assert listing.odd(str(tmp_path)) == (number, name, sizes[name], None)
        path.write_bytes(data)


def test_a_bitmap_is_read_as_it_was_written(tmp_path):
    path, of = str(tmp_path / "bitmap"), "ab" * 16
    deleted = bitmap_of({1, 2, 17})
    found, nbytes = _core.write_deletes(path, of, ROWS, deleted, sync=True)
    assert os.path.getsize(path) == nbytes  # noqa: PTH202
    assert _core.read_deletes(path, found, of, ROWS, 3) == deleted
    assert _core.read_deletes(path, found, None, ROWS, 3) == deleted
    with pytest.raises(ingot.FormatError, match="it deletes 3 of 20 rows, but the manifest says 4"):
        _core.read_deletes(path, found, of, ROWS, 4)
    with pytest.raises(ingot.FormatError, match="another file is in its place"):
        _core.read_deletes(path, of, of, ROWS, 3)
    with pytest.raises(FileExistsError):
        _core.write_deletes(path, of, ROWS, deleted, sync=True)
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        _core.read_deletes(path, "x", of, ROWS, 3)
    with pytest.raises(ValueError, match="2 bytes for 20 rows"):
        _core.write_deletes(str(tmp_path / "other"), of, ROWS, deleted[:2], sync=True)


def test_a_truncated_bitmap_is_reported_as_damage(tmp_path, shards):
    path = tmp_path / "0.deletes"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ingot.CorruptFileError, match=r"0\.deletes") as caught:
        opened(tmp_path, shards)
    assert caught.value.offset is not None
    assert caught.value.record is None

"""Files that are compressed as a whole open like those that are not."""

import bz2
import gzip
import hashlib
import io
import multiprocessing
import os
import pickle
import shutil
import tarfile

import pytest
import zstandard

import ingot
from tests.support.canonical import FOREIGN
from tests.support.foreign_files import example, tfrecord

LINES = b"".join(b'{"n": %d, "text": "line %d"}\n' % (k, k) for k in range(500))


def tar_of(count):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for k in range(count):
            for suffix, data in (("txt", b"text %d" % k), ("cls", b"%d" % k)):
                member = tarfile.TarInfo(f"{k:03}.{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return whole.getvalue()


FILES = {
    "x.jsonl": LINES,
    "x.csv": b"n,text\n" + b"".join(b"%d,t%d\n" % (k, k) for k in range(100)),
    "x.tfrecord": tfrecord([example(n=[k], text=[b"t%d" % k]) for k in range(40)]),
    "x.tar": tar_of(30),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".GZ"])
def test_rows_match_the_plain_file(tmp_path, name, suffix):
    plain, packed = tmp_path / name, tmp_path / f"{name}{suffix}"
    plain.write_bytes(FILES[name])
    compress = {".zst": zstandard.compress, ".bz2": bz2.compress}.get(suffix, gzip.compress)
    packed.write_bytes(compress(FILES[name]))
    expected, found = ingot.open(plain), ingot.open(packed)
    assert dict(found.spec) == dict(expected.spec)
    assert list(found) == list(expected)
    assert found.path == str(packed)
    assert found.verify().ok


@pytest.mark.parametrize("name", ["x.tfrecord.gz", "x.jsonl.gz"])
def test_records_of_a_compressed_file_are_read(tmp_path, name):
    plain, path = tmp_path / name.removesuffix(".gz"), tmp_path / name
    plain.write_bytes(FILES[plain.name])
    path.write_bytes(gzip.compress(FILES[plain.name]))
    records = ingot.open_records(path)
    assert list(records) == list(ingot.open_records(plain))
    assert records.verify().ok
    assert pickle.loads(pickle.dumps(records))[3] == records[3]  # noqa: S301


def test_golden_examples_are_read_and_converted(tmp_path):
    source = FOREIGN / "tfrecord" / "examples.tfrecord.gz"
    plain = ingot.open(FOREIGN / "tfrecord" / "examples.tfrecord", index_dir=tmp_path / "index")
    done = ingot.convert(source, tmp_path / "x.ingot")
    assert (done.rows, done.checked) == (len(plain), True)
    assert ingot.open(tmp_path / "x.ingot").column("id").tolist() == plain.column("id").tolist()
    assert ingot.convert(source, tmp_path / "rows", shard_bytes=10_000).rows == len(plain)


def test_a_tgz_is_a_tar(tmp_path):
    path = tmp_path / "x.tgz"
    path.write_bytes(gzip.compress(FILES["x.tar"]))
    assert ingot.open(path).column("cls").tolist() == list(range(30))


def test_several_files_are_one_data_set(tmp_path):
    for k in range(3):
        (tmp_path / f"part-{k}.jsonl.gz").write_bytes(gzip.compress(b'{"k": %d}\n' % k))
    assert ingot.open(str(tmp_path / "part-*.jsonl.gz")).column("k").tolist() == [0, 1, 2]


def test_members_of_a_gzip_file_are_one_file(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES[:9000]) + gzip.compress(LINES[9000:]))
    assert len(ingot.open(path)) == 500


def test_a_file_is_decompressed_once_and_again_when_it_changed(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    ingot.open(path)
    (first,) = cache.rglob("*.unpacked")
    before = first.stat().st_ino
    assert len(ingot.open(path)) == 500
    assert first.stat().st_ino == before
    path.write_bytes(gzip.compress(LINES + b'{"n": 500, "text": ""}\n'))
    assert len(ingot.open(path)) == 501


def test_index_dir_is_where_it_is_decompressed(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    ingot.open(path, index_dir=tmp_path / "here")
    assert list((tmp_path / "here").rglob("*.unpacked"))
    assert not cache.exists()


def test_the_environment_may_say_where_it_is_decompressed(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX_DIR", str(tmp_path / "here"))
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    ingot.open(path)
    assert list((tmp_path / "here").rglob("*.unpacked"))
    assert not cache.exists()


@pytest.mark.parametrize("damage", [slice(0, 200), slice(0, -4)])
def test_a_file_that_is_truncated_is_rejected_and_leaves_nothing(tmp_path, cache, damage):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES)[damage])
    with pytest.raises(ingot.CorruptFileError, match=r"x\.jsonl\.gz: .*decompress"):
        ingot.open(path)
    assert [one.name for one in cache.rglob("*") if one.is_file()] == ["lock"]


def test_a_file_that_grows_without_measure_is_rejected(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    ingot.set_max_decoded_bytes(10_000_000)
    try:
        with pytest.raises(ingot.FormatError, match=r"x\.jsonl\.gz"):
            ingot.open(path)
    finally:
        ingot.set_max_decoded_bytes(1 << 30)
    assert [one.name for one in cache.rglob("*") if one.is_file()] == ["lock"]


def test_a_name_without_rows_gets_a_hint(tmp_path):
    path = tmp_path / "x.bin.gz"
    path.write_bytes(gzip.compress(LINES))
    with pytest.raises(ingot.FormatError, match="gunzip"):
        ingot.open(path)


def test_a_directory_has_files_with_and_without_compression(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"k": 0}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"k": 1}\n'))
    (tmp_path / "c.JSONL").write_bytes(b'{"k": 2}\n')
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"not a row"))
    assert ingot.open(tmp_path).column("k").tolist() == [0, 1, 2]


def test_a_name_of_many_bytes_is_cut_where_a_character_ends(tmp_path):
    path = tmp_path / ("\u65e5" * 80 + ".jsonl.gz")
    path.write_bytes(gzip.compress(LINES))
    assert len(ingot.open(path)) == 500


def test_one_copy_of_a_file_that_changes_is_kept(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    for k in range(4):
        path.write_bytes(gzip.compress(LINES + b'{"n": %d, "text": ""}\n' % (500 + k)))
        assert ingot.open(path).column("n")[-1] == 500 + k
    (copy,) = cache.rglob("*.unpacked")
    assert copy.stat().st_size == len(LINES) + len(b'{"n": 500, "text": ""}\n')
    assert len([*cache.rglob("*.index")]) == 1


def test_copies_of_files_that_are_gone_are_removed_with_the_next_one(tmp_path, cache):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(LINES))
        ingot.open(tmp_path / f"{name}.jsonl.gz")
        (tmp_path / f"{name}.jsonl.gz").unlink()
    assert [one.name[0] for one in cache.rglob("*.unpacked")] == ["b"]


@pytest.mark.parametrize("index", ["kept", "lost"])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_copy_is_replaced(tmp_path, cache, name, index):
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(FILES[name]))
    expected = list(ingot.open(path))
    (copy,) = cache.rglob("*.unpacked")
    whole = copy.read_bytes()
    assert whole == FILES[name]
    flipped = (
        whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :]
        for at in range(0, len(whole), len(whole) // 40)
    )
    for data in (whole[: len(whole) // 2], whole + b"\n", b"", *flipped):
        times = copy.stat()
        copy.write_bytes(data)
        os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
        if index == "lost":
            for one in cache.rglob("*.index"):
                one.unlink()
        ds = ingot.open(path)
        assert list(ds) == expected
        assert ds.verify().ok
        assert copy.read_bytes() == whole


def test_notes_about_copies_that_are_damaged_are_made_anew(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    ingot.open(path)
    (note,) = cache.rglob("*.copy")
    whole = note.read_bytes()
    for at in range(0, len(whole), 31):
        note.write_bytes(whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :])
        assert len(ingot.open(path)) == 500


def test_a_copy_that_is_made_again_is_the_same_data_set(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    pickled = pickle.dumps(ingot.open(path))
    shutil.rmtree(cache)
    assert len(pickle.loads(pickled)) == 500  # noqa: S301


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.csv.gz", "x.tar.gz"])
def test_processes_that_open_at_once_decompress_once(tmp_path, cache, name):
    plain = FILES[name.removesuffix(".gz")]
    context = multiprocessing.get_context("fork")
    for number in range(3):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        path.write_bytes(gzip.compress(plain * (1 if "tar" in name else 40)))
        barrier, found = context.Barrier(8), context.SimpleQueue()
        running = [context.Process(target=digest, args=(path, barrier, found)) for _ in range(8)]
        for one in running:
            one.start()
        digests = {found.get() for _ in running}
        for one in running:
            one.join()
        assert len(digests) == 1
        assert not next(iter(digests)).startswith("Error")
    assert len([*cache.rglob("*.unpacked")]) == 3
    assert not [*cache.rglob("*.part")]


def digest(path, barrier, found):
    """Put what all rows of a file hash to into a queue, or the error."""
    barrier.wait()
    try:
        rows = list(ingot.open(path))
        found.put(f"{len(rows)} {hashlib.sha256(repr(rows).encode()).hexdigest()}")
    except Exception as error:  # noqa: BLE001
        found.put(f"Error {error}")

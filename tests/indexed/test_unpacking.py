"""Files that are compressed as a whole open like those that are not."""

import bz2
import gzip
import io
import tarfile

import pytest
import zstandard

import ingot
from canonical import DATA
from foreign_files import example, tfrecord

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


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ingot"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".GZ"])
def test_rows_are_those_of_the_plain_file(tmp_path, name, suffix):
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
def test_records_of_a_compressed_file_are_refused_with_what_to_do(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(FILES[name.removesuffix(".gz")]))
    what = rf"decompress it, and open {tmp_path}/{name.removesuffix('.gz')}$"
    with pytest.raises(ingot.FormatError, match=what):
        ingot.open_records(path)


def test_golden_examples_are_read_and_converted(tmp_path):
    source = DATA / "tfrecord" / "examples.tfrecord.gz"
    plain = ingot.open(DATA / "tfrecord" / "examples.tfrecord", index_dir=tmp_path / "index")
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
    (first,) = cache.glob("*.unpacked")
    before = first.stat().st_mtime_ns
    assert len(ingot.open(path)) == 500
    assert first.stat().st_mtime_ns == before
    path.write_bytes(gzip.compress(LINES + b'{"n": 500, "text": ""}\n'))
    assert len(ingot.open(path)) == 501


def test_index_dir_is_where_it_is_decompressed(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    ingot.open(path, index_dir=tmp_path / "here")
    assert list((tmp_path / "here").glob("*.unpacked"))
    assert not cache.exists()


def test_the_environment_may_say_where_it_is_decompressed(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX_DIR", str(tmp_path / "here"))
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    ingot.open(path)
    assert list((tmp_path / "here").glob("*.unpacked"))
    assert not cache.exists()


@pytest.mark.parametrize("damage", [slice(0, 200), slice(0, -4)])
def test_a_file_that_is_cut_short_is_refused_and_leaves_nothing(tmp_path, cache, damage):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(LINES)[damage])
    with pytest.raises(ingot.CorruptFileError, match=r"x\.jsonl\.gz: .*decompress"):
        ingot.open(path)
    assert [*cache.iterdir()] == []


def test_a_file_that_grows_without_measure_is_refused(tmp_path, cache):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    ingot.set_max_decoded_bytes(10_000_000)
    try:
        with pytest.raises(ingot.FormatError, match=r"x\.jsonl\.gz"):
            ingot.open(path)
    finally:
        ingot.set_max_decoded_bytes(1 << 30)
    assert [*cache.iterdir()] == []


def test_what_has_no_rows_by_its_name_says_what_to_do(tmp_path):
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

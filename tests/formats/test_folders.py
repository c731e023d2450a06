"""Directories of MDS and LitData, read in place."""

import bz2
import gzip
import hashlib
import json
import pickle

import numpy as np
import pytest

import ingot
from tests.support.canonical import manifest, record_sha256


@pytest.mark.parametrize("name", ["mds", "mds_zstd", "litdata", "litdata_zstd"])
def test_golden_rows_come_out_as_they_went_in(golden, name):
    ds = ingot.open(golden(name))
    assert len(ds) == 50
    for row, known in zip(ds, manifest(name)["records"], strict=True):
        assert record_sha256(row) == known["record_sha256"]
    batch = ds[[49, 3]]
    np.testing.assert_array_equal(batch["id"], [49, 3])
    assert ds.verify().damaged == []


def test_the_types_of_mds_match_its_encodings(golden):
    assert dict(ingot.open(golden("mds")).spec) == {
        "arr": "array",
        "big": "array(int64)",
        "blob": "bytes",
        "cls": "array(uint8)",
        "fixed": "array(float32,3,4)",
        "id": "int",
        "jpg": "bytes",
        "meta": "json",
        "score": "array(float64)",
        "text": "utf8",
        "tokens": "array",
    }


def test_a_spec_reads_bytes_as_pictures(golden):
    ds = ingot.open(golden("mds"), spec={"jpg": "jpg", "id": "int"})
    assert ds[[1, 2]]["jpg"].shape == (2, 24, 24, 3)


@pytest.mark.parametrize("name", ["mds_zstd", "litdata_zstd"])
def test_compressed_files_are_decompressed_once_into_the_cache(golden, cache, name):
    folder = golden(name)
    first = ingot.open(folder)
    unpacked = sorted(cache.rglob("*.unpacked"))
    assert len(unpacked) == 4
    before = [one.stat().st_ino for one in unpacked]
    assert ingot.open(folder)[7].keys() == first[7].keys()
    assert [one.stat().st_ino for one in sorted(cache.rglob("*.unpacked"))] == before
    assert not [one for one in folder.iterdir() if one.suffix == ".unpacked"]


@pytest.mark.parametrize("name", ["mds", "mds_zstd", "litdata"])
def test_a_pickled_data_set_is_small_and_rejects_replaced_files(golden, name):
    folder = golden(name)
    ds = ingot.open(folder)
    pickled = pickle.dumps(ds)
    assert len(pickled) < 1000
    assert pickle.loads(pickled)[3]["id"] == 3  # noqa: S301
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(index, indent=1))
    assert pickle.loads(pickled)[3]["id"] == 3  # noqa: S301
    index["chunks" if "chunks" in index else "shards"].reverse()
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(ingot.FormatError, match="replaced"):
        pickle.loads(pickled)  # noqa: S301


def test_verify_checks_the_hashes_that_mds_lists(golden):
    folder = golden("mds")
    index = json.loads((folder / "index.json").read_text())
    ingot.open(folder)
    index["shards"][1]["raw_data"]["hashes"]["sha1"] = "0" * 40
    (folder / "index.json").write_text(json.dumps(index))
    (damage,) = ingot.open(folder).verify().damaged
    assert "shard.00001.mds: sha1 is" in damage.reason


@pytest.mark.parametrize("name", ["mds", "mds_zstd"])
def test_a_shard_with_another_hash_is_rejected_when_it_is_first_opened(golden, name, cache):
    folder = golden(name)
    index = json.loads((folder / "index.json").read_text())
    data = index["shards"][2]["zip_data" if "zstd" in name else "raw_data"]
    path = folder / data["basename"]
    data["hashes"] = {"sha1": hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()}
    (folder / "index.json").write_text(json.dumps(index))
    assert ingot.open(folder, index_dir=folder / "a").verify().ok
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ingot.CorruptFileError, match=rf"{path.name}: sha1 is .* is listed"):
        ingot.open(folder)
    assert [one for one in walk(cache) if path.name in one.name] == []


@pytest.mark.parametrize("name", ["sha0", "shake_128", "xxh63", ""])
def test_verify_says_which_hash_it_cannot_compute(golden, name):
    folder = golden("mds")
    index = json.loads((folder / "index.json").read_text())
    index["shards"][1]["raw_data"]["hashes"] = {name: "0" * 40}
    (folder / "index.json").write_text(json.dumps(index))
    ds = ingot.open(folder)
    with pytest.raises(
        ingot.FormatError, match=rf"shard\.00001\.mds: its checksum '{name}' cannot"
    ):
        ds.verify()


@pytest.mark.parametrize("encoding", ["nothing", "ndarray:int7", "", 7])
def test_an_unknown_encoding_of_mds_is_named(golden, encoding):
    folder = golden("mds")
    index = json.loads((folder / "index.json").read_text())
    for shard in index["shards"]:
        shard["column_encodings"][0] = encoding
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(ingot.FormatError, match="unknown" if encoding != 7 else "integer"):
        ingot.open(folder)


@pytest.mark.parametrize("name", ["mds", "litdata"])
def test_a_missing_or_shorter_file_is_rejected(golden, name):
    folder = golden(name)
    file = sorted(one for one in folder.iterdir() if one.suffix in (".mds", ".bin"))[1]
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ingot.CorruptFileError, match=rf"{file.name}: it has .* lists"):
        ingot.open(folder)
    file.unlink()
    with pytest.raises(ingot.FormatError, match="missing"):
        ingot.open(folder)


@pytest.mark.parametrize("name", ["mds", "litdata"])
def test_a_listed_name_cannot_lead_out_of_the_directory(golden, name):
    folder = golden(name)
    text = (folder / "index.json").read_text()
    for bad in ("../x", "/etc/passwd", "..", ""):
        changed = text.replace("shard.00000.mds", bad).replace("chunk-0-0.bin", bad)
        (folder / "index.json").write_text(changed)
        with pytest.raises(ingot.FormatError, match="not the name of a file"):
            ingot.open(folder)


@pytest.mark.parametrize(
    ("name", "file", "step"),
    [
        ("mds", "shard.00003.mds", 23),
        ("litdata", "chunk-0-3.bin", 23),
        ("mds_zstd", "shard.00003.mds.zstd", 41),
        ("litdata_zstd", "chunk-0-3.bin", 41),
    ],
)
def test_damaged_files_give_errors_or_other_values_but_never_crash(golden, name, file, step):
    folder = golden(name)
    whole = (folder / file).read_bytes()
    refused = 0
    for at in range(0, len(whole), step):
        (folder / file).write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            ingot.open(folder)[48:].read()
        except (ingot.IngotError, ValueError):
            refused += 1
    assert refused


def test_an_index_of_something_else_is_not_ours(tmp_path):
    (tmp_path / "index.json").write_text('{"other": 1}')
    with pytest.raises(ingot.FormatError, match="no record files"):
        ingot.open(tmp_path)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(ingot.FormatError, match="not JSON"):
        ingot.open(tmp_path)
    (tmp_path / "index.json").write_text('{"version": 2, "shards": [{"format": "mds"}]}')
    with pytest.raises(ingot.FormatError, match="not an index of MDS"):
        ingot.open(tmp_path)


def test_every_encoding_of_mds_is_read(golden):
    folder = golden("mds_encodings")
    ds = ingot.open(folder)
    assert dict(ds.spec) == {
        "a": "array(uint16)",
        "b": "array(float16)",
        "c": "int",
        "d": "float",
        "e": "utf8",
        "f": "array",
        "g": "jpg",
        "h": "png",
        "i": "pickle",
        "j": "array",
        "k": "png[]",
        "l": "array(float32)",
        "m": "jpg[]",
        "n": "array(int8)",
    }
    row = ds.select(*(name for name in ds.spec if name != "i"))[3]
    assert (row["a"], row["b"], row["c"], row["n"]) == (3, np.float16(0.75), 30, -3)
    assert (row["d"], row["e"], row["l"]) == (1.0, "0.4285714285714285714285714286", 1.5)
    assert row["j"].tolist() == [[0, 1, 2, 3]]
    y, x = np.mgrid[0:8, 0:6]
    pixels = np.stack([(x * 30 + 3) % 256, (y * 20) % 256, (x + y) * 9 % 256], -1)
    for image in (row["f"], row["h"], *row["k"]):
        np.testing.assert_array_equal(image, pixels)
    assert (len(row["k"]), len(row["m"]), row["g"].shape) == (3, 4, (8, 6, 3))
    with pytest.raises(ingot.FormatError, match="allow_pickle=True"):
        ds[0]
    assert ingot.open(folder, allow_pickle=True)[2]["i"] == {"k": 2}


COMPRESSED = ["mds_br", "mds_bz2", "mds_gz", "mds_snappy"]


@pytest.mark.parametrize("name", COMPRESSED)
def test_every_compression_of_mds_is_read(golden, name):
    ds = ingot.open(golden(name))
    assert [row["t"] for row in ds] == ["x" * k * 100 for k in range(4)]
    assert ds.verify().damaged == []


@pytest.mark.parametrize("name", COMPRESSED)
def test_damage_in_compressed_shards_is_an_error_and_leaves_nothing(golden, cache, name):
    folder = golden(name)
    (file,) = folder.glob("shard.*")
    whole = file.read_bytes()
    refused = 0
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            assert len([row["t"] for row in ingot.open(folder)]) == 4
        except ingot.FormatError:
            refused += 1
    assert refused > len(whole) / 4
    known = (".unpacked", ".copy", ".index", ".sum")
    assert all(one.suffix in known or one.name == "lock" for one in walk(cache))


def walk(folder):
    """Return all files in a folder, and in those below it."""
    return [one for one in folder.rglob("*") if one.is_file()]


def listing(folder, compression, data, nbytes):
    """Write an MDS shard that is compressed, and the index that lists it."""
    (folder / "x.packed").write_bytes(data)
    shard = {
        "column_encodings": ["bytes"],
        "column_names": ["b"],
        "compression": compression,
        "format": "mds",
        "raw_data": {"basename": "x.mds", "bytes": nbytes, "hashes": {}},
        "samples": 1,
        "version": 2,
        "zip_data": {"basename": "x.packed", "bytes": len(data), "hashes": {}},
    }
    (folder / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))
    return folder


@pytest.fixture
def little():
    """Let values grow by a megabyte only when they are decoded."""
    before = ingot._core.max_decoded_bytes()
    ingot.set_max_decoded_bytes(1 << 20)
    yield
    ingot.set_max_decoded_bytes(before)


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
@pytest.mark.usefixtures("little")
def test_a_shard_that_decompresses_to_too_much_is_rejected(tmp_path, cache, pack):
    nbytes = 8 << 20
    data = pack(bytes(nbytes))
    folder = listing(tmp_path, {bz2.compress: "bz2:9"}.get(pack, "gz:9"), data, nbytes)
    with pytest.raises(ingot.FormatError, match=r"x\.packed: .* the limit is 1048576"):
        ingot.open(folder)
    assert [one.name for one in walk(cache)] == ["lock"]


def test_a_compression_that_is_not_read_is_named(tmp_path):
    with pytest.raises(ingot.FormatError, match=r"x\.packed: unsupported compression lzma .* bz2"):
        ingot.open(listing(tmp_path, "lzma:3", b"data", 4))


@pytest.mark.parametrize("name", ["litdata_formats", "litdata_sample", "litdata_chunk"])
def test_nested_items_and_formats_of_litdata_are_read(golden, name):
    ds = ingot.open(golden(name))
    assert dict(ds.spec) == {
        "k": "int",
        "t": "array",
        "p": "array",
        "n.o.0": "array(int16)[]",
        "n.o.1": "utf8",
        "b": "bool",
    }
    row = ds[3]
    assert row["t"].tolist() == [[3, 4, 5], [6, 7, 8]]
    assert (row["k"], row["b"], row["p"].shape) == (3, False, (8, 6, 3))
    assert row["n"]["o"]["0"].tolist() == [0, 1, 2, 3]
    assert row["n"]["o"]["1"] == "zzz"


def test_a_chunk_that_holds_arrow_among_others_is_rejected(golden):
    folder = golden("litdata")
    chunk = folder / "chunk-0-3.bin"
    whole = chunk.read_bytes()
    head = 4 * (2 + 2)
    chunk.write_bytes(whole[:head] + b"ARROW1\0\0" + whole[head + 8 :])
    with pytest.raises(ingot.FormatError, match=r"chunk-0-3\.bin: the chunk holds an Arrow file"):
        ingot.open(folder)

"""LitData chunks that hold Arrow, read in place."""

import io
import json
import pickle
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import ingot
from tests.support import FAULTS

NAMES = ["litdata_arrow", "litdata_arrow_zstd"]
DAMAGED = FAULTS / "damaged_arrow.py"


def item(k):
    """Return the item that LitData was given for row `k` of the golden files, but its picture."""
    return {
        "k": k - 3,
        "text": "n\xe9 " * (k + 40),
        "score": k / 2,
        "flag": k % 2 == 0,
        "n": {"o": list(range(k)), "p": None if k < 4 else "z" * k},
        "words": ["a" * k, "b"],
        "late": None if k < 4 else k,
    }


def chunk(rows, compression=None):
    """Return a chunk as LitData writes it."""
    table = pa.Table.from_pylist(rows)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    stored = sink.getvalue().to_pybytes()
    start = 4 * (len(rows) + 2)
    head = struct.pack(f"<{len(rows) + 2}I", len(rows), *[start] * (len(rows) + 1))
    return head + stored + struct.pack("<I", len(stored)) + b"LDARW01\0"


def write(folder, chunks):
    """Write chunks, given as bytes and numbers of rows, and the index that lists them."""
    listed = []
    for k, (data, rows) in enumerate(chunks):
        (folder / f"chunk-0-{k}.bin").write_bytes(data)
        one = {"chunk_bytes": len(data), "chunk_size": rows, "filename": f"chunk-0-{k}.bin"}
        listed.append(one)
    leaf = {"type": None, "context": None, "children_spec": []}
    config = {"data_format": ["int"], "data_spec": json.dumps([1, leaf]), "compression": None}
    (folder / "index.json").write_text(json.dumps({"chunks": listed, "config": config}))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_golden_rows_come_out_as_they_went_in(golden, name):
    ds = ingot.open(golden(name))
    assert dict(ds.spec) == {
        "png": "bytes",
        "k": "int",
        "text": "utf8",
        "score": "float",
        "flag": "bool",
        "n.o": "int[]",
        "n.p": "utf8?",
        "words": "utf8[]",
        "late": "int?",
    }
    for k, row in enumerate(ds):
        pixels = np.asarray(Image.open(io.BytesIO(row.pop("png"))))
        np.testing.assert_array_equal(pixels, np.full((4, 5, 3), k, np.uint8))
        row["n"]["o"] = row["n"]["o"].tolist()
        assert row == item(k)
    assert len(ds) == 7
    assert ds.verify().damaged == []


@pytest.mark.parametrize("name", NAMES)
def test_batches_orders_and_loaders_reach_all_chunks(golden, name):
    ds = ingot.open(golden(name))
    batch = ds[[6, 0, 5]]
    assert batch["k"].tolist() == [3, -3, 2]
    assert batch["words"] == [["aaaaaa", "b"], ["", "b"], ["aaaaa", "b"]]
    (batch,) = ingot.Loader(ds.shuffle(seed=1), batch_size=7)
    assert sorted(batch["k"].tolist()) == list(range(-3, 4))


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_chooses_fields_and_their_types(golden, name):
    folder = golden(name)
    ds = ingot.open(folder, spec={"png": "png", "k": "int", "n": {"p": "bytes?"}})
    assert ds[[2, 6]]["png"].shape == (2, 4, 5, 3)
    assert ds[6]["n"] == {"p": b"zzzzzz"}
    assert pickle.loads(pickle.dumps(ds))[4]["png"].shape == (4, 5, 3)  # noqa: S301
    with pytest.raises(ingot.FormatError, match="no field 'jpg', only 'png'"):
        ingot.open(folder, spec={"jpg": "jpg"})
    with pytest.raises(ingot.FormatError, match="'k' is int, which cannot be read as jpg"):
        ingot.open(folder, spec={"k": "jpg"})


def test_pickles_are_read_only_on_request(tmp_path):
    folder = write(tmp_path, [(chunk([{"x": pickle.dumps([1])}]), 1)])
    assert ingot.open(folder)[0] == {"x": pickle.dumps([1])}
    with pytest.raises(ingot.FormatError, match="allow_pickle=True"):
        ingot.open(folder, spec={"x": "pickle"})[0]
    assert ingot.open(folder, spec={"x": "pickle"}, allow_pickle=True)[0] == {"x": [1]}


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_columns_that_a_chunk_lacks_or_has_no_values_of_are_missing_there(tmp_path, compression):
    parts = [
        [{"k": 0, "n": None, "l": [], "d": None}, {"k": 1, "n": None, "l": [], "d": None}],
        [{"z": "q", "k": 2, "n": 1.5, "l": [{"a": 1}], "d": {"x": 1}}],
        [{"k": 3, "n": 2, "l": [{"b": "s"}], "d": {"y": "t"}}],
    ]
    chunks = [(chunk(rows, compression), len(rows)) for rows in parts]
    ds = ingot.open(write(tmp_path, chunks))
    found = [
        {"k": 0, "n": None, "l": [], "d": {"x": None, "y": None}, "z": None},
        {"k": 1, "n": None, "l": [], "d": {"x": None, "y": None}, "z": None},
        {"k": 2, "n": 1.5, "l": [{"a": 1, "b": None}], "d": {"x": 1, "y": None}, "z": "q"},
        {"k": 3, "n": 2.0, "l": [{"a": None, "b": "s"}], "d": {"x": None, "y": "t"}, "z": None},
    ]
    assert list(ds) == found
    assert [ds[k] for k in (3, 0, 2, 1)] == [found[k] for k in (3, 0, 2, 1)]
    assert ds.verify().damaged == []


def test_chunks_of_other_types_are_rejected_by_name(tmp_path):
    folder = write(tmp_path, [(chunk([{"x": 1}]), 1), (chunk([{"x": "s"}]), 1)])
    with pytest.raises(ingot.FormatError, match=r"chunk-0-1\.bin: .*x"):
        ingot.open(folder)


def test_a_chunk_without_arrow_among_others_is_rejected(tmp_path):
    plain = struct.pack("<IIIIq", 1, 12, 24, 8, 5)
    folder = write(tmp_path, [(chunk([{"x": 1}]), 1), (plain, 1)])
    with pytest.raises(ingot.CorruptFileError, match=r"chunk-0-1\.bin: the chunk does not hold"):
        ingot.open(folder)


def test_a_chunk_with_other_rows_than_are_listed_is_rejected(tmp_path):
    folder = write(tmp_path, [(chunk([{"x": 1}]), 2)])
    with pytest.raises(ingot.CorruptFileError, match=r"it has 1 row, but index\.json lists 2"):
        ingot.open(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_or_shorter_chunk_is_rejected(golden, name):
    folder = golden(name)
    for file in (folder / "chunk-0-0.bin", folder / "chunk-0-1.bin"):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        with pytest.raises(ingot.CorruptFileError, match=rf"{file.name}: it has .* lists"):
            ingot.open(folder)
        file.unlink()
        with pytest.raises(ingot.FormatError, match=f"{file.name}: the file is missing"):
            ingot.open(folder)
        file.write_bytes(whole)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", ["chunk-0-0.bin", "chunk-0-1.bin"])
def test_any_damage_gives_rows_or_an_error_of_ours(golden, name, file):
    folder = golden(name)
    command = [sys.executable, str(DAMAGED), str(folder / file), "150", str(folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.stderr, found.returncode) == ("", 0)
    assert int(found.stdout) > 50, "damage was hardly ever noticed"


def test_a_compressed_chunk_that_claims_to_be_huge_is_rejected(tmp_path):
    data = chunk([{"s": "a" * 50_000}], "zstd")
    zstd = b"\x28\xb5\x2f\xfd"
    claim = struct.pack("<q", 50_000) + zstd
    assert data.count(claim) == 1
    folder = write(tmp_path, [(data.replace(claim, struct.pack("<q", 1 << 40) + zstd), 1)])
    with pytest.raises(ingot.FormatError, match="it decodes to at least"):
        ingot.open(folder)[0]


def test_a_pickled_data_set_is_small_and_rejects_replaced_files(golden):
    folder = golden("litdata_arrow")
    pickled = pickle.dumps(ingot.open(folder))
    assert len(pickled) < 1000
    assert pickle.loads(pickled)[3]["k"] == 0  # noqa: S301
    file = folder / "chunk-0-1.bin"
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)
    with pytest.raises(ingot.FormatError, match="changed"):
        pickle.loads(pickled)  # noqa: S301


def test_a_copy_has_the_same_rows(golden, tmp_path):
    ds = ingot.open(golden("litdata_arrow_zstd"))
    ds.save(tmp_path / "copy")
    copy = ingot.open(tmp_path / "copy")
    assert copy[5]["text"] == ds[5]["text"]
    assert copy.column("k").tolist() == list(range(-3, 4))

"""Damaged, truncated and hostile Parquet and Arrow files: always an error of ours."""

import os
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import ingot
from tests.support import FAULTS
from tests.support.arrow_tables import write

KINDS = {"parquet": ".parquet", "feather": ".feather", "file": ".arrow", "stream": ".arrow"}
DAMAGED = FAULTS / "damaged_arrow.py"


def table_of(count=60):
    ks = range(count)
    return pa.table(
        {
            "i": list(ks),
            "s": [f"text {k}" * (k % 5) if k % 7 else None for k in ks],
            "l": [[float(j) for j in range(k % 4)] for k in ks],
            "w": [["a", "bb"] * (k % 3) for k in ks],
            "d": pa.array(["x", "y", "z"] * (count // 3)).dictionary_encode(),
            "f": pa.array([[1, 2]] * count, pa.list_(pa.int16(), 2)),
            "st": [{"a": k, "b": [{"q": str(k)}]} for k in ks],
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_gives_rows_or_an_error_of_ours(kind, tmp_path):
    path = write(table_of(), tmp_path / f"x{KINDS[kind]}", kind, rows=20)
    command = [sys.executable, str(DAMAGED), str(path), "150"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.stderr, found.returncode) == ("", 0)
    assert int(found.stdout) > 50, "damage was hardly ever noticed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_truncated_is_rejected_at_every_length(kind, tmp_path):
    path = write(table_of(), tmp_path / f"x{KINDS[kind]}", kind, rows=20)
    data = path.read_bytes()
    for length in np.linspace(0, len(data) - 1, 60).astype(int):
        path.write_bytes(data[:length])
        with pytest.raises(ingot.CorruptFileError, match=path.name):
            ingot.open(path)


def test_any_flipped_bit_in_a_footer_leaves_the_process_alive(tmp_path):
    path = tmp_path / "x.parquet"
    lists = [[f"w{k % 3}"] * (k % 3) for k in range(40)]
    pa.parquet.write_table(pa.table({"ls": lists, "x": range(40)}), path)
    script = """
import sys, ingot, pathlib
path = pathlib.Path(sys.argv[1])
data = path.read_bytes()
start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
for k in range(start, len(data) - 8):
    path.write_bytes(data[:k] + bytes([data[k] ^ 1 << k % 8]) + data[k + 1 :])
    try:
        ingot.open(path)[0]
    except (ingot.IngotError, IndexError):
        pass
"""
    command = [sys.executable, "-c", script, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.stderr, found.returncode) == ("", 0)


def test_a_stream_without_an_end_is_read_on_request(tmp_path):
    path = write(pa.table({"x": [1, 2, 3]}), tmp_path / "x.arrow", "stream")
    data = path.read_bytes()
    assert data.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    path.write_bytes(data[:-8])
    with pytest.raises(ingot.UnfinishedFileError, match="it has 3 rows") as caught:
        ingot.open(path)
    assert caught.value.rows == 3
    assert ingot.open(path, partial=True).column("x").tolist() == [1, 2, 3]


def test_a_stream_with_bytes_after_its_end_is_rejected(tmp_path):
    path = write(pa.table({"x": [1]}), tmp_path / "x.arrow", "stream")
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(ingot.CorruptFileError, match="continues after its last batch"):
        ingot.open(path)


def test_offsets_outside_of_a_text_are_rejected(tmp_path):
    path = write(pa.table({"s": ["abcd", "efgh"]}), tmp_path / "x.arrow", "stream")
    data = path.read_bytes()
    good = struct.pack("<iii", 0, 4, 8)
    assert data.count(good) == 1
    path.write_bytes(data.replace(good, struct.pack("<iii", 0, 1 << 30, 8)))
    with pytest.raises(ingot.CorruptFileError, match=r"x\.arrow: pyarrow cannot read this"):
        ingot.open(path)[0]


def test_a_compressed_batch_that_claims_to_be_huge_is_rejected(tmp_path):
    path = write(pa.table({"s": ["a" * 1000] * 50}), tmp_path / "x.feather", "feather", rows=50)
    data = path.read_bytes()
    lz4 = b"\x04\x22\x4d\x18"
    claim = struct.pack("<q", 50_000) + lz4
    assert data.count(claim) == 1
    path.write_bytes(data.replace(claim, struct.pack("<q", 1 << 40) + lz4))
    with pytest.raises(ingot.FormatError, match="it decodes to at least"):
        ingot.open(path)[0]


def test_checksums_of_parquet_pages_are_verified(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"x": np.arange(1000), "s": ["text"] * 1000})
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pa.parquet.write_table(table, path, **options)
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<q", 500))] ^= 1
    path.write_bytes(data)
    with pytest.raises(ingot.CorruptFileError, match=r"x\.parquet: .*[cC][rR][cC]"):
        ingot.open(path)[7]
    (damage,) = ingot.open(path).verify().damaged
    assert (damage.record, damage.records) == (0, 1000)
    assert ingot.open(path)[7, ["s"]] == {"s": "text"}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1", b"x" * 100, b"FEA1" + bytes(100)])
def test_files_of_another_format_are_rejected(suffix, content, tmp_path):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    with pytest.raises(ingot.FormatError, match=path.name):
        ingot.open(path)


def test_a_footer_of_too_many_rows_is_rejected(tmp_path):
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({"x": [1, 2, 3]}), path, store_schema=False)
    data = path.read_bytes()
    # A row group ends in its number of rows, as the fields 3 of a struct; 2^59 of them here.
    place = data.rindex(b"\x16\x06", 0, len(data) - 8)
    assert data.count(b"\x16\x06") >= 1
    huge = b"\x16" + b"\x80" * 8 + b"\x10"
    grown = data[:place] + huge + data[place + 2 : -8]
    length = int.from_bytes(data[-8:-4], "little") + len(huge) - 2
    path.write_bytes(grown + struct.pack("<I", length) + b"PAR1")
    with pytest.raises(ingot.FormatError, match=r"x\.parquet"):
        ingot.open(path)[0]


def test_encrypted_files_are_named_as_such(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PARE" + bytes(20) + struct.pack("<I", 4) + b"PARE")
    with pytest.raises(ingot.FormatError, match="encrypted"):
        ingot.open(tmp_path / "x.parquet")


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_file_that_is_cut_while_it_is_read_gives_errors_not_a_signal(kind, tmp_path):
    table = pa.table({"x": np.arange(20_000), "s": ["text" * 20] * 20_000})
    path = write(table, tmp_path / "x.arrow", kind, rows=20_000)
    command = [sys.executable, str(FAULTS / "cut_arrow.py"), str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.stderr, found.returncode) == ("", 0)
    lines = found.stdout.splitlines()
    assert [line.startswith(f"{path}: ") for line in lines] == [True] * 6
    assert ["was changed" in line for line in lines[3:]] == [True] * 3


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        ingot.open(tmp_path / "none.parquet")


def changed(path, old, new):
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    return path


def test_a_view_that_leads_outside_of_its_buffer_is_rejected(tmp_path):
    text = "a text that is longer than a view"
    table = pa.table({"v": pa.array([text], pa.string_view())})
    path = write(table, tmp_path / "x.arrow", "stream")
    view = struct.pack("<i4sii", len(text), text[:4].encode(), 0, 0)
    changed(path, view, struct.pack("<i4sii", len(text), text[:4].encode(), 0, 4096))
    with pytest.raises(ingot.CorruptFileError, match=r"x\.arrow: pyarrow cannot read this"):
        ingot.open(path)[0]


def test_rows_that_share_one_long_value_are_not_all_made_at_once(tmp_path):
    view = struct.pack("<i4sii", 1_000_000, b"xxxx", 0, 0)
    buffers = [None, pa.py_buffer(view * 3000), pa.py_buffer(b"x" * 1_000_000)]
    shared = pa.Array.from_buffers(pa.string_view(), 3000, buffers)
    path = write(pa.table({"v": shared}), tmp_path / "x.arrow", "stream", rows=3000)
    assert path.stat().st_size < 2_000_000
    with pytest.raises(ingot.FormatError, match="it decodes to at least"):
        ingot.open(path)[0]


def test_a_struct_whose_parts_are_shorter_is_rejected(tmp_path):
    struct_of = pa.StructArray.from_arrays([pa.array(range(8))], ["p"])
    path = write(pa.table({"n": struct_of}), tmp_path / "x.arrow", "stream")
    node = struct.pack("<qq", 8, 0)
    data = path.read_bytes()
    assert data.count(node * 2) == 1
    path.write_bytes(data.replace(node * 2, node + struct.pack("<qq", 4, 0)))
    with pytest.raises(ingot.CorruptFileError, match=r"x\.arrow"):
        ingot.open(path)[[1, 5]]


@pytest.mark.parametrize("kind", [pa.null(), pa.list_(pa.null())])
def test_a_batch_that_claims_values_without_bytes_is_rejected(tmp_path, kind):
    rows = [None] * 77_777 if kind == pa.null() else [[None] * 77_777]
    path = write(pa.table({"x": pa.array(rows, kind)}), tmp_path / "x.arrow", "stream", rows=10**6)
    data = path.read_bytes()
    assert 0 < data.count(struct.pack("<q", 77_777)) <= 3
    path.write_bytes(data.replace(struct.pack("<q", 77_777), struct.pack("<q", 1 << 40)))
    with pytest.raises(ingot.CorruptFileError, match=r"claims 1099511627776 values"):
        ingot.open(path)


def test_a_dictionary_that_decompresses_without_measure_is_rejected(tmp_path):
    values = pa.array(["x" * 100_000] * 30).dictionary_encode()
    table = pa.table(
        {"d": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), values.dictionary)}
    )
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    path = tmp_path / "x.arrow"
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)
    zstd = b"\x28\xb5\x2f\xfd"
    changed(path, struct.pack("<q", 100_000) + zstd, struct.pack("<q", 1 << 40) + zstd)
    with pytest.raises(ingot.FormatError, match="it decodes to at least"):
        ingot.open(path)


@pytest.mark.parametrize("name", ["x.arrow", "x.parquet", "x.npz", "x.h5", "x.jsonl"])
def test_a_pipe_is_rejected_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ingot.FormatError, match="not a regular file"):
        ingot.open(tmp_path / name)


def test_rows_that_share_one_value_of_a_dictionary_are_decoded_some_at_a_time(tmp_path):
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({"s": ["x" * 100_000] * 6000, "k": range(6000)}), path)
    assert path.stat().st_size < 1_000_000
    ds = ingot.open(path)
    ingot.set_max_decoded_bytes(100_000_000)
    try:
        assert ds[5999]["k"] == 5999
        assert [len(one) for one in ds[[0, 3000]]["s"]] == [100_000] * 2
    finally:
        ingot.set_max_decoded_bytes(1 << 30)


@pytest.fixture
def limit():
    """Allow values that take 10 million bytes, for one test."""
    ingot.set_max_decoded_bytes(10_000_000)
    yield
    ingot.set_max_decoded_bytes(1 << 30)


@pytest.fixture
def peak():
    """Return a function that tells the most memory that pyarrow had since it was called first."""
    usual = pa.default_memory_pool()
    started = []

    def tell():
        if not started:
            started.append(pa.proxy_memory_pool(usual))
            pa.set_memory_pool(started[0])
        return started[0].max_memory() or 0

    yield tell
    pa.set_memory_pool(usual)


def shared(shape, value, count):
    """Return rows that all have one value, at the top, in a list or in a struct."""
    values = pa.array([value]).take(pa.array([0] * count))
    if shape == "list":
        return pa.ListArray.from_arrays(pa.array([0, 0, 0, count], pa.int32()), values)
    return pa.StructArray.from_arrays([values], ["a"]) if shape == "struct" else values


@pytest.fixture
def parts(request, monkeypatch):
    """Have row groups of 2,000 rows be decoded in some parts."""
    monkeypatch.setattr("ingot.formats.arrow.parquet._ROWS", 2_000 // request.param)
    return request.param


def forget_size(path, size):
    """Have a column tell nothing about the size of its text, as older writers do.

    The number of the field that tells it becomes one that nobody knows.
    """
    digits = []
    number = 2 * size
    while number:
        digits.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
    told = bytes([0x16, *digits])
    changed(path, b"\x3c" + told, b"\x5c" + told)


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("value", ["x" * 100_000, b"x" * 100_000])
@pytest.mark.parametrize("shape", ["top", "struct", "list"])
@pytest.mark.parametrize("parts", [1, 10], indirect=True)
def test_rows_that_share_a_value_are_counted_before_they_fill_memory(
    tmp_path, shape, value, parts, peak
):
    path = tmp_path / "x.parquet"
    table = pa.table({"s": shared(shape, value, 2_000), "k": range(3 if shape == "list" else 2000)})
    pa.parquet.write_table(table, path, compression="zstd")
    forget_size(path, 2_000 * 100_000)
    assert path.stat().st_size < 50_000
    assert peak() == 0
    with ingot.open(path) as ds:
        with pytest.raises(ingot.FormatError, match=r"decodes to at least .*set_max_decoded"):
            ds[2]
        assert 0 < peak() < 5_000_000, parts
        assert ds.select("k")[2] == {"k": 2}


@pytest.mark.usefixtures("limit")
def test_one_long_value_among_many_short_ones_is_read(tmp_path):
    texts = ["x" * 200_000, *(str(k % 50) for k in range(1_000)), None]
    path = tmp_path / "x.parquet"
    table = pa.table({"s": texts, "l": [[one or "", "y"] for one in texts]})
    pa.parquet.write_table(table, path)
    size = sum(len(one) for one in texts if one)
    forget_size(path, size)
    forget_size(path, size + len(texts))
    ds = ingot.open(path)
    assert [row["s"] for row in ds] == texts
    assert ds[1000]["l"] == ["49", "y"]


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.binary(8)])
def test_lists_of_one_number_are_rejected_before_they_fill_memory(tmp_path, kind, peak):
    value = b"12345678" if kind == pa.binary(8) else 0
    values = pa.array([value], kind).take(pa.array(np.zeros(20_000_000, np.int32)))
    rows = pa.ListArray.from_arrays(pa.array([0, 0, 20_000_000], pa.int32()), values)
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({"l": rows}), path)
    assert path.stat().st_size < 50_000
    assert peak() == 0
    with ingot.open(path) as ds, pytest.raises(ingot.FormatError, match="it decodes to at least"):
        ds[0]
    assert peak() < 1_000_000


@pytest.mark.usefixtures("limit")
def test_rows_that_share_a_value_of_one_size_are_decoded_some_at_a_time(tmp_path):
    values = pa.array([b"x" * 100_000], pa.binary(100_000)).take(pa.array([0] * 5_000))
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({"b": values}), path, use_dictionary=True)
    ingot.set_max_decoded_bytes(50_000_000)
    assert ingot.open(path)[4_999]["b"] == b"x" * 100_000


def test_few_files_are_open_however_many_are_read(tmp_path, open_files):
    for k in range(100):
        pa.parquet.write_table(pa.table({"k": [k]}), tmp_path / f"{k:03}.parquet")
    ds = ingot.open(tmp_path)
    assert [row["k"] for row in ds] == list(range(100))
    assert 1 <= len(open_files(tmp_path)) <= 40
    assert ds.column("k").tolist() == list(range(100))

"""Arrow's C data interface: batches go to other libraries and come from them without pyarrow."""

import ctypes
import gc
import os
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import HealthCheck, given, settings

import ingot
from ingot.formats.arrow.schema import Kind
from tests.support.arrow_tables import plain, tables

SPEC = {
    "k": "int",
    "x": "float?",
    "flag": "bool?",
    "text": "utf8?",
    "blob": "bytes",
    "small": "array(int8)",
    "vector": "array(float32,4)",
    "gap": "array(uint8,2,3)?",
    "words": "utf8[]",
    "run": "int[]?",
    "frames": "array(float32,2)[]",
    "own": "array",
    "note": "json",
    "obs.arm": "array(float32)",
    "obs.name": "utf8?",
}


def row(k):
    return {
        "k": k,
        "x": k / 2 if k % 3 else None,
        "flag": bool(k % 2) if k % 5 else None,
        "text": f"röw {k}" if k % 4 else None,
        "blob": bytes([k % 256]) * (k % 7),
        "small": np.int8(k % 100),
        "vector": np.full(4, k, np.float32),
        "gap": np.full((2, 3), k % 256, np.uint8) if k % 6 else None,
        "words": [f"w{j}" for j in range(k % 3)],
        "run": list(range(k % 5)) if k % 7 else None,
        "frames": [np.ones(2, np.float32)] * (k % 3),
        "own": np.full((k % 3, 2), k, np.float64),
        "note": {"k": k},
        "obs": {"arm": np.float32(k), "name": f"n{k}" if k % 2 else None},
    }


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows"
    with ingot.DatasetWriter(path, SPEC, sync=False) as writer:
        writer.extend(row(k) for k in range(3000))
    return ingot.open(path)


def expected(numbers):
    rows = plain([row(k) for k in numbers])
    return [one | {"note": f'{{"k":{one["k"]}}}'} for one in rows]


def test_pyarrow_takes_a_data_set_with_the_types_of_to_arrow(ds):
    table = pa.table(ds)
    table.validate(full=True)
    assert table.schema == ds.to_arrow().schema == pa.schema(ds)
    assert table.equals(ds.to_arrow())
    assert table.to_pylist() == expected(range(3000))
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 4)
    assert table.schema.field("gap").type == pa.list_(pa.list_(pa.uint8(), 3), 2)
    assert table.schema.field("run").type == pa.list_(pa.int64())


def test_views_are_the_rows_that_they_select(ds):
    views = {
        "slice": (ds[10:40:3], range(10, 40, 3)),
        "rows": (ds.take([5, 1, 2999]), [5, 1, 2999]),
        "where": (ds.where(ds.column("k") % 1000 == 7), [7, 1007, 2007]),
        "none": (ds[:0], []),
    }
    for view, numbers in views.values():
        assert pa.table(view).to_pylist() == expected(numbers)
        assert pa.record_batch(view).to_pylist() == expected(numbers)


def test_batches_have_rows_columns_and_a_schema(ds):
    batches = list(ds.arrow_batches(rows=1000, names=["k", "words"]))
    assert [len(one) for one in batches] == [1000, 1000, 1000]
    assert batches[0].schema == {"k": "int64", "words": "list<item: string>"}
    assert batches[0].nbytes >= 8000
    assert pa.record_batch(batches[2])["k"].to_pylist() == list(range(2000, 3000))
    assert repr(batches[0]).startswith("<ingot.ArrowBatch of 1,000 rows of {'k': 'int64'")
    assert sum(map(len, ds.arrow_batches())) == 3000
    assert list(ds[:0].arrow_batches()) == []
    for rows in [0, -1, True, 1.5]:
        with pytest.raises(ValueError, match="rows must be a positive number"):
            ds.arrow_batches(rows=rows)
    with pytest.raises(KeyError, match="no field 'no'"):
        ds.arrow_batches(names=["no"])
    with pytest.raises(TypeError, match="arrow_batches"):
        ingot.ArrowBatch({"k": [1]})


def test_polars_takes_data_sets_and_batches(ds):
    frame = pl.scan_arrow_c_stream(ds).collect()
    assert frame.columns == [*dict.fromkeys(name.split(".")[0] for name in SPEC)]
    assert frame.drop("note").to_dicts() == [
        {name: one for name, one in each.items() if name != "note"}
        for each in expected(range(3000))
    ]
    assert frame.schema["vector"] == pl.Array(pl.Float32, 4)
    (batch,) = ds[:100].arrow_batches()
    assert pl.DataFrame(batch).equals(frame[:100])
    lazy = pl.scan_arrow_c_stream(ds).select(pl.col("k").sum())
    assert lazy.collect().item() == sum(range(3000))
    assert pl.from_arrow(ds.select("k")).struct.field("k").sum() == sum(range(3000))


def test_duckdb_queries_a_data_set(ds):
    rows = ds.select("k", "text", "obs")  # noqa: F841 -- DuckDB finds it by its name
    found = duckdb.sql("select count(*), sum(k), max(text), sum(obs.arm) from rows").fetchall()
    assert found == [(3000, sum(range(3000)), "röw 999", float(sum(range(3000))))]


def test_pandas_takes_a_data_set(ds):
    frame = pd.DataFrame.from_arrow(ds.select("k", "x", "text"))
    assert frame["k"].tolist() == list(range(3000))
    assert frame["x"].isna().sum() == 1000
    assert frame["text"][1] == "röw 1"


PROGRAM = """
import sys
sys.modules["pyarrow"] = None
import polars, duckdb, numpy, ingot
with ingot.DatasetWriter("rows", {"k": "int?", "text": "utf8", "v": "array(float32,3)"}) as writer:
    writer.append({"k": 1, "text": "a", "v": numpy.ones(3, "f4")})
    writer.append({"text": "b", "v": numpy.zeros(3, "f4")})
ds = ingot.open("rows")
frame = polars.scan_arrow_c_stream(ds).collect()
assert frame["k"].to_list() == [1, None]
assert duckdb.sql("select text from ds").fetchall() == [("a",), ("b",)]
again = ingot.from_arrow(frame, "again")
assert dict(again.spec) == dict(ds.spec), again.spec
assert polars.scan_arrow_c_stream(again).collect().equals(frame)
with ingot.DatasetWriter("rows", append=True) as writer:
    writer.extend(frame)
    writer.extend(next(ds.arrow_batches()))
assert ingot.open("rows").column("text").tolist() == ["a", "b"] * 3
"""


def test_polars_and_duckdb_need_no_pyarrow(tmp_path):
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)


def test_a_requested_schema_selects_columns_and_types_that_fit(ds):
    wanted = pa.schema([("text", pa.large_string()), ("obs", pa.struct([("arm", pa.float32())]))])
    reader = pa.RecordBatchReader.from_stream(ds, schema=wanted)
    assert reader.schema == wanted
    assert reader.read_all().num_rows == 3000
    _, array = ds[:9].__arrow_c_array__(pa.schema([("k", pa.int64())]).__arrow_c_schema__())
    assert array is not None
    (batch,) = ds[:9].arrow_batches()
    capsules = batch.__arrow_c_array__(
        pa.schema([("k", pa.int64()), ("no", pa.int8())]).__arrow_c_schema__()
    )
    assert pa.RecordBatch._import_from_c_capsule(*capsules).schema.names == ["k"]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables())
def test_any_table_comes_back_through_the_interface(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "x.ingot"
    found = pa.table(ingot.from_arrow(table, path, sync=False))
    found.validate(full=True)
    assert found.schema.types == table.schema.types
    assert found.equals(table)


def resident():
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_is_released_once_by_every_way_of_using_it(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"v": "array(uint8,100000)"}, sync=False) as w:
        w.extend({"v": np.zeros((200, 100_000), np.uint8)})
    ds = ingot.open(tmp_path / "x.ingot")

    def use():
        ds.__arrow_c_stream__()  # Never consumed.
        ds.__arrow_c_array__()
        ds.__arrow_c_schema__()
        reader = pa.RecordBatchReader.from_stream(ds)
        reader.read_next_batch()  # Not to the end.
        batch = next(ds.arrow_batches(rows=100))
        one, two = pa.record_batch(batch), pa.record_batch(batch)
        assert one.column(0).buffers() is not None
        del one, reader
        assert two.num_rows == 100
        two.column(0).validate(full=True)

    use()
    gc.collect()
    before = resident()
    for _ in range(20):
        use()
    gc.collect()
    assert resident() - before < 100 << 20


def test_arrays_outlive_the_data_set_and_the_stream(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"text": "utf8", "k": "int"}) as writer:
        writer.extend({"text": [f"row {k}" for k in range(5000)], "k": range(5000)})
    ds = ingot.open(tmp_path / "x.ingot")
    table = pa.table(ds)
    ds.close()
    del ds
    gc.collect()
    table.validate(full=True)
    assert table["text"][4999].as_py() == "row 4999"


def test_a_stream_is_read_by_any_thread_and_by_the_child_of_a_fork(ds):
    batches = list(ds.arrow_batches(rows=500))
    reader = pa.RecordBatchReader.from_stream(ds)
    child = os.fork()
    if not child:
        is_same = pa.record_batch(batches[1])["k"][0].as_py() == 500
        os._exit(0 if is_same and reader.read_all().num_rows == 3000 else 1)
    assert os.waitpid(child, 0)[1] == 0
    found = []
    thread = threading.Thread(target=lambda: found.append(reader.read_all()))
    thread.start()
    thread.join()
    assert found[0].num_rows == 3000


def test_errors_of_a_stream_have_our_message(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "bytes"}, compression=None) as writer:
        writer.extend({"a": [b"x" * 5000] * 9000})
    ds = ingot.open(tmp_path / "x.ingot")
    with (tmp_path / "x.ingot").open("r+b") as file:
        file.seek(8192 * 5000)
        file.write(b"damage")
    ds = ingot.open(tmp_path / "x.ingot")
    with pytest.raises((pa.ArrowInvalid, OSError), match=r"CorruptFileError: .*x\.ingot.*checksum"):
        pa.RecordBatchReader.from_stream(ds).read_all()
    with pytest.raises(ingot.CorruptFileError, match="checksum"):
        ds.to_arrow()
    with pytest.raises(ingot.CorruptFileError, match="checksum"):
        for _ in ds.arrow_batches():
            pass


def test_values_that_begin_later_than_the_first_batch_are_rejected_by_row(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"own": "array?", "t": "tree?"}) as writer:
        writer.extend([{"own": None, "t": None}] * 10 + [{"own": np.ones(2), "t": 1}])
    ds = ingot.open(tmp_path / "x.ingot")
    assert pa.table(ds[:10]).schema.types == [pa.null(), pa.null()]
    with pytest.raises(ValueError, match=r"row 10: field 'own': there is an array, but none in"):
        list(ds.arrow_batches(rows=5, names=["own"]))
    with pytest.raises(ValueError, match="field 't': it has values in some rows, but none in"):
        list(ds.arrow_batches(rows=5, names=["t"]))


def test_types_without_arrow_are_rejected_by_name(tmp_path):
    spec = {"object": ingot.codecs.Pickle(), "z": "array(complex64)"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.append({"object": {1}, "z": np.complex64(1)})
    ds = ingot.open(tmp_path / "x.ingot")
    with pytest.raises(TypeError, match="field 'object': Arrow has no type for pickle"):
        pa.table(ds)
    with pytest.raises(TypeError, match=r"field 'z': Arrow has no type for array\(complex64\)"):
        ds.arrow_batches(names=["z"])


def test_a_writer_takes_whatever_hands_over_arrow(ds, tmp_path):
    spec = {"k": "int", "text": "utf8?"}
    frame = pl.DataFrame({"k": [1, 2], "text": ["a", None]})
    with ingot.DatasetWriter(tmp_path / "x", spec) as writer:
        writer.extend(frame)
        writer.extend(frame.to_arrow())
        writer.extend(frame.to_arrow().to_batches()[0])
        writer.extend(frame.to_arrow().to_reader())
        writer.extend(pd.DataFrame({"k": [1, 2], "text": ["a", None]}))
        writer.extend(pl.DataFrame({"k": pl.Series([1, 2], dtype=pl.Int16), "text": ["a", None]}))
        writer.extend(pl.DataFrame({"k": [1, 2]}))
        for batch in ds[:4].arrow_batches(names=["k", "text"]):
            writer.extend(batch)
    found = ingot.open(tmp_path / "x")
    assert found.column("k").tolist() == [1, 2] * 7 + [0, 1, 2, 3]
    texts = [one["text"] for one in found]
    assert texts == ["a", None] * 6 + [None, None] + [None, "röw 1", "röw 2", "röw 3"]


def test_a_writer_names_the_row_and_the_field_of_what_it_refuses(tmp_path):
    spec = {"k": "int", "text": "utf8"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        with pytest.raises(ingot.FormatError, match=r"row 1: field 'text' .*null"):
            writer.extend(pl.DataFrame({"k": [1, 2], "text": ["a", None]}))
        with pytest.raises(ingot.FormatError, match=r"row 2: field 'k' .*null"):
            writer.extend(pl.DataFrame({"k": [1, 2, None], "text": ["a", "b", "c"]}))
        with pytest.raises(ValueError, match="other"):
            writer.extend(pl.DataFrame({"k": [1], "text": ["a"], "other": [1]}))
        with pytest.raises((TypeError, ValueError), match="'k'"):
            writer.extend(pl.DataFrame({"k": ["one"], "text": ["a"]}))
        with pytest.raises(ingot.FormatError, match="expected columns"):
            writer.extend(pa.array([1, 2]))
        union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
        odd = pa.table({"k": [1], "text": union})
        with pytest.raises(ingot.FormatError, match=r"column 'text' is .*union"):
            writer.extend(odd)
        assert len(writer) == 0


class Broken:
    """A stream that fails after its first batch."""

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            yield pa.record_batch({"k": [1]})
            message = "the producer has had enough"
            raise OSError(message)

        schema = pa.schema([("k", pa.int64())])
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return reader.__arrow_c_stream__(requested_schema)


def test_a_stream_that_fails_is_an_error_of_ours(tmp_path):
    with pytest.raises(ingot.FormatError, match="the producer has had enough"):
        ingot.from_arrow(Broken(), tmp_path / "x")
    assert not (tmp_path / "x" / "dataset.json").exists()


def test_slices_with_offsets_and_parts_with_nulls_are_taken(tmp_path):
    inner = pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": []}, {"a": 4, "b": None}] * 5)
    table = pa.table(
        {
            "s": inner,
            "d": pa.array(["p", None, "q", "p"] * 5).dictionary_encode(),
            "l": pa.array([[1, 2], [], None, [3]] * 5, pa.large_list(pa.int32())),
            "v": pa.array(["short", "a text of more than twelve bytes", None, ""] * 5).cast(
                pa.string_view()
            ),
            "b": pa.array([True, False, None, True] * 5),
            "m": pa.array([[("k", 1)], [], None, [("j", None)]] * 5, pa.map_("string", "int32")),
        }
    )
    part = table[3:17]
    found = ingot.from_arrow(part, tmp_path / "x")
    assert found.to_arrow()["v"].to_pylist() == part["v"].to_pylist()
    for name in ["d", "l", "b", "m"]:
        assert found.to_arrow()[name].equals(part[name]), name
    assert [one["s"]["a"] for one in found] == pa.compute.struct_field(part["s"], "a").to_pylist()


def test_rows_without_fields_are_a_batch_without_columns(ds):
    assert pa.record_batch(ds.select()).num_columns == 0
    assert pa.table(ds.select()).num_columns == 0
    assert sum(map(len, ds.select().arrow_batches())) == 3000


def test_a_requested_schema_of_another_type_is_a_type_error(ds):
    (batch,) = ds[:9].arrow_batches()
    for method in (ds.__arrow_c_stream__, ds.__arrow_c_array__, batch.__arrow_c_array__):
        with pytest.raises(TypeError, match=r"expected a schema: .* got int"):
            method(5)


def test_batches_name_types_with_units_zones_and_widths(tmp_path):
    kinds = [
        *(pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.date32(), pa.date64()),
        *(pa.time32("ms"), pa.time64("ns"), pa.duration("us"), pa.binary(3)),
        *(pa.decimal128(9, 2), pa.decimal256(40, 3), pa.list_(pa.timestamp("ms"))),
    ]
    table = pa.table({f"c{k}": pa.nulls(1, kind) for k, kind in enumerate(kinds)})
    (batch,) = ingot.from_arrow(table, tmp_path / "x").arrow_batches()
    assert [*batch.schema.values()] == [*map(str, kinds)]


@pytest.mark.parametrize(
    ("form", "children"),
    [("", 0), ("+l", 0), ("+L", 2), ("+w:2", 0), ("+w:x", 1), ("+m", 0), ("w:", 0), ("+r", 1)],
)
def test_malformed_types_are_an_error_of_ours(form, children, tmp_path):
    inner = ["item", "l", 2, {}, [], None]
    with pytest.raises(ingot.FormatError, match="malformed Arrow schema: 'x' has the format"):
        Kind.of_tuple(["x", form, 2, {}, [inner] * children, None])
    str(Kind("x", form))
    schema = ["", "+s", 0, {}, [["x", form, 2, {}, [inner] * children, None]], None]
    with ingot.DatasetWriter(
        tmp_path / "x.ingot", {"x": "int"}, metadata={"arrow": {"schema": schema}}
    ) as writer:
        writer.append({"x": 1})
    with pytest.raises(ingot.FormatError, match="malformed Arrow schema"):
        ingot.open(tmp_path / "x.ingot").to_arrow()


@pytest.mark.parametrize(
    ("field", "value"), [("n_buffers", 0), ("n_children", 1), ("length", -5), ("offset", -1)]
)
def test_structs_that_break_the_interface_are_rejected(field, value, tmp_path):
    class Array(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_int64)
            for name in ["length", "null_count", "offset", "n_buffers", "n_children"]
        ]

    class Odd:
        def __arrow_c_array__(self, requested_schema=None):
            batch = pa.record_batch({"k": [1, 2], "t": ["a", "b"]})
            schema, array = batch.__arrow_c_array__(requested_schema)
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            place = get(array, b"arrow_array")
            setattr(ctypes.cast(place, ctypes.POINTER(Array)).contents, field, value)
            return schema, array

    with pytest.raises(ingot.FormatError, match="Arrow data: "):
        ingot.from_arrow(Odd(), tmp_path / "x")

"""Data sets from Arrow, pandas and generators, and back: nothing is lost on the way."""

import base64
import io

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from PIL import Image

import ingot
from tests.support.arrow_tables import plain, tables, write


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables())
def test_any_table_comes_back_equal(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "x.ingot"
    ds = ingot.from_arrow(table, path, sync=False)
    found = ds.to_arrow()
    assert found.schema.types == table.schema.types
    assert found.equals(table)
    ds.close()


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables())
def test_a_copy_of_a_file_of_arrow_has_its_rows_and_types(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    given = ingot.open(write(table, folder / "x.arrow", "stream"))
    given.save(folder / "copy.ingot", sync=False)
    copy = ingot.open(folder / "copy.ingot")
    assert dict(copy.spec) == dict(given.spec)
    assert plain(list(copy)) == plain(list(given))
    assert copy.to_arrow().equals(table)


def batches(count, size=100):
    schema = pa.schema([("k", pa.int64()), ("text", pa.string())])
    for start in range(0, count, size):
        ks = range(start, min(start + size, count))
        columns = [list(ks), [f"row {k}" for k in ks]]
        yield pa.record_batch([pa.array(one) for one in columns], schema=schema)


def make_table(_):
    return pa.Table.from_batches(batches(1000))


def make_reader(_):
    first = next(batches(1))
    return pa.RecordBatchReader.from_batches(first.schema, batches(1000))


def make_dataset(folder):
    pa.parquet.write_table(make_table(None), folder / "x.parquet")
    return pa.dataset.dataset(folder / "x.parquet")


@pytest.mark.parametrize(
    "make",
    [
        make_table,
        make_reader,
        make_dataset,
        lambda folder: make_dataset(folder).scanner(),
        lambda _: batches(1000),
        lambda _: make_table(None).to_pandas(),
        lambda folder: ingot.from_arrow(make_table(None), folder / "other"),
    ],
    ids=["table", "reader", "dataset", "scanner", "batches", "frame", "ingot"],
)
def test_whatever_gives_tables_is_taken(make, tmp_path):
    ds = ingot.from_arrow(make(tmp_path), tmp_path / "rows", shard_rows=300)
    assert dict(ds.spec) == {"k": "int", "text": "utf8"}
    assert len(ds.paths) == 4
    assert ds.column("k").tolist() == list(range(1000))
    assert ds[777] == {"k": 777, "text": "row 777"}


@pytest.mark.parametrize("given", [3, "text", [{"k": 1}], []])
def test_objects_without_tables_are_rejected(given, tmp_path):
    with pytest.raises(TypeError, match=r"expected|no rows"):
        ingot.from_arrow(given, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_spec_changes_types(tmp_path):
    stream = io.BytesIO()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(stream, "PNG")
    table = pa.table(
        {"image": [stream.getvalue()], "small": pa.array([3], pa.int8()), "note": ["a"]}
    )
    spec = {"image": "png", "small": "int", "note": "utf8?"}
    ds = ingot.from_arrow(table, tmp_path / "x", spec=spec)
    assert dict(ds.spec) == spec
    assert ds[0]["image"].shape == (4, 4, 3)
    assert ds[0]["small"] == 3
    assert ds.stored()[0]["image"] == stream.getvalue()
    with pytest.raises(ValueError, match="no column 'other'"):
        ingot.from_arrow(table, tmp_path / "y", spec={"other": "int"})
    with pytest.raises(ValueError, match="not a jpg file"):
        ingot.from_arrow(table, tmp_path / "y", spec={"image": "jpg"})
    assert not (tmp_path / "y" / "dataset.json").exists()


def test_a_late_null_of_a_stream_is_rejected_with_its_row_and_what_to_do(tmp_path):
    one = pa.record_batch({"x": pa.array([1, 2])})
    two = pa.record_batch({"x": pa.array([3, None], pa.int64())})
    reader = pa.RecordBatchReader.from_batches(one.schema, [one, two])
    with pytest.raises(ingot.FormatError, match=r"row 3: field 'x' .*null") as caught:
        ingot.from_arrow(reader, tmp_path / "x")
    assert "pass a spec" in caught.value.__notes__[0]
    assert not (tmp_path / "x" / "dataset.json").exists()
    reader = pa.RecordBatchReader.from_batches(one.schema, [one, two])
    ds = ingot.from_arrow(reader, tmp_path / "x", spec={"x": "int?"})
    assert ds[[2, 3]]["x"] == [3, None]


def test_text_that_is_not_unicode_is_rejected(tmp_path):
    bad = pa.array([b"good", b"\xff\xfe"]).view(pa.string())
    with pytest.raises(ingot.FormatError, match="row 1: field 'x'"):
        ingot.from_arrow(pa.table({"x": bad}), tmp_path / "x")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC")),
        (pa.timestamp("s"), pa.int64()),
        (pa.date32(), pa.time32("s")),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.binary(2), pa.binary(3)),
        (pa.list_(pa.duration("s")), pa.list_(pa.duration("ms"))),
        (pa.dictionary("int8", pa.date32()), pa.dictionary("int8", pa.time32("s"))),
        (pa.struct([("a", pa.time64("us"))]), pa.struct([("a", pa.time64("ns"))])),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
        (pa.fixed_shape_tensor(pa.int8(), [2, 3]), pa.fixed_shape_tensor(pa.int8(), [3, 2])),
    ],
    ids=str,
)
def test_batches_of_different_types_are_rejected_by_column(first, later, tmp_path):
    batches = [pa.record_batch({"k": [1], "x": pa.nulls(1, kind)}) for kind in (first, later)]
    with pytest.raises(ingot.FormatError, match=r"column 'x' is .* in a batch, but .* in the"):
        ingot.from_arrow(batches, tmp_path / "x")
    assert not (tmp_path / "x" / "dataset.json").exists()
    with pytest.raises(ingot.FormatError, match=r"a batch has the columns \['k'\], but the first"):
        ingot.from_arrow([batches[0], pa.record_batch({"k": [1]})], tmp_path / "x")


def test_positions_in_dictionaries_may_differ_in_type(tmp_path):
    batches = [
        pa.record_batch({"x": pa.array([text]).cast(pa.dictionary(index, pa.string()))})
        for text, index in [("a", pa.int32()), ("b", pa.int8())]
    ]
    assert ingot.from_arrow(batches, tmp_path / "x").to_arrow()["x"].to_pylist() == ["a", "b"]


def test_batches_without_rows_have_columns(tmp_path):
    table = pa.table({"x": pa.array([], pa.int8())})
    for k, data in enumerate([table.to_batches() or [table[:0]], [table], [table, table]]):
        ds = ingot.from_arrow(data, tmp_path / f"{k}.ingot")
        assert ds.to_arrow().schema == table.schema
    batch = pa.record_batch({"x": pa.array([], pa.int8())})
    assert len(ingot.from_arrow([batch], tmp_path / "x.ingot")) == 0
    assert (
        len(
            ingot.from_arrow(
                iter([batch, pa.table({"x": pa.array([1], pa.int8())})]), tmp_path / "y"
            )
        )
        == 1
    )


def test_damaged_dictionaries_are_rejected_by_column_and_row(tmp_path):
    good = pa.array(["a", "b"]).dictionary_encode()
    bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ["a", "b"], safe=False)
    table = pa.table({"k": range(4), "x": pa.chunked_array([good, bad])})
    with pytest.raises(ingot.FormatError, match="row 3: column 'x': index 7 of a dictionary of 2"):
        ingot.from_arrow(table, tmp_path / "x")


def test_columns_that_no_field_can_have_are_rejected_with_advice_that_works(tmp_path):
    odd = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    table = pa.table({"k": [1], "odd": odd})
    with pytest.raises(ingot.FormatError, match=r"'odd' is union.*leave the column out$"):
        ingot.from_arrow(table, tmp_path / "x")
    assert len(ingot.from_arrow(table.drop_columns("odd"), tmp_path / "x")) == 1


def test_nested_parts_of_one_name_are_rejected(tmp_path):
    parts = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    table = pa.table({"x": pa.ListArray.from_arrays([0, 1], parts)})
    with pytest.raises(ingot.FormatError, match="column 'x' is list<item: struct<a: int64, a: "):
        ingot.from_arrow(table, tmp_path / "x")


def test_metadata_of_a_schema_are_kept(tmp_path):
    table = pa.table({"x": [1]}).replace_schema_metadata({"author": "me"})
    ds = ingot.from_arrow(table, tmp_path / "x", metadata={"more": 1})
    assert ds.metadata["author"] == "me"
    assert ds.metadata["more"] == 1
    assert ds.to_arrow().schema.metadata == {b"author": b"me"}


def test_a_schema_in_the_form_of_files_of_arrow_is_read_too(tmp_path):
    schema = pa.schema(
        [("x", pa.timestamp("us", "UTC")), ("kind", pa.dictionary("int8", "string"))]
    )
    stored = base64.b64encode(schema.serialize().to_pybytes()).decode()
    with ingot.DatasetWriter(
        tmp_path / "x.ingot", {"x": "int", "kind": "utf8"}, metadata={"arrow": {"schema": stored}}
    ) as writer:
        writer.append({"x": 1, "kind": "a"})
    assert ingot.open(tmp_path / "x.ingot").to_arrow().schema == schema


@pytest.mark.parametrize(
    "schema", ["AAAA", [], ["", "+s"], [3, 3, 3, 3, 3, 3], ["", "+s", 0, {}, [0], None]]
)
def test_damaged_metadata_are_an_error_of_ours(tmp_path, schema):
    with ingot.DatasetWriter(
        tmp_path / "x.ingot", {"x": "int"}, metadata={"arrow": {"schema": schema}}
    ) as writer:
        writer.append({"x": 1})
    with pytest.raises(ingot.FormatError, match="Arrow schema in the metadata is damaged"):
        ingot.open(tmp_path / "x.ingot").to_arrow()


def test_fields_of_every_type_become_columns(tmp_path):
    spec = {
        "number": "float?",
        "array": "array(uint8,2,3)?",
        "own": "array",
        "words": "utf8[]?",
        "json": "json",
        "tree": "tree",
        "obs.deep": "array(int16)",
        "obs.arm": "array(float32,2)[]",
        "blob": "bytes?",
    }
    rows = [
        {
            "number": 0.5 if k else None,
            "array": np.full((2, 3), k, np.uint8) if k % 2 else None,
            "own": np.ones((k, 2), np.float32),
            "words": ["a"] * k if k != 2 else None,
            "json": {"k": [k]},
            "tree": {"k": np.arange(2), "t": "x"},
            "obs": {"deep": k, "arm": [np.ones(2, np.float32)] * k},
            "blob": b"x" * k if k else None,
        }
        for k in range(4)
    ]
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.extend(rows)
    table = ingot.open(tmp_path / "x.ingot").to_arrow()
    expected = plain(rows)
    for k, row in enumerate(expected):
        row["json"] = f'{{"k":[{k}]}}'
    assert table.to_pylist() == expected
    assert table.schema.field("array").type == pa.list_(pa.list_(pa.uint8(), 3), 2)
    assert table.select(["number"]).equals(ingot.open(tmp_path / "x.ingot").to_arrow(["number"]))


def test_fields_that_arrow_cannot_hold_are_rejected_by_name(tmp_path):
    spec = {"object": ingot.codecs.Pickle(), "own": "array", "k": "int"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.append({"object": {1}, "own": np.ones(2), "k": 1})
        writer.append({"object": {1}, "own": np.ones((2, 2)), "k": 1})
    ds = ingot.open(tmp_path / "x.ingot")
    with pytest.raises(TypeError, match="field 'object': Arrow has no type for pickle"):
        ds.to_arrow()
    with pytest.raises(ValueError, match="field 'own': the arrays differ in type"):
        ds.to_arrow(["own"])
    assert ds.to_arrow(["k"]).to_pydict() == {"k": [1, 1]}


def test_an_empty_data_set_is_an_empty_table(tmp_path):
    ds = ingot.from_arrow(pa.table({"x": pa.array([], pa.int8())}), tmp_path / "x.ingot")
    assert ds.to_arrow().schema == pa.schema([("x", pa.int8())])
    assert len(ds.to_pandas()) == 0


def test_rows_of_other_formats_become_tables(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(10)
        file["y"] = np.ones((10, 3), np.float32)
    found = ingot.open(tmp_path / "x.h5").to_arrow()
    assert found["x"].to_pylist() == list(range(10))
    assert found.schema.field("y").type == pa.list_(pa.float32(), 3)


def test_a_data_set_is_a_stream_of_arrow(tmp_path):
    ds = ingot.from_arrow(make_table(None), tmp_path / "x")
    reader = pa.RecordBatchReader.from_stream(ds[10:20])
    assert reader.read_all().equals(make_table(None)[10:20])


def test_frames_come_back_equal(tmp_path):
    frame = pd.DataFrame(
        {
            "k": [1, 2, 3],
            "x": [0.5, np.nan, 2.5],
            "text": ["a", "b", "c"],
            "when": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]),
            "kind": pd.Categorical(["a", "b", "a"]),
        },
        index=pd.Index([5, 6, 7], name="number"),
    )
    found = ingot.from_pandas(frame, tmp_path / "x").to_pandas()
    pd.testing.assert_frame_equal(found, frame)


def test_integers_beside_missing_ones_stay_exact(tmp_path):
    table = pa.table({"k": pa.array([(1 << 60) + 1, None]), "b": pa.array([True, None])})
    frame = ingot.from_arrow(table, tmp_path / "x").to_pandas()
    assert frame["k"][0] == (1 << 60) + 1
    assert frame["k"].isna().tolist() == frame["b"].isna().tolist() == [False, True]


def test_columns_that_a_frame_cannot_hold_are_rejected_by_name(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "array(uint8,2,2)", "k": "int"}) as writer:
        writer.append({"a": np.zeros((2, 2), np.uint8), "k": 1})
    ds = ingot.open(tmp_path / "x.ingot")
    with pytest.raises(TypeError, match=r"field 'a' is array\(uint8,2,2\), which a data frame"):
        ds.to_pandas()
    assert ds.to_pandas(["k"])["k"].tolist() == [1]


def test_a_dict_in_place_of_a_data_frame_is_rejected(tmp_path):
    with pytest.raises(TypeError, match="expected a data frame of pandas, got dict"):
        ingot.from_pandas({"a": [1]}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_column_of_several_types_is_rejected_by_name(tmp_path):
    with pytest.raises(TypeError, match="column mixed"):
        ingot.from_pandas(pd.DataFrame({"mixed": [1, "a", b"b"]}), tmp_path / "x")


def test_types_of_generated_rows_are_inferred(tmp_path):
    def rows():
        for k in range(5):
            yield {
                "k": k,
                "mixed": k if k % 2 else k + 0.5,
                "flag": k > 2,
                "text": "a",
                "data": b"b",
                "fixed": np.zeros((2, 3), np.uint8),
                "free": np.zeros(k, np.float32),
                "scalar": np.float32(k),
                "words": ["a"] * k,
                "runs": list(range(k)),
                "nested": {"x": 1, "y": {"z": "t"}},
                "loose": [1, "a", None],
                "picture": Image.fromarray(np.full((2, 2, 3), k, np.uint8)),
            } | ({"rare": 1} if k == 3 else {})

    ds = ingot.from_generator(rows, tmp_path / "x")
    assert dict(ds.spec) == {
        "k": "int",
        "mixed": "float",
        "flag": "bool",
        "text": "utf8",
        "data": "bytes",
        "fixed": "array(uint8,2,3)",
        "free": "array",
        "scalar": "array(float32)",
        "words": "utf8[]",
        "runs": "int[]",
        "nested.x": "int",
        "nested.y.z": "utf8",
        "loose": "tree",
        "picture": "png",
        "rare": "int?",
    }
    assert ds[3]["rare"] == 1
    assert ds[2]["rare"] is None
    assert ds[4]["picture"][0, 0, 0] == 4
    assert ds[2]["mixed"] == 2.5


def test_rows_of_a_generator_are_taken_one_after_another(tmp_path):
    taken = []

    def rows():
        for k in range(3000):
            taken.append(k)
            yield {"k": k}

    ds = ingot.from_generator(rows(), tmp_path / "x", spec={"k": "int"}, shard_rows=1000)
    assert taken == list(range(3000))
    assert len(ds) == 3000


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "nothing to infer"),
        ([3], "a row must be a dict"),
        ([{"x": None}], "field 'x' has no value"),
        ([{"x": object()}], "field 'x': no type fits object"),
    ],
)
def test_rows_without_types_are_rejected(rows, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        ingot.from_generator(rows, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_row_that_differs_from_the_first_ones_leaves_no_data_set(tmp_path):
    rows = ({"x": k if k < 2000 else "text"} for k in range(3000))
    with pytest.raises(TypeError, match="row 2000: field 'x'") as caught:
        ingot.from_generator(rows, tmp_path / "x")
    assert any("pass spec=" in note for note in caught.value.__notes__)
    assert not (tmp_path / "x" / "dataset.json").exists()

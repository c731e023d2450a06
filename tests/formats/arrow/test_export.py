"""Values that go to Arrow are the stored ones, or are refused with their field and row."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import ingot


def written(path, kind, values):
    with ingot.DatasetWriter(path, {"a": kind}, sync=False) as writer:
        writer.extend({"a": one} for one in values)
    return ingot.open(path)


def exported(ds, rows=None):
    batches = map(pa.record_batch, ds.arrow_batches(rows=rows))
    return [row["a"] for batch in batches for row in batch.to_pylist()]


OTHERS = [
    ("tree[]", [], [{"a": 1, "b": 2}]),
    ("tree[]", [[]], [[5]]),
    ("tree", {"a": 1}, {"a": 1, "b": 2}),
    ("tree", {"a": True}, {"a": 7}),
    ("tree", {"a": 7}, {"a": True}),
    ("tree", {"a": 1}, {"a": "7"}),
    ("tree", {"a": "x"}, {"a": 7}),
    ("tree", {"a": "x"}, {"a": b"x"}),
    ("tree", {"a": b"x"}, {"a": "x"}),
    ("tree", [1, 2], [1, 2.5]),
    ("tree", [1, 2], [1, 2.0]),
    ("tree", [1.5], [(1 << 53) + 1]),
    ("tree", 1, [1]),
    ("tree", {"a": np.int8(1)}, {"a": np.array([1])}),
    ("msgpack", {"a": 1}, {"a": (1 << 64) - 1}),
    ("msgpack", {"a": 1}, {1: 1}),
]


@pytest.mark.parametrize(("kind", "first", "later"), OTHERS)
def test_values_that_the_type_of_the_first_batch_cannot_have_are_refused(
    kind, first, later, tmp_path
):
    ds = written(tmp_path / "x.ingot", kind, [first] * 5 + [later, first])
    with pytest.raises(ValueError, match=r"x\.ingot: row 5: field 'a': the value does not have"):
        exported(ds, rows=2)
    with pytest.raises(ValueError, match="row 5: field 'a'"):
        exported(ds[1:], rows=1)
    assert exported(ds[:5], rows=2) == exported(ds[:5])


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([{"a": ["a", b"\xff\xfe"]}], 0),
        ([{"a": ["a", b"good"]}], 0),
        ([{"a": "a"}, {"a": b"\xff"}], 0),  # pyarrow infers bytes.
        ([{"a": 1}, {"a": "7"}], 3),
        ([[1], 2], 3),
        ([{"a": 1}, {"a": 1 << 63}], 3),
    ],
)
def test_values_of_several_types_in_a_batch_are_refused_by_row(values, row, tmp_path):
    ds = written(tmp_path / "x.ingot", "tree", [values[0]] * 3 + values[1:])
    with pytest.raises(ValueError, match=f"row {row}: field 'a': .*store it as json"):
        exported(ds)
    with pytest.raises(ValueError, match=f"row {row}: field 'a'"):
        ds.to_arrow()


def test_maps_of_bytes_are_not_exported_as_text(tmp_path):
    table = pa.table({"a": pa.array([[("k", b"\xff")]], pa.map_("string", "binary"))})
    assert ingot.from_arrow(table, tmp_path / "typed").to_arrow().equals(table)
    with ingot.DatasetWriter(tmp_path / "x", {"a": "tree"}) as writer:
        writer.extend(table)
    with pytest.raises(ValueError, match="row 0: field 'a'"):
        ingot.open(tmp_path / "x").to_arrow()


def test_numbers_dicts_and_arrays_of_one_type_are_exported_in_any_batches(tmp_path):
    values = [
        {"x": 1.5, "y": [1], "z": np.arange(3), "t": "a"},
        {"x": 2, "y": [], "z": np.arange(4), "t": None},
        {"x": float("inf"), "y": [3, None], "z": np.arange(0)},
        None,
    ]
    ds = written(tmp_path / "x.ingot", "tree?", values)
    expected = [
        {"x": 1.5, "y": [1], "z": [0, 1, 2], "t": "a"},
        {"x": 2.0, "y": [], "z": [0, 1, 2, 3], "t": None},
        {"x": float("inf"), "y": [3, None], "z": [], "t": None},
        None,
    ]
    assert exported(ds, rows=1) == exported(ds) == expected
    ds = written(tmp_path / "nan.ingot", "tree", [[1.0, float("nan")], [float("nan")]])
    assert np.isnan(exported(ds, rows=1)[1][0])


DICTIONARY = pa.dictionary(pa.int8(), pa.string())
PARTS = pa.struct([("d", pa.decimal128(9, 2)), ("t", pa.timestamp("ms", "UTC"))])


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()),
        *(pa.binary(2), pa.decimal128(9, 2), pa.decimal256(40, 1), DICTIONARY),
        *(pa.float32(), pa.timestamp("s"), PARTS, pa.list_(DICTIONARY)),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_lists_of_one_length_that_are_null_come_back_valid(kind, size, tmp_path):
    table = pa.table({"z": pa.nulls(9, pa.list_(kind, size))})
    found = ingot.from_arrow(table, tmp_path / "x.ingot").to_arrow()
    found.validate(full=True)
    assert found.equals(table)


def listed(kind):
    values = pa.array(["a", "b", "a", "c"]).cast(kind)
    return pa.FixedSizeListArray.from_arrays(
        values, type=pa.list_(kind, 2), mask=pa.array([False, True])
    )


def nested(kind, value):
    rows = [[{"e": {"d": value}}, {"e": {"d": None}}, {"e": None}], [], None]
    return pa.array(rows, pa.list_(pa.struct([("e", pa.struct([("d", kind)]))])))


@pytest.mark.parametrize(
    "column",
    [
        *(listed(pa.string_view()), listed(pa.binary_view()), listed(DICTIONARY)),
        nested(pa.decimal128(9, 2), Decimal("1.50")),
        nested(pa.decimal256(40, 2), Decimal("-0.25")),
        nested(pa.string_view(), "a text of more than twelve bytes"),
        nested(pa.list_(pa.binary_view(), 1), [b"x"]),
        nested(pa.timestamp("us"), 5),
        nested(pa.duration("s"), 5),
        pa.array([Decimal("1.50"), None, Decimal("2.00")]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1], pa.array(["a", "b"], pa.string_view())),
    ],
    ids=lambda one: str(one.type),
)
def test_nested_nulls_come_back_with_their_types(column, tmp_path):
    table = pa.table({"z": column})
    ds = ingot.from_arrow(table, tmp_path / "x.ingot")
    found = ds.to_arrow()
    found.validate(full=True)
    assert found.schema == table.schema
    assert found.to_pylist() == table.to_pylist()
    again = [row for one in ds.arrow_batches(rows=1) for row in pa.record_batch(one).to_pylist()]
    assert again == table.to_pylist()


@pytest.mark.parametrize("values", [[[1], [2, 3]], [{"a": 1}, {"a": 2}]])
def test_dictionaries_of_nested_values_come_back_as_the_values(values, tmp_path):
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(values))
    table = pa.table({"z": coded, "l": pa.ListArray.from_arrays([0, 2, 2, 3], coded)})
    found = ingot.from_arrow(table, tmp_path / "x.ingot").to_arrow()
    found.validate(full=True)
    assert found.to_pylist() == table.to_pylist()
    assert found.schema.types == [pa.array(values).type, pa.list_(pa.array(values).type)]


def test_more_values_than_a_dictionary_can_count_are_refused_with_a_way_to_read_them(tmp_path):
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), pa.array([f"{name} {k}" for k in range(100)])
        )
        for name in "ab"
    ]
    table = pa.table({"z": pa.chunked_array(chunks)})
    ds = ingot.from_arrow(table, tmp_path / "x.ingot")
    with pytest.raises(ValueError, match=r"'z': 200 different values .*arrow_batches\(rows="):
        ds.to_arrow()
    batches = map(pa.record_batch, ds.arrow_batches(rows=100))
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()


def test_values_that_an_earlier_type_cannot_have_are_refused_by_name(tmp_path):
    table = pa.table({"z": pa.array([["a", "b"]], pa.list_(pa.string(), 2))})
    ingot.from_arrow(table, tmp_path / "x")
    with ingot.DatasetWriter(tmp_path / "x", append=True) as writer:
        writer.append({"z": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="row 1: field 'z': a list of 3 values is not fixed_size"):
        ingot.open(tmp_path / "x").to_arrow()

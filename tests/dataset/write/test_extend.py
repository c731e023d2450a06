"""Many rows at once: columns, lists and iterators of rows give what rows one by one give."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot
from ingot.codecs import Bytes, Codec, Int, Utf8


class Shout(Utf8):
    """Overrides `encode` alone, so that it encodes one by one."""

    name = "loud_text"

    def encode(self, value):
        return super().encode(value.upper())


class Even(Int):
    """Refuses some numbers."""

    name = "even_number"

    def encode(self, value):
        if value % 2:
            message = f"{value} is odd"
            raise ValueError(message)
        return super().encode(value)


class Pairs(Codec):
    """Has an `encode_many` of its own."""

    name = "byte_pair"

    def encode(self, value):
        return bytes(value)

    def encode_many(self, values):
        return bytes(one for pair in values for one in pair), (
            2 * np.arange(len(values) + 1)
        ).tobytes()

    def decode(self, data):
        return tuple(data)


for codec in (Shout(), Even(), Pairs()):
    ingot.codecs.register(codec)

SPEC = {
    "label": "int",
    "score": "float",
    "flag": "bool",
    "vector": "array(float32,3)",
    "pixel": "array(uint8)",
    "any": "array",
    "text": "utf8",
    "data": "bytes",
    "thing": "json",
    "shout": "loud_text",
    "even": "even_number",
    "pair": "byte_pair",
    "ids": "int[]",
    "words": "utf8[]",
    "frames": "array(uint8,2)[]",
    "inner": {"number": "int?", "note": "utf8?", "point": "array(int16,2)?"},
    "tags": "utf8[]?",
    "runs": "float[]?",
    "doc": "json?",
}
PLAIN = {
    "label": "int",
    "vector": "array(float32,3)",
    "text": "utf8",
    "data": "bytes?",
    "inner": {"score": "float?", "flag": "bool"},
}

ints = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False)
small = st.integers(0, 255)
vectors = st.lists(st.floats(width=32, allow_nan=False), min_size=3, max_size=3)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def rows_of(spec):
    values = {
        "label": ints,
        "score": st.one_of(floats, ints),
        "flag": st.booleans(),
        "vector": vectors.map(lambda it: np.array(it, np.float32)),
        "pixel": small,
        "any": st.lists(small, max_size=3).map(np.array),
        "text": texts,
        "data": st.binary(max_size=5),
        "thing": st.one_of(st.none(), small, texts),
        "shout": texts,
        "even": st.integers(-9, 9).map(lambda it: 2 * it),
        "pair": st.tuples(small, small),
        "ids": st.one_of(
            st.lists(ints, max_size=3),
            st.lists(ints, max_size=3).map(lambda it: np.array(it, "i8")),
        ),
        "words": st.lists(texts, max_size=3),
        "frames": st.lists(st.tuples(small, small).map(lambda it: np.array(it, "u1")), max_size=2),
        "tags": st.one_of(st.none(), st.lists(texts, max_size=2)),
        "runs": st.one_of(st.none(), st.lists(floats, max_size=2)),
        "doc": st.one_of(st.none(), small),
    }
    inner = {
        "number": st.one_of(st.none(), ints),
        "note": st.one_of(st.none(), texts),
        "point": st.one_of(st.none(), st.tuples(small, small).map(np.array)),
        "score": st.one_of(st.none(), floats),
        "flag": st.booleans(),
    }
    chosen = {name: values[name] for name in spec if name != "inner"}
    chosen["inner"] = st.fixed_dictionaries({name: inner[name] for name in spec["inner"]})
    if "data" in spec and spec["data"].endswith("?"):
        chosen["data"] = st.one_of(st.none(), values["data"])
    return st.fixed_dictionaries(chosen)


def columns_of(rows, spec):
    found = {name: [row[name] for row in rows] for name in spec if name != "inner"}
    found["inner"] = {name: [row["inner"][name] for row in rows] for name in spec["inner"]}
    return found


def as_arrays(columns):
    """Return the columns as arrays, where numpy has an array that means the same."""
    dtypes = {"label": "i8", "flag": "?", "vector": "f4", "pixel": "u1"}
    return columns | {
        name: np.array(columns[name], dtype).reshape(-1, *([3] if name == "vector" else []))
        for name, dtype in dtypes.items()
        if name in columns
    }


def append_all(writer, rows):
    for row in rows:
        writer.append(row)


def content(path):
    """Return the bytes of the files of a data set, without their ids and checksums."""
    ds = ingot.open(path).stored()
    return [{name: bytes_of(value) for name, value in row.items()} for row in ds]


def bytes_of(value):
    if isinstance(value, dict):
        return {name: bytes_of(one) for name, one in value.items()}
    return (value.dtype, value.tolist()) if isinstance(value, np.ndarray | np.generic) else value


@pytest.mark.parametrize("spec", [SPEC, PLAIN], ids=["every type", "plain types"])
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_are_the_same_however_they_are_given(spec, data, tmp_path_factory):
    few = data.draw(st.lists(rows_of(spec), min_size=1, max_size=4))
    rows = few * data.draw(st.sampled_from([1, 3, 40]))
    columns = columns_of(rows, spec)
    ways = {
        "append": lambda writer: append_all(writer, rows),
        "list": lambda writer: writer.extend(rows),
        "tuple": lambda writer: writer.extend(tuple(rows)),
        "iterator": lambda writer: writer.extend(iter(rows)),
        "lists": lambda writer: writer.extend(columns),
        "arrays": lambda writer: writer.extend(as_arrays(columns)),
    }
    limits = data.draw(st.sampled_from([{}, {"shard_rows": 3}, {"shard_bytes": 300}]))
    check = data.draw(st.sampled_from(["structure", "decode"]))
    folder = tmp_path_factory.mktemp("x")
    found = {}
    for name, write in ways.items():
        path = folder / (name if limits else f"{name}.ingot")
        options = {"check": check, "sync": False, "compression": None, **limits}
        with ingot.DatasetWriter(path, spec, **options) as writer:
            write(writer)
            assert len(writer) == len(rows)
        files = sorted(path.iterdir()) if limits else [path]
        shards = [file for file in files if file.suffix == ".ingot"]
        found[name] = [file.stat().st_size for file in shards], content(path)
    assert all(one == found["append"] for one in found.values())


def write(path, spec, write_rows, **options):
    with ingot.DatasetWriter(path, spec, sync=False, **options) as writer:
        write_rows(writer)
    return ingot.open(path)


GOOD = {"label": 1, "vector": np.zeros(3, np.float32), "text": "a", "inner": {"flag": True}}


@pytest.mark.parametrize(
    "bad",
    [
        {"label": "1"},
        {"label": True},
        {"label": 2**63},
        {"label": np.uint64(2**63)},
        {"label": None},
        {"vector": np.zeros(4, np.float32)},
        {"vector": np.array([1, 2, 1e39])},
        {"vector": ["a", "b", "c"]},
        {"vector": np.zeros(3, np.complex64)},
        {"text": b"a"},
        {"text": "\ud800"},
        {"data": "a"},
        {"data": 3},
        {"inner": {"flag": 1}},
        {"inner": {"flag": True, "score": "high"}},
        {"inner": {"flag": True, "score": 10**400}},
        {"inner": {"flag": True, "score": True}},
        {"inner": None},
        {"other": 1},
    ],
    ids=repr,
)
def test_a_rejected_row_has_the_same_error_and_the_rows_before_it_are_kept(tmp_path, bad):
    rows = [GOOD | {"label": k} for k in range(1500)]
    rows[1200] |= bad
    errors, kept = [], []
    for how in (append_all, *[lambda w, r, f=f: w.extend(f(r)) for f in (list, tuple, iter)]):
        with ingot.DatasetWriter(tmp_path / f"{len(kept)}.ingot", PLAIN, sync=False) as writer:
            with pytest.raises((TypeError, ValueError), match="row 1200: ") as caught:
                how(writer, rows)
            assert len(writer) == 1200
            writer.append(GOOD)
        errors.append((caught.type, str(caught.value)))
        kept.append(ingot.open(tmp_path / f"{len(kept)}.ingot").column("label").tolist())
    assert errors == errors[:1] * 4
    assert kept == [[*range(1200), 1]] * 4


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        ("label", [0, 1, "two", 3]),
        ("label", np.array([0, 1, 2**63, 3], np.uint64)),
        ("label", np.array([False, True, False, True])),
        ("label", np.array([0.5, 1, 2, 3])),
        ("vector", [np.zeros(3), np.zeros(3), np.zeros(2), np.zeros(3)]),
        ("vector", np.zeros((4, 2))),
        ("vector", np.array([[0, 0, 0], [1, 1, 1], [1, 1, 1e39], [2, 2, 2]])),
        ("text", ["a", "b", None, "d"]),
        ("text", ["a", "b", 3, "d"]),
        ("data", [b"a", None, "c", b"d"]),
    ],
)
def test_columns_are_appended_all_or_none_with_the_error_of_the_row(tmp_path, column, bad):
    rows = {
        "label": range(4),
        "vector": np.zeros((4, 3), np.float32),
        "text": list("abcd"),
        "inner": {"flag": np.ones(4, np.bool_)},
    }
    columns = rows | {column: bad}
    names = columns.keys() - {"inner"}
    one_by_one = [
        GOOD | {name: columns[name][k] for name in names} | {"inner": {"flag": True}}
        for k in range(4)
    ]
    with ingot.DatasetWriter(tmp_path / "x.ingot", PLAIN, sync=False) as writer:
        writer.append(GOOD)
        with pytest.raises((TypeError, ValueError)) as caught:
            writer.extend(columns)
        assert len(writer) == 1
        with pytest.raises(caught.type) as expected:
            append_all(writer, one_by_one)
    assert str(caught.value) == str(expected.value)
    assert f"field {column!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("batch", "kind", "words"),
    [
        ({"a": 3}, TypeError, "field 'a': a column must be a list .* got int; append takes a sin"),
        ({"a": "abc"}, TypeError, "got str"),
        ({"a": np.int64(3)}, TypeError, "got int64"),
        ({"a": [1, 2], "b": [1]}, ValueError, r"the same length, got {'a': 2, 'b': 1}"),
        ({"b": [1, 2]}, ValueError, "row 0: field 'a' is missing"),
        ({"a": None, "b": [1, 2]}, ValueError, "row 0: field 'a' is missing"),
        ({"a": [1], "c": [1]}, ValueError, "row 0: unknown field 'c'"),
        ({}, ValueError, "at least one column"),
    ],
)
def test_invalid_columns_are_rejected(tmp_path, batch, kind, words):
    writer = ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "int", "b": "int?"})
    with writer, pytest.raises(kind, match=words):
        writer.extend(batch)
    assert len(ingot.open(tmp_path / "x.ingot")) == 0


def test_missing_values_of_columns(tmp_path):
    columns = {
        "a": np.ma.array([1, 2, 3], mask=[False, True, False]),
        "b": np.array(["x", None, "z"], object),
        "c": [None, None, b"z"],
    }
    spec = {"a": "int?", "b": "utf8?", "c": "bytes?", "d": "float?"}
    ds = write(tmp_path / "x.ingot", spec, lambda writer: writer.extend(columns))
    assert [tuple(row.values()) for row in ds] == [
        (1, "x", None, None),
        (None, None, None, None),
        (3, "z", b"z", None),
    ]


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_layout_are_columns(tmp_path, order):
    vectors = np.asarray(np.arange(24, dtype=">f8").reshape(8, 3), order=order)[::-2]
    columns = {
        "label": np.arange(8, dtype=np.uint8)[::2],
        "score": np.arange(4, dtype=np.float16),
        "vector": vectors,
        "text": np.array(["a", "bc", "", "d"]),
        "data": np.array([b"a", b"bc", b"", b"d"]),
        "ids": np.arange(8, dtype=np.int16).reshape(4, 2),
        "frames": np.arange(16, dtype=np.uint8).reshape(4, 2, 2),
    }
    spec = {name: SPEC[name] for name in columns}
    ds = write(tmp_path / "x.ingot", spec, lambda writer: writer.extend(columns))
    assert ds.column("label").tolist() == [0, 2, 4, 6]
    assert ds.column("score").tolist() == [0, 1, 2, 3]
    assert np.array_equal(ds.column("vector"), vectors)
    assert list(ds.column("text")) == ["a", "bc", "", "d"]
    assert [row["data"] for row in ds] == [b"a", b"bc", b"", b"d"]
    assert [row["ids"].tolist() for row in ds] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert np.array_equal([row["frames"] for row in ds], columns["frames"])


def test_a_batch_that_was_read_is_a_batch_to_write(tmp_path):
    rows = [GOOD | {"label": k, "data": None if k % 2 else b"x"} for k in range(20)]
    ds = write(tmp_path / "x.ingot", PLAIN, lambda writer: writer.extend(rows))
    again = write(tmp_path / "y.ingot", PLAIN, lambda w: w.extend(ds[list(range(5, 15))]))
    assert content(tmp_path / "y.ingot") == content(tmp_path / "x.ingot")[5:15]
    assert len(again) == 10


def test_a_row_is_encoded_before_the_next_is_taken(tmp_path):
    def rows():
        buffer, row = np.zeros(3, np.float32), {}
        for k in range(100):
            buffer[:] = k
            row.update(GOOD, label=k, vector=buffer)
            yield row

    ds = write(tmp_path / "x.ingot", PLAIN, lambda writer: writer.extend(rows()))
    assert np.array_equal(ds.column("vector"), np.repeat(np.arange(100.0), 3).reshape(100, 3))


def test_an_iterator_continues_after_a_rejected_row(tmp_path):
    rows = iter([{"a": "bad" if k % 7 == 3 else k} for k in range(50)])
    refused = 0
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "int"}) as writer:
        while True:
            try:
                writer.extend(rows)
                break
            except TypeError:
                refused += 1
    assert refused == 7
    assert ingot.open(tmp_path / "x.ingot").column("a").tolist() == [
        k for k in range(50) if k % 7 != 3
    ]


def test_rows_of_a_failing_iterator_are_kept(tmp_path):
    def rows():
        yield from ({"a": k} for k in range(5))
        message = "the source is gone"
        raise LookupError(message)

    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "int"}) as writer:
        with pytest.raises(LookupError, match="the source is gone"):
            writer.extend(rows())
        assert len(writer) == 5
    assert ingot.open(tmp_path / "x.ingot").column("a").tolist() == list(range(5))


def test_rows_that_wait_come_before_those_of_an_append_and_are_flushed(tmp_path):
    path = tmp_path / "x"

    def rows(writer):
        yield {"a": 0}
        yield {"a": 1}
        assert writer.append({"a": 2}) == 2
        yield {"a": 3}
        writer.flush()
        assert ingot.open(path).column("a").tolist() == [0, 1, 2, 3]
        writer.extend({"a": [4, 5]})
        yield {"a": 6}
        writer.close()

    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.extend(rows(writer))
    assert ingot.open(path).column("a").tolist() == list(range(7))


def test_values_are_decoded_when_that_was_asked_for(tmp_path):
    class Wrong(Bytes):
        name = "wrong"

        def decode(self, data):
            message = f"cannot decode {data}"
            raise ValueError(message)

    options = {"codecs": [Wrong()], "check": "decode", "overwrite": True}
    for batch in ({"a": [b"x"]}, [{"a": b"x"}], iter([{"a": b"x"}])):
        with (
            ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "wrong"}, **options) as writer,
            pytest.raises(ValueError, match="row 0: field 'a' cannot be decoded: cannot decode"),
        ):
            writer.extend(batch)


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        ("text", TypeError, "row 0: field 'a': its codec must return bytes, got str"),
        (b"123", ValueError, "row 0: field 'a': its codec must return 8 bytes, got 3"),
    ],
)
def test_a_codec_that_returns_something_else_is_rejected(tmp_path, result, kind, words):
    class Odd(Codec):
        name = "odd"
        dtype = np.dtype("<i8")

        def encode(self, value):  # noqa: ARG002
            return result

        def decode(self, data):
            return data

    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": Odd()}, sync=False) as writer:
        for batch in ({"a": [1, 2]}, [{"a": 1}] * 20, iter([{"a": 1}])):
            with pytest.raises(kind, match=words):
                writer.extend(batch)
        with pytest.raises(kind, match=words):
            writer.append({"a": 1})
        assert len(writer) == 0


def test_large_batches_are_appended_in_blocks(tmp_path):
    told = []
    columns = {"a": np.arange(200_000), "b": [b"x" * (k % 3) for k in range(200_000)]}
    spec = {"a": "int", "b": "bytes"}
    options = {"progress": lambda *numbers: told.append(numbers), "shard_rows": 70_000}
    ds = write(tmp_path / "x", spec, lambda writer: writer.extend(columns), **options)
    assert ds.column("a").tolist() == list(range(200_000))
    assert ds[199_999]["b"] == columns["b"][-1]
    assert told[-1] == (200_000, 8 * 200_000 + sum(map(len, columns["b"])))

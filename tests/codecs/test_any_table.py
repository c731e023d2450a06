"""Any specification, any rows, any mask: what comes back is what plain Python says."""

import functools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot


def same(found, expected):
    """Whether a value that was read is the one that was written."""
    if isinstance(expected, list) and not expected:
        return len(found) == 0
    if isinstance(expected, np.ndarray) or isinstance(found, np.ndarray):
        return np.array_equal(np.asarray(found), np.asarray(expected))
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            same(found[key], value) for key, value in expected.items()
        )
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return found == expected and type(found) is type(expected)


def arrays(dtype, *shape):
    size = math.prod(shape)
    numbers = st.lists(st.integers(0, 100), min_size=size, max_size=size)
    return numbers.map(lambda values: np.array(values, dtype).reshape(shape))


LEAVES = st.none() | st.booleans() | st.text(max_size=9) | st.integers(-(2**63), 2**63 - 1)
KINDS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=300),
    "utf8": st.text(max_size=50),
    "json": st.recursive(LEAVES, st.lists, max_leaves=5),
    "msgpack": st.recursive(
        LEAVES | st.binary(max_size=9),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ),
    "tree": st.recursive(
        LEAVES | st.floats(allow_nan=False) | st.binary(max_size=9) | arrays(np.int16, 2),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text(max_size=3), inner) | st.tuples(inner, inner)
        ),
        max_leaves=5,
    ),
    "array(int16,2,3)": arrays(np.int16, 2, 3),
    "array(float32)": st.floats(width=32, allow_nan=False).map(np.float32),
    "array": arrays(np.uint8, 3) | arrays(np.float64, 3) | arrays(np.uint8, 2, 1),
    "png": arrays(np.uint8, 2, 3, 3) | arrays(np.uint8, 4, 2),
}


@st.composite
def tables(draw):
    spec = {}
    for k in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(list(KINDS)))
        above = draw(st.sampled_from(["", "", "g.", "g.h.", "i."]))
        spec[f"{above}f{k}"] = kind + draw(st.sampled_from(["", "[]", "?", "[]?"]))
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        row = {}
        for name, kind in spec.items():
            values = KINDS[kind.removesuffix("?").removesuffix("[]")]
            if kind.endswith("?") and draw(st.booleans()):
                continue
            row[name] = draw(st.lists(values, max_size=4) if "[]" in kind else values)
        rows.append(row)
    return spec, rows


def at(nested, name):
    return functools.reduce(lambda inner, key: inner[key], name.split("."), nested)


@settings(deadline=None, max_examples=150)
@given(tables(), st.data())
def test_any_table_comes_back(tmp_path_factory, table, data):
    spec, rows = table
    path = tmp_path_factory.mktemp("table") / data.draw(st.sampled_from(["x.ingot", "x"]))
    options = {} if path.suffix else {"shard_rows": data.draw(st.integers(1, 5))}
    with ingot.DatasetWriter(path, spec, sync=False, **options) as writer:
        writer.extend(rows)
    with ingot.open(path) as ds:
        assert (len(ds), dict(ds.spec)) == (len(rows), spec)
        names = data.draw(st.lists(st.sampled_from(list(spec)), unique=True))
        start, stop = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
        step = data.draw(st.integers(1, 3))
        mask = {name: range(start, stop, step) if "[]" in spec[name] else True for name in names}
        for k, row in enumerate(rows):
            whole, some, part = ds[k], ds[k, names], ds[k, mask]
            for name in spec:
                assert same(at(whole, name), row.get(name))
            for name in names:
                expected = row.get(name)
                assert same(at(some, name), expected)
                cut = expected is not None and "[]" in spec[name]
                assert same(at(part, name), expected[start:stop:step] if cut else expected)
        for name, kind in spec.items():
            there = [not kind.endswith("?") or row.get(name) is not None for row in rows]
            assert ds.present(name).tolist() == there
        order = data.draw(st.lists(st.integers(0, len(rows) - 1))) if rows else []
        batch = ds[order]
        for name, kind in spec.items():
            values = at(batch, name)
            assert isinstance(values, list) or not kind.endswith("?")
            for value, k in zip(values, order, strict=True):
                expected = rows[k].get(name)
                number = isinstance(value, np.generic)
                assert value == expected if number else same(value, expected)
        check_picks(ds, rows, order, names, range(start, stop, step))
        for found, each in ((ds, range(len(rows))), (ds.__getitems__(order), order)):
            for row, k in zip(found, each, strict=True):
                whole = ds[k]
                assert all(same_type(at(row, name), at(whole, name)) for name in spec)


def check_picks(ds, rows, order, names, picks):
    """Check the elements of sequences that are picked in a batch, and their numbers."""
    sequences = [name for name in ds.spec if "[]" in ds.spec[name]]
    for name in sequences:
        assert ds.lengths(name).tolist() == [len(row.get(name) or []) for row in rows]
    wanted = [name for name in names if name in sequences]
    batch = ds[order, dict.fromkeys(wanted, picks)]
    for name in wanted:
        for value, k in zip(at(batch, name), order, strict=True):
            expected = rows[k].get(name)
            cut = slice(picks.start, picks.stop, picks.step)
            assert same(value, None if expected is None else expected[cut])


def same_type(value, expected):
    """Whether two values are equal, and of the same types all the way down."""
    if type(value) is not type(expected):
        return False
    if isinstance(value, list):
        return len(value) == len(expected) and all(map(same_type, value, expected))
    if isinstance(value, np.ndarray):
        return value.dtype == expected.dtype and same(value, expected)
    return same(value, expected)

"""Rows of every class of H5Record, and what counts as the same."""

import numpy as np

from ingot.compat import h5record
from tests.support import DATA

GOLDEN = DATA / "h5record"


def schema(module=h5record):
    """Return a column of each class: more than eight, so that links are dense."""
    return [
        module.Integer("integer"),
        module.Float("float"),
        module.Float16("float16"),
        module.String("string"),
        module.Image(5, 7, 3, "image"),
        module.ImageSequence(4, 4, 3, "film"),
        module.Sequence("sequence"),
        module.FloatSequence("floats"),
        module.Float16Sequence("halves"),
    ]


def row(k):
    rng = np.random.default_rng(k)
    return {
        "integer": k - 3,
        "float": k / 3,
        "float16": k / 4,
        "string": "Zeile äöü 小明 🙂 "[: k % 15] * (k % 4),
        "image": rng.integers(0, 256, (3, 5, 7), np.uint8),
        "film": rng.integers(0, 256, 48 * (k % 3 + 1), np.uint8),
        "sequence": np.arange(k % 6, dtype=np.int32) - k,
        "floats": np.arange(k % 5, dtype=np.float32) / 3,
        "halves": np.arange(k % 4, dtype=np.float16) / 4,
    }


def rows(count, start=0):
    return [row(k) for k in range(start, start + count)]


def same(a, b):
    """Return whether rows, or parts of them, have the same values of the same types."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and a.dtype == object:
        is_same = isinstance(b, np.ndarray) and b.dtype == object and a.shape == b.shape
        return is_same and same(a.reshape(-1).tolist(), b.reshape(-1).tolist())
    if isinstance(a, np.ndarray | np.generic):
        kind = np.ndarray if isinstance(a, np.ndarray) else type(a)
        is_float = a.dtype.kind == "f"
        return (
            isinstance(b, kind)
            and a.dtype == b.dtype
            and np.array_equal(a, b, equal_nan=is_float)
            and (not is_float or np.array_equal(np.signbit(a), np.signbit(b)))
        )
    return type(a) is type(b) and a == b


def expected(columns, data):
    """Return rows as they are read: of the types that the columns store."""
    return [{one.name: _stored(one, each[one.name]) for one in columns} for each in data]


def _stored(column, value):
    kinds = {
        "Integer": np.int64,
        "Float": np.float32,
        "Float16": np.float16,
        "Sequence": np.int32,
        "FloatSequence": np.float32,
        "Float16Sequence": np.float16,
    }
    name = type(column).__name__
    if name.endswith("Sequence") and name in kinds:
        found = np.empty(1, object)
        found[0] = np.asarray(value, kinds[name])
        return found
    if name == "ImageSequence":
        return np.asarray(value, np.uint8).reshape(column.c, column.h, column.w, -1)
    return kinds[name](value) if name in kinds else value

"""Tables of Arrow with columns of any supported type, and files of them, for tests."""

import hashlib
import struct

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from hypothesis import strategies as st

NUMBERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_()),
]
TIMES = [
    *(pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ms", "Europe/Paris")),
    *(pa.date32(), pa.time32("ms"), pa.time64("us"), pa.duration("ns")),
]
TEXTS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)),
]
SINGLES = [
    *NUMBERS,
    *TIMES,
    *TEXTS,
    *(pa.decimal128(9, 2), pa.decimal256(40, 3)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
]
LISTS = [
    *(pa.list_(one) for one in [*NUMBERS, *TIMES[:3], pa.string(), pa.large_binary()]),
    *(pa.large_list(one) for one in [pa.int16(), pa.string()]),
    *(pa.list_(one, 3) for one in [pa.float32(), pa.bool_(), pa.string()]),
    pa.list_(pa.list_(pa.uint8(), 2), 4),
    pa.list_(pa.list_(pa.float32(), 4)),
    pa.list_(pa.list_(pa.int32())),
    pa.list_(pa.list_(pa.string())),
    pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())])),
    pa.map_(pa.string(), pa.int32()),
]
STRUCTS = [
    pa.struct([("a", pa.int32()), ("b", pa.string())]),
    pa.struct([("a", pa.list_(pa.int64())), ("in", pa.struct([("c", pa.bool_())]))]),
]
TYPES = [*SINGLES, *LISTS, *STRUCTS]


def random_array(rng, kind, count, *, nulls):
    """Return random values of a type; with `nulls`, some are null, but no whole struct."""
    mask = rng.random(count) < 0.3 if nulls and count else np.zeros(count, bool)
    null = pa.array(mask) if mask.any() else None
    if pa.types.is_dictionary(kind):
        values = random_array(rng, kind.value_type, count, nulls=nulls)
        encoded = values.dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            encoded.indices.cast(kind.index_type), encoded.dictionary
        )
    if pa.types.is_struct(kind):
        # One part is never null, as a struct of nulls and a null struct come back alike.
        parts = [
            random_array(rng, one.type, count, nulls=nulls and k > 0) for k, one in enumerate(kind)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    if pa.types.is_map(kind):
        lengths = rng.integers(0, 3, count)
        keys = random_array(rng, kind.key_type, int(lengths.sum()), nulls=False)
        items = random_array(rng, kind.item_type, int(lengths.sum()), nulls=nulls)
        return pa.MapArray.from_arrays(np.cumsum([0, *lengths]), keys, items)
    if pa.types.is_fixed_size_list(kind):
        values = random_array(rng, kind.value_type, count * kind.list_size, nulls=False)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=null)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = rng.integers(0, 5, count)
        is_struct = pa.types.is_struct(kind.value_type)
        values = random_array(rng, kind.value_type, int(lengths.sum()), nulls=nulls and is_struct)
        made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        offsets = pa.array(np.cumsum([0, *lengths]), (made is pa.ListArray and pa.int32()) or None)
        return made.from_arrays(offsets, values, type=kind, mask=null)
    return _random_values(rng, kind, count, mask)


def _random_values(rng, kind, count, mask):
    if pa.types.is_decimal(kind):
        numbers = pa.array([f"{n}.25" for n in rng.integers(-99, 99, count)], pa.string())
        values = numbers.cast(kind).to_pylist()
    elif pa.types.is_fixed_size_binary(kind):
        values = [rng.bytes(kind.byte_width) for _ in range(count)]
    elif kind in TEXTS:
        texts = [chr(rng.integers(32, 0x3000)) * rng.integers(0, 20) for _ in range(count)]
        is_binary = "binary" in str(kind)
        values = [one.encode() if is_binary else one for one in texts]
    elif pa.types.is_temporal(kind):
        width = np.int32 if kind.bit_width == 32 else np.int64
        return pa.array(rng.integers(0, 80_000, count).astype(width), mask=mask).cast(kind)
    elif pa.types.is_floating(kind):
        return pa.array(rng.normal(0, 9, count).astype(kind.to_pandas_dtype()), kind, mask=mask)
    elif pa.types.is_boolean(kind):
        return pa.array(rng.random(count) < 0.5, mask=mask)
    else:
        limits = np.iinfo(kind.to_pandas_dtype())
        numbers = rng.integers(limits.min, limits.max, count, kind.to_pandas_dtype(), endpoint=True)
        return pa.array(numbers, kind, mask=mask)
    return pa.array([None if gone else one for one, gone in zip(values, mask, strict=False)], kind)


@st.composite
def tables(draw, kinds=TYPES):
    """Return a table of a few columns of any type, with and without nulls."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    count = draw(st.sampled_from([0, 1, 2, 7, 40]))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    columns = {
        f"c{k}": random_array(rng, kind, count, nulls=draw(st.booleans()))
        for k, kind in enumerate(chosen)
    }
    return pa.table(columns)


def write(table, path, kind, rows=16):
    """Write a table as a file of some kind, with blocks of so many rows."""
    if kind == "parquet":
        pa.parquet.write_table(table, path, row_group_size=rows)
    elif kind == "feather":
        pa.feather.write_feather(table, path, chunksize=rows)
    else:
        new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with new(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    return path


def plain(value):
    """Return a value with objects of Python in place of those of numpy."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def record_hash(record):
    """Return the hash of a record by its canonical form, as the golden files have it."""
    fields = (_field(name, record[name]) for name in sorted(record))
    return hashlib.sha256(b"".join(fields)).hexdigest()


def _field(name, value):
    code, payload = _canonical(value)
    return name.encode() + b"\0" + code + struct.pack("<Q", len(payload)) + payload


def _canonical(value):  # noqa: PLR0911
    match value:
        case None:
            return b"n", b""
        case bool():
            return b"t", bytes([value])
        case int():
            return b"i", value.to_bytes(16, "little", signed=True)
        case float():
            return b"f", struct.pack("<d", value)
        case str():
            return b"s", value.encode()
        case bytes():
            return b"b", value
        case list():
            return b"l", b"".join(_field("", one) for one in value)
    return b"d", b"".join(_field(name, value[name]) for name in sorted(value))

"""Files of HDF5 with data sets of any type, shape and layout, for tests of hypothesis."""

import math

import h5py
import numpy as np
from hypothesis import strategies as st

NUMBERS = "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 ? c8 c16 >i2 >i4 >i8 >u2 >u4 >u8 >f2 >f4 >f8 >c8"
ELEMENTS = [
    *NUMBERS.split(),
    [("x", "f4"), ("y", [("z", "?", (2,)), ("w", ">i2")])],
    np.dtype([("a", "u1"), ("b", "f8"), ("c", "i2", (2, 1))], align=True),
    {"names": ["p", "q"], "formats": ["i4", "c8"], "offsets": [4, 16], "itemsize": 32},
    "(2,3)i2",
    h5py.enum_dtype({"R": 0, "G": 1}, "i1"),
]
SINGLES = [
    "S5",
    "V3",
    [("a", "i4"), ("n", [("b", ">f2"), ("c", "u1", (2, 3))]), ("s", "S4"), ("o", "V3")],
    h5py.string_dtype("utf-8", 7),
    h5py.string_dtype("ascii"),
    h5py.string_dtype(),
    *(h5py.vlen_dtype(np.dtype(one)) for one in ("i1", "u2", "i8", "f2", "f8", "c8", "?")),
]
"""Types of which a row has one value."""

LENGTHS = [0, 1, 3, 9, 70, 0, 1, 3, 9, 70, 20_000]


def random_values(rng, dtype, shape):
    """Return values of a type, with bytes of any kind where it takes them."""
    if dtype.subdtype is not None:
        return random_values(rng, dtype.subdtype[0], (*shape, *dtype.subdtype[1]))
    found = np.zeros(shape, dtype)
    if dtype.names:
        for name in dtype.names:
            found[name] = random_values(rng, dtype[name], shape)
    elif dtype.kind == "O":
        element = h5py.check_vlen_dtype(dtype)
        for place in np.ndindex(shape):
            length = int(rng.choice(LENGTHS))
            if element in {str, bytes}:
                found[place] = "".join(rng.choice([*"abcdef é學🙂"], length)).encode()
            else:
                found[place] = random_values(rng, np.dtype(element), (length,))
    elif dtype.kind == "S":
        found[...] = rng.choice([b"", b"a", b"bcd", b"efgh"], shape)
    elif dtype.kind == "b":
        found[...] = rng.integers(0, 2, shape)
    else:
        found = np.frombuffer(rng.bytes(found.nbytes), dtype).reshape(shape)
    return found


@st.composite
def columns(draw, rows):
    """Return the type, the shape and the layout of a data set."""
    if draw(st.booleans()):
        dtype = np.dtype(draw(st.sampled_from(ELEMENTS)))
        shape = (rows, *draw(st.lists(st.integers(1, 4), max_size=3)))
    else:
        dtype = np.dtype(draw(st.sampled_from(SINGLES)))
        shape = (rows, 1) if dtype.kind in "SO" and draw(st.booleans()) else (rows,)
    layout = draw(st.sampled_from(["contiguous", "compact", "chunked", "filtered"]))
    if layout == "compact" and dtype.kind != "O":
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        return dtype, shape, {"dcpl": plist}
    if layout in {"contiguous", "compact"}:
        return dtype, shape, {}
    limits = tuple(length + 2 for length in shape)
    limits = draw(st.sampled_from([limits, (None, *limits[1:]), (None,) * len(shape)]))
    chunks = tuple(draw(st.integers(1, 7 if limit is None else limit)) for limit in limits)
    options = {"maxshape": limits, "chunks": chunks}
    if layout == "filtered":
        can_szip = dtype.kind in "iuf" and math.prod(chunks) >= 8
        packings = [None, "gzip", "lzf", *["szip"] * can_szip]
        options["compression"] = draw(st.sampled_from(packings))
        options["shuffle"] = draw(st.booleans())
        options["fletcher32"] = dtype.kind != "O" and draw(st.booleans())
    return dtype, shape, options


def make(file, rng, name, column, fill):
    """Make a data set: written whole, in part, not at all, or made longer or shorter later."""
    dtype, (rows, *inner), options = column
    if fill and dtype.kind in "iufb" and dtype.metadata is None:
        options = options | {"fillvalue": fill}
    can_grow = options.get("maxshape", (rows,))[0] is None
    begun = int(rng.integers(0, rows + 4)) if can_grow else rows
    dataset = file.create_dataset(name, (begun, *inner), dtype, **options)
    values = random_values(rng, dtype, dataset.shape)
    start, stop = sorted(rng.integers(0, begun + 1, 2)) if rng.integers(2) else (0, begun)
    if dtype.kind == "S":  # HDF5 leaves what was not written undefined, and h5py must decode it.
        start, stop = 0, begun
    if dtype.kind == "O":
        for k in [*range(start, stop), *range(start, stop, 2)]:  # Some are written twice.
            place = (k, *(0 for _ in inner))
            dataset[place] = values[place]
    elif stop > start:
        dataset[start:stop] = values[start:stop]
    if begun != rows:
        dataset.resize(rows, axis=0)


def h5py_fields(name, found):
    """Return what h5py has read as fields: the members of compounds, text, native numbers."""
    if found.dtype.names:
        each = [h5py_fields(f"{name}.{one}", found[one]) for one in found.dtype.names]
        return {name: values for fields in each for name, values in fields.items()}
    if found.dtype.kind == "V":
        return {name: [one.tobytes() for one in found]}
    if found.dtype.kind in "SO":
        values = found.reshape(len(found)).tolist()
        return {name: [one.decode() if isinstance(one, bytes) else one for one in values]}
    return {name: found.astype(found.dtype.newbyteorder("="))}

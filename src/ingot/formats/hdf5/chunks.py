"""Where HDF5 keeps the rows of a data set, and reading them by chunks."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import Hdf5Column, Hdf5File
from ingot.formats.hdf5.column import EXPANSION, Column
from ingot.formats.hdf5.file import h5py

_SIZES = (8, 8)
"""Bytes of offsets and lengths in files that the engine can read."""


def locate(column: Column, dataset: Any, file: Hdf5File) -> Hdf5Column | None:
    """Return a column for the engine; None if only HDF5 can read it.

    The engine reads contiguous data sets, and chunks that no filter has changed, as
    numbers, text and compounds of the types that numpy has.

    Raises:
        CorruptFileError: Bytes of it would be after the end of the file.
    """
    library = h5py()
    plist = dataset.id.get_create_plist()
    creation = dataset.file.id.get_create_plist()
    is_plain = (
        plist.get_nfilters() == 0
        and creation.get_userblock() == 0
        and creation.get_sizes() == _SIZES
        and dataset.shape
        and dataset.size
    )
    if not is_plain or not _is_exact(dataset):
        return None
    block, offsets = dataset.shape, None
    if plist.get_layout() == library.h5d.CONTIGUOUS:
        start = dataset.id.get_offset()
        offsets = None if start is None else np.array([start], np.uint64)
    elif plist.get_layout() == library.h5d.CHUNKED:
        block, offsets = dataset.chunks, _offsets(dataset)
    if offsets is None:
        return None
    if column.varies:
        if math.prod(block[1:]) != 1:
            return None
        block = block[:1]
    block = (*block, *column.shape[len(block) - 1 :])
    form = (column.rows, column.item, column.varies, column.shape)
    return file.column(*form, block, offsets.tobytes())


def _is_exact(dataset: Any) -> bool:
    """Return whether bytes of the file are those of the type that numpy has for them."""
    library = h5py()
    kind, dtype = dataset.id.get_type(), dataset.dtype
    if dtype.kind == "O" and library.check_string_dtype(dtype) is not None:
        return True
    if library.check_vlen_dtype(dtype) is not None:
        kind, dtype = kind.get_super(), np.dtype(library.check_vlen_dtype(dtype))
    return bool(kind.equal(library.h5t.py_create(dtype, logical=True)))


def _offsets(dataset: Any) -> npt.NDArray[np.uint64] | None:
    """Return where each chunk begins, in C order; None if one was never written."""
    counts = _counts(dataset)
    total = math.prod(counts)
    if not hasattr(dataset.id, "chunk_iter") or dataset.id.get_num_chunks() < total:
        return None
    places, offsets = zip(*_chunks(dataset), strict=True)
    index = np.asarray(places, np.int64) // np.asarray(dataset.chunks, np.int64)
    inside = (index < counts).all(axis=1)
    if inside.sum() != total:
        return None
    found = np.zeros(counts, np.uint64)
    found[tuple(index[inside].T)] = np.asarray(offsets, np.uint64)[inside]
    return found.reshape(-1)


def _chunks(dataset: Any) -> list[tuple[tuple[int, ...], int]]:
    """Return of each chunk that is written its first element and where it begins in the file."""
    found: list[tuple[tuple[int, ...], int]] = []

    def visit(chunk: Any) -> None:
        found.append((chunk.chunk_offset, chunk.byte_offset))

    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(visit)
    else:
        for k in range(dataset.id.get_num_chunks()):
            visit(dataset.id.get_chunk_info(k))
    return found


def _counts(dataset: Any) -> tuple[int, ...]:
    """Return how many chunks there are along each dimension, if all are written."""
    return tuple(-(-a // b) for a, b in zip(dataset.shape, dataset.chunks, strict=True))


def is_checked(dataset: Any) -> bool:
    """Return whether HDF5 compares a checksum for every value.

    It does not for chunks that it does not find, whose values are the fill value, nor for those
    that are marked as written without the filter.
    """
    if not dataset.fletcher32:
        return False
    counts = _counts(dataset)
    if dataset.id.get_num_chunks() < math.prod(counts):
        return False
    plist = dataset.id.get_create_plist()
    filters = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    bit = 1 << filters.index(h5py().h5z.FILTER_FLETCHER32)
    for index in np.ndindex(counts):
        place = tuple(a * b for a, b in zip(index, dataset.chunks, strict=True))
        try:
            mask, _ = dataset.id.read_direct_chunk(place)
        except (RuntimeError, OSError):
            return False
        if mask & bit:
            return False
    return True


def written(dataset: Any) -> list[range]:
    """Return the rows that a file has values of, in order; all others have the fill value.

    The number of rows is a claim of the file, while these are bounded by its size.
    """
    rows = dataset.shape[0] if dataset.shape else 1
    if dataset.chunks is not None:
        if dataset.id.get_num_chunks() >= math.prod(_counts(dataset)):
            return [range(rows)]
        height = dataset.chunks[0]
        starts = sorted({first[0] for first, _ in _chunks(dataset)})
        return [range(a, min(a + height, rows)) for a in starts if a < rows]
    if dataset.is_virtual:
        nbytes = math.prod(dataset.shape) * dataset.dtype.itemsize
        is_outside = any(one.file_name != "." for one in dataset.virtual_sources())
        is_full = is_outside or nbytes <= EXPANSION * dataset.file.id.get_filesize()
    else:
        is_full = dataset.id.get_storage_size() > 0
    return [range(rows)] if is_full else []


def read(dataset: Any, numbers: range | npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return rows, which must exist, by h5py; each chunk is read once."""
    if isinstance(numbers, range):
        if dataset.shape and numbers and numbers.step > 0:
            whole: npt.NDArray[Any] = dataset[numbers.start : numbers.stop : numbers.step]
            return whole
        numbers = np.asarray(numbers, np.int64)
    if not dataset.shape:
        single = np.empty(len(numbers), dataset.dtype)
        for k in range(len(numbers)):
            single[k] = dataset[()]
        return single
    if len(numbers) <= 1:
        start = int(numbers[0]) if len(numbers) else 0
        found: npt.NDArray[Any] = dataset[start : start + len(numbers)]
        return found
    rows, back = np.unique(numbers, return_inverse=True)
    height = dataset.chunks[0] if dataset.chunks else 1
    is_gap = (np.diff(rows) > 1) & (np.diff(rows // height) > 0)
    cuts = [0, *(np.flatnonzero(is_gap) + 1).tolist(), len(rows)]
    parts = [dataset[rows[a] : rows[b - 1] + 1][rows[a:b] - rows[a]] for a, b in pairwise(cuts)]
    return np.concatenate(parts)[back]

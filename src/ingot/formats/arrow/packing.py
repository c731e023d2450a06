"""Values of Arrow, as they would be stored in an Ingot file."""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs import Array, Bytes, Codec, FixedArray, Tree, Utf8
from ingot.codecs.codec import cells_of, joined
from ingot.dataset.read.plan import Packed
from ingot.dataset.spec import Field
from ingot.formats.arrow.library import pyarrow
from ingot.formats.arrow.types import dtype_of

Truths: TypeAlias = npt.NDArray[np.bool_]


class NullError(ValueError):
    """A value is null where none may be.

    Attributes:
        place: Its position among the values.
    """

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place


def packed(field: Field, array: Any) -> tuple[Packed, Truths | None]:
    """Return values as a file would store them, and which of them are present.

    Args:
        field: The field.
        array: The values, cast to the plain type of the leaf.

    Returns:
        None for what is present, if the field is not optional.

    Raises:
        NullError: A value is null, or an element of a list is.
        ValueError: Lists are not of the shape that their type tells.
    """
    if not field.is_optional:
        if array.null_count:
            place = int(np.flatnonzero(~valid(array))[0])
            message = "the value is null, which the type of the field does not allow"
            raise NullError(message, place)
        return _packed(field, array), None
    present = valid(array)
    if present.all():
        return _packed(field, array), present
    try:
        found = _packed(field, array.drop_null())
    except NullError as error:
        raise NullError(str(error), int(np.flatnonzero(present)[error.place])) from error
    return _spread(field, found, present), present


def valid(array: Any) -> Truths:
    """Return which values are not null."""
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    found: Truths = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def numbers(array: Any) -> npt.NDArray[Any]:
    """Return numbers without nulls as a new array."""
    return np.array(array.to_numpy(zero_copy_only=False))


def _packed(field: Field, array: Any) -> Packed:
    """Return values without nulls."""
    if field.kind == "column":
        return cells_of(numbers(array))[0], None, None  # type: ignore[return-value]
    if not field.is_sequence:
        return (*_cells(field.codec, array), None)
    ends, values = _lists(array)
    if values.null_count:
        raise _null_element(ends, values)
    if field.kind == "cell":
        data, _ = cells_of(numbers(values))
        width = field.codec.dtype.itemsize if field.codec.dtype else 1
        return data, (ends * width).tobytes(), None  # type: ignore[return-value]
    try:
        data, offsets = _cells(field.codec, values)
    except NullError as error:
        place = int(np.searchsorted(ends, error.place, "right")) - 1
        raise NullError(str(error), place) from error
    return data, offsets, np.diff(ends).astype(np.uint64).tobytes()


def _spread(field: Field, values: Packed, present: Truths) -> Packed:
    """Insert what stands for a missing value between the values that are present."""
    data, offsets, counts = values
    if field.kind == "column":
        width = field.width or 1
        wide = np.zeros((len(present), width), np.uint8)
        wide[present] = np.frombuffer(data, np.uint8).reshape(-1, width)
        return cells_of(wide)[0], None, None  # type: ignore[return-value]
    if counts is not None:
        each = np.zeros(len(present), np.uint64)
        each[present] = np.frombuffer(counts, np.uint64)
        return data, offsets, each.tobytes()
    sizes = np.zeros(len(present) + 1, np.int64)
    sizes[1:][present] = np.diff(np.frombuffer(offsets or b"", np.int64))
    return data, np.cumsum(sizes).tobytes(), None


def _lists(array: Any) -> tuple[npt.NDArray[np.int64], Any]:
    """Return where lists begin and end in their elements, and these; there are no nulls."""
    types = pyarrow().types
    if types.is_fixed_size_list(array.type):
        ends = np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size
        return ends, array.flatten()
    ends = array.offsets.to_numpy().astype(np.int64)
    return ends - ends[0], array.flatten()


def _null_element(ends: npt.NDArray[np.int64], values: Any) -> NullError:
    first = int(np.flatnonzero(~valid(values))[0])
    place = int(np.searchsorted(ends, first, "right")) - 1
    message = "an element of the list is null, which no sequence can have"
    return NullError(message, place)


def _cells(codec: Codec, array: Any) -> tuple[Any, bytes]:
    """Return the bytes of values without nulls, and where each begins."""
    if isinstance(codec, FixedArray):
        return cells_of(_blocks(array, codec.shape))
    if isinstance(codec, Array):
        return joined([codec.encode(one) for one in _ragged(array)])
    if isinstance(codec, Tree):
        return joined([codec.encode(one) for one in array.to_pylist()])
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return b"", bytes(8 * (len(array) + 1))
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    view = memoryview(data if data is not None else b"").cast("B")
    return view[int(ends[0]) : int(ends[-1])], (ends - ends[0]).tobytes()


def _blocks(array: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return lists of lists as one array.

    Raises:
        ValueError: They are not of this shape.
    """
    count = len(array)
    levels = array
    while hasattr(levels.type, "value_type"):
        levels = _inner(levels)
    found = numbers(levels)
    if len(found) != count * math.prod(shape) or not _is_regular(array, shape):
        message = f"expected lists of shape {shape}, but they have other lengths"
        raise ValueError(message)
    return found.reshape(count, *shape)


def _inner(array: Any) -> Any:
    ends, values = _lists(array)
    if values.null_count:
        raise _null_element(ends, values)
    return values


def _is_regular(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether each list has the length that the shape gives for its level."""
    if pyarrow().types.is_fixed_size_list(array.type):
        return True
    for length in shape:
        ends, array = _lists(array)
        if (np.diff(ends) != length).any():
            return False
    return True


def _ragged(array: Any) -> list[npt.NDArray[Any]]:
    """Return lists of lists as arrays, each with its own shape.

    Raises:
        ValueError: The lists in one value have several lengths.
    """
    ends, values = _lists(array)
    if values.null_count:
        raise _null_element(ends, values)
    if hasattr(values.type, "value_type"):
        inner = _ragged(values)
        parts = [inner[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        shapes = [{one.shape for one in part} for part in parts]
        if any(len(shape) > 1 for shape in shapes):
            message = "the lists in an array have several lengths"
            raise ValueError(message)
        empty = np.empty((0, *_rest(values)), _dtype(values))
        return [np.stack(part) if part else empty for part in parts]
    flat = numbers(values)
    return [flat[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def _rest(array: Any) -> tuple[int, ...]:
    """Return lengths for the levels of a list that has no elements."""
    return (0, *_rest(array.flatten())) if hasattr(array.type, "value_type") else ()


def _dtype(array: Any) -> np.dtype[Any]:
    while hasattr(array.type, "value_type"):
        array = array.flatten()
    return dtype_of(array.type)


def picked_elements(array: Any, picks: Any) -> Any:
    """Return lists with the picked elements only: a start, a stop and a step for each list."""
    pa = pyarrow()
    present = valid(array)
    ends, values = _lists(array.drop_null())
    lengths = iter(np.diff(ends).tolist())
    starts = iter(ends.tolist())
    wanted: list[range] = []
    for pick, there in zip(picks, present.tolist(), strict=True):
        if there:
            first = next(starts)
            some = range(*slice(*pick).indices(next(lengths)))
            wanted.append(range(first + some.start, first + some.stop, some.step))
        else:
            wanted.append(range(0))
    offsets = np.cumsum([0, *map(len, wanted)])
    taken = values.take(pa.array(np.concatenate([np.array(one, np.int64) for one in wanted])))
    mask = None if present.all() else pa.array(~present)
    return pa.LargeListArray.from_arrays(pa.array(offsets), taken, mask=mask)


def checked(field: Field, array: Any) -> None:
    """Refuse values that a writer of the field's type would refuse.

    Raises:
        ValueError: Text is not Unicode, or a file is not of the type.
    """
    values = _lists(array.drop_null())[1] if field.is_sequence else array
    if isinstance(field.codec, Utf8):
        values.cast(pyarrow().large_string())
    elif (
        not isinstance(field.codec, Bytes | FixedArray | Array | Tree) and field.codec.dtype is None
    ):
        for one in values.drop_null():
            field.codec.encode(one.as_buffer().to_pybytes())

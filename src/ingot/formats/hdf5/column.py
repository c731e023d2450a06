"""One data set of an HDF5 file: what its rows are made of."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs import Codec, codec_of
from ingot.codecs.array import FixedArray, stored_dtype
from ingot.dataset.nested import DOT
from ingot.dataset.read.values import stacked
from ingot.dataset.spec import Field
from ingot.formats.hdf5.file import SHAPE, h5py

Packed: TypeAlias = tuple[memoryview, bytes]
Member: TypeAlias = tuple[str, ...]
"""The names that lead to a member of a compound type; () for the whole value."""


_ROW_BYTES = 1 << 30
EXPANSION = 1100
"""No filter compresses better: fewer bytes of a file do not hold the values that it claims."""


class Column(ABC):
    """A data set whose rows have values of one or more fields.

    Attributes:
        path: Its path in the file.
        rows: Number of its rows.
        fields: The fields, by their names.
        shape: The shape of a row.
        item: Bytes of an element.
        varies: Whether values vary in length.
    """

    varies = False

    def __init__(self, dataset: Any, fields: Mapping[str, Field]) -> None:
        self.path: str = dataset.name.strip("/")
        self.rows: int = dataset.shape[0] if dataset.shape else 1
        self.fields = dict(fields)
        self.shape: tuple[int, ...] = ()
        self.item = 0

    @staticmethod
    def of(name: str, dataset: Any) -> "Column | None":
        """Return a data set as a column; None if there is no type for its values."""
        library = h5py()
        try:
            dtype = dataset.dtype
        except (TypeError, UnicodeDecodeError):  # It is one that numpy lacks.
            return None
        if dataset.shape is None or dataset.id.get_create_plist().get_external_count():
            return None
        row_bytes = math.prod(dataset.shape[1:]) * dtype.itemsize
        if row_bytes > _ROW_BYTES and row_bytes > EXPANSION * dataset.id.get_storage_size():
            return None
        is_single = dataset.shape[1:] in {(), (1,)}
        element = library.check_vlen_dtype(dtype)
        text = library.check_string_dtype(dtype)
        if is_single and text is not None and text.length is None:
            return _TextColumn(name, dataset)
        if is_single and text is None and element is not None and _is_number(np.dtype(element)):
            return _RunColumn(name, dataset, np.dtype(element))
        shape = () if is_single and dtype.kind == "S" else dataset.shape[1:]
        members = dict(_members(dtype, shape))
        codecs = {member: codec for member, codec in members.items() if codec is not None}
        return _FixedColumn(name, dataset, codecs) if codecs == members and codecs else None

    @abstractmethod
    def decode(self, packed: Packed) -> dict[str, Any]:
        """Return the values of each field in what the engine has read.

        Raises:
            ValueError: They are not such values.
        """

    @abstractmethod
    def pick(self, found: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the values of each field in what h5py has read.

        Raises:
            ValueError: They are not such values.
        """


class _FixedColumn(Column):
    """Numbers, arrays, compounds, text and bytes of a fixed size."""

    def __init__(self, name: str, dataset: Any, codecs: Mapping[Member, Codec]) -> None:
        names = {member: DOT.join([name, *member]) for member in codecs}
        super().__init__(dataset, {names[k]: Field(names[k], one) for k, one in codecs.items()})
        self._members = {names[member]: member for member in codecs}
        self._dtype, more = dataset.dtype.subdtype or (dataset.dtype, ())
        self.shape = (*dataset.shape[1:], *more)
        self.item = self._dtype.itemsize

    def decode(self, packed: Packed) -> dict[str, Any]:
        count = len(packed[1]) // 8 - 1
        return self.pick(np.ndarray((count, *self.shape), self._dtype, packed[0]))

    def pick(self, found: npt.NDArray[Any]) -> dict[str, Any]:
        return {name: self._values(found, name) for name in self.fields}

    def _values(self, found: npt.NDArray[Any], name: str) -> Any:
        for part in self._members[name]:
            found = found[part]
        if found.dtype.kind == "S":
            return [one.decode() for one in found.reshape(len(found)).tolist()]
        if found.dtype.kind == "V":
            return [one.tobytes() for one in found]
        dtype = self.fields[name].codec.dtype
        return found if dtype is None or found.dtype == dtype else found.astype(dtype)


class _TextColumn(Column):
    """Text of any length."""

    varies = True

    def __init__(self, name: str, dataset: Any) -> None:
        super().__init__(dataset, {name: Field(name, codec_of("utf8"))})
        self._name = name
        self.item = 1

    def decode(self, packed: Packed) -> dict[str, Any]:
        texts = self.fields[self._name].codec.decode_many(packed[0], packed[1])
        if texts is None:
            message = "a text is not UTF-8"
            raise ValueError(message)
        return {self._name: texts}

    def pick(self, found: npt.NDArray[Any]) -> dict[str, Any]:
        return {self._name: [one.decode() for one in found.reshape(len(found)).tolist()]}


class _RunColumn(Column):
    """Runs of numbers, each of its own length, and arrays of which one length varies."""

    varies = True

    def __init__(self, name: str, dataset: Any, dtype: np.dtype[Any]) -> None:
        self._name = name
        self._dtype = dtype
        self._shape: tuple[int, ...] | None = None
        field = Field(name, FixedArray(dtype), is_sequence=True)
        if SHAPE in dataset.attrs:
            lengths = np.asarray(dataset.attrs[SHAPE], np.int64).reshape(-1)
            self._shape = tuple(lengths.tolist())
            field = Field(name, codec_of("array"))
        super().__init__(dataset, {name: field})
        self.item = dtype.itemsize

    def decode(self, packed: Packed) -> dict[str, Any]:
        ends = [end // self.item for end in np.frombuffer(packed[1], np.int64).tolist()]
        numbers = np.frombuffer(packed[0], self._dtype, ends[-1])
        return self._arrays([numbers[a:b] for a, b in pairwise(ends)])

    def pick(self, found: npt.NDArray[Any]) -> dict[str, Any]:
        if not self._dtype.isnative:
            message = f"h5py gives wrong numbers for runs of {self._dtype.str}"
            raise ValueError(message)
        return self._arrays(found.reshape(len(found)).tolist())

    def _arrays(self, values: list[npt.NDArray[Any]]) -> dict[str, Any]:
        if not self._dtype.isnative:
            values = [one.astype(self._dtype.newbyteorder("=")) for one in values]
        if self._shape is None:
            return {self._name: values}
        return {self._name: stacked([one.reshape(self._shape) for one in values])}


def _members(
    dtype: np.dtype[Any], shape: tuple[int, ...], above: Member = ()
) -> list[tuple[Member, Codec | None]]:
    """Return the types of the members of a compound type, or of the one value it is."""
    if dtype.subdtype is not None:
        inner, more = dtype.subdtype
        return _members(inner, (*shape, *more), above)
    if dtype.names is not None:
        each = ((name, dtype[name]) for name in dtype.names)
        return [one for name, kind in each for one in _members(kind, shape, (*above, name))]
    return [(above, _codec(dtype, shape))]


def _codec(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Codec | None:
    """Return the codec of values of a fixed size, if there is one."""
    if dtype.kind in "SV":
        return None if shape else codec_of("utf8" if dtype.kind == "S" else "bytes")
    return FixedArray(dtype, *shape) if _is_number(dtype) else None


def _is_number(dtype: np.dtype[Any]) -> bool:
    try:
        stored_dtype(dtype)
    except TypeError:
        return False
    return True

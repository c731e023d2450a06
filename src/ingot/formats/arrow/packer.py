"""Packing the fields of rows that come as arrays of Arrow."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import ArrowArray, split_bytes
from ingot.codecs import Array, Bytes, FixedArray, Tree, Utf8
from ingot.codecs.codec import joined
from ingot.dataset.read.ingot_plan import ranges_of
from ingot.dataset.read.plan import Packed
from ingot.dataset.read.source import Picks
from ingot.dataset.read.values import undecodable
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.formats.arrow.schema import Leaf, layout_of

Numbers: TypeAlias = npt.NDArray[np.int64]

At: TypeAlias = Callable[[tuple[str, ...]], tuple[ArrowArray, Sequence[str]]]
"""Returns the array that has the values at a path, and the rest of the path in it."""


class Packer:
    """Turns arrays of Arrow into values as an Ingot file stores them.

    Args:
        leaves: Where the values of each field come from.
        spec: The fields.
        where: The name of the source in errors.
    """

    def __init__(self, leaves: Mapping[str, Leaf], spec: Spec, where: str) -> None:
        self._leaves = leaves
        self._spec = spec
        self._where = where
        self._widths = {name: width for name, _, width, _ in spec.stored()}

    def parts(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the paths of the values that make some fields."""
        return [part for name in names for part in self._leaves[name].parts]

    def pack(
        self, name: str, at: At, numbers: Numbers, picks: Picks = None, *, check: bool = False
    ) -> dict[str, Packed]:
        """Return the values of a field, and under `NAME?`, if it is optional, what is there.

        Args:
            name: The field.
            at: Gives the values of its leaf.
            numbers: The row numbers, for errors.
            picks: The wanted elements of a sequence.
            check: Whether to refuse what a writer would refuse.

        Raises:
            FormatError: A value is not of the type of the field, or a file has a path, but no
                bytes.
        """
        field, leaf = self._spec.fields[name], self._leaves[name]
        self._check_embedded(leaf, at, numbers)
        array, path = at(leaf.bytes_path)
        try:
            if leaf.type.startswith("tree"):
                found, present = _trees(field, array.values(path), picks)
            else:
                wanted = ranges_of(picks) if field.kind == "sequence" else None
                layout = layout_of(field) or ("bytes", (), "many" if field.is_sequence else "one")
                data, offsets, counts, present = array.take(
                    path, layout, field.is_optional, wanted, check
                )
                found = (data, offsets, counts)
            if check:
                _check_files(field, found, present)
        except FormatError:
            raise
        except ValueError as error:
            message, place = error.args if len(error.args) > 1 else (str(error), 0)
            number = int(numbers[place]) if place < len(numbers) else 0
            raise undecodable(field, self._where, number, ValueError(message)) from error
        if present is None:
            return {name: found}
        return {name: found, f"{name}?": (memoryview(present), None, None)}

    def _check_embedded(self, leaf: Leaf, at: At, numbers: Numbers) -> None:
        if leaf.media is None:
            return
        there, paths = (np.frombuffer(at(one)[0].valid(at(one)[1]), np.bool_) for one in leaf.parts)
        missing = np.flatnonzero(~there & paths)
        if len(missing):
            place = int(missing[0])
            array, path = at(leaf.parts[1])
            message = (
                f"{self._where}: row {numbers[place]}: field {leaf.name!r} has no bytes, but the "
                f"path {array.values(path)[place]!r}; ingot.hf.from_dataset reads such files"
            )
            raise FormatError(message, self._where)

    def stored(
        self, names: Sequence[str], at: At, numbers: Numbers
    ) -> list[tuple[memoryview | bytearray, bytes, bytes | None]]:
        """Return values as a writer takes them, checked; `NAME?` is what is there of a field.

        Raises:
            FormatError: A value is not of the type of its field.
        """
        found: dict[str, Packed] = {}
        for name in dict.fromkeys(one.removesuffix("?") for one in names):
            found |= self.pack(name, at, numbers, check=True)
        ends = np.arange(len(numbers) + 1, dtype=np.int64)
        return [
            (data, (ends * (self._widths[name] or 0)).tobytes() if at is None else at, counts)
            for name in names
            for data, at, counts in [found[name]]
        ]


def _trees(field: Field, values: Sequence[object], picks: Picks) -> tuple[Packed, bytes | None]:
    """Return nested values as stored, and which rows have one.

    Raises:
        ValueError: A value is missing, or is not of the type; the row is the second argument.
    """
    cells: list[bytes] = []
    counts = np.zeros(len(values), np.uint64)
    for row, value in enumerate(values):
        if value is None:
            if not field.is_optional:
                message = "the value is null, which the type of the field does not allow"
                raise ValueError(message, row)
            cells += [] if field.is_sequence else [b""]
            continue
        elements = value if field.is_sequence and isinstance(value, list) else [value]
        if field.is_sequence and any(one is None for one in elements):
            message = "an element of the list is null, which no sequence can have"
            raise ValueError(message, row)
        elements = elements if picks is None else elements[slice(*picks[row])]
        counts[row] = len(elements)
        try:
            cells += map(field.codec.encode, elements)
        except ValueError as error:
            raise ValueError(str(error), row) from error
    data, offsets = joined(cells)
    present = np.array([one is not None for one in values], np.bool_).tobytes()
    found = (memoryview(data), offsets, counts.tobytes() if field.is_sequence else None)
    return found, present if field.is_optional else None


def _check_files(field: Field, packed: Packed, present: bytes | None) -> None:
    """Refuse files that a writer of the field's type would refuse.

    Raises:
        ValueError: One is not of the type; the row is the second argument.
    """
    codec = field.codec
    if isinstance(codec, Bytes | Utf8 | FixedArray | Array | Tree) or codec.dtype is not None:
        return
    data, offsets, counts = packed
    ends = None if counts is None else np.cumsum(np.frombuffer(counts, np.uint64))
    for k, cell in enumerate(split_bytes(data, offsets or b"")):
        row = k if ends is None else int(np.searchsorted(ends, k, "right"))
        if present is None or present[row]:
            try:
                codec.encode(cell)
            except ValueError as error:
                raise ValueError(str(error), row) from error

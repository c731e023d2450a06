"""Packing the fields of rows that come as arrays of Arrow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.plan import Packed
from ingot.dataset.read.source import Picks
from ingot.dataset.read.values import undecodable
from ingot.dataset.spec import Spec
from ingot.errors import FormatError
from ingot.formats.arrow.leaf import Leaf
from ingot.formats.arrow.library import translated
from ingot.formats.arrow.packing import NullError, checked, packed, picked_elements, valid
from ingot.formats.arrow.types import cast_plain

Numbers: TypeAlias = npt.NDArray[np.int64]


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

    def cast(self, names: Sequence[str], taken: Iterator[Any], numbers: Numbers) -> dict[str, Any]:
        """Return the values of fields, cast to the plain types of their leaves.

        Args:
            names: The fields.
            taken: The values at `parts(names)`.
            numbers: The row numbers, for errors.

        Raises:
            FormatError: An image or another file has a path, but no bytes.
        """
        found = {}
        for name in names:
            leaf = self._leaves[name]
            with translated(self._where):
                array = cast_plain(next(taken), leaf.plain)
            if leaf.media is not None:
                self._check_embedded(name, array, next(taken), numbers)
            found[name] = array
        return found

    def _check_embedded(self, name: str, array: Any, paths: Any, numbers: Numbers) -> None:
        if not array.null_count:
            return
        missing = np.flatnonzero(~valid(array) & valid(paths))
        if len(missing):
            place = int(missing[0])
            message = (
                f"{self._where}: row {numbers[place]}: field {name!r} has no bytes, but the path "
                f"{paths[place].as_py()!r}; ingot.hf.from_dataset reads such files"
            )
            raise FormatError(message, self._where)

    def pack(
        self, name: str, array: Any, numbers: Numbers, picks: Picks = None, *, check: bool = False
    ) -> dict[str, Packed]:
        """Return the values of a field, and under `NAME?`, if it is optional, what is there.

        Args:
            name: The field.
            array: Its values, as `cast` returns them.
            numbers: The row numbers, for errors.
            picks: The wanted elements of a sequence.
            check: Whether to refuse what a writer would refuse.

        Raises:
            FormatError: A value is not of the type of the field.
        """
        field = self._spec.fields[name]
        try:
            if picks is not None and field.kind == "sequence":
                array = picked_elements(array, picks)
            if check:
                checked(field, array)
            found, present = packed(field, array)
        except NullError as error:
            raise undecodable(field, self._where, int(numbers[error.place]), error) from error
        except ValueError as error:
            if len(numbers) > 1:
                for k, number in enumerate(numbers):  # Which row it is comes out then.
                    self.pack(name, array[k : k + 1], number.reshape(1), check=check)
            raise undecodable(field, self._where, int(numbers[0]), error) from error
        if present is None:
            return {name: found}
        return {name: found, f"{name}?": (memoryview(present.view(np.uint8)), None, None)}  # type: ignore[arg-type]

    def stored(
        self, names: Sequence[str], arrays: Mapping[str, Any], numbers: Numbers
    ) -> list[tuple[Any, bytes, bytes | None]]:
        """Return values as a writer takes them, checked; `NAME?` is what is there of a field.

        Raises:
            FormatError: A value is not of the type of its field.
        """
        found: dict[str, Packed] = {}
        for name, array in arrays.items():
            found |= self.pack(name, array, numbers, check=True)
        ends = np.arange(len(numbers) + 1, dtype=np.int64)
        return [
            (data, (ends * (self._widths[name] or 0)).tobytes() if at is None else at, counts)
            for name in names
            for data, at, counts in [found[name]]
        ]

"""The stored values of a Granular data set, by row and key.

Up to Granular 0.21, a record of `refs.bag` has an element for each key of a row, in MessagePack:
the number of a record; for a sequence the number of its first record and the number of records,
or nothing if it is empty.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, overload

from ingot.errors import CorruptFileError, FormatError
from ingot.formats.granular.layout import REFS, is_sequence

Stored: TypeAlias = bytes | list[bytes]
"""The stored value of a key in a row; a list for a sequence."""


Ref: TypeAlias = int | range
"""The number of a record, or a range of numbers for a sequence."""

_INT = (0x00, 0x7F, {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"})
_LIST = (0x90, 0x9F, {0xDC: ">H", 0xDD: ">I"})
"""The codes of MessagePack for numbers and for lengths of lists: small ones, and the rest."""


class Bag(Protocol):
    """A file of records, which reads one or several at a time."""

    @property
    def path(self) -> str:
        """Its name in errors."""

    @property
    def nbytes(self) -> int:
        """The size of its files."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> bytes: ...
    @overload
    def __getitem__(self, key: Sequence[int], /) -> list[bytes]: ...
    def close(self) -> None:
        """Close its files."""


class Columns:
    """A bag for each key, and which of their records belong to a row.

    Several threads may use it at the same time if the bags allow that.

    Args:
        path: Its name in errors.
        spec: The keys and their types, in the order of the keys.
        has_refs: Whether there is a `refs.bag`, as up to Granular 0.21.
        open_bag: Opens the bag of a key, or of `refs`.

    Raises:
        FormatError: The columns do not form rows.
    """

    def __init__(
        self,
        path: str,
        spec: Mapping[str, str],
        *,
        has_refs: bool,
        open_bag: Callable[[str], Bag],
    ) -> None:
        self.path = path
        self.spec = dict(spec)
        self._sequences = [is_sequence(kind) for kind in spec.values()]
        if has_refs and REFS in spec:
            message = f"{path}: the key {REFS!r} is reserved for the file of references"
            raise FormatError(message, path)
        if not has_refs and any(self._sequences):
            message = f"{path}: there are sequences, but {REFS}.bag is missing"
            raise FormatError(message, path)
        self._refs = open_bag(REFS) if has_refs else None
        self._bags = {key: open_bag(key) for key in spec}
        lengths = {key: len(bag) for key, bag in self._bags.items()}
        self._length = next(iter(lengths.values())) if self._refs is None else len(self._refs)
        if self._refs is None and len(set(lengths.values())) > 1:
            message = (
                f"{self.path}: inconsistent column lengths {lengths}: still being written, or its "
                "writer died; a writer that appends cuts the columns to the same length"
            )
            raise FormatError(message, self.path)

    @property
    def version(self) -> int:
        """2 with references, else 3; versions 1 and 2 differ only in their bags."""
        return 3 if self._refs is None else 2

    @property
    def nbytes(self) -> int:
        """The size of all bags."""
        return sum(bag.nbytes for bag in self._all())

    def _all(self) -> Iterable[Bag]:
        return [*([] if self._refs is None else [self._refs]), *self._bags.values()]

    def __len__(self) -> int:
        return self._length

    def bag(self, key: str) -> Bag:
        """Return the bag of a key."""
        return self._bags[key]

    def find(self, row: int) -> dict[str, Ref]:
        """Return the records of an existing row in the bag of each key."""
        if self._refs is None:
            return dict.fromkeys(self.spec, row)
        return self._parsed(row, self._refs[row])

    def find_many(self, rows: Sequence[int]) -> list[dict[str, Ref]]:
        """Return the records of several rows, as `find` does, in one read."""
        if self._refs is None:
            return [self.find(row) for row in rows]
        stored = self._refs[rows]
        return [self._parsed(row, one) for row, one in zip(rows, stored, strict=True)]

    def _parsed(self, row: int, record: bytes) -> dict[str, Ref]:
        try:
            found = dict(zip(self.spec, decode_refs(record, self._sequences), strict=True))
            for key, ref in found.items():
                last = ref if isinstance(ref, int) else ref.stop - 1
                if last >= len(self._bags[key]):
                    message = f"key {key!r} has no record {last}, only {len(self._bags[key])}"
                    raise ValueError(message)  # noqa: TRY301 -- reported below
        except ValueError as error:
            path = self.path if self._refs is None else self._refs.path
            message = f"{path}: record {row}: invalid references of a row: {error}"
            raise CorruptFileError(message, path, row) from error
        return found

    def read(self, row: int, wanted: Mapping[str, slice]) -> dict[str, Stored]:
        """Read some keys of a row, in one read per key.

        Args:
            row: The number of an existing row.
            wanted: The keys, and the wanted slice of each sequence.
        """
        found = self.find(row)
        stored: dict[str, Stored] = {}
        for key, part in wanted.items():
            ref = found[key]
            if isinstance(ref, int):
                stored[key] = self._bags[key][ref]
            else:
                stored[key] = self._bags[key][chosen] if (chosen := ref[part]) else []
        return stored

    def read_many(self, rows: Sequence[int], keys: Iterable[str]) -> dict[str, list[Stored]]:
        """Read some keys of several existing rows, in one read per key."""
        if self._refs is None:
            return {key: list(self._bags[key][rows]) if len(rows) else [] for key in keys}
        found = self.find_many(rows) if len(rows) else []
        return {key: self._gather(key, [one[key] for one in found]) for key in keys}

    def _gather(self, key: str, places: list[Ref]) -> list[Stored]:
        records = [k for ref in places for k in ([ref] if isinstance(ref, int) else ref)]
        stored = iter(self._bags[key][records] if records else [])
        return [
            next(stored) if isinstance(ref, int) else [next(stored) for _ in ref] for ref in places
        ]

    def close(self) -> None:
        """Close all bags. A second call does nothing."""
        for bag in self._all():
            bag.close()


def encode_refs(refs: Sequence[Ref]) -> bytes:
    """Encode the references of a row as a record."""
    parts = [_number(len(refs), *_LIST)]
    for ref in refs:
        if isinstance(ref, int):
            parts.append(_number(ref, *_INT))
        else:
            pair = [_number(ref.start, *_INT), _number(len(ref), *_INT)] if ref else []
            parts += [_number(len(pair), *_LIST), *pair]
    return b"".join(parts)


def _number(number: int, first: int, last: int, others: Mapping[int, str]) -> bytes:
    if number <= last - first:
        return bytes([first + number])
    return next(
        bytes([code]) + struct.pack(layout, number)
        for code, layout in others.items()
        if number < 1 << 8 * struct.calcsize(layout)
    )


def decode_refs(record: bytes, sequences: Sequence[bool]) -> list[Ref]:
    """Decode the references of a row.

    Args:
        record: The record of the row.
        sequences: Whether each key has a sequence.

    Raises:
        ValueError: The record does not hold references of such a row.
    """
    try:
        length, at = _read(record, 0, *_LIST)
        if length != len(sequences):
            message = f"expected references of {len(sequences)} keys, got {length}"
            raise ValueError(message)
        refs: list[Ref] = []
        for is_sequence in sequences:
            ref: Ref
            ref, at = _read_range(record, at) if is_sequence else _read(record, at, *_INT)
            refs.append(ref)
    except (IndexError, struct.error):
        message = "the record is truncated"
        raise ValueError(message) from None
    if at != len(record):
        message = f"{len(record) - at} bytes follow its end"
        raise ValueError(message)
    return refs


def _read(
    record: bytes, at: int, first: int, last: int, others: Mapping[int, str]
) -> tuple[int, int]:
    """Return a number, and where it ends."""
    code = record[at]
    if first <= code <= last:
        return code - first, at + 1
    if code not in others:
        message = f"the byte {code:#04x} at {at} does not begin a record number"
        raise ValueError(message)
    number: int = struct.unpack_from(others[code], record, at + 1)[0]
    return number, at + 1 + struct.calcsize(others[code])


def _read_range(record: bytes, at: int) -> tuple[range, int]:
    length, at = _read(record, at, *_LIST)
    if length == 0:
        return range(0), at
    if length != 2:  # noqa: PLR2004 -- the first and how many
        message = f"expected 0 or 2 numbers for a sequence, got {length}"
        raise ValueError(message)
    first, at = _read(record, at, *_INT)
    count, at = _read(record, at, *_INT)
    return range(first, first + count), at

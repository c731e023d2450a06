"""`bagz.Index` and `bagz.MultiIndex`: find a record by its bytes."""

from collections.abc import Sequence
from typing import TypeVar, overload

T = TypeVar("T")


def _key(record: object) -> bytes:
    if isinstance(record, str):
        return record.encode()
    if isinstance(record, bytes):
        return record
    message = f"record must be str or bytes, not {type(record).__name__}"
    raise TypeError(message)


class Index:
    """The first index of each record of a reader, in memory.

    Args:
        reader: The records.
    """

    def __init__(self, reader: Sequence[bytes]) -> None:
        self._first: dict[bytes, int] = {}
        for k, record in enumerate(reader):
            self._first.setdefault(record, k)

    def get(self, record: str | bytes) -> int | None:
        """Return the first index of a record, or None."""
        return self._first.get(_key(record))

    def __getitem__(self, record: str | bytes) -> int:
        return self._first[_key(record)]

    def __contains__(self, record: str | bytes) -> bool:
        return _key(record) in self._first

    def __len__(self) -> int:
        return len(self._first)

    __iter__ = None


class MultiIndex:
    """All indices of each record of a reader, in memory.

    Args:
        reader: The records.
    """

    def __init__(self, reader: Sequence[bytes]) -> None:
        self._all: dict[bytes, list[int]] = {}
        for k, record in enumerate(reader):
            self._all.setdefault(record, []).append(k)

    @overload
    def get(self, item: str | bytes) -> list[int] | None: ...
    @overload
    def get(self, item: str | bytes, default: T) -> list[int] | T: ...
    def get(self, item: str | bytes, default: object = None) -> object:
        """Return all indices of a record, or `default`."""
        found = self._all.get(_key(item))
        return default if found is None else list(found)

    def __getitem__(self, record: str | bytes) -> list[int]:
        return list(self._all[_key(record)])

    def __contains__(self, record: str | bytes) -> bool:
        return _key(record) in self._all

    def __len__(self) -> int:
        return len(self._all)

    __iter__ = None

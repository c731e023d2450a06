"""`bagz.Index` and `bagz.MultiIndex`: find a record by its bytes."""

from collections.abc import Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


def _key(record: object) -> bytes:
    if isinstance(record, str):
        return record.encode()
    if isinstance(record, bytes):
        return record
    message = f"record must be str or bytes, not {type(record).__name__}"
    raise TypeError(message)


class _Lookup(Generic[T]):
    """What is known of each record, in memory."""

    _found: dict[bytes, T]

    def __contains__(self, record: str | bytes) -> bool:
        return _key(record) in self._found

    def __len__(self) -> int:
        return len(self._found)

    __iter__ = None


class Index(_Lookup[int]):
    """The first index of each record of a reader, in memory.

    Args:
        reader: The records.
    """

    def __init__(self, reader: Sequence[bytes]) -> None:
        self._found = {}
        for k, record in enumerate(reader):
            self._found.setdefault(record, k)

    def get(self, record: str | bytes) -> int | None:
        """Return the first index of a record, or None."""
        return self._found.get(_key(record))

    def __getitem__(self, record: str | bytes) -> int:
        return self._found[_key(record)]


class MultiIndex(_Lookup[list[int]]):
    """All indices of each record of a reader, in memory.

    Args:
        reader: The records.
    """

    def __init__(self, reader: Sequence[bytes]) -> None:
        self._found = {}
        for k, record in enumerate(reader):
            self._found.setdefault(record, []).append(k)

    @overload
    def get(self, item: str | bytes) -> list[int] | None: ...
    @overload
    def get(self, item: str | bytes, default: T) -> list[int] | T: ...
    def get(self, item: str | bytes, default: object = None) -> object:
        """Return all indices of a record, or `default`."""
        found = self._found.get(_key(item))
        return default if found is None else list(found)

    def __getitem__(self, record: str | bytes) -> list[int]:
        return list(self._found[_key(record)])

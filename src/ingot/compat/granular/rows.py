"""The bags of a data set that is being written."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ingot.compat.granular.files import Writer, open_reader, open_writer, read_spec
from ingot.compat.granular.handles import LIMIT_BYTES
from ingot.compat.granular.paths import PathLike
from ingot.dataset.granular import Bag, refs
from ingot.dataset.granular.layout import REFS, SPEC
from ingot.errors import FormatError

_ORPHAN = b"\0"
"""A record that no row has. Old bags must not begin with an empty one."""


class PairedRows:
    """A pair of files for each key: version 3. Goes on with what is there.

    Columns that are one row ahead of others have a part of the row that the last writer died
    at, which is cut off. Those that are further ahead stay: rows are then held against them.

    Raises:
        ValueError: What is there has another specification.
        FileExistsError: What is there is of an older version.
    """

    def __init__(self, folder: Path | PathLike, spec: Mapping[str, str]) -> None:
        _make(folder)
        if (folder / SPEC).exists():
            _check_same(folder, spec)
        else:
            _write_spec(folder, spec)
        self._folder = folder
        self._bags: dict[str, Writer] = {}
        self._ahead: dict[str, Bag] = {}
        try:
            for key in spec:
                self._bags[key] = open_writer(folder / f"{key}.bag", paired=True)
            self._length = min(len(bag) for bag in self._bags.values())
            for key, bag in list(self._bags.items()):
                if len(bag) > self._length:
                    self._settle(key)
        except BaseException:
            self._close_bags()
            raise

    def _settle(self, key: str) -> None:
        path = self._folder / f"{key}.bag"
        if isinstance(path, Path) and len(self._bags[key]) == self._length + 1:
            self._bags[key].close()
            self._cut(key, self._length)
            self._bags[key] = open_writer(path, paired=True)
        else:
            self._ahead[key] = open_reader(path, single=False, cached=False)

    def _cut(self, key: str, length: int) -> None:
        limits = self._folder / f"{key}.idx"
        if isinstance(limits, Path):
            os.truncate(limits, LIMIT_BYTES * length)

    @property
    def nbytes(self) -> int:
        """Bytes of all bags so far."""
        return sum(bag.size for bag in self._bags.values())

    def __len__(self) -> int:
        return self._length

    def _is_ahead(self, key: str) -> bool:
        return key in self._ahead and len(self._ahead[key]) > self._length

    def _expected(self, key: str) -> int:
        return len(self._ahead[key]) if self._is_ahead(key) else self._length

    def append(self, row: Mapping[str, Any]) -> int:
        """Add a row; return its number.

        Raises:
            ValueError: A column is ahead, with another value in this row.
            FormatError: An earlier row was interrupted. Closing cuts off what there is of it.
        """
        if any(len(bag) != self._expected(key) for key, bag in self._bags.items()):
            message = f"{self._folder}: row {self._length} was interrupted; close the writer"
            raise FormatError(message, str(self._folder))
        for key in filter(self._is_ahead, row):
            if self._ahead[key][self._length] != row[key]:
                message = (
                    f"{self._folder}: column {key!r} is ahead of others, with another value in "
                    f"row {self._length}: cut {key}.idx to {LIMIT_BYTES * self._length} bytes "
                    "to do without"
                )
                raise ValueError(message)
        for key, value in row.items():
            if not self._is_ahead(key):
                self._bags[key].append(value)
        self._length += 1
        return self._length - 1

    def flush(self) -> None:
        """Bring all rows so far into the files."""
        for bag in self._bags.values():
            bag.flush()

    def close(self) -> None:
        """Complete the bags; what there is of a row that was interrupted is cut off."""
        expected = {key: self._expected(key) for key in self._bags}
        self._close_bags()
        for key, bag in self._bags.items():
            if len(bag) > expected[key]:
                self._cut(key, expected[key])

    def _close_bags(self) -> None:
        for bag in self._bags.values():
            bag.close()
        for old in self._ahead.values():
            old.close()


class ReferencedRows:
    """A bag for each key, and one of references: version 2. Begins anew.

    The specification is written last: without it a folder is no data set.

    Raises:
        FileExistsError: There is something already.
    """

    def __init__(self, folder: Path | PathLike, spec: Mapping[str, str]) -> None:
        if folder.exists() and list(folder.glob("*")):
            message = f"{folder}: this folder is not empty, and version 2 cannot be gone on with"
            raise FileExistsError(message)
        _make(folder)
        self._folder = folder
        self._spec = spec
        self._refs = open_writer(folder / f"{REFS}.bag", paired=False)
        self._bags = {key: open_writer(folder / f"{key}.bag", paired=False) for key in spec}

    @property
    def nbytes(self) -> int:
        """Bytes of all bags so far."""
        return self._refs.size + sum(bag.size for bag in self._bags.values())

    def __len__(self) -> int:
        return len(self._refs)

    def append(self, row: Mapping[str, bytes | list[bytes]]) -> int:
        """Add a row; return its number."""
        places: list[refs.Ref] = []
        for key, value in row.items():
            values = value if isinstance(value, list) else [value]
            first = self._append(self._bags[key], values)
            is_list = isinstance(value, list)
            places.append(range(first, first + len(values)) if is_list else first)
        return self._refs.append(refs.encode(places))

    def _append(self, bag: Writer, values: list[bytes]) -> int:
        if len(bag) == 0 and values and not values[0]:
            bag.append(_ORPHAN)
        first = len(bag)
        for value in values:
            bag.append(value)
        return first

    def flush(self) -> None:
        """Bring all rows so far out of memory."""
        for bag in (*self._bags.values(), self._refs):
            bag.flush()

    def close(self) -> None:
        """Complete the bags, then let the folder be a data set."""
        for bag in (*self._bags.values(), self._refs):
            bag.close()
        _write_spec(self._folder, self._spec)


def _make(folder: Any) -> None:
    if (folder / "dataset.json").exists():
        message = f"{folder}: this is a data set of Ingot; name another folder"
        raise FileExistsError(message)
    if folder.exists():
        return
    if isinstance(folder, Path):
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder.mkdir()


def _check_same(folder: Path | PathLike, spec: Mapping[str, str]) -> None:
    found = read_spec(folder)
    if found != spec:
        message = f"{folder}: the keys and types there are {found}, not {dict(spec)}"
        raise ValueError(message)
    if REFS not in spec and (folder / f"{REFS}.bag").exists():
        message = f"{folder}: a data set of version 2 cannot be gone on with"
        raise FileExistsError(message)


def _write_spec(folder: Path | PathLike, spec: Mapping[str, str]) -> None:
    content = json.dumps(dict(spec)).encode()
    if not isinstance(folder, Path):
        with (folder / SPEC).open("wb") as file:
            file.write(content)
        return
    hidden = folder / f".{SPEC}.part"
    hidden.write_bytes(content)
    hidden.replace(folder / SPEC)

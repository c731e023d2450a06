"""Writing the bags of a Granular folder, in the layout of any version."""

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ingot.errors import ClosedError, FormatError
from ingot.formats import bag as native
from ingot.formats.granular.bag import NEWEST, BagWriter, Closing, open_bag, take
from ingot.formats.granular.columns import Bag, Ref, Stored, encode_refs
from ingot.formats.granular.handles import LIMIT_BYTES
from ingot.formats.granular.layout import (
    HIDDEN_SPEC,
    REFS,
    SPEC,
    AnyPath,
    PathLike,
    check_spec,
    is_sequence,
    local,
    parse_spec,
    read_spec,
)

Layout: TypeAlias = Literal["0.21", "0.22"]
"""The layout that Granular 0.20 and 0.21 read, or that of 0.22 and later."""

MakeBag: TypeAlias = Callable[[Any, int], BagWriter]
"""Opens a bag of a version for writing."""

_ORPHAN = b"\0"
"""A record that no row refers to. Old bags must not begin with an empty one."""

_SUFFIXES = (".bag", ".bag.part", ".bag.spool")
"""The suffixes of the files of a bag that is one file."""


def _make_bag(path: Any, version: int) -> BagWriter:
    return BagWriter(path, version=version)


class GranularWriter(Closing):
    """Writes the stored values of rows to a folder that Granular itself can read.

    `open_writer` returns one. In the layout of 0.22, rows can be read up to the last flush and
    appended to later: an incomplete row of a writer that died is cut off, and another writer of
    this process that has the folder open is closed with all its rows. The layout of 0.21 supports
    sequences; the data set appears when it is closed.

    Attributes:
        bags: The bag of each key.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bags: dict[str, BagWriter] = {}

    @abstractmethod
    def append(self, row: Mapping[str, Any]) -> int:
        """Append a row, bytes for each key, or a list of them; return its number."""

    @abstractmethod
    def __len__(self) -> int: ...
    def _all(self) -> Iterable[BagWriter]:
        return self.bags.values()

    @property
    def nbytes(self) -> int:
        """Bytes of all bags so far."""
        return sum(bag.size for bag in self._all())

    def flush(self) -> None:
        """Write all rows so far to the files."""
        for bag in self._all():
            bag.flush()


def open_writer(
    folder: AnyPath,
    spec: Mapping[str, str],
    *,
    layout: Layout | None = None,
    make_bag: MakeBag = _make_bag,
) -> GranularWriter:
    """Open a Granular folder for writing.

    Args:
        folder: The folder. In the layout of 0.21 it must be new or empty.
        spec: The keys and their types; types that end in `[]` are sequences.
        layout: The Granular version that must read it: "0.22" for 0.22 and later, "0.21" for
            0.20 and 0.21. None means "0.21" if there are sequences, else "0.22".
        make_bag: Opens the bag at a path, of a version, for writing.

    Raises:
        ValueError: The folder has other keys or types, or a key or type is invalid.
        FileExistsError: The folder has a data set that cannot be appended to.
        StorageError: Another writer is writing to it.
    """
    checked = check_spec(dict(spec))
    kind = PairedWriter if layout_of(checked, layout) == "0.22" else ReferencedWriter
    return kind(local(folder), checked, make_bag)


def layout_of(spec: Mapping[str, str], layout: Layout | None) -> Layout:
    """Return the layout to write a data set in.

    Raises:
        ValueError: The layout is unknown, or does not support these keys.
    """
    has_sequences = any(is_sequence(kind) for kind in spec.values())
    if layout is None:
        layout = "0.21" if has_sequences else "0.22"
    if layout not in ("0.21", "0.22"):
        message = f'the layout must be "0.21" or "0.22", got {layout!r}'
        raise ValueError(message)
    if has_sequences and layout == "0.22":
        message = f"the layout of 0.22 does not support sequences: {dict(spec)}"
        raise ValueError(message)
    if layout == "0.21" and REFS in spec:
        message = f"the key {REFS!r} is reserved in the layout of 0.21"
        raise ValueError(message)
    return layout


class PairedWriter(GranularWriter):
    """A pair of files for each key: version 3. Appends to existing files.

    Columns that are one row ahead of the others hold a part of the row that the last writer was
    writing when it died; it is cut off. Columns that are further ahead stay, and new rows must
    match them.

    Raises:
        ValueError: The existing data set has another specification.
        FileExistsError: The existing data set has an older version.
    """

    def __init__(self, folder: Path | PathLike, spec: Mapping[str, str], make_bag: MakeBag) -> None:
        super().__init__()
        _make(folder)
        if (folder / SPEC).exists():
            _check_same(folder, spec)
        else:
            _clear(folder)
            _write_spec(folder, spec)
        self._folder = folder
        self._make_bag = make_bag
        self._ahead: dict[str, Bag] = {}
        take(folder, self)
        try:
            for key in spec:
                self.bags[key] = make_bag(folder / f"{key}.bag", NEWEST)
            self._length = min(len(bag) for bag in self.bags.values())
            for key, bag in list(self.bags.items()):
                if len(bag) > self._length:
                    self._settle(key)
        except BaseException:
            self._close_bags()
            raise

    def _settle(self, key: str) -> None:
        path = self._folder / f"{key}.bag"
        if isinstance(path, Path) and len(self.bags[key]) == self._length + 1:
            self.bags[key].close()
            self._cut(key, self._length)
            self.bags[key] = self._make_bag(path, NEWEST)
        else:
            self._ahead[key] = open_bag(path)

    def _cut(self, key: str, length: int) -> None:
        limits = self._folder / f"{key}.idx"
        if isinstance(limits, Path):
            os.truncate(limits, LIMIT_BYTES * length)

    def __len__(self) -> int:
        return self._length

    def _is_ahead(self, key: str) -> bool:
        return key in self._ahead and len(self._ahead[key]) > self._length

    def _expected(self, key: str) -> int:
        return len(self._ahead[key]) if self._is_ahead(key) else self._length

    def append(self, row: Mapping[str, Any]) -> int:
        """Append a row; return its number.

        Raises:
            ValueError: A column is ahead, and has another value in this row.
            FormatError: An earlier row was interrupted. Closing cuts off its parts.
            ClosedError: Another writer of this process has taken over the data set.
        """
        if self.closed:
            message = f"{self._folder}: another writer of this process has taken over the data set"
            raise ClosedError(message, str(self._folder))
        if any(len(bag) != self._expected(key) for key, bag in self.bags.items()):
            message = f"{self._folder}: row {self._length} was interrupted; close the writer"
            raise FormatError(message, str(self._folder))
        for key in filter(self._is_ahead, row):
            if self._ahead[key][self._length] != row[key]:
                message = (
                    f"{self._folder}: column {key!r} is ahead of the others, with another value in "
                    f"row {self._length}: to discard the surplus, cut {key}.idx to "
                    f"{LIMIT_BYTES * self._length} bytes"
                )
                raise ValueError(message)
        for key, value in row.items():
            if not self._is_ahead(key):
                self.bags[key].append(value, flush=False)
        self._length += 1
        return self._length - 1

    def _close(self) -> None:
        """Finish the bags; cut off the parts of a row that was interrupted."""
        expected = {key: self._expected(key) for key in self.bags}
        self._close_bags()
        for key, bag in self.bags.items():
            if len(bag) > expected[key]:
                self._cut(key, expected[key])

    def _close_bags(self) -> None:
        for bag in self.bags.values():
            bag.close()
        for old in self._ahead.values():
            old.close()


class ReferencedWriter(GranularWriter):
    """A bag for each key, and one of references: version 2. Always starts a new data set.

    The specification stays hidden until all bags are finished: without it a folder is not a
    data set. If one of them cannot be finished, all of them are removed. The next writer
    removes what a killed writer has left.

    Raises:
        FileExistsError: The folder is not empty.
        StorageError: Another writer is writing to it.
    """

    def __init__(self, folder: Path | PathLike, spec: Mapping[str, str], make_bag: MakeBag) -> None:
        super().__init__()
        if folder.exists():
            _clear(folder)
            if list(folder.glob("*")):
                message = f"{folder}: the folder is not empty, and version 2 cannot be appended to"
                raise FileExistsError(message)
        _make(folder)
        if isinstance(folder, Path):
            (folder / HIDDEN_SPEC).write_bytes(_encoded(spec))
        self._folder = folder
        self._spec = spec
        self._refs = make_bag(folder / f"{REFS}.bag", NEWEST - 1)
        self.bags = {key: make_bag(folder / f"{key}.bag", NEWEST - 1) for key in spec}

    def _all(self) -> list[BagWriter]:
        return [*self.bags.values(), self._refs]

    def __len__(self) -> int:
        return len(self._refs)

    def append(self, row: Mapping[str, Stored]) -> int:
        """Append a row; return its number."""
        places: list[Ref] = []
        for key in self._spec:
            value = row[key]
            values = value if isinstance(value, list) else [value]
            first = self._append(self.bags[key], values)
            places.append(first if values is not value else range(first, first + len(values)))
        return self._refs.append(encode_refs(places), flush=False)

    def _append(self, bag: BagWriter, values: list[bytes]) -> int:
        if len(bag) == 0 and values and not values[0]:
            bag.append(_ORPHAN, flush=False)
        first = len(bag)
        for value in values:
            bag.append(value, flush=False)
        return first

    def _close(self) -> None:
        """Finish the bags, then make the folder a data set."""
        complete: list[str] = []
        try:
            for key, bag in {**self.bags, REFS: self._refs}.items():
                bag.close()
                complete.append(key)
        except BaseException:
            self._discard(complete)
            raise
        if isinstance(self._folder, Path):
            (self._folder / HIDDEN_SPEC).replace(self._folder / SPEC)
        else:
            _write_spec(self._folder, self._spec)

    def _discard(self, complete: Sequence[str]) -> None:
        """Remove the finished bags and abandon the others."""
        for bag in self._all():
            bag.abandon()
        if isinstance(self._folder, Path):
            for key in complete:
                (self._folder / f"{key}.bag").unlink()
            (self._folder / HIDDEN_SPEC).unlink()


def _clear(folder: Any) -> None:
    """Remove what an unfinished writer of version 2 has left."""
    if not isinstance(folder, Path) or not (folder / HIDDEN_SPEC).is_file():
        return
    spec = parse_spec((folder / HIDDEN_SPEC).read_bytes(), folder / HIDDEN_SPEC)
    native.BagWriter(folder / f"{REFS}.bag").abandon()
    for key in (*spec, REFS):
        for suffix in _SUFFIXES:
            (folder / f"{key}{suffix}").unlink(missing_ok=True)
    (folder / HIDDEN_SPEC).unlink()


def _make(folder: Any) -> None:
    if (folder / "dataset.json").exists():
        message = f"{folder}: this is an Ingot data set; choose another folder"
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
        message = f"{folder}: the existing keys and types are {found}, got {dict(spec)}"
        raise ValueError(message)
    if REFS not in spec and (folder / f"{REFS}.bag").exists():
        message = f"{folder}: a data set of version 2 cannot be appended to"
        raise FileExistsError(message)


def _write_spec(folder: Path | PathLike, spec: Mapping[str, str]) -> None:
    if not isinstance(folder, Path):
        with (folder / SPEC).open("wb") as file:
            file.write(_encoded(spec))
        return
    hidden = folder / f".{SPEC}.part"
    hidden.write_bytes(_encoded(spec))
    hidden.replace(folder / SPEC)


def _encoded(spec: Mapping[str, str]) -> bytes:
    return json.dumps(dict(spec)).encode()

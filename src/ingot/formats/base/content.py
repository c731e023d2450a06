"""What is converted: records, or rows of fields, read a piece at a time."""

import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ingot._core import identity
from ingot.codecs import codec_of
from ingot.dataset.read.dataset import Dataset, selection_of
from ingot.dataset.read.iteration import Pace
from ingot.dataset.read.selection import Selection, field_of
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write import columns
from ingot.dataset.write.packed import PackedRows, packed
from ingot.locks import cached_property
from ingot.records import Batch, Reader, View
from ingot.records.indices import Rows as Numbers

Columns: TypeAlias = dict[str, Any]
"""The values of each field in some rows; images, audio and video as encoded bytes."""

Piece: TypeAlias = Any
"""Some records, a list of bytes or a `Batch`; some rows, `Columns` or as they are stored."""

MEDIA = frozenset({"flac", "jpg", "mp4", "png", "wav", "webm", "webp"})
"""Types whose stored values are files, which are never encoded again."""

RECORD = "record"
"""The field that a record becomes in a format of rows."""

RUN_OF_BYTES = "array(uint8)[]"
"""How bytes come back from an HDF5 file."""

_PIECE_BYTES = 1 << 21
_PIECE_ROWS = 8192


class Content(ABC):
    """Records or rows, by their numbers. Several threads may read at the same time.

    Args:
        origin: What has them: a reader, a data set, or other content.

    Attributes:
        path: The name of the content in errors.
        nbytes: The size of the files.
        metadata: What the files say about themselves.
        fields: The fields; None for records.
    """

    fields: Mapping[str, Field] | None = None

    def __init__(self, origin: "Reader | View | Dataset | Content") -> None:
        self._origin = origin
        self.path: str = origin.path
        self.nbytes: int = origin.nbytes
        about = origin.reader if isinstance(origin, View) else origin
        self.metadata: dict[str, Any] = about.metadata

    @property
    def identity(self) -> bytes:
        """What tells these records or rows from others of the same files."""
        origin = self._origin
        return origin.identity if isinstance(origin, Content) else pickle.dumps(origin)

    def __len__(self) -> int:
        return len(self._origin)

    @abstractmethod
    def read(self, rows: Numbers) -> Piece:
        """Read records or rows."""

    def packed(self, spec: Spec, rows: range) -> list[PackedRows] | None:
        """Read rows as they are stored; None if they must be decoded for this specification."""
        del spec, rows
        return None

    def encoded(self, spec: Spec, rows: range) -> list[PackedRows]:
        """Read rows as an Ingot file stores them."""
        found = self.packed(spec, rows)
        if found is None:
            found = [columns.encode(spec, rows.start, self.read(rows), check=False)]
        return found


class Records(Content):
    """The records of a reader or a view."""

    def __init__(self, records: Reader | View) -> None:
        super().__init__(records)
        self._records = records

    def read(self, rows: Numbers) -> list[bytes]:
        """Read records."""
        return self._records[list(rows)]

    def block(self, rows: range) -> Batch:
        """Read records into one block of memory."""
        return self._records.read(np.arange(rows.start, rows.stop))


class Rows(Content):
    """Some fields of the rows of a data set.

    Args:
        dataset: The data set.
        names: The fields, in order; None for all.

    Raises:
        KeyError: There is no such field.
    """

    fields: Mapping[str, Field]

    def __init__(self, dataset: Dataset, names: Sequence[str] | None = None) -> None:
        self.dataset = dataset if names is None else dataset.select(*names)
        super().__init__(self.dataset)
        self.fields = self.dataset.spec.own().fields

    @cached_property
    def _parts(self) -> list[tuple[Selection, dict[str, None]]]:
        """The fields to read as values, and those to read as files."""
        kinds = self.dataset.spec.fields
        media = [name for name, one in kinds.items() if one.codec.name in MEDIA]
        others = [name for name in self.fields if name not in media]
        found = [(selection_of(self.dataset), dict.fromkeys(others))] if others else []
        if media:
            files = selection_of(self.dataset.select(*media).stored())
            found.append((files, dict.fromkeys(media)))
        return found

    def read(self, rows: Numbers) -> Columns:
        """Read the fields of rows."""
        found: Columns = {}
        for selection, wanted in self._parts:
            found |= selection.read(selection.numbers(rows), wanted)
        return {name: found[name] for name in self.fields}

    def packed(self, spec: Spec, rows: range) -> list[PackedRows] | None:
        """Read rows as they are stored; None if they must be decoded for this specification."""
        found = packed(selection_of(self.dataset[rows.start : rows.stop]), spec)
        return None if found is None else list(found)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_parts"}


class RecordsAsRows(Content):
    """Records as rows of one field of bytes."""

    def __init__(self, records: Records, name: str = RECORD) -> None:
        super().__init__(records)
        self._records = records
        self._name = name
        self.fields = {name: Field(name, codec_of("bytes"))}

    def read(self, rows: Numbers) -> Columns:
        """Read records."""
        return {self._name: self._records.read(rows)}


class RowsAsRecords(Content):
    """Rows of one field as records: the stored bytes of each value.

    Raises:
        ValueError: There are several fields, or the values of the field are not bytes.
    """

    def __init__(self, rows: Rows, title: str) -> None:
        super().__init__(rows)
        names = list(rows.fields)
        if len(names) != 1:
            message = (
                f"{rows.path}: the rows have the fields {names}, and {title} holds records "
                "without fields; name the one field whose values are to be the records with "
                "names=, or convert to a format of rows such as .ingot, .tfrecord or .tar"
            )
            raise ValueError(message)
        self._rows, self._name = rows, names[0]
        field = rows.fields[self._name]
        if field.type not in {"bytes", "utf8", RUN_OF_BYTES, *MEDIA}:
            message = (
                f"{rows.path}: field {self._name!r} is {field.type}, expected bytes, utf8 or "
                f"files such as jpg: {title} holds records of bytes"
            )
            raise ValueError(message)

    def read(self, rows: Numbers) -> list[bytes]:
        """Read the values of rows."""
        return [bytes_of(one) for one in self._rows.read(rows)[self._name]]


def bytes_of(value: str | bytes | np.ndarray[Any, Any]) -> bytes:
    """Return text, bytes or a run of bytes as bytes."""
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else value.tobytes()


def block_of(content: Content, rows: range) -> Batch:
    """Read records into one block of memory."""
    if isinstance(content, Records):
        return content.block(rows)
    records = content.read(rows)
    offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
    return Batch(np.frombuffer(b"".join(records), np.uint8), offsets)


def content_of(opened: Reader | View | Dataset, names: Sequence[str] | None) -> Records | Rows:
    """Return what is converted of an open source.

    Raises:
        KeyError: There is no such field.
    """
    if isinstance(opened, Reader | View):
        return Records(opened)
    for name in names or ():
        field_of(opened.spec, name, opened.path)
    return Rows(opened, names)


def pace_of(rows: int, nbytes: int) -> Pace:
    """Return the pace of a conversion of so many rows, in files of so many bytes."""
    return Pace(_PIECE_BYTES, _PIECE_ROWS).expect(max(1, rows), nbytes)


def fingerprint(content: Content, paths: Iterable[str]) -> str:
    """Return a text that tells what is converted.

    It changes with the names, sizes and times of the files, and with the rows that are chosen.
    """
    digest = blake2b(content.identity, digest_size=16)
    for path in paths:
        files = sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]
        for file in files:
            # A location inside an HDF5 file is not a file itself.
            size, changed, _ = identity(str(next(k for k in (file, *file.parents) if k.exists())))
            line = f"{file}\0{size}\0{changed}\n"
            digest.update(os.fsencode(line))
    return digest.hexdigest()

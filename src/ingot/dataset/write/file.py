"""Writing a data set in one file."""

import errno
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingot._core import Rows as NativeRows
from ingot._core import has_fields
from ingot.dataset.read.decoding import Stored
from ingot.dataset.spec import Spec
from ingot.dataset.write.copying import PackedRows
from ingot.dataset.write.metadata import check_metadata, json_of
from ingot.dataset.write.shards import Options
from ingot.errors import FormatError, counted
from ingot.records.writer import is_whole


class FileTarget:
    """A data set in one file.

    Attributes:
        rows: How many rows it has at the start.
    """

    def __init__(
        self,
        path: Path,
        spec: Spec,
        metadata: dict[str, Any] | None,
        options: Options,
        *,
        append: bool,
        overwrite: bool,
    ) -> None:
        self._path = path
        self._mode = "append" if append and path.exists() else "create"
        self._mode = "replace" if overwrite else self._mode
        if self._mode == "append":
            _check_file(path, spec, metadata)
        try:
            self._writer = options.open(path, self._mode, json_of(metadata or {}), spec)
        except FileExistsError as error:
            error.add_note(
                "pass append=True to append to it, or overwrite=True to replace it once "
                "the new file is closed"
            )
            raise
        self.rows = len(self._writer)

    @staticmethod
    def fields(path: Path) -> dict[str, str]:
        """Return the fields of a file and their types.

        Raises:
            FileNotFoundError: There is none.
            FormatError: It has rows without fields.
        """
        if not path.exists():
            raise none_at(path)
        return dict(Spec.of_stored(_rows(path).fields()))

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return len(self._writer)

    @property
    def nbytes(self) -> int:
        """The size of the rows that were appended, before compression."""
        return self._writer.nbytes

    def append(self, stored: Sequence[Stored]) -> None:
        """Append an encoded row."""
        self._writer.append_row(stored)

    def extend(self, rows: PackedRows) -> None:
        """Append rows as they are stored."""
        self._writer.extend_packed(rows.fields, rows.count)

    def flush(self) -> None:
        """Commit the rows."""
        self._writer.flush()

    def close(self) -> None:
        """Commit the rows and finish the file."""
        self._writer.close()

    def drop(self) -> str:
        """Commit the rows without finishing the file; return a description of the file."""
        why = ""
        try:
            if self._mode != "replace":
                self._writer.flush()
        except OSError as error:
            why = f" ({error})"
        return self.abandon() + why

    def abandon(self) -> str:
        """Commit nothing more; return a description of the file."""
        committed = self._writer.abandon()
        if self._mode == "replace":
            return "the new file was not finished; the old one stays"
        if self._mode == "create" and committed == 0:
            return "nothing was committed; the file was removed"
        if self._mode == "append" and committed == self.rows and is_whole(self._path):
            return f"the file is as it was, with {counted(committed, 'row')}"
        them = "it" if committed == 1 else "them"
        return (
            f"left unfinished with {counted(committed, 'committed row')}; "
            f"ingot.open(path, partial=True) reads {them}, DatasetWriter(path, spec, append=True) "
            f"appends to {them}, ingot.recover(path) finishes the file"
        )


def _check_file(path: Path, spec: Spec, metadata: dict[str, Any] | None) -> None:
    rows = _rows(path)
    if rows.fields() != spec.stored():
        fields = {name: kind for name, _, _, kind in rows.fields()}
        message = f"{path}: the file has the fields {fields}, got {dict(spec)}"
        raise ValueError(message)
    check_metadata(path, json.loads(rows.metadata_json()), metadata)


def _rows(path: Path) -> NativeRows:
    if path.exists() and not has_fields(str(path)):
        message = f"{path}: this is not a data set, or its writer died before the first row"
        raise FormatError(message, str(path))
    return NativeRows([str(path)], partial=True)


def none_at(path: Path) -> FileNotFoundError:
    """Return the error for a path that nothing can be appended to."""
    message = "there is no data set here; pass a spec to create one"
    return FileNotFoundError(errno.ENOENT, message, str(path))

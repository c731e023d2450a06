"""A data set in one file: writing it, and finishing an unfinished one."""

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingot._core import Rows as NativeRows
from ingot._core import has_fields
from ingot._core import recover as recover_file
from ingot.dataset.manifest import Manifest
from ingot.dataset.spec import Spec
from ingot.dataset.write.metadata import check_metadata, json_of
from ingot.dataset.write.packed import Cells, PackedRows
from ingot.dataset.write.shards import Options
from ingot.errors import FormatError
from ingot.records import Damage, Recovery
from ingot.records.expand import absolute
from ingot.records.writer import left_by


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
            FileNotFoundError: The file does not exist.
            FormatError: Its rows have no fields.
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

    def append(self, stored: Sequence[Cells]) -> None:
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
        state = (str(self._path), self._mode, self.rows, self._writer.abandon())
        return left_by(*state, opener="DatasetWriter(path, spec", noun="row")


def _check_file(path: Path, spec: Spec, metadata: dict[str, Any] | None) -> None:
    rows = _rows(path)
    if rows.fields() != spec.stored():
        fields = {name: kind for name, _, _, kind in rows.fields()}
        raise ValueError(f"{path}: the file has the fields {fields}, got {dict(spec)}")
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


def recover(path: str | os.PathLike[str], *, force: bool = False, sync: bool = True) -> Recovery:
    """Cut an unfinished file back to its last commit and finish it.

    Nothing that was committed is lost. A finished file is not changed.

    Args:
        path: The file.
        force: Also cut a file that the manifest of a data set lists as finished: it was copied
            in part, or is damaged.
        sync: Whether to wait until the bytes are on the storage device.

    Raises:
        StorageError: A writer has the file open.
        FormatError: It is not an Ingot file, is too damaged, or is listed by a manifest.
    """
    file = absolute(path)
    if file.is_dir():
        raise IsADirectoryError(
            f"{file}: a directory needs no recovery: ingot.open reads what is committed, "
            "DatasetWriter(path, append=True) appends to it; pass one of its files"
        )
    found = None if force else Manifest.find(file.parent)
    listed = {shard.name: shard for shard in found.shards} if found else {}
    if file.name in listed and file.exists() and file.stat().st_size != listed[file.name].nbytes:
        shard = listed[file.name]
        message = (
            f"{file}: the data set in {file.parent} expects {shard.nbytes:,} bytes and "
            f"{shard.rows:,} rows in this file, got {file.stat().st_size:,} bytes: copy it again, "
            "or pass force=True to recover to keep the committed rows of this file"
        )
        raise FormatError(message, str(file))
    rows, was_whole, cut_bytes, damaged = recover_file(str(file), sync)
    return Recovery(rows, was_whole, cut_bytes, [Damage(*damage) for damage in damaged])

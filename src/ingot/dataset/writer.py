"""A data set, open for writing."""

import json
import os
import re
import secrets
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ingot._core import Rows as NativeRows
from ingot._core import Writer as NativeWriter
from ingot._core import has_fields
from ingot.dataset import row
from ingot.dataset.manifest import NAME, Manifest, Shard
from ingot.dataset.spec import Spec, SpecLike
from ingot.errors import FormatError
from ingot.records.paths import check_target

_SUFFIX = ".ingot"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)i?B?")
_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class DatasetWriter:
    """Writes rows of named, typed fields, to one file or to a directory of several.

    A path that ends in `.ingot` is one file. Any other is a directory of files, each of
    which is whole once it is full, and a manifest that says which of them make the data set:
    until `flush` or `close` has replaced it, readers see what was there before.

    Args:
        path: A file or a directory. It must not exist, unless `append` is given.
        spec: The fields: a dict of names and types, such as
            {"image": "jpg", "label": "int", "words": "utf8[]", "note": "utf8?"}. `[]` is any
            number of values, `?` a value that may be missing.
        shard_bytes: How large a file of a directory gets, such as "1GB" or a number.
        shard_rows: How many rows a file of a directory gets.
        append: Go on with a data set that is there.
        compression: "auto", "zstd", "lz4" or None, as for `ingot.Writer`.
        level: Level of zstd, 1 (fast) to 22 (small).
        metadata: A JSON-able dict that is stored with the data set.
        sync: Whether `flush` and `close` wait until the device has the bytes.

    Raises:
        FileExistsError: There is such a file or data set, and `append` is not given.
        ValueError: The specification cannot be, or differs from that of the data set.

    Example:
        >>> with ingot.DatasetWriter("cats", {"image": "jpg", "label": "int"}) as w:
        ...     w.append({"image": array, "label": 3})  # doctest: +SKIP
    """

    __module__ = "ingot"

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: SpecLike,
        *,
        shard_bytes: int | str | None = None,
        shard_rows: int | None = None,
        append: bool = False,
        compression: Literal["auto", "zstd", "lz4"] | None = "auto",
        level: int = 3,
        metadata: dict[str, Any] | None = None,
        sync: bool = True,
    ) -> None:
        self._path = Path(path).absolute()
        self._spec = Spec.of(spec)
        self._shard_bytes = _bytes_of(shard_bytes)
        for name, limit in (("shard_bytes", self._shard_bytes), ("shard_rows", shard_rows)):
            if limit is not None and limit < 1:
                message = f"{name} is at least 1, not {limit}"
                raise ValueError(message)
        check_target(self._path)
        self._shard_rows = shard_rows
        self._options = (compression, level, sync)
        self._metadata = {} if metadata is None else metadata
        self._is_file = self._path.suffix == _SUFFIX
        if self._is_file and (shard_bytes is not None or shard_rows is not None):
            message = f"{self._path}: one file has no shards; name a directory"
            raise ValueError(message)
        self._writer: NativeWriter | None = None
        self._name = ""
        self._pending = 0
        self._process = os.getpid()
        self._closed = True  # Until all is well.
        self._manifest = self._begin(append=append)
        self._listed = len(self._manifest.shards)
        self._rows = sum(shard.rows for shard in self._manifest.shards)
        if self._is_file:
            self._writer = self._open(self._path, append=append)
            self._rows = len(self._writer)
        self._closed = False

    def _begin(self, *, append: bool) -> Manifest:
        manifest = Manifest(dict(self._spec), (), self._metadata)
        if self._is_file:
            return manifest
        self._path.mkdir(parents=True, exist_ok=True)
        if not (self._path / NAME).exists():
            return manifest
        if not append:
            message = (
                f"{self._path}: there is a data set already; pass append=True to go on with it"
            )
            raise FileExistsError(message)
        found = Manifest.read(self._path)
        if found.spec != manifest.spec:
            message = f"{self._path}: the data set has the fields {found.spec}, not {manifest.spec}"
            raise ValueError(message)
        return found

    def _open(self, path: Path, *, append: bool = False) -> NativeWriter:
        mode = "append" if append and path.exists() else "create"
        if mode == "append" and not has_fields(str(path)):
            message = f"{path}: this is no data set, or its writer died before the first row"
            raise FormatError(message, str(path))
        if mode == "append":
            found = NativeRows([str(path)], partial=True).fields()
            if found != self._spec.stored():
                fields = Spec.of_stored(found)
                message = f"{path}: the file has the fields {fields}, not {self._spec}"
                raise ValueError(message)
        text = json.dumps(self._metadata, allow_nan=False, separators=(",", ":"))
        return NativeWriter(str(path), mode, text, *self._options, self._spec.stored())

    @property
    def path(self) -> str:
        """The absolute path of the data set."""
        return str(self._path)

    @property
    def spec(self) -> Spec:
        """The fields and their types."""
        return self._spec

    @property
    def closed(self) -> bool:
        """Whether the writer was closed."""
        return self._closed

    def __len__(self) -> int:
        return self._rows

    def append(self, datapoint: Mapping[str, Any]) -> int:
        """Add a row; return its number. On an error nothing of it is added.

        Raises:
            TypeError: A value is of another type than its field.
            ValueError: A value does not fit, or fields are missing or unknown.
        """
        if self._closed:
            message = f"{self._path}: the writer is closed"
            raise ValueError(message)
        self._check_process()
        stored = row.encode(self._spec, self._rows, datapoint)
        writer = self._start_shard() if self._writer is None else self._writer
        writer.append_row(stored)
        self._rows += 1
        self._pending += sum(
            len(one) if isinstance(one, bytes) else sum(map(len, one)) for one in stored
        )
        if not self._is_file and self._is_full():
            self._finish_shard()
        return self._rows - 1

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            message = f"{self._path}: this writer belongs to the parent process"
            raise ValueError(message)

    def _start_shard(self) -> NativeWriter:
        self._name = f"{len(self._manifest.shards):06}-{secrets.token_hex(4)}{_SUFFIX}"
        self._writer = self._open(self._path / self._name)
        self._pending = 0
        return self._writer

    def extend(self, datapoints: Iterable[Mapping[str, Any]]) -> None:
        """Add every row of an iterable."""
        for datapoint in datapoints:
            self.append(datapoint)

    def _is_full(self) -> bool:
        rows = 0 if self._writer is None else len(self._writer)
        return (self._shard_rows is not None and rows >= self._shard_rows) or (
            self._shard_bytes is not None and self._pending >= self._shard_bytes
        )

    def _finish_shard(self) -> None:
        if self._writer is None:
            return
        rows = len(self._writer)
        self._writer.close()
        self._writer = None
        shard = Shard(self._name, rows, (self._path / self._name).stat().st_size)
        old = self._manifest
        self._manifest = Manifest(old.spec, (*old.shards, shard), old.metadata)

    def flush(self) -> None:
        """Commit all rows so far: whatever happens later, they are in the data set.

        Of a directory the file that is being written is finished by it.
        """
        self._check_process()
        if self._is_file:
            if self._writer is not None:
                self._writer.flush()
            return
        self._finish_shard()
        self._manifest = self._manifest.commit(self._path, self._listed, sync=self._options[2])
        self._listed = len(self._manifest.shards)

    def close(self) -> None:
        """Commit all rows and make the data set whole. A second call does nothing."""
        if self._closed:
            return
        self._check_process()
        if self._is_file and self._writer is not None:
            self._writer.close()
        else:
            if self._writer is None and not self._manifest.shards:
                self._start_shard()  # A data set without rows has a file that says so.
            self.flush()
        self._closed = True

    def abandon(self) -> None:
        """Leave the data set as the last `flush` left it."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        if self._writer is not None:
            self._writer.abandon()
        if not self._is_file:
            self._remove_unlisted()

    def _remove_unlisted(self) -> None:
        listed = {NAME}
        if (self._path / NAME).exists():
            listed |= {shard.name for shard in Manifest.read(self._path).shards}
        made = {shard.name for shard in self._manifest.shards} | {self._name}
        for name in made - listed - {""}:
            (self._path / name).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()
            error.add_note(f"{self._path}: the data set is as the last flush left it")

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and os.getpid() == self._process:
            warnings.warn(
                f"{self._path}: the writer was never closed; rows since the last flush are lost",
                ResourceWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._rows} rows"
        return f"<ingot.DatasetWriter {str(self._path)!r}, {state}>"


def _bytes_of(size: int | str | None) -> int | None:
    if size is None or isinstance(size, int):
        return size
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        message = f"{size!r} is no size; say 1GB, 256MB or a number of bytes"
        raise ValueError(message)
    return round(float(found[1]) * _UNITS[found[2]])

"""A record file, open for writing."""

import json
import os
from typing import Any, Literal, Self

from ingot._core import Reader as NativeReader
from ingot._core import Writer as NativeWriter
from ingot.errors import FormatError, UnfinishedFileError, counted
from ingot.options import names_options
from ingot.records.exit import Watched
from ingot.records.expand import absolute, check_target


class Writer(NativeWriter, Watched):
    """A record file, open for writing.

    The file is written in one pass and in bounded memory. What `flush` has committed
    survives a crash at any later point. `close` finishes the file; until then, `ingot.open`
    refuses it unless you pass `partial=True`. After an error every later call raises the same
    error; what was committed before stays.

    Args:
        path: The file to write. It must not exist, unless `append` or `overwrite` is given.
        compression: "zstd" or "lz4" compresses each record on its own, None stores records
            uncompressed, "auto" uses zstd if that shrinks the first records. With zstd, the file
            holds a dictionary trained on the first records if that makes it smaller.
        level: Level of zstd, 1 (fast) to 22 (small).
        metadata: A dict of JSON values that is stored in the file.
        append: Append to an existing file, finished or not.
        overwrite: Replace an existing file when this one is closed.
        sync: Whether `flush` and `close` wait until the bytes are on the storage device.
            Without it, they survive a crash of the process, but not of the machine.

    Raises:
        FormatError: The path has the suffix of another file format, such as `.ffr`.
        FileExistsError: The file exists and neither `append` nor `overwrite` is given.
        StorageError: Another writer has the file open, or the operating system refuses.

    Example:
        >>> with ingot.Writer("x.ingot") as w:  # doctest: +SKIP
        ...     w.append(b"a record")
    """

    __module__ = "ingot"
    _path: str
    _mode: str
    _begun: int

    @names_options
    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        compression: Literal["auto", "zstd", "lz4"] | None = "auto",
        level: int = 3,
        metadata: dict[str, Any] | None = None,
        append: bool = False,
        overwrite: bool = False,
        sync: bool = True,
    ) -> Self:
        """Open the file; see the class."""
        if append and (overwrite or metadata is not None):
            other = "overwrite" if overwrite else "metadata"
            raise ValueError(f"append=True keeps the options of the file; omit {other}")
        whole = absolute(path)
        if append and whole.exists():
            mode = "append"
        else:
            check_target(path)
            mode = "replace" if overwrite else "create"
        given = {} if metadata is None else metadata
        text = json.dumps(given, allow_nan=False, separators=(",", ":"))
        if not text.startswith("{"):
            raise TypeError(f"metadata must be a dict, got {type(metadata).__name__}")
        try:
            writer = super().__new__(cls, str(whole), mode, text, compression, level, sync)
        except FileExistsError as error:
            error.add_note(
                "pass append=True to append to it, or overwrite=True to replace it once "
                "the new file is closed"
            )
            raise
        writer._path = str(whole)
        writer._mode = mode
        writer._begun = len(writer)
        writer._watch()
        return writer

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return self._path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if error is None:
            self.close()
        else:
            error.add_note(f"{self._path}: {self._left()}")

    def _left(self) -> str:
        """Abandon the file; return what is left."""
        committed = self.abandon()
        state = (self._path, self._mode, self._begun, committed)
        return left_by(*state, opener="Writer(path", noun="record")

    def _settle(self, *, failed: bool) -> str:
        """After a failure, leave the file unfinished, with all records so far."""
        count = len(self)
        if not failed:
            self.close()
            was = "was" if count == 1 else "were"
            return f"its {counted(count, 'record')} {was} committed, and the file is finished"
        if self._mode != "replace":
            self.flush()
        return self._left()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{counted(len(self), 'record')}"
        return f"<ingot.Writer {self._path!r}, {state}>"


def left_by(path: str, mode: str, begun: int, committed: int, *, opener: str, noun: str) -> str:
    """Return what a writer that gave up has left.

    Args:
        path: The file.
        mode: The mode of the writer.
        begun: How many records the file had at the start.
        committed: How many it has.
        opener: The start of a call that opens it for writing.
        noun: What a record is called.
    """
    if mode == "replace":
        return "the new file was not finished; the old one stays"
    if mode == "create" and committed == 0:
        return "nothing was committed; the file was removed"
    if mode == "append" and committed == begun and _is_whole(path):
        return f"the file is as it was, with {counted(committed, noun)}"
    them = "it" if committed == 1 else "them"
    return (
        f"left unfinished with {counted(committed, f'committed {noun}')}; "
        f"ingot.open(path, partial=True) reads {them}, {opener}, append=True) appends to {them}, "
        "ingot.recover(path) finishes the file"
    )


def _is_whole(path: str) -> bool:
    """Return whether a file of Ingot ends as its writer finished it."""
    try:
        NativeReader([path], partial=False, check=True).close()
    except UnfinishedFileError:
        return False
    except FormatError:  # Its rows have fields.
        return True
    return True

"""A data set, open for writing."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any, Literal, TypeVar

from ingot.codecs import Codec
from ingot.dataset.read.dataset import Dataset, selection_of
from ingot.dataset.spec import Spec, SpecLike
from ingot.dataset.write import columns
from ingot.dataset.write.contribution import check_run, check_shard
from ingot.dataset.write.encoder import Encoder
from ingot.dataset.write.file import FileTarget
from ingot.dataset.write.metadata import json_of
from ingot.dataset.write.packed import PackedRows, packed
from ingot.dataset.write.shards import Compression, Options, limits
from ingot.dataset.write.superseded import KEEP_S, check_keep_for
from ingot.dataset.write.target import DirectoryTarget
from ingot.errors import ClosedError, StorageError, counted
from ingot.options import names_options
from ingot.records.exit import Watched
from ingot.records.expand import absolute, check_target
from ingot.records.progress import Meter, Progress

T = TypeVar("T")

_SUFFIX = ".ingot"
_UNKNOWN = -1


class DatasetWriter(Watched):
    """Writes rows of named, typed fields, to one file or to a directory of files.

    A path that ends in `.ingot` is one file. Any other path is a directory of files with a
    manifest that lists the files of the data set. The writer replaces the manifest when a file
    is full, at `flush` and at `close`. The next writer removes files that a killed writer left
    in a directory. A writer that is still open when the program ends is closed then, with a
    line on standard error.

    A call that raises was not done, and you may repeat it. If that cannot be said, because rows
    were on their way or a commit failed, the writer has failed for good: every later call,
    `close` included, raises `StorageError`, and what is committed stays.

    Args:
        path: A file or a directory. It must not exist, unless `append` or `overwrite` is given.
        spec: The fields: a dict of names and types, such as
            {"image": "jpg", "label": "int", "words": "utf8[]", "note": "utf8?"}. `[]` means any
            number of values, `?` a value that may be missing. A dict groups further fields. With
            `append` you may omit it; the writer then uses that of the data set.
        codecs: Codecs for types of the specification that are not registered: a list of codecs,
            or a dict of them by name.
        shard_bytes: The size of each file in a directory, such as "256MB" or a number, counted
            before compression; "1GB" if neither this nor `shard_rows` is given.
        shard_rows: The number of rows in each file of a directory.
        append: Continue an existing data set.
        overwrite: Replace an existing data set, at the first commit.
        atomic: Commit only at `flush` and `close`. Without it, the files of a directory are
            committed as they fill, so that a bad row, Ctrl-C, a full disk or a kill loses only
            the rows of the last file. `overwrite` and `shard` imply it.
        shard: (k, n) for writer k of the n writers of a directory, which may run at the same
            time, in any order, and on several machines. The rows of writer 0 come first. All rows
            are committed at once, when the last of the n writers closes. Until then, a writer
            that runs again replaces its own part.
        run: A name that all n writers share. It identifies a writer that runs again after they
            have committed. Without it, that writer counts towards the next commit.
        check: How to check values that are given as files: "structure" checks the structure of
            images, to the end; "decode" decodes every value.
        compression: "auto", "zstd", "lz4" or None, as for `ingot.Writer`. The first rows decide
            for each field, in all files that this writer makes.
        level: Level of zstd, 1 (fast) to 22 (small).
        metadata: A dict of JSON values that is stored with the data set.
        progress: True for a line on standard error with rows, rate and bytes, or a function
            that takes rows and bytes.
        sync: Whether `flush` and `close` wait until the device has the bytes.
        keep_for: With `overwrite`, for how many seconds the files of the old data set stay in the
            directory, so that open readers can continue with them. The first writer or
            `ingot.compact` after that removes them. With 0 they go at once.

    Raises:
        FileExistsError: The file or data set exists, and neither `append` nor `overwrite` is
            given; or the run is already committed.
        ValueError: The specification is invalid, or differs from that of the data set.

    Example:
        >>> with ingot.DatasetWriter("cats", {"image": "jpg", "label": "int"}) as w:
        ...     w.append({"image": array, "label": 3})  # doctest: +SKIP
    """

    __module__ = "ingot"

    @names_options
    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: SpecLike | None = None,
        *,
        codecs: Mapping[str, Codec] | Sequence[Codec] | None = None,
        shard_bytes: int | str | None = None,
        shard_rows: int | None = None,
        append: bool = False,
        overwrite: bool = False,
        atomic: bool = False,
        shard: tuple[int, int] | None = None,
        run: str | None = None,
        check: Literal["structure", "decode"] = "structure",
        compression: Compression = "auto",
        level: int = 3,
        metadata: dict[str, Any] | None = None,
        progress: Progress = None,
        sync: bool = True,
        keep_for: float = KEEP_S,
    ) -> None:
        self._closed = True  # Until the constructor succeeds.
        self._failure: str | None = None
        self._path = absolute(path)
        found = self._found(codecs, append=append) if spec is None else Spec.of(spec, codecs)
        self._spec = found.own()
        options = Options(compression, level, sync, *limits(shard_bytes, shard_rows))
        check_target(self._path)
        json_of({} if metadata is None else metadata)
        if check not in ("structure", "decode"):
            raise ValueError(f'check must be "structure" or "decode", got {check!r:.50}')
        check_keep_for(keep_for)
        self._meter = Meter(progress, str(self._path))
        if append and overwrite:
            message = "pass append=True to continue the data set or overwrite=True to replace it"
            raise ValueError(message)
        if run is not None and shard is None:
            message = "run= requires shard=(k, n): the number of this writer, and of all writers"
            raise ValueError(message)
        self._target: FileTarget | DirectoryTarget
        if self._path.suffix == _SUFFIX:
            if (shard_bytes, shard_rows, shard) != (None, None, None):
                message = f"{self._path}: a single file has no shards; pass the path of a directory"
                raise ValueError(message)
            self._target = FileTarget(
                self._path, self._spec, metadata, options, append=append, overwrite=overwrite
            )
        else:
            self._target = DirectoryTarget(
                self._path,
                self._spec,
                metadata,
                options,
                append=append,
                overwrite=overwrite,
                is_atomic=atomic,
                shard=None if shard is None else check_shard(shard),
                run=None if run is None else check_run(run),
                keep_for=keep_for,
            )
        self._encoder = Encoder(self._spec, check=check == "decode")
        # The rows of calls that have returned. If the target has others, a call has raised
        # although some of its rows are stored.
        self._stored_rows = self._target.num_rows
        self._lock = RLock()
        self._closed = False
        self._watch()

    def _found(self, codecs: Mapping[str, Codec] | Sequence[Codec] | None, *, append: bool) -> Spec:
        """Return the fields of the existing data set."""
        if not append:
            raise TypeError(
                'DatasetWriter requires a spec of fields and types, such as {"label": "int"}; '
                "only with append=True may you omit it"
            )
        if self._path.suffix == _SUFFIX:
            return Spec.of(FileTarget.fields(self._path), codecs)
        return Spec.of(DirectoryTarget.fields(self._path), codecs)

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
        """Whether the writer is closed."""
        return self._closed

    def __len__(self) -> int:
        return self._target.num_rows

    def append(self, datapoint: Mapping[str, Any]) -> int:
        """Append a row; return its number. If a value is refused, nothing of the row is stored.

        With `shard`, a writer counts only its own rows.

        Raises:
            TypeError: A value does not have the type of its field.
            ValueError: A value does not fit, or fields are missing or unknown.
            StorageError: The system refuses, or the writer has failed.
        """
        return self._store(self._append, datapoint)

    def _store(self, put: Callable[[int, T], None], rows: T) -> int:
        """Have rows stored: if this raises, none of them are, or the writer has failed.

        Args:
            put: Stores the rows, given the number of the first.
            rows: The rows.

        Returns:
            The number of the first row.
        """
        self._check_open()
        is_done = False
        try:
            with self._lock:
                number = self._check_sound()
                put(number, rows)
                self._stored_rows, is_done = self._target.num_rows, True
                if self._meter.is_on:
                    self._meter.update(self._stored_rows - self._target.rows, self._target.nbytes)
            return number  # noqa: TRY300 -- an interrupt may come before it
        except BaseException:
            if is_done:
                self._stored_rows = _UNKNOWN
            raise

    def _append(self, number: int, datapoint: Mapping[str, Any]) -> None:
        self._target.append(self._encoder.encode(number, datapoint))

    def _append_columns(self, number: int, batch: Mapping[str, Any]) -> None:
        rows = columns.encode(self._spec, number, batch, check=self._encoder.check)
        for some in rows.blocks():
            self._target.extend(some)

    def _append_packed(self, number: int, rows: PackedRows) -> None:
        del number
        self._target.extend(rows)

    def _check_sound(self) -> int:
        """Refuse to continue after a call that raised with some of its rows stored.

        The caller would append these again. So the data set is left as it is committed.

        Returns:
            How many rows there are.

        Raises:
            StorageError: A call has raised so.
        """
        count = self._target.num_rows
        if count != self._stored_rows and self._failure is None:
            # The failure stands if clearing up is stopped, too.
            self._failure = why = (
                f"{self._path}: an earlier call was stopped while it stored rows, so this writer "
                "cannot tell which rows it has, and cannot continue"
            )
            self._failure = f"{why}: {self._abandon() or 'the writer is closed'}"
        self._check_failure()
        return count

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise StorageError(self._failure, str(self._path))

    def _check_open(self) -> None:
        if self._closed or self._failure is not None or os.getpid() != self._process:
            self._check_failure()
            if not self._closed:
                self._check_process()
            raise ClosedError(f"{self._path}: the writer is closed", str(self._path))

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ValueError(f"{self._path}: this writer belongs to the parent process")

    def extend(
        self, batch: Mapping[str, Any] | Iterable[Mapping[str, Any]] | PackedRows | Any
    ) -> None:
        """Append many rows: columns, a list or another iterable of rows, a data set, or a table.

        Columns are fastest: a dict with an array or a list for each field, all of the same
        length. The first axis of an array counts the rows. An array with the dtype of its field
        is written without a copy. Optional fields may be missing, and None in a list is a
        missing value. If a value is refused, nothing of the batch is appended. All encoded
        values are in memory at the same time, so pass large arrays in parts.

        If a row of a list or of another iterable is refused, the rows before it are appended, as
        by `append`. An iterator is then at the row after the refused one: each row is encoded
        before the next is taken.

        Rows of a data set with the same fields are copied as stored, after verification, without
        decoding and encoding, so images keep their exact bytes.

        A table is anything with `__arrow_c_stream__` or `__arrow_c_array__`: a table of pyarrow,
        a data frame of Polars. Its columns are the fields; it is appended in pieces of a few
        megabytes, and those before a value that is refused stay.

        Raises:
            TypeError: A value does not have the type of its field, or a column is not a list.
            ValueError: A value does not fit, fields are missing or unknown, or columns differ
                in length.

        Example:
            >>> w.extend({"image": images, "label": [3, 1, 4]})  # doctest: +SKIP
        """
        self._check_open()
        with self._lock:
            self._check_sound()
        if isinstance(batch, Mapping):
            self._store(self._append_columns, batch)
        elif is_arrow(batch) and not isinstance(batch, Dataset):
            for part in self._taken(batch):
                self.extend(part)
        else:
            for some in self._pieces(batch):
                if isinstance(some, PackedRows):
                    self._store(self._append_packed, some)
                else:
                    self._store(self._append, some)
        # No line follows: an interrupt in it would raise from a call that is done.

    def _taken(self, data: object) -> Iterator[Any]:
        """Yield the rows of a table of Arrow: packed, or as columns where types differ."""
        from ingot.interchange.intake import Input, Intake  # noqa: PLC0415 -- it imports this module

        intake = Intake(Input(data), self._spec, whole=True)
        return intake.rows(decoded=self._encoder.check)

    def _pieces(
        self, batch: Iterable[Mapping[str, Any]] | PackedRows
    ) -> Iterable[Mapping[str, Any] | PackedRows]:
        """Return rows one by one, or many at a time where these are stored faster."""
        if isinstance(batch, PackedRows):
            return [batch]
        if isinstance(batch, Dataset):
            recode = not self._encoder.check
            return packed(selection_of(batch), self._spec, recode=recode) or batch
        if isinstance(batch, list | tuple) and not self._encoder.check:
            return columns.pieces(self._spec, batch)
        return batch

    def flush(self) -> None:
        """Commit all rows so far; they stay in the data set whatever happens later.

        In a directory, this ends the current file.

        Raises:
            ValueError: The writer has `shard`: such writers commit when all of them are closed.
        """
        self._check_open()
        with self._lock:
            self._check_sound()
            self._target.flush()

    def close(self) -> None:
        """Commit all rows and finish the data set. A second call does nothing.

        Raises:
            StorageError: The system refuses, or an earlier call was stopped while it stored rows.
        """
        self._check_failure()
        if self._closed:
            return
        self._check_process()
        with self._lock:
            self._check_sound()
            self._target.close()
            self._closed = True
            self._meter.finish(self._stored_rows - self._target.rows, self._target.nbytes)

    def abandon(self) -> None:
        """Stop writing; the data set stays as of the last commit."""
        self._abandon()

    def _abandon(self) -> str | None:
        if self._closed or os.getpid() != self._process:
            return None
        with self._lock:
            self._closed = True
            return self._target.abandon()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if error is not None:
            self._give_up(error)
            return
        try:
            self.close()
        except BaseException as failure:
            self._give_up(failure)
            raise

    def _give_up(self, error: BaseException) -> None:
        """Abandon the data set; the error that is the reason stays the one that is raised."""
        try:
            left = self._abandon()
        except Exception as failure:  # noqa: BLE001 -- it is told as a note
            left = f"what was not committed could not be removed: {failure}"
        if left:
            error.add_note(f"{self._path}: {left}")

    def _settle(self, *, failed: bool) -> str:
        """After a failure, leave a single file unfinished, and commit nothing if atomic."""
        if not failed:
            self.close()
            count = len(self)
            return f"its {counted(count, 'row')} {'was' if count == 1 else 'were'} committed"
        with self._lock:
            self._closed = True
            is_sure = self._target.num_rows == self._stored_rows
            return self._target.drop() if is_sure else self._target.abandon()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{counted(len(self), 'row')}"
        return f"<ingot.DatasetWriter {str(self._path)!r}, {state}>"


def is_arrow(data: object) -> bool:
    """Return whether an object hands over arrays or streams of Arrow."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")

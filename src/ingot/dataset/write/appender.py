"""Encoding of rows, one or many at a time, and appending them to a file or a directory."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ingot.dataset.read.decoding import Stored
from ingot.dataset.spec import Spec
from ingot.dataset.write import columnar, encoding
from ingot.dataset.write.copying import PackedRows
from ingot.dataset.write.file import FileTarget
from ingot.dataset.write.gathering import Gathering
from ingot.dataset.write.shards import size_of
from ingot.dataset.write.target import DirectoryTarget
from ingot.records.progress import Meter


class Appender:
    """Appends rows in the order in which they are given. It is not safe for threads.

    Args:
        spec: The fields.
        target: The file or the directory.
        meter: Where progress is reported.
        decode: Whether to decode every value before it is stored.

    Attributes:
        spec: The fields.
        decode: Whether every value is decoded before it is stored.
        is_unsure: Whether the target has got rows in a call of the user that has not returned.
            The caller clears it. If it is set at the next call, that one has raised although
            some of its rows are stored.
    """

    def __init__(
        self, spec: Spec, target: FileTarget | DirectoryTarget, meter: Meter, *, decode: bool
    ) -> None:
        self.spec = spec
        self.decode = decode
        self._target = target
        self._meter = meter
        self._gathering = Gathering(spec)
        self._nbytes = 0
        self.is_unsure = False

    @property
    def count(self) -> int:
        """The number of rows, including those that the target had and those that wait."""
        return self._target.num_rows + len(self._gathering.rows)

    def append(self, datapoint: Mapping[str, Any]) -> int:
        """Append a row; return its number."""
        self._store_others()
        number = self.count
        stored = self._encoded(number, datapoint)
        nbytes = size_of(stored)
        self._put(partial(self._target.append, stored, nbytes), nbytes)
        return number

    def gather(self, datapoint: Mapping[str, Any]) -> None:
        """Append a row some time until the next `store`; if this raises, nothing of it is."""
        stored = self._encoded(self.count, datapoint)
        if self._gathering.add(stored, size_of(stored)):
            self.store()

    def _encoded(self, number: int, datapoint: Mapping[str, Any]) -> list[Stored]:
        stored = encoding.encode(self.spec, number, datapoint)
        if self.decode:
            encoding.check(self.spec, number, stored)
        return stored

    def store(self) -> None:
        """Append the rows that wait.

        If this raises, the target is unsure: calls that have returned gave some of the rows.
        """
        if self._gathering.rows:
            self.is_unsure = True
            self._put(partial(self._gathering.store, self._target), self._gathering.nbytes)

    def _store_others(self) -> None:
        """Append the rows that wait, which are of other calls than this one."""
        was_unsure = self.is_unsure
        self.store()
        self.is_unsure = was_unsure

    def forget(self) -> None:
        """Forget the rows that wait."""
        self._gathering.clear()

    def append_columns(self, batch: Mapping[str, Any]) -> None:
        """Append all rows of a batch; if a value is refused, none of them."""
        self._store_others()
        for some in columnar.blocks(
            columnar.encode(self.spec, self.count, batch, check=self.decode)
        ):
            self.append_packed(some)

    def append_packed(self, rows: PackedRows) -> None:
        """Append encoded rows."""
        self._store_others()
        self._put(partial(self._target.extend, rows), int(rows.sizes().sum()))

    def _put(self, put: Callable[[], None], nbytes: int) -> None:
        """Have rows of `nbytes` bytes appended."""
        before, was_unsure = self._target.num_rows, self.is_unsure
        self.is_unsure = True
        try:
            put()
        except BaseException:
            if self._target.num_rows == before:
                self.is_unsure = was_unsure
            raise
        self._nbytes += nbytes
        self._meter.update(self.count - self._target.rows, self._nbytes)

    def finish(self) -> None:
        """Report the end."""
        self._meter.finish(self.count - self._target.rows, self._nbytes)

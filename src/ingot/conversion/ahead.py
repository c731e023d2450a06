"""Reading pieces ahead of the one that is written, in order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from ingot.conversion.content import size_of

T = TypeVar("T")

_BYTES = 1 << 21
_ROWS_MAX = 8192


class Cuts:
    """Cuts rows into pieces of a few megabytes, by the sizes of the pieces so far.

    Args:
        total: The number of rows.
        nbytes: The size of the files, from which the size of the first piece is guessed.
        start: The first row.
    """

    def __init__(self, total: int, nbytes: int, start: int = 0) -> None:
        self._place = start
        self._total = total
        self._step = self._fitting(max(1, total), nbytes)

    @staticmethod
    def _fitting(rows: int, nbytes: int) -> int:
        return max(1, min(_ROWS_MAX, _BYTES * rows // max(1, nbytes)))

    def take(self) -> range | None:
        """Return the next rows; None behind the last."""
        if self._place >= self._total:
            return None
        rows = range(self._place, min(self._place + self._step, self._total))
        self._place = rows.stop
        return rows

    def learn(self, rows: range, nbytes: int) -> None:
        """Take note of the size of a piece; the next ones at most double."""
        self._step = min(2 * self._step, self._fitting(len(rows), nbytes))


@contextmanager
def read_ahead(
    read: Callable[[range], T], cuts: Cuts, workers: int
) -> Iterator[Iterator[tuple[range, T]]]:
    """Read pieces with threads; yields an iterator of their rows and contents, in order."""
    pool = ThreadPoolExecutor(workers, "ingot-convert")
    try:
        yield _pieces(read, cuts, pool, workers)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pieces(
    read: Callable[[range], T], cuts: Cuts, pool: ThreadPoolExecutor, workers: int
) -> Iterator[tuple[range, T]]:
    begun: deque[tuple[range, Future[T]]] = deque()
    while True:
        while len(begun) <= workers and (rows := cuts.take()) is not None:
            begun.append((rows, pool.submit(read, rows)))
        if not begun:
            return
        rows, future = begun.popleft()
        piece = future.result()
        cuts.learn(rows, size_of(piece))
        yield rows, piece

"""Record files as a Beam source, split by record number."""

from collections.abc import Iterator

from apache_beam.coders import BytesCoder, Coder
from apache_beam.io.concat_source import ConcatSource
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.iobase import BoundedSource, RangeTracker, SourceBundle
from apache_beam.io.range_trackers import OffsetRangeTracker, UnsplittableRangeTracker

from ingot.beam.transfer import is_local, local_copy
from ingot.locks import cached_property
from ingot.records import open  # noqa: A004


class RecordSource(BoundedSource):
    """The records of a file as a source whose positions are record numbers.

    A local file can be split between any two records, even while it is being read. Any other
    file is copied to the local disk for reading, and is not split.

    Args:
        path: The file, on any file system of Beam.
        num_bytes: Its size.
    """

    def __init__(self, path: str, num_bytes: int) -> None:
        self._path = path
        self._num_bytes = num_bytes

    @cached_property
    def _stop(self) -> int | float:
        if not is_local(self._path):
            return OffsetRangeTracker.OFFSET_INFINITY
        with open(self._path) as reader:
            return len(reader)

    def estimate_size(self) -> int:
        """Return the size of the file."""
        return self._num_bytes

    def split(
        self,
        desired_bundle_size: int,
        start_position: int | None = None,
        stop_position: int | None = None,
    ) -> Iterator[SourceBundle]:
        """Yield ranges of about the desired number of bytes."""
        start = 0 if start_position is None else start_position
        stop = self._stop if stop_position is None else stop_position
        if stop == OffsetRangeTracker.OFFSET_INFINITY:
            yield SourceBundle(self._num_bytes, self, start, stop)
            return
        record_bytes = max(self._num_bytes / max(self._stop, 1), 1)
        step = max(int(desired_bundle_size / record_bytes), 1)
        for first in range(start, int(stop), step):
            last = min(first + step, int(stop))
            yield SourceBundle((last - first) * record_bytes, self, first, last)

    def get_range_tracker(
        self, start_position: int | None, stop_position: float | None
    ) -> RangeTracker:
        """Return a tracker of record numbers."""
        start = 0 if start_position is None else start_position
        stop = self._stop if stop_position is None else stop_position
        tracker = OffsetRangeTracker(start, stop)
        if stop == OffsetRangeTracker.OFFSET_INFINITY:
            return UnsplittableRangeTracker(tracker)
        return tracker

    def read(self, range_tracker: RangeTracker) -> Iterator[bytes]:
        """Yield the records of a range, as long as the tracker grants them."""
        with local_copy(self._path) as path, open(path) as reader:
            stop = min(range_tracker.stop_position(), len(reader))
            rows = range(range_tracker.start_position(), stop)
            for row, record in zip(rows, reader.iter(rows), strict=True):
                if not range_tracker.try_claim(row):
                    return
                yield record

    def default_output_coder(self) -> Coder:
        """Return the coder of bytes."""
        return BytesCoder()


class PatternSource(ConcatSource):
    """The records of all files that match a pattern, file by file.

    Args:
        pattern: A path or a pattern of Beam's file systems, matched when the pipeline runs.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _source_bundles(self) -> list[SourceBundle]:
        (match,) = FileSystems.match([self._pattern])
        if not match.metadata_list:
            message = f"{self._pattern}: no file matches this pattern"
            raise FileNotFoundError(message)
        files = sorted((file.path, file.size_in_bytes) for file in match.metadata_list)
        return [SourceBundle(None, RecordSource(*file), None, None) for file in files]

    def default_output_coder(self) -> Coder:
        """Return the coder of bytes, without a look at the files."""
        return BytesCoder()

"""The transforms that read and write record files."""

from collections.abc import Iterator
from typing import Any, Literal

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.io.fileio import EmptyMatchTreatment, MatchAll
from apache_beam.options.value_provider import ValueProvider

from ingot.beam.sink import RecordSink
from ingot.beam.source import PatternSource, RecordSource
from ingot.beam.transfer import absolute
from ingot.formats.arrayrecord import ArrayRecordWriter
from ingot.records import Writer
from ingot.records.expand import StrPath

SPLIT_BYTES = 64 << 20
"""The size of a range of `ReadAllFromIngot` in bytes."""


class Write(beam.PTransform):
    """Writes a bounded collection to a sink and returns the paths of the files.

    Args:
        sink: The sink.

    Raises:
        ValueError: The collection is unbounded.
    """

    def __init__(self, sink: RecordSink) -> None:
        super().__init__()
        self.sink = sink

    def expand(self, records: Any) -> Any:
        """Apply the transform."""
        if not records.is_bounded:
            message = f"{self.sink.file_path_prefix}: record files require a bounded collection"
            raise ValueError(message)
        return records | beam.io.Write(self.sink)


class WriteToIngot(Write):
    """Writes a bounded collection to `.ingot` files and returns their paths.

    Elements are bytes-like, or text that is written as UTF-8. Files are published as by
    `RecordSink`: readers see either all of a file or none of it.

    Args:
        file_path_prefix: The prefix of the paths of the files, on any file system of Beam.
        file_name_suffix: Their suffix.
        num_shards: The number of files; 0 leaves it to the runner.
        shard_name_template: The part between prefix and suffix, `-SSSSS-of-NNNNN` by default;
            an empty template makes a single file.
        coder: Encodes an element as a record.
        compression: As for `ingot.Writer`.
        level: As for `ingot.Writer`.
        metadata: As for `ingot.Writer`; each file holds it.
        sync: Whether to wait until the bytes are on the storage device, on a local disk.

    Example:
        >>> records | ingot.beam.WriteToIngot("out/train", num_shards=8)  # doctest: +SKIP
    """

    def __init__(
        self,
        file_path_prefix: StrPath | ValueProvider,
        file_name_suffix: str | ValueProvider = ".ingot",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Coder | None = None,
        *,
        compression: Literal["auto", "zstd", "lz4"] | None = "auto",
        level: int = 3,
        metadata: dict[str, Any] | None = None,
        sync: bool = True,
    ) -> None:
        options = {"compression": compression, "level": level, "metadata": metadata, "sync": sync}
        names = (file_path_prefix, file_name_suffix, num_shards, shard_name_template)
        super().__init__(RecordSink(Writer, options, *names, coder))


class WriteToArrayRecord(Write):
    """Writes a bounded collection to ArrayRecord files and returns their paths.

    Apart from the file format, this works as `WriteToIngot`. Arguments from `group_size` on are
    those of `ingot.formats.arrayrecord.ArrayRecordWriter`.
    """

    def __init__(
        self,
        file_path_prefix: StrPath | ValueProvider,
        file_name_suffix: str | ValueProvider = ".array_record",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Coder | None = None,
        *,
        group_size: int = 1,
        compression: Literal["zstd", "brotli", "snappy"] | None = "zstd",
        level: int | None = None,
        window_log: int | None = None,
        transpose: bool = False,
        transpose_bucket_size: int = 256,
        pad_to_block_boundary: bool = False,
        sync: bool = True,
    ) -> None:
        options = {
            "group_size": group_size,
            "compression": compression,
            "level": level,
            "window_log": window_log,
            "transpose": transpose,
            "transpose_bucket_size": transpose_bucket_size,
            "pad_to_block_boundary": pad_to_block_boundary,
            "sync": sync,
        }
        names = (file_path_prefix, file_name_suffix, num_shards, shard_name_template)
        super().__init__(RecordSink(ArrayRecordWriter, options, *names, coder))


class ReadFromIngot(beam.PTransform):
    """Reads the records of all files that match a pattern, as bytes.

    The runner may split a local file between any two records, even while it is being read. Any
    other file is copied to the local disk first and read as a whole.

    Args:
        file_pattern: A path or a pattern of Beam's file systems. It must match a file
            when the pipeline runs.

    Example:
        >>> records = pipeline | ingot.beam.ReadFromIngot("out/train-*")  # doctest: +SKIP
    """

    def __init__(self, file_pattern: StrPath) -> None:
        super().__init__()
        self._source = PatternSource(absolute(file_pattern))

    def expand(self, start: Any) -> Any:
        """Apply the transform."""
        return start.pipeline | beam.io.Read(self._source)


class ReadAllFromIngot(beam.PTransform):
    """Reads the records of the files named by a collection of paths and patterns.

    Args:
        with_filename: Return pairs of the path and the record.
    """

    def __init__(self, *, with_filename: bool = False) -> None:
        super().__init__()
        self._with_filename = with_filename

    def expand(self, patterns: Any) -> Any:
        """Apply the transform."""
        pairs = (
            patterns
            | "Resolve" >> beam.Map(absolute)
            | MatchAll(EmptyMatchTreatment.DISALLOW)
            | "Spread files" >> beam.Reshuffle()
            | "Split" >> beam.FlatMap(_ranges)
            | "Spread ranges" >> beam.Reshuffle()
            | "Read" >> beam.FlatMap(_read).with_output_types(tuple[str, bytes])
        )
        return pairs if self._with_filename else pairs | beam.Values().with_output_types(bytes)


class ReadFromArrayRecord(ReadFromIngot):
    """Reads the records of ArrayRecord files, as `ReadFromIngot` does for Ingot files."""


class ReadAllFromArrayRecord(ReadAllFromIngot):
    """Reads the records of ArrayRecord files, as `ReadAllFromIngot` does for Ingot files."""


def _ranges(file: Any) -> Iterator[tuple[str, Any]]:
    source = RecordSource(file.path, file.size_in_bytes)
    return ((file.path, bundle) for bundle in source.split(SPLIT_BYTES))


def _read(wanted: tuple[str, Any]) -> Iterator[tuple[str, bytes]]:
    path, bundle = wanted
    tracker = bundle.source.get_range_tracker(bundle.start_position, bundle.stop_position)
    return ((path, record) for record in bundle.source.read(tracker))

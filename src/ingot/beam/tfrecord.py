"""TFRecord files, without TensorFlow: read, written, and converted to record files."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Literal, TypeAlias
from uuid import uuid4

import apache_beam as beam
from apache_beam.io.fileio import EmptyMatchTreatment, MatchFiles
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.tfrecordio import _TFRecordUtil as Records
from apache_beam.pvalue import AsIter, AsSingleton

from ingot.beam.sink import RecordSink
from ingot.beam.transfer import PIECE_BYTES, absolute
from ingot.beam.transforms import Write, WriteToArrayRecord, WriteToIngot
from ingot.errors import CorruptFileError
from ingot.records.expand import StrPath

Container: TypeAlias = Literal["ingot", "array_record"]
CONTAINERS: dict[str, Callable[..., Write]] = {
    "ingot": WriteToIngot,
    "array_record": WriteToArrayRecord,
}


class _Pieces:
    """Reads a file in pieces, so that a wrong length does not exhaust memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        if size <= PIECE_BYTES:
            return self._file.read(size)
        parts = []
        while size and (part := self._file.read(min(size, PIECE_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def read_tfrecord(path: str) -> Iterator[bytes]:
    """Yield the records of a TFRecord file, in order, decompressed according to its suffix.

    Raises:
        CorruptFileError: A checksum or a length is wrong.
    """
    number = offset = 0
    with FileSystems.open(path) as file:
        pieces = _Pieces(file)
        while True:
            try:
                record = Records.read_record(pieces)
            except (ValueError, zlib.error) as error:
                message = f"{path}: record {number} at offset {offset}: {error}"
                raise CorruptFileError(message, path, number, offset) from error
            if record is None:
                return
            yield record
            number += 1
            offset += Records.encoded_num_bytes(record)


def write_tfrecord(path: str, records: Iterable[bytes]) -> None:
    """Write a TFRecord file, compressed according to its suffix."""
    with FileSystems.create(path) as file:
        for record in records:
            Records.write_record(file, record)


class ConvertTFRecord(beam.PTransform):
    """Converts TFRecord files to record files and returns the paths of the new files.

    Files are published as by `RecordSink`: readers see either all of a file or none of it.

    Args:
        input_pattern: The TFRecord files, a path or a pattern of Beam's file systems.
            Files whose names end in `.gz` or similar are decompressed.
        output_prefix: The prefix of the output paths, on any file system of Beam.
        to: The file format to write.
        num_shards: The number of files; 0 leaves it to the runner. None makes one file of
            each TFRecord file, sorted by name, with its records in order; otherwise the order
            is not defined.
        **options: Options of `WriteToIngot` or `WriteToArrayRecord`.

    Example:
        >>> pipeline | ConvertTFRecord("train-*.tfrecord", "out/train")  # doctest: +SKIP
    """

    def __init__(
        self,
        input_pattern: StrPath,
        output_prefix: StrPath,
        *,
        to: Container = "ingot",
        num_shards: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if to not in CONTAINERS:
            message = f"to must be one of {', '.join(CONTAINERS)}, got {to!r}"
            raise ValueError(message)
        self._pattern = absolute(input_pattern)
        self._write = CONTAINERS[to](output_prefix, num_shards=num_shards or 0, **options)
        self._by_file = num_shards is None

    def expand(self, start: Any) -> Any:
        """Apply the transform."""
        matches = start | MatchFiles(self._pattern, EmptyMatchTreatment.DISALLOW)
        paths = matches | beam.Map(lambda file: file.path).with_output_types(str)
        if self._by_file:
            return self._convert_files(paths)
        read = beam.FlatMap(read_tfrecord).with_output_types(bytes)
        return paths | beam.Reshuffle() | "Read" >> read | self._write

    def _convert_files(self, paths: Any) -> Any:
        """Convert each file to one shard, with the protocol of `beam.io.Write`."""
        sink = self._write.sink
        once = paths.pipeline | "Once" >> beam.Create([None])
        begun = once | "Initialize" >> beam.Map(lambda _: sink.initialize_write())
        folder = AsSingleton(begun)
        shards = (
            once
            | "Number" >> beam.FlatMap(lambda _, paths: enumerate(sorted(paths)), AsIter(paths))
            | "Spread" >> beam.Reshuffle()
            | "Convert" >> beam.Map(_convert, sink, folder)
        )
        publish = beam.FlatMap(
            lambda _, folder, shards: sink.finalize_write(folder, shards, None),
            folder,
            AsIter(shards),
        )
        return once | "Publish" >> publish.with_output_types(str)


def _convert(numbered: tuple[int, str], sink: RecordSink, folder: str) -> str:
    number, path = numbered
    shard = sink.open_shard(folder, f"{number:012d}-{uuid4().hex}")
    for record in read_tfrecord(path):
        shard.write(record)
    return shard.close()


def convert_tfrecord(
    input_pattern: StrPath,
    output_prefix: StrPath,
    *,
    to: Container = "ingot",
    num_shards: int | None = None,
    pipeline_options: Any = None,
    **options: Any,
) -> beam.Pipeline:
    """Return a pipeline that converts TFRecord files; call `run()` to run it.

    The arguments are those of `ConvertTFRecord`, and `pipeline_options` for Beam.

    Example:
        >>> convert_tfrecord("train-*.tfrecord", "out/train").run()  # doctest: +SKIP
    """
    pipeline = beam.Pipeline(options=pipeline_options)
    _ = pipeline | ConvertTFRecord(
        input_pattern, output_prefix, to=to, num_shards=num_shards, **options
    )
    return pipeline

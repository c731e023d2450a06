"""Conversion of TFRecord files to record files, without TensorFlow."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import apache_beam as beam
from apache_beam.io.fileio import EmptyMatchTreatment, MatchFiles
from apache_beam.pvalue import AsIter, AsSingleton

from ingot.beam.sink import RecordSink
from ingot.beam.tfrecord import read_tfrecord
from ingot.beam.transfer import absolute
from ingot.beam.transforms import Write, WriteToArrayRecord, WriteToIngot
from ingot.records.expand import StrPath

Container: TypeAlias = Literal["ingot", "array_record"]
CONTAINERS: dict[str, Callable[..., Write]] = {
    "ingot": WriteToIngot,
    "array_record": WriteToArrayRecord,
}


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
            return paths | _ConvertFiles(self._write.sink)
        read = beam.FlatMap(read_tfrecord).with_output_types(bytes)
        return paths | beam.Reshuffle() | "Read" >> read | self._write


class _ConvertFiles(beam.PTransform):
    """Converts each file to one shard, with the protocol of `beam.io.Write`."""

    def __init__(self, sink: RecordSink) -> None:
        super().__init__()
        self._sink = sink

    def expand(self, paths: Any) -> Any:
        once = paths.pipeline | "Once" >> beam.Create([None])
        folder = once | "Initialize" >> beam.Map(_initialize, self._sink)
        shards = (
            once
            | "Number" >> beam.FlatMap(_number, AsIter(paths))
            | beam.Reshuffle()
            | "Convert" >> beam.Map(_convert, self._sink, AsSingleton(folder))
        )
        publish = beam.FlatMap(_publish, self._sink, AsSingleton(folder), AsIter(shards))
        return once | "Publish" >> publish.with_output_types(str)


def _initialize(_: None, sink: RecordSink) -> str:
    return sink.initialize_write()


def _number(_: None, paths: Iterable[str]) -> Iterator[tuple[int, str]]:
    return enumerate(sorted(paths))


def _convert(numbered: tuple[int, str], sink: RecordSink, folder: str) -> str:
    number, path = numbered
    shard = sink.open_shard(folder, f"{number:012d}-{uuid4().hex}")
    for record in read_tfrecord(path):
        shard.write(record)
    return shard.close()


def _publish(_: None, sink: RecordSink, folder: str, shards: Iterable[str]) -> list[str]:
    return sink.finalize_write(folder, shards, None)


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

    Args:
        input_pattern: As for `ConvertTFRecord`.
        output_prefix: As for `ConvertTFRecord`.
        to: As for `ConvertTFRecord`.
        num_shards: As for `ConvertTFRecord`.
        pipeline_options: Options of Beam.
        **options: Options of `WriteToIngot` or `WriteToArrayRecord`.

    Example:
        >>> convert_tfrecord("train-*.tfrecord", "out/train").run()  # doctest: +SKIP
    """
    pipeline = beam.Pipeline(options=pipeline_options)
    _ = pipeline | ConvertTFRecord(
        input_pattern, output_prefix, to=to, num_shards=num_shards, **options
    )
    return pipeline

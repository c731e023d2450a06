"""`array_record.beam.pipelines`: pipelines that make and convert files; you run them.

`args` is a dict with `input` and `output`, or a command line as a list. Without it, the
function parses the command line of the process.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import apache_beam as beam
from apache_beam.coders.coders import ToBytesCoder
from apache_beam.io.fileio import EmptyMatchTreatment, MatchFiles
from apache_beam.options.pipeline_options import PipelineOptions

from ingot.beam import ConvertTFRecord, absolute
from ingot.compat.array_record.beam.arrayrecordio import WriteToArrayRecord
from ingot.compat.array_record.beam.dofns import ConvertFile
from ingot.compat.array_record.beam.example import generate_serialized_movie_examples
from ingot.compat.array_record.beam.options import get_arguments

Arguments: TypeAlias = Mapping[str, str] | Sequence[str] | None


def _start(
    args: Arguments, options: PipelineOptions | None
) -> tuple[beam.Pipeline, Mapping[str, str]]:
    """Return a pipeline and its arguments."""
    if isinstance(args, Mapping):
        return beam.Pipeline(options=PipelineOptions([]) if options is None else options), args
    arguments, others = get_arguments(args)
    return beam.Pipeline(options=others if options is None else options), arguments


def example_to_tfrecord(
    num_shards: int = 1,
    args: Arguments = None,
    pipeline_options: PipelineOptions | None = None,
) -> beam.Pipeline:
    """Return a pipeline that writes the movie examples to TFRecord files."""
    pipeline, arguments = _start(args, pipeline_options)
    created = pipeline | "Create" >> beam.Create(generate_serialized_movie_examples())
    _ = created | "Write" >> beam.io.WriteToTFRecord(
        arguments["output"], ToBytesCoder(), ".tfrecord", num_shards
    )
    return pipeline


def example_to_arrayrecord(
    num_shards: int = 1,
    args: Arguments = None,
    pipeline_options: PipelineOptions | None = None,
) -> beam.Pipeline:
    """Return a pipeline that writes the movie examples to ArrayRecord files."""
    pipeline, arguments = _start(args, pipeline_options)
    created = pipeline | "Create" >> beam.Create(generate_serialized_movie_examples())
    _ = created | "Write" >> WriteToArrayRecord(arguments["output"], ".arrayrecord", num_shards)
    return pipeline


def convert_tf_to_arrayrecord_disk(
    num_shards: int = 1,
    args: Arguments = None,
    pipeline_options: PipelineOptions | None = None,
) -> beam.Pipeline:
    """Return a pipeline that converts TFRecord files to the given number of ArrayRecord files."""
    return _convert(num_shards, args, pipeline_options)


def convert_tf_to_arrayrecord_disk_match_shards(
    args: Arguments = None, pipeline_options: PipelineOptions | None = None
) -> beam.Pipeline:
    """Return a pipeline that converts each TFRecord file to one ArrayRecord file."""
    return _convert(None, args, pipeline_options)


def _convert(
    num_shards: int | None, args: Arguments, pipeline_options: PipelineOptions | None
) -> beam.Pipeline:
    pipeline, arguments = _start(args, pipeline_options)
    _ = pipeline | ConvertTFRecord(
        arguments["input"],
        arguments["output"],
        to="array_record",
        num_shards=num_shards,
        file_name_suffix=".arrayrecord",
    )
    return pipeline


def convert_tf_to_arrayrecord_gcs(
    overwrite_extension: bool = False,
    file_path_suffix: str = ".arrayrecord",
    args: Arguments = None,
    pipeline_options: PipelineOptions | None = None,
) -> beam.Pipeline:
    """Return a pipeline that converts each TFRecord file to an ArrayRecord file of that name.

    Args:
        overwrite_extension: Replace everything after the last dot, instead of appending.
        file_path_suffix: The suffix of the new name.
        args: `output` is the folder to write to.
        pipeline_options: Options of Beam.
    """
    pipeline, arguments = _start(args, pipeline_options)
    _ = (
        pipeline
        | MatchFiles(absolute(arguments["input"]), EmptyMatchTreatment.DISALLOW)
        | "Name" >> beam.Map(lambda file: file.path).with_output_types(str)
        | beam.Reshuffle()
        | "Convert"
        >> beam.ParDo(
            ConvertFile(),
            arguments["output"],
            file_path_suffix=file_path_suffix,
            overwrite_extension=overwrite_extension,
        )
    )
    return pipeline

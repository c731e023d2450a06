"""`array_record.beam.demo`: writes TFRecord files and converts them.

Run it as `python -m ingot.compat.array_record.beam.demo --input PREFIX --output FOLDER`.
"""

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from ingot.compat.array_record.beam.dofns import ConvertFile
from ingot.compat.array_record.beam.example import generate_serialized_movie_examples
from ingot.compat.array_record.beam.options import Arguments, resolve


def main(args: Arguments = None, pipeline_options: PipelineOptions | None = None) -> beam.Pipeline:
    """Return the pipeline; call `run()` to run it."""
    arguments, options = resolve(args, pipeline_options)
    pipeline = beam.Pipeline(options=options)
    _ = (
        pipeline
        | "Create examples" >> beam.Create(generate_serialized_movie_examples())
        | "Write TFRecord files"
        >> beam.io.WriteToTFRecord(arguments["input"], num_shards=4, file_name_suffix=".tfrecord")
        | beam.Reshuffle()
        | "Convert" >> beam.ParDo(ConvertFile(), arguments["output"], overwrite_extension=True)
    )
    return pipeline


if __name__ == "__main__":
    main().run().wait_until_finish()

"""`array_record.beam.options`: options of a pipeline from the command line."""

import argparse
from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions


def get_arguments(argv: Sequence[str] | None = None) -> tuple[dict[str, str], PipelineOptions]:
    """Return the arguments `input` and `output`, and all others as options of Beam.

    Args:
        argv: The command line; by default that of the process.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", help="pattern of the TFRecord files to read")
    parser.add_argument("--output", help="prefix of the paths of the files to write")
    known, others = parser.parse_known_args(argv)
    return vars(known), PipelineOptions(others)

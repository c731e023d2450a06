"""`array_record.beam.options`: options of a pipeline from the command line."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

Arguments: TypeAlias = Mapping[str, str] | Sequence[str] | None
"""The first result of `get_arguments`, a command line as a list, or None."""


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


def resolve(
    args: Arguments, pipeline_options: PipelineOptions | None
) -> tuple[Mapping[str, str], PipelineOptions]:
    """Return the arguments and the options of a pipeline, if needed from the command line."""
    if isinstance(args, Mapping):
        return args, PipelineOptions([]) if pipeline_options is None else pipeline_options
    arguments, others = get_arguments(args)
    return arguments, others if pipeline_options is None else pipeline_options


def absolute(path: str) -> str:
    """Return a path as an absolute one: Beam finds no file for a pattern without a folder."""
    return path if FileSystems.get_scheme(path) else os.path.join(Path.cwd(), path)  # noqa: PTH118

"""Pipelines that the tests run, and what they find afterwards."""

import gzip
import struct

import apache_beam as beam
import google_crc32c
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

import ingot
import ingot.beam

IN_PROCESS = PipelineOptions(["--runner=FnApiRunner"])
RECORDS = [b"%d-" % k * (k % 7) for k in range(100)]
CONTAINERS = {
    "ingot": (ingot.beam.WriteToIngot, ingot.beam.ReadFromIngot, ".ingot"),
    "array_record": (
        ingot.beam.WriteToArrayRecord,
        ingot.beam.ReadFromArrayRecord,
        ".array_record",
    ),
}


def run(build, runner="FnApiRunner", options=None):
    """Run the pipeline that `build` makes, in this process unless told otherwise."""
    with beam.Pipeline(runner=runner, options=options) as pipeline:
        build(pipeline)


def write(
    prefix,
    records=RECORDS,
    *,
    write_to=ingot.beam.WriteToIngot,
    runner="FnApiRunner",
    options=None,
    **arguments,
):
    def build(pipeline):
        return pipeline | beam.Create(records) | write_to(prefix, **arguments)

    run(build, runner, options)


def check_read(transform, expected, runner="FnApiRunner", options=None):
    run(lambda pipeline: assert_that(pipeline | transform, equal_to(expected)), runner, options)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def contents(folder):
    return {name: list(ingot.open(folder / name)) for name in names(folder)}


def sorted_records(folder):
    return sorted(record for records in contents(folder).values() for record in records)


def masked(content):
    """Return the checksum of a part of a TFRecord file."""
    crc = google_crc32c.value(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_tfrecords(path, records):
    """Write a TFRecord file without Beam."""
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += [length, masked(length), record, masked(record)]
    content = b"".join(parts)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

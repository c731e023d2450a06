"""Record files in Apache Beam: sinks, sources and the conversion of TFRecord.

This requires the extra `beam`, and never TensorFlow. Paths are those of Beam's file systems:
local paths, `gs://`, `s3://` and whatever else the installation of Beam supports.
"""

from ingot.extras import requirement

with requirement("apache_beam", "ingot.beam"):
    import apache_beam as _  # noqa: F401

from ingot.beam.sink import RecordSink
from ingot.beam.source import RecordSource
from ingot.beam.tfrecord import (
    ConvertTFRecord,
    convert_tfrecord,
    read_tfrecord,
    write_tfrecord,
)
from ingot.beam.transfer import Shard, absolute
from ingot.beam.transforms import (
    ReadAllFromArrayRecord,
    ReadAllFromIngot,
    ReadFromArrayRecord,
    ReadFromIngot,
    Write,
    WriteToArrayRecord,
    WriteToIngot,
)

__all__ = [
    "ConvertTFRecord",
    "ReadAllFromArrayRecord",
    "ReadAllFromIngot",
    "ReadFromArrayRecord",
    "ReadFromIngot",
    "RecordSink",
    "RecordSource",
    "Shard",
    "Write",
    "WriteToArrayRecord",
    "WriteToIngot",
    "absolute",
    "convert_tfrecord",
    "read_tfrecord",
    "write_tfrecord",
]

"""Record files in Apache Beam: sinks, sources and the conversion of TFRecord.

This requires the extra `beam`, and never TensorFlow. Paths are those of Beam's file systems:
local paths, `gs://`, `s3://` and whatever else the installation of Beam supports.
"""

try:
    import apache_beam as _  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "apache_beam":
        raise
    message = "ingot.beam requires Apache Beam: pip install 'ingot[beam]'"
    raise ModuleNotFoundError(message, name="apache_beam") from error

from ingot.beam.conversion import ConvertTFRecord, convert_tfrecord
from ingot.beam.sink import RecordSink
from ingot.beam.transforms import (
    ReadAllFromArrayRecord,
    ReadAllFromIngot,
    ReadFromArrayRecord,
    ReadFromIngot,
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
    "WriteToArrayRecord",
    "WriteToIngot",
    "convert_tfrecord",
]

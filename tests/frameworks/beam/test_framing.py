"""TFRecord files that `ingot.convert` makes, read by Beam."""

from apache_beam.io.tfrecordio import _TFRecordUtil

import ingot
from tests.support import containers


def test_records_are_framed_as_beam_expects(tmp_path):
    containers.make(tmp_path)
    ingot.convert(tmp_path / "records.bag", tmp_path / "x.tfrecord")
    found = []
    with (tmp_path / "x.tfrecord").open("rb") as file:
        while (record := _TFRecordUtil.read_record(file)) is not None:
            found.append(record)
    assert found == containers.RECORDS

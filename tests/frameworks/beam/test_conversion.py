"""TFRecord files become record files, without TensorFlow."""

import struct
import tracemalloc

import pytest

import ingot
import ingot.beam
from ingot.beam.tfrecord import read_tfrecord
from tests.frameworks.beam.pipelines import (
    CONTAINERS,
    IN_PROCESS,
    RECORDS,
    contents,
    masked,
    names,
    run,
    sorted_records,
    write_tfrecords,
)


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_tfrecord_file_becomes_one_file_in_order(tmp_path, tfrecords, container):
    run(
        lambda pipeline: (
            pipeline
            | ingot.beam.ConvertTFRecord(
                tfrecords / "*.tfrecord*", tmp_path / "out/x", to=container
            )
        )
    )
    suffix = CONTAINERS[container][2]
    assert contents(tmp_path / "out") == {
        f"x-00000-of-00003{suffix}": RECORDS[:60],
        f"x-00001-of-00003{suffix}": [],
        f"x-00002-of-00003{suffix}": RECORDS[60:],
    }


def test_conversion_makes_as_many_files_as_are_asked_for(tmp_path, tfrecords):
    ingot.beam.convert_tfrecord(
        tfrecords / "*", tmp_path / "out/x", num_shards=2, pipeline_options=IN_PROCESS, level=9
    ).run().wait_until_finish()
    assert names(tmp_path / "out") == [f"x-0000{k}-of-00002.ingot" for k in range(2)]
    assert sorted_records(tmp_path / "out") == sorted(RECORDS)


@pytest.mark.parametrize("num_shards", [None, 2])
def test_a_damaged_tfrecord_is_named_and_nothing_is_published(tmp_path, tfrecords, num_shards):
    content = bytearray((tfrecords / "a.tfrecord").read_bytes())
    offset = sum(len(record) + 16 for record in RECORDS[:34])
    content[offset + 13] ^= 1
    (tfrecords / "a.tfrecord").write_bytes(content)
    place = f"{tfrecords}/a.tfrecord: record 34 at offset {offset}: "
    conversion = ingot.beam.ConvertTFRecord(
        tfrecords / "*", tmp_path / "out/x", num_shards=num_shards
    )
    with pytest.raises(ingot.CorruptFileError, match=place):
        run(lambda pipeline: pipeline | conversion)
    assert not [name for name in names(tmp_path / "out") if name[0] == "x"]


@pytest.mark.parametrize("length", [1 << 33, 1 << 62, (1 << 64) - 1])
def test_a_length_that_lies_costs_no_memory(tmp_path, length):
    packed = struct.pack("<Q", length)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(packed + masked(packed) + b"abc")
    tracemalloc.start()
    with pytest.raises(ingot.CorruptFileError, match=f"{path}: record 0 at offset 0: ") as caught:
        list(read_tfrecord(str(path)))
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    assert (caught.value.path, caught.value.record, caught.value.offset) == (str(path), 0, 0)


@pytest.mark.parametrize("name", ["x.tfrecord", "x.tfrecord.gz"])
def test_a_tfrecord_file_that_is_truncated_is_an_error(tmp_path, name):
    path = tmp_path / name
    write_tfrecords(path, [b"abc" * 100, b"", b"d" * (3 << 20)])
    assert [len(record) for record in read_tfrecord(str(path))] == [300, 0, 3 << 20]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ingot.CorruptFileError, match=f"{path}: record [012] at offset"):
        list(read_tfrecord(str(path)))


def test_conversion_needs_an_input_and_a_known_container(tmp_path):
    with pytest.raises(OSError, match="nope"):
        run(lambda pipeline: pipeline | ingot.beam.ConvertTFRecord(tmp_path / "nope*", "x"))
    with pytest.raises(ValueError, match="to must be one of ingot, array_record, got 'bagz'"):
        ingot.beam.ConvertTFRecord("x", "y", to="bagz")

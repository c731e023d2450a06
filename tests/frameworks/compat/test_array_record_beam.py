"""`array_record.beam`'s names over Ingot, in real pipelines of Apache Beam."""

import importlib
import inspect
import sys
from itertools import chain

import apache_beam as beam
import pytest
from apache_beam.coders.coders import ToBytesCoder
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to
from gcp_storage_emulator.server import create_server
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import ingot
from ingot.beam import read_tfrecord, write_tfrecord
from ingot.compat.array_record.beam import (
    arrayrecordio,
    dofns,
    example,
    options,
    pipelines,
)
from ingot.formats.arrayrecord import ArrayRecordReader

IN_PROCESS = ["--runner=FnApiRunner"]
RECORDS = [b"%d-" % k * (k % 7) for k in range(40)]


def run(pipeline):
    pipeline.run().wait_until_finish()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    return {name: list(ingot.open(folder / name)) for name in names(folder)}


@pytest.fixture
def tfrecords(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    write_tfrecord(str(folder / "a.tfrecord"), RECORDS[:25])
    write_tfrecord(str(folder / "b.c.tfrecord"), RECORDS[25:])
    return folder


def test_signatures_match_the_original():
    def parameters(function):
        return list(inspect.signature(function).parameters)

    names = ["file_path_prefix", "file_name_suffix", "num_shards", "shard_name_template", "coder"]
    assert parameters(arrayrecordio.WriteToArrayRecord) == [*names, "compression_type"]
    assert parameters(arrayrecordio._ArrayRecordSink) == [*names, "compression_type"]
    assert parameters(dofns.ConvertToArrayRecordGCS().process) == [
        "element",
        "path",
        "write_dir",
        "file_path_suffix",
        "overwrite_extension",
    ]
    for name in ("example_to_tfrecord", "example_to_arrayrecord", "convert_tf_to_arrayrecord_disk"):
        expected = ["num_shards", "args", "pipeline_options"]
        assert parameters(getattr(pipelines, name)) == expected
    match_shards = pipelines.convert_tf_to_arrayrecord_disk_match_shards
    assert parameters(match_shards) == ["args", "pipeline_options"]
    assert parameters(pipelines.convert_tf_to_arrayrecord_gcs) == [
        "overwrite_extension",
        "file_path_suffix",
        "args",
        "pipeline_options",
    ]


@pytest.mark.parametrize(
    "write",
    [
        arrayrecordio.WriteToArrayRecord,
        lambda *arguments: beam.io.Write(arrayrecordio._ArrayRecordSink(*arguments)),
    ],
    ids=["transform", "sink"],
)
def test_elements_are_written_one_to_a_group(tmp_path, write):
    with beam.Pipeline("FnApiRunner") as pipeline:
        elements = pipeline | beam.Create([b"\xff", "caf\xe9", 7])
        elements | write(str(tmp_path / "x"), ".array_record", 1, None, ToBytesCoder(), "auto")
    assert names(tmp_path) == ["x-00000-of-00001.array_record"]
    reader = ArrayRecordReader(tmp_path / "x-00000-of-00001.array_record")
    assert sorted(reader) == [b"7", b"caf\xc3\xa9", b"\xff"]
    assert reader.group_size(0) == 1


def test_names_have_no_suffix_unless_given(tmp_path):
    with beam.Pipeline("FnApiRunner") as pipeline:
        records = pipeline | beam.Create(RECORDS)
        records | arrayrecordio.WriteToArrayRecord(str(tmp_path / "x"), num_shards=2)
        records | beam.io.Write(arrayrecordio._ArrayRecordSink(str(tmp_path / "y")))
    assert names(tmp_path) == ["x-00000-of-00002", "x-00001-of-00002", "y-00000-of-00001"]


def test_an_unknown_compression_type_is_rejected(tmp_path):
    with pytest.raises(TypeError, match="compression_type"):
        arrayrecordio.WriteToArrayRecord(str(tmp_path / "x"), compression_type="nope")


def test_an_import_leaves_the_command_line_alone(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    importlib.reload(pipelines)
    with pytest.raises(SystemExit):
        pipelines.example_to_tfrecord()


def test_arguments_match_the_command_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--input", "a", "--output=b", "--job_name=c"])
    arguments, others = options.get_arguments()
    assert arguments == {"input": "a", "output": "b"}
    assert others.get_all_options()["job_name"] == "c"
    assert options.get_arguments(["--output", "z"])[0] == {"input": None, "output": "z"}


@pytest.mark.parametrize("kind", ["dict", "list", "command line"])
def test_pipelines_take_their_arguments_in_every_form(tmp_path, monkeypatch, kind):
    output = str(tmp_path / "x")
    arguments, beam_options = ["--output", output, *IN_PROCESS], None
    if kind == "dict":
        arguments, beam_options = {"output": output}, PipelineOptions(IN_PROCESS)
    if kind == "command line":
        monkeypatch.setattr(sys, "argv", ["x", *arguments])
        arguments = None
    run(pipelines.example_to_arrayrecord(args=arguments, pipeline_options=beam_options))
    assert names(tmp_path) == ["x-00000-of-00001.arrayrecord"]
    (records,) = contents(tmp_path).values()
    assert sorted(records) == sorted(example.generate_serialized_movie_examples())


def test_examples_are_written_to_tfrecord_files(tmp_path):
    arguments = ["--output", str(tmp_path / "x"), *IN_PROCESS]
    run(pipelines.example_to_tfrecord(2, arguments))
    assert names(tmp_path) == ["x-00000-of-00002.tfrecord", "x-00001-of-00002.tfrecord"]
    records = [record for name in names(tmp_path) for record in read_tfrecord(f"{tmp_path}/{name}")]
    assert sorted(records) == sorted(example.generate_serialized_movie_examples())


def test_tfrecord_files_become_as_many_files_as_are_asked_for(tmp_path, tfrecords):
    arguments = ["--input", f"{tfrecords}/*", "--output", f"{tmp_path}/out/x", *IN_PROCESS]
    run(pipelines.convert_tf_to_arrayrecord_disk(3, arguments))
    assert names(tmp_path / "out") == [f"x-0000{k}-of-00003.arrayrecord" for k in range(3)]
    assert sorted(chain(*contents(tmp_path / "out").values())) == sorted(RECORDS)


def test_tfrecord_files_become_as_many_files_as_they_are(tmp_path, tfrecords):
    arguments = {"input": f"{tfrecords}/*", "output": f"{tmp_path}/out/x"}
    run(
        pipelines.convert_tf_to_arrayrecord_disk_match_shards(
            arguments, PipelineOptions(IN_PROCESS)
        )
    )
    assert contents(tmp_path / "out") == {
        "x-00000-of-00002.arrayrecord": RECORDS[:25],
        "x-00001-of-00002.arrayrecord": RECORDS[25:],
    }


@pytest.fixture(scope="module")
def bucket():
    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        port = server._api._httpd.server_port
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        yield "gs://bucket"
    server.stop()


def listed(pattern):
    (match,) = FileSystems.match([pattern])
    return sorted(file.path for file in match.metadata_list)


@pytest.mark.parametrize("overwrite_extension", [False, True])
def test_files_keep_their_names_in_a_bucket(tmp_path, tfrecords, bucket, overwrite_extension):
    output = f"{bucket}/{overwrite_extension}/deep"
    arguments = ["--input", f"{tfrecords}/*", "--output", output, *IN_PROCESS]
    run(pipelines.convert_tf_to_arrayrecord_gcs(overwrite_extension, ".ar", arguments))
    middle = "" if overwrite_extension else ".tfrecord"
    expected = [f"{output}/a{middle}.ar", f"{output}/b.c{middle}.ar"]
    assert listed(f"{output}/*") == expected
    for path, records in zip(expected, (RECORDS[:25], RECORDS[25:]), strict=True):
        with FileSystems.open(path) as file:
            (tmp_path / "x.array_record").write_bytes(file.read())
        assert list(ingot.open(tmp_path / "x.array_record")) == records


def test_files_in_a_bucket_are_made_in_the_folder_that_is_asked_for(tmp_path, bucket, monkeypatch):
    (tmp_path / "write_dir").mkdir()
    made = []

    def create(path, *arguments, **others):
        made.append([one.name for one in (tmp_path / "write_dir").rglob("*") if one.is_file()])
        return original(path, *arguments, **others)

    original = FileSystems.create
    monkeypatch.setattr(FileSystems, "create", staticmethod(create))
    convert = dofns.ConvertToArrayRecordGCS()
    output = list(convert.process(("a/x", RECORDS), f"{bucket}/made", f"{tmp_path}/write_dir"))
    assert output == listed(f"{bucket}/made/*") == [f"{bucket}/made/x.arrayrecord"]
    assert made == [["shard"]]
    assert names(tmp_path / "write_dir") == []


def test_grouped_records_are_converted_as_in_the_original(tmp_path, tfrecords):
    with beam.Pipeline("FnApiRunner") as pipeline:
        paths = (
            pipeline
            | beam.Create([f"{tfrecords}/*"])
            | beam.io.ReadAllFromTFRecord(with_filename=True)
            | beam.GroupByKey()
            | beam.ParDo(dofns.ConvertToArrayRecordGCS(), f"{tmp_path}/out")
        )
        expected = [f"{tmp_path}/out/{name}.tfrecord.arrayrecord" for name in ("a", "b.c")]
        assert_that(paths, equal_to(expected))
    assert [sorted(records) for records in contents(tmp_path / "out").values()] == [
        sorted(RECORDS[:25]),
        sorted(RECORDS[25:]),
    ]


def test_a_conversion_that_fails_leaves_the_old_file(tmp_path, bucket):
    def failing():
        yield b"new"
        raise RuntimeError("no more")

    for folder in (f"{tmp_path}/out", f"{bucket}/out"):
        convert = dofns.ConvertToArrayRecordGCS().process
        assert list(convert(("x", [b"old"]), folder)) == [f"{folder}/x.arrayrecord"]
        with pytest.raises(RuntimeError, match="no more"):
            list(convert(("x", failing()), folder))
        assert listed(f"{folder}/*") == [f"{folder}/x.arrayrecord"]
    assert contents(tmp_path / "out") == {"x.arrayrecord": [b"old"]}


def test_an_input_must_be_there(tmp_path):
    arguments = ["--input", f"{tmp_path}/nope*", "--output", f"{tmp_path}/out", *IN_PROCESS]
    for convert in (
        pipelines.convert_tf_to_arrayrecord_disk,
        pipelines.convert_tf_to_arrayrecord_disk_match_shards,
        pipelines.convert_tf_to_arrayrecord_gcs,
    ):
        with pytest.raises(BeamIOError, match="nope"):
            run(convert(args=arguments))


def example_class():
    """Return the class of `tf.train.Example`, from its public description."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")

    def add(name, *fields):
        message = file.message_type.add(name=name)
        for number, (label, kind, repeated) in enumerate(fields, 1):
            message.field.add(
                name=label,
                number=number,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
                type=field.TYPE_MESSAGE if isinstance(kind, str) else kind,
                type_name=f".t.{kind}" if isinstance(kind, str) else None,
            )
        return message

    add("BytesList", ("value", field.TYPE_BYTES, True))
    add("FloatList", ("value", field.TYPE_FLOAT, True))
    add("Int64List", ("value", field.TYPE_INT64, True))
    lists = [("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List")]
    add("Feature", *((label, kind, False) for label, kind in lists))
    features = add("Features", ("feature", "Features.Entry", True))
    entry = features.nested_type.add(name="Entry", options={"map_entry": True})
    entry.field.add(name="key", number=1, label=1, type=field.TYPE_STRING)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".t.Feature")
    features.field[0].type_name = ".t.Features.FeatureEntry"
    entry.name = "FeatureEntry"
    add("Example", ("features", "Features", False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def parse(content):
    parsed = example_class().FromString(content).features.feature
    return {
        name: list(getattr(value, field).value)
        for name, value in parsed.items()
        for field in ("bytes_list", "float_list", "int64_list")
        if value.HasField(field)
    }


def test_examples_are_protocol_buffers_of_the_rows():
    parsed = [parse(content) for content in example.generate_serialized_movie_examples()]
    assert [one["Age"] for one in parsed] == [[34], [27], [61]]
    assert parsed[0] == {
        "Age": [34],
        "Movie": [b"Metropolis", b"Nosferatu"],
        "Movie Ratings": [8.5, 7.75],
        "Suggestion": [b"M"],
        "Suggestion Purchased": [1.0],
        "Purchase Price": [4.5],
    }


def test_features_keep_their_types_and_values():
    features = {
        "empty": [],
        "negative": [-1, -(2**63), 2**63 - 1, 0, 127, 128],
        "bytes": [b"", b"\xff" * 300],
        "floats": [0.0, -2.5, 1],
        "\xfcnicode": [1],
    }
    assert parse(example.Example(features).SerializeToString()) == features


def test_one_example_goes_to_a_file(tmp_path):
    one = example.generate_movie_examples()[0]
    example.write_example_to_tfrecord(one, str(tmp_path / "x.tfrecord"))
    example.write_example_to_arrayrecord(one, str(tmp_path / "x.array_record"))
    expected = [one.SerializeToString()]
    assert list(read_tfrecord(str(tmp_path / "x.tfrecord"))) == expected
    assert list(ingot.open(tmp_path / "x.array_record")) == expected

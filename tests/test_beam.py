"""Record files in real pipelines of Apache Beam, in this process and on object stores."""

import gc
import gzip
import io
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections import Counter
from functools import partial
from pathlib import Path
from typing import ClassVar

import apache_beam as beam
import boto3
import google_crc32c
import pytest
from apache_beam.io import source_test_utils
from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from gcp_storage_emulator.server import create_server
from moto.server import ThreadedMotoServer

import ingot
import ingot.beam
from ingot.beam import transforms
from ingot.beam.source import PatternSource, RecordSource
from ingot.beam.tfrecord import read_tfrecord
from ingot.compat import ffrecord
from ingot.records.arrayrecord import ArrayRecordReader

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


@pytest.fixture
def no_log():
    """Keep pytest from holding the frames of a failed bundle, with what it has open."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def contents(folder):
    return {name: list(ingot.open(folder / name)) for name in names(folder)}


def sorted_records(folder):
    return sorted(record for records in contents(folder).values() for record in records)


@pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_what_is_written_is_read(tmp_path, container, runner):
    write_to, read_from, suffix = CONTAINERS[container]
    write(tmp_path / "x", write_to=write_to, runner=runner, num_shards=3)
    assert names(tmp_path) == [f"x-0000{k}-of-00003{suffix}" for k in range(3)]
    assert sorted_records(tmp_path) == sorted(RECORDS)
    assert all(ingot.open(path).verify().ok for path in tmp_path.iterdir())
    check_read(read_from(tmp_path / "x-*"), RECORDS, runner)


def test_workers_in_processes_of_their_own_write(tmp_path):
    options = PipelineOptions(["--direct_running_mode=multi_processing", "--direct_num_workers=2"])
    write(tmp_path / "x", runner=FnApiRunner(), options=options, num_shards=2)
    assert sorted_records(tmp_path) == sorted(RECORDS)


def test_the_paths_of_the_files_come_out(tmp_path):
    def build(pipeline):
        paths = pipeline | beam.Create(RECORDS) | ingot.beam.WriteToIngot(tmp_path / "x", ".i", 2)
        assert_that(paths, equal_to([f"{tmp_path}/x-0000{k}-of-00002.i" for k in range(2)]))

    run(build)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["x-00000-of-00001.ingot"]),
        ({"shard_name_template": ""}, ["x.ingot"]),
        ({"shard_name_template": "", "file_name_suffix": ""}, ["x"]),
        ({"shard_name_template": "_SS", "num_shards": 2}, ["x_00.ingot", "x_01.ingot"]),
        ({"shard_name_template": ".N.S", "num_shards": 2}, ["x.2.0.ingot", "x.2.1.ingot"]),
    ],
)
def test_names_follow_the_template(tmp_path, arguments, expected):
    write(tmp_path / "x", **arguments)
    assert names(tmp_path) == expected


def test_templates_that_name_no_fixed_set_are_refused(tmp_path):
    for template in ("-SSSSS-UUUUU", "-W-SSSSS", "-V-SSSSS"):
        with pytest.raises(ValueError, match="shard_name_template is made of S and N"):
            ingot.beam.WriteToIngot(tmp_path / "x", shard_name_template=template)


@pytest.mark.parametrize("arguments", [{}, {"num_shards": 2}])
def test_an_empty_collection_makes_empty_files(tmp_path, arguments):
    write(tmp_path / "x", [], **arguments)
    assert list(contents(tmp_path).values()) == [[]] * arguments.get("num_shards", 1)
    check_read(ingot.beam.ReadFromIngot(tmp_path / "x-*"), [])


def test_text_is_written_as_utf8_and_buffers_as_their_bytes(tmp_path):
    write(tmp_path / "x", ["caf\xe9", b"\xff", bytearray(b"ab"), ""])
    assert sorted_records(tmp_path) == [b"", b"ab", b"caf\xc3\xa9", b"\xff"]


@pytest.mark.usefixtures("no_log")
@pytest.mark.parametrize("num_shards", [0, 2])
def test_what_is_neither_is_refused(tmp_path, num_shards):
    with pytest.raises(TypeError, match="a record is bytes-like, not int"):
        write(tmp_path / "x", [b"a"] * 9 + [7], num_shards=num_shards)
    gc.collect()
    for name, records in contents(tmp_path).items():
        assert name.startswith("beam-temp-x-")
        assert records in ([b"a"] * 4, [b"a"] * 5)


def test_a_coder_makes_records_of_elements(tmp_path):
    write(tmp_path / "x", [3, 5], coder=beam.coders.VarIntCoder())
    assert sorted_records(tmp_path) == [b"\x03", b"\x05"]


def test_options_reach_the_writer(tmp_path):
    records = [b"abc" * 1000] * 10
    write(tmp_path / "x", records, compression="lz4", metadata={"k": 1}, sync=False)
    write(tmp_path / "y", records, compression=None)
    assert ingot.open(tmp_path / "x-00000-of-00001.ingot").metadata == {"k": 1}
    assert (tmp_path / "x-00000-of-00001.ingot").stat().st_size < 5000
    assert (tmp_path / "y-00000-of-00001.ingot").stat().st_size > 30000


def test_options_of_array_record_are_text(tmp_path):
    write_to = partial(ingot.beam.WriteToArrayRecord, options="group_size:4,uncompressed")
    write(tmp_path / "x", write_to=write_to)
    reader = ArrayRecordReader(tmp_path / "x-00000-of-00001.array_record")
    assert reader.group_size(0) == 4
    assert "uncompressed" in reader.writer_options(0)
    with pytest.raises(ValueError, match="Unknown option groupsize"):
        ingot.beam.WriteToArrayRecord(tmp_path / "x", options="groupsize:4")


def test_paths_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("x", num_shards=2)
    write("x", num_shards=1)
    assert names(tmp_path) == ["x-00000-of-00001.ingot"]
    check_read(ingot.beam.ReadFromIngot("x-*"), RECORDS)


def test_an_unbounded_collection_is_refused(tmp_path):
    pipeline = beam.Pipeline("FnApiRunner")
    endless = pipeline | beam.Create(RECORDS)
    endless.is_bounded = False
    with pytest.raises(ValueError, match=r"x: record files take a bounded collection"):
        endless | ingot.beam.WriteToIngot(tmp_path / "x")


def test_patterns_in_a_collection_are_read(tmp_path):
    write(tmp_path / "x", [b"a"])
    write(tmp_path / "y", [b"b"])
    pairs = [
        (f"{tmp_path}/{name}-00000-of-00001.ingot", record)
        for name, record in (("x", b"a"), ("y", b"b"))
    ]
    patterns = [f"{tmp_path}/x-*", pairs[1][0]]

    def build(pipeline):
        named = pipeline | beam.Create(patterns)
        records = named | ingot.beam.ReadAllFromIngot()
        assert_that(records, equal_to([b"a", b"b"]), "records")
        with_names = named | "Named" >> ingot.beam.ReadAllFromIngot(with_filename=True)
        assert_that(with_names, equal_to(pairs), "pairs")

    run(build)


def test_other_containers_are_read_too(tmp_path):
    with ffrecord.FileWriter(tmp_path / "x.ffr") as writer:
        writer.write_one(b"abc")
    check_read(ingot.beam.ReadFromIngot(tmp_path / "x.ffr"), [b"abc"])


@pytest.mark.parametrize("name", ["x-*", "x"])
def test_a_pattern_must_match_a_file(tmp_path, name):
    with pytest.raises(OSError, match=f"{tmp_path}/x"):
        check_read(ingot.beam.ReadFromIngot(tmp_path / name), [])


def test_a_damaged_record_fails_the_pipeline_and_is_named(make):
    path = make(RECORDS, compression=None)
    content = bytearray(path.read_bytes())
    content[content.index(b"34-34-")] ^= 1
    path.write_bytes(content)
    with pytest.raises(ingot.CorruptFileError, match=f"{path}: record 34: offset"):
        check_read(ingot.beam.ReadFromIngot(path), [])


def test_a_file_is_split_by_records_into_about_the_size_that_is_wanted(make):
    path = make(RECORDS, compression=None)
    whole = RecordSource(str(path), path.stat().st_size)
    bundles = list(whole.split(whole.estimate_size() // 4))
    spans = [(bundle.start_position, bundle.stop_position) for bundle in bundles]
    assert spans == [(0, 24), (24, 48), (48, 72), (72, 96), (96, 100)]
    assert sum(bundle.weight for bundle in bundles) == pytest.approx(whole.estimate_size())
    spans = [(b.source, b.start_position, b.stop_position) for b in bundles]
    source_test_utils.assert_sources_equal_reference_source((whole, None, None), spans)


def test_ranges_can_be_split_at_every_point_while_they_are_read(tmp_path):
    write(tmp_path / "x", RECORDS[:12], num_shards=1)
    write(tmp_path / "y", RECORDS[12:20], num_shards=2)
    one = RecordSource(str(tmp_path / "x-00000-of-00001.ingot"), 1000)
    source_test_utils.assert_split_at_fraction_exhaustive(one)
    several = PatternSource(str(tmp_path / "*.ingot"))
    source_test_utils.assert_split_at_fraction_exhaustive(
        several, perform_multi_threaded_test=False
    )
    source_test_utils.assert_reentrant_reads_succeed((several, None, None))


def test_a_large_file_is_read_in_ranges_by_a_pipeline(make, monkeypatch):
    path = make(RECORDS, compression=None)
    monkeypatch.setattr("ingot.beam.transforms.SPLIT_BYTES", path.stat().st_size // 4)
    assert len(list(transforms._ranges(FileSystems.match([str(path)])[0].metadata_list[0]))) == 5
    check_read(beam.Create([str(path)]) | ingot.beam.ReadAllFromIngot(), RECORDS)


class Fails(beam.DoFn):
    """Fails at one record, as many times as told."""

    attempts: ClassVar[Counter[bytes]] = Counter()

    def __init__(self, record, times):
        self.record = record
        self.times = times

    def process(self, record):
        if record == self.record:
            self.attempts[record] += 1
            if self.attempts[record] <= self.times:
                raise RuntimeError("this record fails")
        yield record


@pytest.fixture(autouse=True)
def no_attempts():
    Fails.attempts.clear()


def run_failing(prefix, times, runner, num_shards):
    def build(pipeline):
        records = pipeline | beam.Create(RECORDS, reshuffle=False)
        failing = records | beam.ParDo(Fails(RECORDS[60], times))
        return failing | ingot.beam.WriteToIngot(prefix, num_shards=num_shards)

    run(build, runner)


@pytest.mark.usefixtures("no_log")
@pytest.mark.parametrize("num_shards", [0, 3])
def test_a_bundle_that_fails_changes_nothing_and_leaves_no_unfinished_file(tmp_path, num_shards):
    write(tmp_path / "x", [b"old"] * 9, num_shards=3)
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match="this record fails"):
        run_failing(tmp_path / "x", 99, "FnApiRunner", num_shards)
    gc.collect()
    assert contents(tmp_path) == before
    folders = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert all(name.startswith("beam-temp-x-") for name in folders)


@pytest.mark.parametrize("num_shards", [0, 3])
def test_a_bundle_that_is_retried_writes_its_records_once(tmp_path, num_shards):
    run_failing(tmp_path / "x", 2, BundleBasedDirectRunner(), num_shards)
    assert Fails.attempts[RECORDS[60]] == 3
    assert sorted_records(tmp_path) == sorted(RECORDS)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("num_shards", [0, 3])
def test_bundles_that_run_twice_write_their_records_once(tmp_path, num_shards):
    write(tmp_path / "x", runner=FnApiRunner(bundle_repeat=1), num_shards=num_shards)
    assert sorted_records(tmp_path) == sorted(RECORDS)


@pytest.fixture
def failing_rename(monkeypatch):
    """Return a function that makes the renames to a name fail, as many times as told."""
    original = FileSystems.rename
    left = Counter()
    lock = threading.Lock()

    def rename(sources, targets):
        with lock:
            fails = left[Path(targets[0]).name] > 0
            left[Path(targets[0]).name] -= fails
        if fails:
            raise BeamIOError("Rename operation failed", {(sources[0], targets[0]): "injected"})
        original(sources, targets)

    monkeypatch.setattr(FileSystems, "rename", staticmethod(rename))
    return lambda name, times: left.update({name: times})


def test_publishing_that_fails_leaves_whole_files_only_and_is_finished_by_a_retry(
    tmp_path, failing_rename
):
    write(tmp_path / "x", [b"old"] * 9, num_shards=3)
    failing_rename("x-00001-of-00003.ingot", 1)
    sink = ingot.beam.WriteToIngot(tmp_path / "x").sink
    folder = sink.initialize_write()
    shards = []
    for record in (b"0", b"1", b"2"):
        writer = sink.open_writer(folder, record.decode())
        writer.write(record)
        shards.append(writer.close())
    with pytest.raises(BeamIOError, match="Rename operation failed"):
        sink.finalize_write(folder, shards, None)
    found = {name: records for name, records in contents(tmp_path).items() if name[0] == "x"}
    assert found == {
        "x-00000-of-00003.ingot": [b"0"],
        "x-00001-of-00003.ingot": [b"old"] * 3,
        "x-00002-of-00003.ingot": [b"2"],
    }
    expected = [f"{tmp_path}/x-0000{k}-of-00003.ingot" for k in range(3)]
    assert sink.finalize_write(folder, shards, None) == expected
    assert contents(tmp_path) == {f"x-0000{k}-of-00003.ingot": [b"%d" % k] for k in range(3)}
    assert sorted(path.name for path in tmp_path.iterdir()) == names(tmp_path)
    assert sink.finalize_write(folder, shards, None) == expected


def test_a_runner_that_retries_a_failed_publication_finishes_it(tmp_path, failing_rename):
    failing_rename("x-00001-of-00003.ingot", 2)
    write(tmp_path / "x", runner=BundleBasedDirectRunner(), num_shards=3)
    assert sorted_records(tmp_path) == sorted(RECORDS)
    assert len(names(tmp_path)) == len(list(tmp_path.iterdir())) == 3


def test_empty_shards_that_are_made_anew_take_no_name_of_another(tmp_path, failing_rename):
    """Beam fills up with empty shards, other ones in each attempt to publish."""
    sink = ingot.beam.WriteToIngot(tmp_path / "x").sink
    folder = sink.initialize_write()
    writer = sink.open_writer(folder, "b")
    writer.write(b"a record")
    shard = writer.close()
    failing_rename("x-00001-of-00002.ingot", 1)
    with pytest.raises(BeamIOError, match="Rename operation failed"):
        sink.finalize_write(folder, [shard, sink.open_writer(folder, "c").close()], None)
    sink.finalize_write(folder, [shard, sink.open_writer(folder, "a").close()], None)
    assert contents(tmp_path) == {
        "x-00000-of-00002.ingot": [b"a record"],
        "x-00001-of-00002.ingot": [],
    }


def test_a_shard_that_is_gone_before_it_was_published_is_an_error(tmp_path):
    sink = ingot.beam.WriteToIngot(tmp_path / "x").sink
    folder = sink.initialize_write()
    shard = sink.open_writer(folder, "a").close()
    Path(shard).unlink()
    with pytest.raises(BeamIOError, match=r"x-00000-of-00001.ingot: the shard .* is gone"):
        sink.finalize_write(folder, [shard], None)


def test_readers_always_find_every_name_and_whole_files(tmp_path, monkeypatch):
    write(tmp_path / "x", [b"old"] * 9, num_shards=3)
    old = contents(tmp_path)
    states = []

    def watched(original):
        def call(*arguments):
            states.append({k: v for k, v in contents(tmp_path).items() if k[0] == "x"})
            original(*arguments)

        return staticmethod(call)

    monkeypatch.setattr("ingot.beam.sink.MAX_THREADS", 1)
    monkeypatch.setattr(FileSystems, "rename", watched(FileSystems.rename))
    monkeypatch.setattr(FileSystems, "delete", watched(FileSystems.delete))
    write(tmp_path / "x", RECORDS, num_shards=3)
    new = contents(tmp_path)
    for state in states:
        assert set(state) == set(old)
        assert all(state[name] in (old[name], new[name]) for name in old)
    states.clear()
    write(tmp_path / "x", [b"newer"] * 8, num_shards=2)
    newer = contents(tmp_path)
    assert set(newer) == {"x-00000-of-00002.ingot", "x-00001-of-00002.ingot"}
    assert all(new.items() <= state.items() for state in states if not newer.keys() <= state.keys())
    assert sum(newer.keys() <= state.keys() for state in states) >= 1


def test_shards_of_earlier_runs_go_whatever_their_number_and_nothing_else_does(tmp_path):
    write(tmp_path / "x", num_shards=5)
    write(tmp_path / "x", num_shards=2, file_name_suffix=".other")
    others = {"x-extra.ingot", "x-0-of-1.ingot", "xx-00000-of-00003.ingot", "x-00000-of-00003"}
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    write(tmp_path / "x", [b"new"], num_shards=1)
    mine = {f"x-0000{k}-of-00002.other" for k in range(2)}
    assert set(names(tmp_path)) == others | mine | {"x-00000-of-00001.ingot"}


def test_shards_without_their_count_in_the_name_go_too(tmp_path):
    write(tmp_path / "x", num_shards=3, shard_name_template="-SS")
    write(tmp_path / "x", num_shards=1, shard_name_template="-SS")
    assert names(tmp_path) == ["x-00.ingot"]


def test_an_old_shard_of_the_same_size_is_replaced(tmp_path):
    write(tmp_path / "x", [b"old"], compression=None)
    write(tmp_path / "x", [b"new"], compression=None)
    assert contents(tmp_path) == {"x-00000-of-00001.ingot": [b"new"]}


CRASH = """
import os, sys
import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
import ingot.beam, ingot.beam.sink

ingot.beam.sink.MAX_THREADS = 1
original, calls = FileSystems.rename, []

def rename(*arguments):
    calls.append(arguments)
    if len(calls) == 3:
        os._exit(9)
    original(*arguments)

FileSystems.rename = staticmethod(rename)
with beam.Pipeline("FnApiRunner") as pipeline:
    pipeline | beam.Create([b"new"] * 8) | ingot.beam.WriteToIngot(sys.argv[1], num_shards=4)
"""


def test_a_process_that_dies_while_it_publishes_leaves_whole_files_and_a_folder(tmp_path):
    write(tmp_path / "x", [b"old"] * 8, num_shards=4)
    outcome = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path / "x")], check=False, capture_output=True
    )
    assert outcome.returncode == 9, outcome.stderr
    found = contents(tmp_path)
    final = {name: records for name, records in found.items() if name[0] == "x"}
    assert [records[0] for records in final.values()] == [b"new", b"new", b"old", b"old"]
    assert len(found) == 6
    assert sum(path.is_dir() for path in tmp_path.iterdir()) == 1
    write(tmp_path / "x", [b"newer"] * 4, num_shards=4)
    assert sorted_records(tmp_path) == [b"new"] * 4 + [b"newer"] * 4


PLAIN = {"compression_type": CompressionTypes.UNCOMPRESSED}


class Store:
    """A bucket of an object store on this machine."""

    def __init__(self, url, options=()):
        self.url = url
        self.options = PipelineOptions(list(options))

    def names(self):
        FileSystems.set_options(self.options)
        (match,) = FileSystems.match([f"{self.url}/**"])
        return sorted(file.path.removeprefix(f"{self.url}/") for file in match.metadata_list)

    def put(self, name, content):
        FileSystems.set_options(self.options)
        with FileSystems.create(f"{self.url}/{name}", **PLAIN) as file:
            file.write(content)

    def get(self, name):
        FileSystems.set_options(self.options)
        with FileSystems.open(f"{self.url}/{name}", **PLAIN) as file:
            return file.read()


@pytest.fixture(scope="module")
def s3():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    account = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    session = boto3.session.Session(**account)
    session.client("s3", endpoint_url=endpoint).create_bucket(Bucket="bucket")
    with pytest.MonkeyPatch.context() as patch:
        # Beam makes a session for each call, which takes longer than the call.
        patch.setattr(boto3.session, "Session", lambda: session)
        yield Store("s3://bucket", [f"--s3_endpoint_url={endpoint}"])
    server.stop()


@pytest.fixture(scope="module")
def gcs():
    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        port = server._api._httpd.server_port
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        yield Store("gs://bucket")
    server.stop()


@pytest.fixture(params=["s3", "gcs"])
def store(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def staging(tmp_path, monkeypatch):
    """Return the folder in which temporary files are made."""
    folder = tmp_path / "staging"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_buckets_are_written_and_read(store, staging):
    for num_shards in (2, 1):
        twice = FnApiRunner(bundle_repeat=1)
        write(f"{store.url}/out/x", runner=twice, options=store.options, num_shards=num_shards)
    found = [name for name in store.names() if name.startswith("out/")]
    assert found == ["out/x-00000-of-00001.ingot"]
    pattern = f"{store.url}/out/x-*"
    check_read(ingot.beam.ReadFromIngot(pattern), RECORDS, options=store.options)
    assert list(staging.iterdir()) == []


@pytest.mark.usefixtures("no_log")
def test_an_upload_that_fails_changes_nothing_under_the_names(store, staging, monkeypatch):
    write(f"{store.url}/fails/x", [b"old"], options=store.options)
    before = store.get("fails/x-00000-of-00001.ingot")

    def copy(source, target, _):
        target.write(source.read(100))
        raise OSError("the network is down")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", copy)
        with pytest.raises(OSError, match="the network is down"):
            write(f"{store.url}/fails/x", [b"new"], options=store.options)
    gc.collect()
    *rest, name = (name for name in store.names() if name.startswith("fails/"))
    assert name == "fails/x-00000-of-00001.ingot"
    assert all(name.startswith("fails/beam-temp-x-") for name in rest)
    assert store.get(name) == before
    assert list(staging.iterdir()) == []


@pytest.mark.usefixtures("no_log")
def test_a_writer_that_is_refused_leaves_nothing(gcs, staging):
    with pytest.raises(ValueError, match="level"):
        write(f"{gcs.url}/refused/x", options=gcs.options, level=99)
    gc.collect()
    assert list(staging.iterdir()) == []
    assert [name for name in gcs.names() if name.startswith("refused/")] == []


def test_a_long_shard_that_is_dropped_is_removed_with_what_was_committed(tmp_path):
    shard = ingot.beam.WriteToIngot(tmp_path / "x").sink.open(str(tmp_path / "y.ingot"))
    for _ in range(40_000):
        shard.append(b"x")
    while len(ingot.open(tmp_path / "y.ingot", partial=True)) == 0:
        shard.append(b"x")
    del shard
    assert names(tmp_path) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_shard_in_the_child_of_a_fork_is_left_to_its_parent(tmp_path):
    writer = ingot.beam.WriteToIngot(tmp_path / "x").sink.open(str(tmp_path / "y.ingot"))
    writer.append(b"a")
    child = os.fork()
    if child == 0:
        del writer
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.close()
    assert contents(tmp_path) == {"y.ingot": [b"a"]}


def test_damage_in_a_bucket_names_the_object(store, make):
    content = bytearray(make(RECORDS, compression=None).read_bytes())
    content[content.index(b"34-34-")] ^= 1
    store.put("damaged.ingot", content)
    with pytest.raises(ingot.CorruptFileError, match=f"^{store.url}/damaged.ingot: record 34: "):
        check_read(ingot.beam.ReadFromIngot(f"{store.url}/damaged*"), [], options=store.options)


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


@pytest.fixture
def tfrecords(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    write_tfrecords(folder / "a.tfrecord", RECORDS[:60])
    write_tfrecords(folder / "b.tfrecord", [])
    write_tfrecords(folder / "c.tfrecord.gz", RECORDS[60:])
    return folder


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


def test_conversion_works_from_bucket_to_bucket(store, tfrecords):
    (tfrecords / "b.tfrecord").unlink()  # Beam cannot make empty objects of S3
    for path in tfrecords.iterdir():
        store.put(f"tf/{path.name}", path.read_bytes())

    def build(pipeline):
        paths = pipeline | ingot.beam.ConvertTFRecord(
            f"{store.url}/tf/*", f"{store.url}/converted/x", to="array_record"
        )
        expected = [f"{store.url}/converted/x-0000{k}-of-00002.array_record" for k in range(2)]
        assert_that(paths, equal_to(expected))

    run(build, options=store.options)
    pattern = f"{store.url}/converted/x-*"
    check_read(ingot.beam.ReadFromArrayRecord(pattern), RECORDS, options=store.options)


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
def test_a_tfrecord_file_that_is_cut_short_is_an_error(tmp_path, name):
    path = tmp_path / name
    write_tfrecords(path, [b"abc" * 100, b"", b"d" * (3 << 20)])
    assert [len(record) for record in read_tfrecord(str(path))] == [300, 0, 3 << 20]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ingot.CorruptFileError, match=f"{path}: record [012] at offset"):
        list(read_tfrecord(str(path)))


def test_conversion_needs_an_input_and_a_known_container(tmp_path):
    with pytest.raises(OSError, match="nope"):
        run(lambda pipeline: pipeline | ingot.beam.ConvertTFRecord(tmp_path / "nope*", "x"))
    with pytest.raises(ValueError, match="to is one of ingot, array_record, not 'bagz'"):
        ingot.beam.ConvertTFRecord("x", "y", to="bagz")


class Refusing(FileSystem):
    """A file system in memory that renames nothing to a name that is taken, as HDFS does."""

    files: ClassVar[dict[str, bytes]] = {}

    @classmethod
    def scheme(cls):
        return "refusing"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        for path, content in list(self.files.items()):
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(content))

    def create(self, path, *_):
        files = self.files

        class File(io.BytesIO):
            def close(self):
                files.setdefault(path, self.getvalue())
                super().close()

        return File()

    def open(self, path, *_):
        return io.BytesIO(self.files[path])

    def rename(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            if target in self.files:
                raise BeamIOError(f"{target} exists")
            self.files[target] = self.files.pop(source)

    def exists(self, path):
        return path in self.files

    def delete(self, paths):
        for path in paths:
            del self.files[path]

    copy = size = last_updated = checksum = metadata = None


def test_a_file_system_that_replaces_nothing_is_written_too():
    write("refusing://a/x", [b"old"], num_shards=2)
    write("refusing://a/x", [b"new"], num_shards=2)
    assert sorted(Refusing.files) == [f"refusing://a/x-0000{k}-of-00002.ingot" for k in range(2)]
    check_read(ingot.beam.ReadFromIngot("refusing://a/*"), [b"new"])


HIDE_BEAM = """
import sys

class Hidden:
    def find_spec(name, path, target=None):
        if name == "apache_beam":
            raise ModuleNotFoundError("No module named 'apache_beam'", name="apache_beam")

sys.meta_path.insert(0, Hidden)
"""


@pytest.mark.parametrize("module", ["ingot.beam", "ingot.compat.array_record.beam"])
def test_without_beam_the_import_says_how_to_install_it(module):
    outcome = subprocess.run(
        [sys.executable, "-c", f"{HIDE_BEAM}\nimport {module}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    message = "ingot.beam needs Apache Beam, which is not installed: pip install 'ingot[beam]'"
    assert outcome.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"

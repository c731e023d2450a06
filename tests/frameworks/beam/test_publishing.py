"""What readers see of shards, whatever fails on the way."""

import gc
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import ClassVar

import apache_beam as beam
import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import ingot
import ingot.beam
from tests.frameworks.beam.pipelines import RECORDS, contents, names, run, sorted_records, write


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
    with pytest.raises(BeamIOError, match=r"x-00000-of-00001.ingot: the shard .* is missing"):
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

"""Small files of a data set that are put together."""

import json
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ingot
from ingot.codecs import Codec
from ingot.dataset.write import superseded

SPEC = {"a": "int", "text": "utf8?", "frames": "bytes[]", "runs": "array(int16)[]"}


def rows(start, stop):
    return [
        {
            "a": k,
            "text": f"row {k}" if k % 3 else None,
            "frames": [b"x" * j for j in range(k % 4)],
            "runs": np.arange(k % 5, dtype=np.int16),
        }
        for k in range(start, stop)
    ]


def write(path, count=20, each=3):
    with ingot.DatasetWriter(path, SPEC, metadata={"split": "train"}) as writer:
        for start in range(0, count, each):
            writer.extend(rows(start, min(start + each, count)))
            writer.flush()


def shards(path):
    return json.loads((path / "dataset.json").read_text())["shards"]


def check(path, count=20):
    with ingot.open(path) as ds:
        assert ds.metadata == {"split": "train"}
        assert ds.verify().ok
        found = [{**one, "runs": one["runs"].tolist()} for one in ds]
    assert found == [{**one, "runs": one["runs"].tolist()} for one in rows(0, count)]


def test_many_small_files_become_one_with_the_same_rows(tmp_path):
    path = tmp_path / "x"
    write(path)
    assert len(shards(path)) == 7
    told = []
    assert ingot.compact(path, progress=lambda *done: told.append(done), keep_for=0) == 1
    assert told[-1][0] == 20
    assert len(shards(path)) == 1
    assert {one.name for one in path.iterdir()} == {shards(path)[0]["name"], "dataset.json"}
    check(path)
    before = (path / "dataset.json").stat().st_ino
    assert ingot.compact(path) == 1
    assert (path / "dataset.json").stat().st_ino == before


def test_files_are_not_larger_than_asked(tmp_path):
    path = tmp_path / "x"
    write(path)
    assert ingot.compact(path, shard_rows=7) == 4
    assert [one["rows"] for one in shards(path)] == [6, 6, 6, 2]
    check(path)
    assert ingot.compact(path, shard_rows=7) == 4
    largest = max(one["nbytes"] for one in shards(path))
    assert ingot.compact(path, shard_bytes=largest) == 4
    assert ingot.compact(path, shard_bytes="1GB") == 1
    check(path)


def test_a_damaged_file_stays_and_so_do_the_others(tmp_path):
    path = tmp_path / "x"
    write(path)
    before = shards(path)
    victim = path / before[3]["name"]
    data = bytearray(victim.read_bytes())
    at = data.index(b"row 10")
    data[at] ^= 1
    victim.write_bytes(data)
    with pytest.raises(ingot.CorruptFileError, match=victim.name):
        ingot.compact(path)
    assert shards(path) == before
    assert {one.name for one in path.iterdir()} == {
        *(one["name"] for one in before),
        "dataset.json",
    }


def test_writers_may_append_meanwhile(tmp_path):
    path = tmp_path / "x"
    write(path, 6, 1)
    stop = threading.Event()

    def compact():
        while not stop.is_set():
            ingot.compact(path, sync=False)

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        for k in range(6, 40):
            with ingot.DatasetWriter(path, SPEC, append=True, sync=False) as writer:
                writer.extend(rows(k, k + 1))
    finally:
        stop.set()
        thread.join()
    ingot.compact(path)
    check(path, 40)
    assert len(shards(path)) == 1


def test_readers_that_are_open_keep_the_old_files(tmp_path):
    path = tmp_path / "x"
    write(path)
    with ingot.open(path) as ds:
        ingot.compact(path)
        assert ds.column("a").tolist() == list(range(20))
        assert [one["a"] for one in ds] == list(range(20))


@pytest.mark.parametrize("how", ["compact", "overwrite"])
@pytest.mark.parametrize("files", [200, 1000])
def test_readers_of_many_files_survive_a_change_in_the_middle_of_an_epoch(
    tmp_path, run_fault, monkeypatch, how, files
):
    descriptors = 64 if files == 200 else 256
    outcome = run_fault("read_while_replaced.py", tmp_path, files, descriptors, how)
    assert outcome.returncode == 0, outcome.stderr
    path, now = tmp_path / "x", superseded.time()
    assert len(list(path.glob("*.ingot"))) > files
    listed = {one["name"] for one in shards(path)} | {"dataset.json"}
    monkeypatch.setattr(superseded, "time", lambda: now + superseded.KEEP_S - 3600)
    ingot.DatasetWriter(path, append=True).abandon()
    assert len(list(path.glob("*.ingot"))) > files
    monkeypatch.setattr(superseded, "time", lambda: now + superseded.KEEP_S)
    ingot.DatasetWriter(path, append=True).abandon()
    assert {one.name for one in path.iterdir()} == listed


def test_superseded_files_stay_for_as_long_as_was_asked(tmp_path, monkeypatch):
    path, now = tmp_path / "x", superseded.time()
    write(path)
    old = {one["name"] for one in shards(path)}

    def kept(seconds):
        monkeypatch.setattr(superseded, "time", lambda: now + seconds)
        ingot.DatasetWriter(path, append=True).abandon()
        return old & {one.name for one in path.iterdir()}

    ingot.compact(path, keep_for=3 * superseded.KEEP_S)
    assert kept(2 * superseded.KEEP_S) == old
    with ingot.DatasetWriter(path, append=True) as writer:
        writer.extend(rows(20, 21))
    assert kept(2 * superseded.KEEP_S) == old
    assert kept(-2 * superseded.KEEP_S) == old  # The clock of another machine is slow.
    ingot.compact(path, keep_for=3 * superseded.KEEP_S)
    assert kept(0) == old
    ingot.compact(path, keep_for=0)
    assert kept(0) == set()
    assert {one.name for one in path.iterdir()} == {shards(path)[0]["name"], "dataset.json"}
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="keep_for must be 0 seconds or more"):
            ingot.compact(path, keep_for=wrong)
    with pytest.raises(TypeError, match="keep_for must be a number of seconds"):
        ingot.DatasetWriter(path, append=True, keep_for="1d")


def test_a_clock_that_was_wrong_does_not_keep_files_for_ever(tmp_path, monkeypatch):
    path, now = tmp_path / "x", superseded.time()
    write(path)
    monkeypatch.setattr(superseded, "time", lambda: now + 10**9)
    ingot.compact(path)
    monkeypatch.setattr(superseded, "time", lambda: now)
    ingot.DatasetWriter(path, append=True).abandon()
    assert {one.name for one in path.iterdir()} == {shards(path)[0]["name"], "dataset.json"}
    check(path)


def test_a_directory_without_a_data_set_is_rejected(tmp_path):
    with pytest.raises(FileNotFoundError):
        ingot.compact(tmp_path / "missing")
    with ingot.DatasetWriter(tmp_path / "x.ingot", SPEC) as writer:
        writer.extend(rows(0, 2))
    with pytest.raises(NotADirectoryError):
        ingot.compact(tmp_path / "x.ingot")
    write(tmp_path / "y")
    with pytest.raises(ValueError, match="shard_rows"):
        ingot.compact(tmp_path / "y", shard_rows=0)


def test_very_many_files_are_compacted_with_few_open(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}, shard_rows=1, sync=False, atomic=True) as writer:
        writer.extend({"a": k} for k in range(300))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 100, hard))
    try:
        assert ingot.compact(path, sync=False) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ingot.open(path).column("a").tolist() == list(range(300))


def test_two_that_compact_at_once_do_not_get_in_each_others_way(tmp_path):
    path = tmp_path / "x"
    write(path, 60, 1)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda rows: ingot.compact(path, shard_rows=rows), [4, 6, 10, 60] * 3))
    ingot.compact(path, keep_for=0)
    check(path, 60)
    assert {one.name for one in path.iterdir()} == {
        *(one["name"] for one in shards(path)),
        "dataset.json",
    }


def test_codecs_that_are_not_registered_can_be_given(tmp_path):
    class Celsius(Codec):
        name = "celsius"

        def encode(self, value):
            return f"{value:.1f}".encode()

        def decode(self, data):
            return float(data)

    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"t": "celsius"}, codecs=[Celsius()], shard_rows=1) as writer:
        writer.extend({"t": k / 2} for k in range(4))
    assert ingot.compact(path, codecs=[Celsius()]) == 1
    (shard,) = shards(path)
    assert shard["rows"] == 4

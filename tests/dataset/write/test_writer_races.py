"""Writers whose file others replace, or that have children."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import ingot
from ingot.dataset import atomic


def rows(*numbers):
    return [{"a": k} for k in numbers]


def other_file(path):
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.extend(rows(7))


@pytest.mark.parametrize("kind", ["records", "rows"])
def test_a_file_that_took_the_name_of_one_that_is_given_up_stays(tmp_path, kind):
    path, other = tmp_path / "x.ingot", tmp_path / "y.ingot"
    if kind == "records":
        writer = ingot.Writer(path)
        writer.append(b"1")
    else:
        writer = ingot.DatasetWriter(path, {"a": "int"})
        writer.extend(rows(1))
    other_file(other)
    other.replace(path)
    with pytest.raises(ingot.StorageError, match="removed, or replaced by another"):
        writer.close()
    writer.abandon()
    assert ingot.open(path).column("a").tolist() == [7]


def test_an_exception_leaves_a_file_that_took_the_name(tmp_path):
    path, other = tmp_path / "x.ingot", tmp_path / "y.ingot"
    other_file(other)

    def given():
        yield from rows(1)
        other.replace(path)
        raise ArithmeticError

    with pytest.raises(ArithmeticError), ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.extend(given())
    assert ingot.open(path).column("a").tolist() == [7]


@pytest.mark.parametrize("limit", [0, 50])
@pytest.mark.parametrize("code", ["Writer(p)", "DatasetWriter(p, {'a': 'int'})"])
def test_a_file_that_cannot_even_begin_is_removed(tmp_path, code, limit):
    path = tmp_path / "x.ingot"
    script = (
        "import ingot, sys, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "p = sys.argv[1]\n"
        f"try: ingot.{code}\n"
        "except ingot.StorageError as error: assert 'x.ingot' in str(error)\n"
        "else: sys.exit('no error')\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, path],
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert not path.exists()


@pytest.mark.parametrize("name", ["x.ingot", "x"])
def test_a_child_does_not_keep_the_lock_of_a_writer_that_was_killed(tmp_path, name):
    path = tmp_path / name
    script = (
        "import ingot, os, sys, time\n"
        "w = ingot.DatasetWriter(sys.argv[1], {'a': 'int'})\n"
        "w.append({'a': 1}); w.flush(); w.append({'a': 2})\n"
        "if os.fork() == 0: print(os.getpid(), flush=True)\n"
        "time.sleep(1000)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
    child = int(writer.stdout.readline())
    try:
        writer.kill()
        writer.wait()
        with ingot.DatasetWriter(path, append=True) as again:
            again.extend(rows(3))
        assert ingot.open(path).column("a").tolist() == [1, 3]
        if path.is_dir():
            listed = json.loads((path / "dataset.json").read_text())["shards"]
            assert {one.name for one in path.iterdir()} == {
                "dataset.json",
                *(one["name"] for one in listed),
            }
    finally:
        os.kill(child, signal.SIGKILL)
        writer.stdout.close()


def test_a_parent_keeps_its_lock_when_a_child_ends(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.extend(rows(1))
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.01)
        with pytest.raises(ingot.StorageError, match="another writer"):
            ingot.Writer(path, append=True)
        writer.extend(rows(2))
    assert ingot.open(path).column("a").tolist() == [1, 2]


def test_a_manifest_with_other_rows_for_each_file_is_rejected(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}, shard_rows=4) as writer:
        writer.extend(rows(*range(8)))
    manifest = json.loads((path / "dataset.json").read_text())
    manifest["shards"][0]["rows"], manifest["shards"][1]["rows"] = 3, 5
    (path / "dataset.json").write_text(json.dumps(manifest))
    with pytest.raises(ingot.FormatError, match="has 4 rows, but the manifest says 3"):
        ingot.open(path)


def test_a_child_does_not_wait_for_a_thread_of_its_parent(tmp_path, run_fault):
    outcome = run_fault("fork_while_flushing.py", tmp_path)
    assert (outcome.returncode, outcome.stdout) == (0, "ok"), outcome.stderr


def test_the_names_of_new_directories_reach_the_device(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    with ingot.DatasetWriter(tmp_path / "a" / "b" / "c", {"a": "int"}) as writer:
        writer.extend(rows(1))
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= set(synced)

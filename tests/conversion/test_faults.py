import contextlib
import io
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ingot
from ingot._core import archive_files, encode_examples, frame_records
from tests.support import FAULTS

SCRIPT = FAULTS / "convert.py"


def write_records(path, count, size):
    rng = random.Random(count)
    with ingot.Writer(path, compression=None, sync=False) as writer:
        writer.extend(rng.randbytes(size) for _ in range(count))
    return path


def write_rows(folder):
    """Write a data set directory, whatever its name ends in."""
    made = folder.with_name("made")
    with ingot.DatasetWriter(made, {"precious": "int"}, sync=False) as writer:
        writer.append({"precious": 7})
    made.rename(folder)


def files_in(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.ingot")}


def convert_until(condition, source, target, shard_bytes):
    """Convert in another process, which is killed when the condition holds."""
    command = [sys.executable, str(SCRIPT), str(source), str(target), str(shard_bytes)]
    with subprocess.Popen(command) as process:
        while not condition() and process.poll() is None:
            os.sched_yield()
        process.kill()
    assert process.returncode == -signal.SIGKILL, "it was finished before it was killed"


def test_a_killed_conversion_to_a_directory_continues_where_it_was(tmp_path):
    source = write_records(tmp_path / "x.ingot", 3000, 1000)
    draft = tmp_path / ".y.converting" / "y"
    convert_until(lambda: len(list(draft.glob("*.ingot"))) > 20, source, tmp_path / "y", 5000)
    assert not (tmp_path / "y").exists()
    before = files_in(draft)
    ingot.convert(source, tmp_path / "y", shard_bytes=5000, workers=0)
    after = files_in(tmp_path / "y")
    assert len(before.items() & after.items()) > 15
    assert [row["record"] for row in ingot.open(tmp_path / "y")] == list(ingot.open(source))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", "y"]


def test_a_conversion_of_a_changed_source_does_not_continue(tmp_path):
    source = write_records(tmp_path / "x.ingot", 3000, 1000)
    draft = tmp_path / ".y.converting" / "y"
    convert_until(lambda: len(list(draft.glob("*.ingot"))) > 3, source, tmp_path / "y", 5000)
    source.unlink()
    write_records(source, 3001, 1000)
    with pytest.raises(ValueError, match="resume=False"):
        ingot.convert(source, tmp_path / "y", shard_bytes=5000, workers=0)
    assert draft.exists()
    done = ingot.convert(source, tmp_path / "y", shard_bytes=50_000, workers=0, resume=False)
    assert done.rows == 3001
    assert not draft.exists()


@pytest.mark.parametrize("name", ["y.bag", "y.ingot", "y.array_record"])
def test_a_killed_conversion_to_a_file_starts_over(tmp_path, name):
    source = write_records(tmp_path / "x.ingot", 3000, 10_000)
    draft = tmp_path / f".{name}.converting"
    convert_until(
        lambda: any(one.stat().st_size > 100_000 for one in draft.glob("*y*")),
        *(source, tmp_path / name, 10**9),
    )
    assert not (tmp_path / name).exists()
    ingot.convert(source, tmp_path / name)
    assert list(ingot.open(tmp_path / name)) == list(ingot.open(source))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", name]


STEPS = {"__enter__", "_lock", "_restore", "clear", "publish", "_rename", "_link"}


@contextlib.contextmanager
def interrupted_at(line):
    """Raise KeyboardInterrupt at a line of the steps that make and publish a target."""
    lines = itertools.count()

    def step(_, event, __):
        if event == "line" and next(lines) == line:
            raise KeyboardInterrupt
        return step

    def called(frame, *_):
        code = frame.f_code
        is_ours = Path(code.co_filename).name == "draft.py" and code.co_name in STEPS
        return step if is_ours and frame.f_back.f_code.co_name != "remove" else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


def test_an_interrupt_at_any_line_leaves_the_whole_target_or_none(tmp_path):
    source = write_records(tmp_path / "x.ingot", 3, 10)
    target = tmp_path / "y.ingot"
    for line in itertools.count():
        try:
            with interrupted_at(line):
                ingot.convert(source, target, workers=1)
        except KeyboardInterrupt:
            pass
        else:
            break
        left = sorted(one.name for one in tmp_path.iterdir())
        assert left in (["x.ingot"], ["x.ingot", "y.ingot"]), line
        if target.exists():
            assert list(ingot.open(target)) == list(ingot.open(source))
            target.unlink()
    assert line > 25


@pytest.mark.parametrize("name", ["y.bag", "y.ffr", "y.ingot", "y.tfrecord", "y.tar", "y", "g"])
def test_the_check_finds_a_byte_that_changed_on_the_disk(tmp_path, name):
    source = write_records(tmp_path / "x.ingot", 400, 100_000)
    draft = tmp_path / f".{name}.converting"
    phases = []

    def damage(done, total):
        """When the check begins, flip a bit of a record near the end."""
        phases.append(done)
        if phases.count(total) != 1 or done == total:
            return
        if phases[-2] == total:
            largest = max(draft.rglob("*"), key=lambda one: one.stat().st_size)
            with largest.open("r+b") as file:
                file.seek(int(largest.stat().st_size * 0.971))
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ 1]))

    form = "granular" if name == "g" else None
    with pytest.raises(ingot.CorruptFileError) as caught:
        ingot.convert(
            *(source, tmp_path / name),
            format=form,
            compression=None,
            workers=0 if name == "y" else 1,
            progress=damage,
        )
    assert 300 <= caught.value.record < 400
    assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]
    ingot.convert(source, tmp_path / name, format=form, compression=None, workers=1)


BROKEN = {
    "number.tar": ("tar._number", lambda _: b"8", "row 0: field 'n.cls'"),
    "text.tar": (
        "tar.archive_files",
        lambda names, data, ends: archive_files(names, data.replace(b"dog", b"fog"), ends),
        "row 1: field 't.txt'",
    ),
    "array.tar": ("tar._npy", lambda _: npy(np.zeros(2, np.int32)), "row 0: field 'v.npy'"),
    "name.tar": (
        "tar.archive_files",
        lambda names, data, ends: archive_files([f"x{one}" for one in names[:3]] * 2, data, ends),
        "row [01]|what was written cannot be read",
    ),
    "number.tfrecord": (
        "tfrecord._numbers",
        lambda value: np.asarray(value).reshape(-1)[::-1],
        "row 0: field 'v'",
    ),
    "text.tfrecord": (
        "tfrecord._cell",
        lambda _, value: value.encode() + b" " * ("dog" in value),
        "row 1: field 't'",
    ),
    "name.tfrecord": (
        "tfrecord.encode_examples",
        lambda features, count: encode_examples([("n", *features[0][1:]), *features[2:]], count),
        "row [01]|what was written cannot be read",
    ),
}


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("name", BROKEN)
def test_the_check_finds_what_an_encoder_gets_wrong(tmp_path, monkeypatch, name):
    spec = {"n": "int", "t": "utf8", "v": "array(int32,2)"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.append({"n": 7, "t": "a cat", "v": [1, 2]})
        writer.append({"n": 8, "t": "a dog", "v": [3, 4]})
    ingot.convert(tmp_path / "x.ingot", tmp_path / name)
    (tmp_path / name).unlink()
    place, encoder, where = BROKEN[name]
    monkeypatch.setattr(f"ingot.formats.{place}", encoder)
    with pytest.raises(ingot.CorruptFileError, match=where):
        ingot.convert(tmp_path / "x.ingot", tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]


def test_the_check_finds_records_in_wrong_frames(tmp_path, monkeypatch):
    source = write_records(tmp_path / "x.ingot", 3, 10)
    monkeypatch.setattr(
        "ingot.formats.tfrecord.frame_records",
        lambda data, offsets: frame_records(bytes(len(data)), offsets),
    )
    with pytest.raises(ingot.CorruptFileError, match="record 0: what was written differs"):
        ingot.convert(source, tmp_path / "y.tfrecord")
    assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]


def test_a_damaged_source_leaves_no_target(tmp_path):
    source = write_records(tmp_path / "x.ingot", 100, 1000)
    content = bytearray(source.read_bytes())
    content[50_000] ^= 1
    source.write_bytes(content)
    for name in ("y.bag", "y", "y.tar"):
        with pytest.raises(ingot.CorruptFileError, match="record 4"):
            ingot.convert(source, tmp_path / name)
        assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]


@pytest.mark.parametrize("name", ["y.bag", "y"])
def test_one_conversion_at_a_time_writes_to_a_target(tmp_path, name):
    source = write_records(tmp_path / "x.ingot", 100, 1000)
    refused = []

    def meddle(_done, _total):
        with pytest.raises(BlockingIOError, match="another process is converting"):
            ingot.convert(source, tmp_path / name)
        refused.append(True)

    ingot.convert(source, tmp_path / name, progress=meddle, workers=0)
    assert refused
    assert len(ingot.open(tmp_path / name)) == 100


def test_many_processes_make_one_target(tmp_path):
    source = write_records(tmp_path / "x.ingot", 500, 1000)
    target = tmp_path / "y.bag"
    command = [sys.executable, str(SCRIPT), str(source), str(target), "1000000"]
    processes = [
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: SIM115, RUF100
        for _ in range(5)
    ]
    errors = [one.communicate(timeout=200)[1] for one in processes]
    assert [one.returncode for one in processes].count(0) == 1
    for process, error in zip(processes, errors, strict=True):
        if process.returncode:
            assert "FileExistsError" in error or "BlockingIOError" in error, error
    assert list(ingot.open(target)) == list(ingot.open(source))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", "y.bag"]


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path):
    source = write_records(tmp_path / "x.ingot", 10, 100)

    def take(done, total):
        del done, total
        (tmp_path / "y.bag").write_bytes(b"mine")

    with pytest.raises(FileExistsError):
        ingot.convert(source, tmp_path / "y.bag", progress=take)
    assert (tmp_path / "y.bag").read_bytes() == b"mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", "y.bag"]


def test_a_full_disk_leaves_no_target(tmp_path, run_fault):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small file system needs root and unshare")
    source = write_records(tmp_path / "x.ingot", 400, 10_000)
    disk = tmp_path / "disk"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=1m tmpfs "$0" || exit 77\nexec "$@"'
    under = ["unshare", "--mount", "sh", "-c", script, str(disk)]
    outcome = run_fault("convert_to_full_disk.py", source, disk, under=under)
    if outcome.returncode == 77 or "unshare" in outcome.stderr:
        pytest.skip("this system does not let root mount")
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize("name", ["y", "y.bag"])
def test_a_kill_at_any_line_leaves_the_old_directory_or_the_new_target(tmp_path, run_fault, name):
    outcome = run_fault("replace_and_kill.py", tmp_path, name, timeout=250)
    assert outcome.returncode == 0, outcome.stderr
    kills, old, new = map(int, outcome.stdout.split())
    assert old > 10
    assert new > 2
    assert kills == old + new


def test_a_directory_is_replaced_where_names_cannot_be_exchanged(tmp_path, monkeypatch):
    source = write_records(tmp_path / "x.ingot", 10, 100)
    write_rows(tmp_path / "y")
    monkeypatch.setattr("ingot.conversion.draft.exchange", lambda *_: False)
    ingot.convert(source, tmp_path / "y", overwrite=True)
    assert len(ingot.open(tmp_path / "y")) == 10
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", "y"]


@pytest.mark.parametrize("target", ["y", "y.ingot"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_folder_that_is_to_be_replaced_comes_back_if_that_fails(
    tmp_path, monkeypatch, target, error
):
    source = write_records(tmp_path / "x.ingot", 10, 100)
    old = tmp_path / target
    write_rows(old)
    rename, replace = Path.rename, Path.replace

    def refuse(move):
        def moved(path, other):
            if Path(other) == old and path.name == target:
                raise error
            return move(path, other)

        return moved

    with monkeypatch.context() as patch:
        patch.setattr("ingot.conversion.draft.exchange", lambda *_: False)
        patch.setattr(Path, "rename", refuse(rename))
        patch.setattr(Path, "replace", refuse(replace))
        with pytest.raises((error, ingot.StorageError)):
            ingot.convert(source, old, overwrite=True)
    assert ingot.open(old).column("precious").tolist() == [7]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", target]


def test_a_folder_stays_where_it_was_moved_to_if_its_name_is_taken(tmp_path, monkeypatch):
    source = write_records(tmp_path / "x.ingot", 10, 100)
    old = tmp_path / "y"
    write_rows(old)
    rename = Path.rename

    def moved(path, other):
        if Path(other) == old:
            old.mkdir()
            (old / "other").touch()
        return rename(path, other)

    with monkeypatch.context() as patch:
        patch.setattr("ingot.conversion.draft.exchange", lambda *_: False)
        patch.setattr(Path, "rename", moved)
        with pytest.raises(FileExistsError):
            ingot.convert(source, old, overwrite=True)
    kept = ingot.open(tmp_path / ".y.converting" / "old")
    assert kept.column("precious").tolist() == [7]


def test_a_directory_takes_the_place_of_a_file(tmp_path):
    source = write_records(tmp_path / "x.ingot", 10, 100)
    (tmp_path / "y").write_bytes(b"a file")
    ingot.convert(source, tmp_path / "y", overwrite=True)
    assert len(ingot.open(tmp_path / "y")) == 10
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.ingot", "y"]

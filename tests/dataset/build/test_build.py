"""Data sets made of inputs by a function."""

import functools
import io
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import ingot
from ingot.dataset.write.journal import Journal
from tests.dataset.build import making

SPEC = making.SPEC


def build(path, fn=making.row, inputs=range(20), **options):
    quiet = {"spec": SPEC, "workers": 0, "chunk": 3, "progress": None, "sync": False}
    return ingot.build(path, fn, inputs, **{**quiet, **options})


def column(ds):
    return ds.column("a").tolist()


def names(path):
    return {entry.name for entry in path.iterdir()}


def check_tidy(path):
    manifest = json.loads((path / "dataset.json").read_text())
    assert names(path) == {shard["name"] for shard in manifest["shards"]} | {"dataset.json"}


@pytest.mark.parametrize(("workers", "chunk"), [(0, 1), (0, 7), (1, 100), (2, 1), (3, 7)])
def test_rows_are_in_the_order_of_the_inputs_whatever_the_number_of_workers(
    tmp_path, workers, chunk
):
    path = tmp_path / "x"
    ds = build(path, making.rows, range(30), workers=workers, chunk=chunk, metadata={"k": 1})
    assert column(ds) == making.expected(range(30))
    assert ds.metadata == {"k": 1}
    assert column(ingot.open(path)) == making.expected(range(30))
    check_tidy(path)


def test_a_journal_that_is_a_link_to_itself_is_rejected_by_name(tmp_path):
    path = tmp_path / "x"
    path.mkdir()
    (path / "build.journal").symlink_to("build.journal")
    with pytest.raises(ingot.StorageError, match=r"x/build\.journal: "):
        build(path)
    assert names(path) == {"build.journal"}


def test_the_files_are_the_same_whatever_the_number_of_workers(tmp_path):
    layouts = []
    for workers in (0, 2):
        path = tmp_path / str(workers)
        build(path, making.rows, range(50), workers=workers, chunk=8, shard_rows=5)
        shards = json.loads((path / "dataset.json").read_text())["shards"]
        layouts.append([(one["name"][:12], one["rows"], one["nbytes"]) for one in shards])
    assert layouts[0] == layouts[1]
    assert max(rows for _, rows, _ in layouts[0]) == 5


def test_long_lists_of_rows_are_as_good_as_single_rows(tmp_path):
    ds = build(tmp_path / "x", making.many, range(2), workers=0, chunk=1, shard_rows=700)
    assert column(ds) == list(range(6000))
    assert ds[4321]["text"] == "x"
    manifest = json.loads((tmp_path / "x" / "dataset.json").read_text())
    assert [one["rows"] for one in manifest["shards"]] == [700, 700, 700, 700, 200] * 2
    with pytest.raises(ValueError, match="row 2500: field 'a' is missing") as caught:
        build(tmp_path / "y", making.many, range(3), workers=0, chunk=3)
    assert "at input 2: 2" in caught.value.__notes__


def test_inputs_may_be_anything_iterable(tmp_path):
    for k, inputs in enumerate(
        [list(range(9)), iter(range(9)), (k for k in range(9)), {*range(9)}]
    ):
        assert column(build(tmp_path / str(k), inputs=inputs)) == list(range(9))
    assert column(build(tmp_path / "none", inputs=[])) == []
    assert column(build(tmp_path / "skipped", making.rows, [0, 4, 8])) == []
    check_tidy(tmp_path / "none")


def test_no_more_chunks_of_an_iterable_are_taken_than_are_worked_on(tmp_path):
    taken = []

    def inputs():
        for k in range(1000):
            taken.append(k)
            yield k

    def fn(k):
        assert len(taken) <= k + 5
        return making.row(k)

    assert len(build(tmp_path / "x", fn, inputs(), chunk=5)) == 1000


def test_finished_chunks_are_not_made_again(tmp_path):
    for workers in (0, 2):
        stops, path = (tmp_path / f"{name}{workers}" for name in ("stops", "x"))
        stops.mkdir()
        (stops / "13").touch()
        fail = functools.partial(making.fail, str(stops))
        with pytest.raises(LookupError, match="cannot do 13") as caught:
            build(path, fail, workers=workers)
        notes = "\n".join(caught.value.__notes__)
        assert "at input 13: 13" in notes
        assert "the same call resumes from there" in notes
        assert not (path / "dataset.json").exists()
        with Journal(path) as journal:
            finished = set(journal.chunks)
        assert finished <= {0, 1, 2, 3, 5, 6}
        assert workers or finished == {0, 1, 2, 3}
        before = names(path)
        (stops / "13").unlink()
        assert column(build(path, fail, workers=workers)) == list(range(20))
        assert {name for name in before if name.endswith(".ingot")} <= names(path)
        check_tidy(path)


def test_a_finished_data_set_is_opened_at_once(tmp_path):
    path = tmp_path / "x"
    build(path)
    before = {entry.name: entry.stat().st_mtime_ns for entry in path.iterdir()}

    def fn(k):
        raise AssertionError(k)

    fn.__module__, fn.__qualname__ = making.__name__, "row"
    assert column(build(path, fn, range(20), workers=3)) == list(range(20))
    assert column(build(path, fn, [*range(20)])) == list(range(20))
    assert {entry.name: entry.stat().st_mtime_ns for entry in path.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": range(19)}, "inputs 20, got 19"),
        ({"inputs": range(21)}, "inputs 20, got 21"),
        ({"inputs": [*range(10), 99, *range(11, 20)]}, "differ from last time|has digest"),
        ({"spec": {"a": "int", "text": "utf8?"}}, "has spec"),
        ({"fn": making.shout}, "has fn .*making.row', got .*making.shout'"),
        ({"fn": functools.partial(making.fail, "x")}, r"got \".*making.fail\('x'\)\""),
        ({"chunk": 4}, "has chunk 3, got 4"),
        ({"metadata": {"k": 2}}, r"has metadata {}, got {'k': 2}"),
        ({"level": 9}, "has level 3, got 9"),
        ({"shard_rows": 9}, "has shard_bytes 1000000000, got None"),
    ],
)
@pytest.mark.parametrize("state", ["finished", "begun"])
def test_something_else_is_not_gone_on_with(tmp_path, state, change, words):
    path = tmp_path / "x"
    if state == "finished":
        build(path)
    else:
        begin_and_stop(path)
    before = names(path)
    with pytest.raises(ValueError, match=words):
        build(path, **{"inputs": range(20), **change})
    assert names(path) == before
    assert column(build(path)) == list(range(20))
    check_tidy(path)


def begin_and_stop(path, inputs=range(20)):
    """Build all but the last chunk."""

    def fn(k):
        if k == 18:
            raise KeyError(k)
        return making.row(k)

    fn.__module__, fn.__qualname__ = making.__name__, "row"
    with pytest.raises(KeyError):
        build(path, fn, inputs)


def test_an_unfinished_build_may_be_started_over(tmp_path):
    path = tmp_path / "x"
    begin_and_stop(path)
    before = names(path)
    calls = []

    def fn(k):
        calls.append(k)
        return making.row(k)

    fn.__module__, fn.__qualname__ = making.__name__, "row"
    assert column(build(path, fn, resume=False)) == list(range(20))
    assert calls == list(range(20))
    check_tidy(path)
    assert not names(path) & before


def test_an_overwrite_takes_place_at_the_end_and_resumes(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"b": "int"}) as writer:
        writer.append({"b": 1})
    with pytest.raises(FileExistsError, match="was not made by build"):
        build(path)
    stops = tmp_path / "stops"
    stops.mkdir()
    (stops / "18").touch()
    fn = functools.partial(making.fail, str(stops))
    with pytest.raises(LookupError):
        build(path, fn, overwrite=True)
    assert list(ingot.open(path)) == [{"b": 1}]
    (stops / "18").unlink()
    (stops / "2").touch()  # What is finished is not made again.
    assert column(build(path, fn, overwrite=True, keep_for=0)) == list(range(20))
    check_tidy(path)
    with pytest.raises(LookupError):
        build(path, fn, overwrite=True)
    assert column(ingot.open(path)) == list(range(20))
    with ingot.DatasetWriter(path, SPEC, append=True) as writer:
        writer.append(making.row(20))
    with pytest.raises(FileExistsError, match="was changed since"):
        build(path, fn)


def test_missing_and_truncated_files_are_made_again(tmp_path):
    path = tmp_path / "x"
    begin_and_stop(path)
    gone, cut, *_ = sorted(path.glob("*.ingot"))
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    assert column(build(path)) == list(range(20))
    check_tidy(path)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (making.vanish, r"x: a worker process died by SIGKILL at input 7: 7"),
        (making.leave, r"x: a worker process died with exit code 3 at input 7: 7"),
    ],
)
def test_a_worker_that_dies_is_named_with_its_input(tmp_path, fn, words):
    path = tmp_path / "x"
    with pytest.raises(ingot.WorkerError, match=words) as caught:
        build(path, fn, workers=1)
    assert caught.value.path == str(path)
    assert "2 chunks of 3 inputs are finished" in caught.value.__notes__[0]
    assert len(names(path)) == 3


def test_exceptions_of_workers_arrive(tmp_path):
    with pytest.raises(RuntimeError, match="StubbornError: 0 and more") as caught:
        build(tmp_path / "x", making.fail_stubbornly, workers=1)
    assert any("in fail_stubbornly" in note for note in caught.value.__notes__)
    for workers in (0, 1):
        with pytest.raises(TypeError, match="row 0: field 'a': expected an int, got str") as caught:
            build(tmp_path / "y", making.wrong, workers=workers)
        assert "at input 7: 7" in caught.value.__notes__
        with pytest.raises(TypeError, match="must return a row, None, or a list of rows, got int"):
            build(tmp_path / "z", making.number, workers=workers)


def test_a_function_that_cannot_be_sent_is_rejected(tmp_path):
    with pytest.raises(TypeError, match="at the top level of a module, or pass workers=0"):
        build(tmp_path / "x", lambda k: {"a": k, "text": ""}, workers=1)


def test_inputs_that_cannot_be_known_again_are_rejected(tmp_path):
    class Thing:
        a = 3

    with pytest.raises(ValueError, match=r"input 0, .* has another repr in every process"):
        build(tmp_path / "x", lambda thing: making.row(thing.a), [Thing()])
    ds = build(
        tmp_path / "x", lambda thing: making.row(thing.a), [Thing()], key=lambda thing: str(thing.a)
    )
    assert column(ds) == [3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inputs": "abc"}, "got str"),
        ({"inputs": 3}, "got int"),
        ({"fn": 3}, "fn must be a function"),
        ({"workers": -1}, "workers must be a number"),
        ({"workers": True}, "workers must be a number"),
        ({"chunk": 0}, "chunk must be a number, 1 or more"),
        ({"metadata": [1]}, "metadata must be a dict"),
        ({"spec": ["a"]}, "a specification must be a dict"),
        ({"shard_bytes": "much"}, "not a size"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        build(tmp_path / "x", **options)
    with pytest.raises(ValueError, match="a directory"):
        build(tmp_path / "x.ingot")
    assert names(tmp_path) == set()


def test_codecs_go_to_the_workers(tmp_path):
    spec = {"word": "shout"}
    ds = build(
        tmp_path / "x", making.shout, ["a", "b"], spec=spec, codecs=[making.Shout()], workers=1
    )
    assert [row["word"] for row in ds] == ["A!", "B!"]


def test_two_builds_of_one_data_set_do_not_run_at_once(tmp_path):
    path = tmp_path / "x"

    def fn(k):
        with pytest.raises(BlockingIOError, match="another process is building this data set"):
            build(path)
        return making.row(k)

    assert len(build(path, fn, range(3))) == 3
    check_tidy(path)


def test_progress_is_reported(tmp_path, capsys, monkeypatch):
    told = []
    build(tmp_path / "x", progress=lambda *numbers: told.append(numbers))
    assert told[-1][0] == 20
    build(tmp_path / "y", progress=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path / 'y'}: 20 of 20 inputs 100%, 20 rows, ")
    build(tmp_path / "z", inputs=iter(range(20)), progress=True)
    assert ": 20 inputs, 20 rows, " in capsys.readouterr().err
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("ingot.records.progress._PAUSE_S", 0)
    build(tmp_path / "t", progress=True)
    lines = terminal.getvalue().split("\r")
    assert any("[############............]" in line and " left" in line for line in lines)
    assert "[########################]" in lines[-1]


def test_a_script_without_a_main_guard_gets_a_hint(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import ingot, sys, making\n"
        f"ingot.build({str(tmp_path / 'x')!r}, making.row, range(9), spec=making.SPEC, workers=1)\n"
    )
    path = os.pathsep.join([str(Path(making.__file__).parent), *sys.path])
    outcome = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=60,
    )
    assert outcome.returncode == 1
    guard = 'put what the script runs under if __name__ == "__main__":'
    assert (
        f"imports the main script, which would start workers once more: {guard}" in outcome.stderr
    )
    assert "bootstrapping phase" not in outcome.stderr
    assert f"WorkerError: {tmp_path / 'x'}: a worker process died" in outcome.stderr


def line_of(content):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


CHUNK = {"number": 0, "inputs": 3, "digest": "x", "shards": []}
SHARD = {"name": "x.ingot", "rows": 1, "nbytes": 1}


@pytest.mark.parametrize(
    "lines",
    [
        [[]],
        [3],
        [b"[" * 200_000],
        [{}, []],
        [{}, {}],
        [{}, CHUNK | {"extra": 1}],
        [{}, CHUNK | {"number": -1}],
        [{}, CHUNK | {"number": "0"}],
        [{}, CHUNK | {"inputs": None}],
        [{}, CHUNK | {"shards": {}}],
        [{}, CHUNK | {"shards": [SHARD | {"name": "../x.ingot"}]}],
        [{}, CHUNK | {"shards": [SHARD | {"rows": 2**63}]}],
        [{}, CHUNK | {"shards": [SHARD, SHARD]}],
        [{}, CHUNK | {"shards": [SHARD]}, CHUNK | {"number": 1, "shards": [SHARD]}],
    ],
)
def test_hostile_journals_are_rejected(tmp_path, lines):
    path = tmp_path / "x"
    path.mkdir()
    (path / "build.journal").write_bytes(b"".join(map(line_of, lines)))
    with pytest.raises(ingot.FormatError, match=r"build\.journal: this is not the journal"):
        build(path)


def test_a_journal_counts_as_far_as_it_is_whole(tmp_path):
    path = tmp_path / "x"
    begin_and_stop(path)
    journal = path / "build.journal"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 7
    for cut in range(0, len(whole), 7):
        journal.write_bytes(whole[:cut])
        good = max(0, whole[:cut].count(b"\n") - 1)
        with Journal(path) as found:
            assert len(found.chunks) == good
        journal.write_bytes(whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :])
        with Journal(path) as found:
            assert len(found.chunks) == good
    journal.write_bytes(whole[: -len(lines[-1]) // 2])
    assert column(build(path)) == list(range(20))

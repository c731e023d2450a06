"""Writing data sets: many writers and one commit, replacing, leftovers, options and messages."""

import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.codecs import Codec
from ingot.compat import granular as compat
from ingot.dataset import commit

SPEC = {"a": "int"}


def write(path, numbers, **options):
    options = {"sync": False, "shard_rows": 2, "keep_for": 0, **options}
    with ingot.DatasetWriter(path, SPEC, **options) as writer:
        writer.extend({"a": k} for k in numbers)


def column(path):
    return ingot.open(path).column("a").tolist()


def names(path):
    return {entry.name for entry in path.iterdir()}


def listed(path):
    manifest = json.loads((path / "dataset.json").read_text())
    return {shard["name"] for shard in manifest["shards"]} | {"dataset.json"}


def check_tidy(path):
    assert names(path) == listed(path)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_rows_are_in_the_order_of_the_writers_whatever_the_order_of_finishing(
    tmp_path_factory, data
):
    path = tmp_path_factory.mktemp("shards") / "x"
    counter, expected = itertools.count(), []
    for round_ in range(data.draw(st.integers(1, 3))):
        total = data.draw(st.integers(1, 4))
        append = data.draw(st.booleans())
        order = [*range(total), *data.draw(st.lists(st.integers(0, total - 1), max_size=2))]
        order, parts = data.draw(st.permutations(order)), {}
        while len(parts) < total:
            assert round_ == 0 or column(path) == expected
            number = order.pop()
            parts[number] = list(itertools.islice(counter, data.draw(st.integers(0, 5))))
            how = {"append": append, "overwrite": not append}
            write(path, parts[number], shard=(number, total), **how)
        rows = [k for number in range(total) for k in parts[number]]
        expected = [*expected, *rows] if append else rows
        assert column(path) == expected
        check_tidy(path)


def test_writers_in_processes_make_one_data_set(tmp_path):
    code = (
        "import sys, ingot\n"
        "k = int(sys.argv[2])\n"
        "with ingot.DatasetWriter(sys.argv[1], {'a': 'int'}, shard=(k, 6), shard_rows=5) as w:\n"
        "    w.extend({'a': k * 100 + j} for j in range(k * 3))\n"
    )
    path = tmp_path / "x"
    numbers = random.Random(0).sample(range(6), 6)
    command = [sys.executable, "-c", code, str(path)]
    writers = [subprocess.Popen([*command, str(k)]) for k in numbers]
    assert [writer.wait() for writer in writers] == [0] * 6
    assert column(path) == [k * 100 + j for k in range(6) for j in range(k * 3)]
    check_tidy(path)


def test_until_the_last_writer_is_closed_readers_see_what_was_there(tmp_path):
    path = tmp_path / "x"
    write(path, [2, 3], shard=(1, 2))
    with pytest.raises(ingot.FormatError, match="no rows are committed"):
        ingot.open(path)
    words = "writer 0 of the 2 writers has not finished; run it again, and it commits all rows"
    with pytest.raises(ValueError, match=words):
        commit(path)
    write(path, [0, 1], shard=(0, 2))
    assert column(path) == [0, 1, 2, 3]
    write(path, [9], shard=(1, 2), append=True)
    assert column(path) == [0, 1, 2, 3]
    write(path, [4], append=True)
    write(path, [8], shard=(0, 2), append=True)
    assert column(path) == [0, 1, 2, 3, 4, 8, 9]
    check_tidy(path)


def test_one_of_several_writers_cannot_flush(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x", SPEC, shard=(0, 1)) as writer:
        writer.append({"a": 1})
        with pytest.raises(ValueError, match="writer 0 of 1 are committed when all"):
            writer.flush()
    assert column(tmp_path / "x") == [1]


def test_a_writer_that_runs_again_replaces_its_part_alone(tmp_path):
    path = tmp_path / "x"
    write(path, [1, 2, 3], shard=(0, 2))
    before = names(path)
    write(path, [4], shard=(0, 2))
    assert len(names(path) & before) == 1  # the part, which was replaced
    write(path, [5], shard=(1, 2))
    assert column(path) == [4, 5]
    check_tidy(path)


def test_a_writer_that_begins_again_drops_its_earlier_part(tmp_path):
    path = tmp_path / "x"
    write(path, [1], shard=(0, 2))
    with pytest.raises(TypeError):
        write(path, [2, 3, "x"], shard=(0, 2))
    write(path, [4], shard=(1, 2))
    with pytest.raises(ValueError, match="writer 0 of the 2 writers has not finished"):
        commit(path)
    write(path, [2, 3], shard=(0, 2))
    assert column(path) == [2, 3, 4]
    check_tidy(path)


def test_a_job_that_runs_again_commits_no_rows_of_the_first_attempt(tmp_path):
    path = tmp_path / "x"
    for number in (0, 1):
        write(path, [1], shard=(number, 4))
    again = [ingot.DatasetWriter(path, SPEC, shard=(k, 4), sync=False) for k in range(4)]
    for writer in reversed(again):
        writer.append({"a": 2})
        writer.close()
    assert column(path) == [2, 2, 2, 2]
    check_tidy(path)


@pytest.mark.parametrize("run", [None, "monday"])
def test_a_job_with_another_number_of_writers_replaces_the_first_attempt(tmp_path, run):
    path, other = tmp_path / "x", {"run": "tuesday", "append": True}
    for number in (0, 2, 3):
        write(path, [1, 1, 1], shard=(number, 4), run=run, append=True)
    write(path, [8], shard=(0, 2), **other)
    for number in (0, 1, 2):
        write(path, [2], shard=(number, 3), run=run, append=True)
    assert column(path) == [2, 2, 2]
    write(path, [9], shard=(1, 2), **other)
    assert column(path) == [2, 2, 2, 8, 9]
    check_tidy(path)


def test_the_writers_that_are_missing_are_named(tmp_path):
    path = tmp_path / "x"
    for number in (0, 1, 3, 4, 5, 6, 7):
        write(path, [number], shard=(number, 12), run="night")
    words = "of the 12 writers of the run 'night' these have not finished: 2, 8-11; run those again"
    with pytest.raises(ingot.FormatError, match=f"no rows are committed in this data set.*{words}"):
        ingot.open(path)
    with pytest.raises(ValueError, match=words):
        commit(path)


def test_finished_writers_without_a_commit_are_reported(tmp_path):
    path = tmp_path / "x"
    write(path, [1], shard=(0, 2))
    (part,) = path.glob("part-*")
    text = part.read_text()
    with pytest.raises(TypeError):
        write(path, ["x"], shard=(1, 2))
    part.with_name("part-0-00001-of-00002.json").write_text(text)
    with pytest.raises(ingot.FormatError, match=r"all writers have finished; ingot.dataset.commit"):
        ingot.open(path)


def test_a_writer_that_comes_too_late_changes_nothing_and_says_so(tmp_path):
    path = tmp_path / "x"
    late = ingot.DatasetWriter(path, SPEC, shard=(0, 2), shard_rows=1)
    late.extend([{"a": 7}, {"a": 8}])
    write(path, [0], shard=(0, 2))
    write(path, [1], shard=(1, 2))
    with pytest.warns(UserWarning, match="these rows are not included"):
        late.close()
    assert column(path) == [0, 1]
    check_tidy(path)
    words = "committed already, with those of another writer 0; nothing needs to be done"
    with pytest.raises(FileExistsError, match=words) as caught:
        write(path, [0], shard=(0, 2))
    assert "append" not in str(caught.value)
    assert "overwrite" not in str(caught.value)


def test_a_named_run_is_committed_once(tmp_path):
    path = tmp_path / "x"
    for day in ("monday", "tuesday"):
        for k in (1, 0):
            write(path, [k], shard=(k, 2), append=True, run=day)
    with pytest.raises(FileExistsError, match="of the run 'monday' are committed already"):
        write(path, [1], shard=(1, 2), append=True, run="monday")
    assert column(path) == [0, 1, 0, 1]
    for run in ("", "0", "../x", "a/b", "x" * 65, 3):
        with pytest.raises(ValueError, match="invalid name of a run"):
            write(path, [1], shard=(1, 2), append=True, run=run)


def test_a_failed_last_commit_can_be_repeated(tmp_path):
    path = tmp_path / "x"
    write(path, [1], shard=(1, 2))
    parts = {name: (path / name).read_text() for name in names(path) if name.startswith("part")}
    write(path, [0], shard=(0, 2))
    manifest = json.loads((path / "dataset.json").read_text())
    first = {"version": 1, "spec": SPEC, "metadata": {}, "overwrite": False}
    (path / "dataset.json").unlink()
    for name, text in parts.items():
        (path / name).write_text(text)
        other = path / name.replace("00001-of", "00000-of")
        other.write_text(json.dumps({**first, "shards": manifest["shards"][:1]}))
    commit(path)
    assert column(path) == [0, 1]
    check_tidy(path)
    commit(path)
    assert column(path) == [0, 1]


def test_writers_with_other_fields_do_not_go_together(tmp_path):
    path = tmp_path / "x"
    write(path, [1], shard=(1, 2))
    writer = ingot.DatasetWriter(path, {"b": "int"}, shard=(0, 2))
    with pytest.raises(ingot.FormatError, match="the writers of a run must have the same fields"):
        writer.close()
    writer.abandon()
    write(path, [0], shard=(0, 2))
    assert column(path) == [0, 1]
    check_tidy(path)


@pytest.mark.parametrize(
    ("shard", "words"),
    [
        ((2, 2), "from 0 to 1"),
        ((-1, 2), "from 0"),
        ((0, 0), "from 0"),
        ((0, 10**6), "at most 99999"),
        ((0, 1.0), "number, total"),
        (3, "number, total"),
        ((True, 2), "number, total"),
    ],
)
def test_invalid_writers_are_rejected(tmp_path, shard, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ingot.DatasetWriter(tmp_path / "x", SPEC, shard=shard)
    assert names(tmp_path) == set()


def test_a_data_set_is_replaced_when_the_new_one_is_committed(tmp_path):
    for name in ("x", "x.ingot"):
        path = tmp_path / name
        rows = {} if path.suffix else {"shard_rows": 1}
        for first in (0, 10):
            writer = ingot.DatasetWriter(path, SPEC, overwrite=True, keep_for=0, **rows)
            writer.extend([{"a": first}, {"a": first + 1}])
            if first:
                assert column(path) == [0, 1]
            old = ingot.open(path) if first else None
            writer.close()
            assert column(path) == [first, first + 1]
        assert old[[0, 1]]["a"].tolist() == [0, 1]
        how = {"overwrite": True, "keep_for": 0, "metadata": {"k": 1}}
        with ingot.DatasetWriter(path, {"b": "utf8"}, **how) as writer:
            writer.append({"b": "x"})
        assert list(ingot.open(path)) == [{"b": "x"}]
        assert ingot.open(path).metadata == {"k": 1}
        with pytest.raises(ValueError, match="overwrite=True to replace it"):
            ingot.DatasetWriter(path, SPEC, append=True, overwrite=True)
    check_tidy(tmp_path / "x")


def test_an_overwrite_that_fails_leaves_the_old_data_set(tmp_path):
    for name in ("x", "x.ingot"):
        path = tmp_path / name
        with ingot.DatasetWriter(path, SPEC) as writer:
            writer.append({"a": 1})
        with (
            pytest.raises(TypeError) as caught,
            ingot.DatasetWriter(path, SPEC, overwrite=True) as writer,
        ):
            writer.extend([{"a": 2}, {"a": "x"}])
        assert column(path) == [1]
        words = "the old one stays" if path.suffix else "is as it was, with 1 row"
        assert words in caught.value.__notes__[0]
    check_tidy(tmp_path / "x")
    assert names(tmp_path) == {"x", "x.ingot"}


def test_exceptions_say_what_state_a_file_is_in(tmp_path):
    path = tmp_path / "x.ingot"

    def fail(path, numbers, **options):
        with pytest.raises(TypeError) as caught, ingot.DatasetWriter(path, SPEC, **options) as w:
            w.extend(rows(w, numbers))
        return caught.value.__notes__[0]

    def rows(writer, numbers):
        for number in numbers:
            writer.flush() if number == "flush" else None
            yield {"a": number}

    assert fail(path, [1, "x"]) == f"{path}: nothing was committed; the file was removed"
    assert not path.exists()
    assert "left unfinished with 1 committed row;" in fail(path, [1, "flush"])
    assert len(ingot.open(path, partial=True)) == 1
    assert "left unfinished with 2 committed rows" in fail(path, [1, "flush"], append=True)
    directory = tmp_path / "y"
    assert "no rows are committed" in fail(directory, [1, "x"])
    assert not directory.exists()
    assert "1 row is committed" in fail(directory, [1, "flush"])
    assert column(directory) == [1]
    check_tidy(directory)


def test_rows_of_a_call_that_another_call_fails_in_are_not_lost_silently(tmp_path):
    path, away = tmp_path / "x", tmp_path / "away"

    def rows(writer):
        yield {"a": 0}
        path.rename(away)  # No file can be made.
        with pytest.raises(OSError, match="x"):
            writer.append({"a": 100})
        away.rename(path)
        assert len(writer) == 1
        yield {"a": 1}

    with ingot.DatasetWriter(path, {"a": "int"}, shard_rows=1) as writer:
        writer.extend(rows(writer))
    assert column(path) == [0, 1]
    check_tidy(path)


def test_rows_of_an_iterator_are_not_held_back(tmp_path):
    path = tmp_path / "x"

    def rows(writer):
        for k in range(4):
            assert len(writer) == k
            yield {"a": k}
        assert column(path)[:1] == [0]

    with ingot.DatasetWriter(path, {"a": "int"}, shard_rows=2) as writer:
        writer.extend(rows(writer))
    assert column(path) == [0, 1, 2, 3]


def test_a_rejected_value_among_rows_of_another_call_leaves_the_writer_usable(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:

        def rows():
            yield {"a": 0}
            with pytest.raises(TypeError):
                writer.append({"a": "no"})
            yield {"a": 1}

        writer.extend(rows())
    assert ingot.open(path).column("a").tolist() == [0, 1]


def test_a_failed_writer_says_so_even_if_its_clean_up_is_interrupted(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    writer = ingot.DatasetWriter(tmp_path / "x", {"a": "int"}, shard_rows=2)
    writer.append({"a": 0})
    writer.flush()
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", interrupt)
        for call in (lambda: writer.extend({"a": np.arange(1, 6)}), writer.close):
            with pytest.raises(KeyboardInterrupt):
                call()
    calls = [writer.close, writer.flush, lambda: writer.extend([]), lambda: writer.append({"a": 9})]
    for call in [*calls, *calls]:
        with pytest.raises(ingot.StorageError, match="cannot continue"):
            call()
    assert ingot.open(tmp_path / "x").column("a").tolist() == [0]


@pytest.mark.parametrize("name", ["x", "x.ingot"])
def test_a_writer_that_may_have_stored_a_row_rejects_every_later_call(tmp_path, monkeypatch, name):
    path, stop = tmp_path / name, []
    monkeypatch.setattr("ingot.records.progress._PAUSE_S", 0)

    def interrupt(*_):
        if stop:
            raise KeyboardInterrupt

    def writer_of(number):
        writer = ingot.DatasetWriter(tmp_path / f"{number}{name}", SPEC, progress=interrupt)
        writer.append({"a": 1})
        writer.flush()
        stop.append(1)
        return writer

    writer = writer_of(0)
    with pytest.raises(KeyboardInterrupt):
        writer.append({"a": 2})
    stop.clear()
    row = {"a": 3}
    calls = [writer.flush, lambda: writer.append(row), lambda: writer.extend([row]), writer.close]
    for call in [*calls, *calls]:
        with pytest.raises(ingot.StorageError, match=r"cannot continue: .*1 (committed )?row\b"):
            call()
    assert writer.closed
    found = ingot.open(tmp_path / f"0{name}", partial=True)
    assert [one["a"] for one in found] == [1]
    with pytest.raises(KeyboardInterrupt) as caught, writer_of(1) as other:
        other.append({"a": 2})
    stop.clear()
    assert re.search(r"1 (committed )?row\b", caught.value.__notes__[0])
    assert not path.exists()


def test_the_error_of_a_with_block_is_the_one_that_is_raised(tmp_path):
    path = tmp_path / "x"

    def fail():
        with ingot.DatasetWriter(path, SPEC) as writer:
            writer.append({"a": 1})
            shutil.rmtree(path)
            path.touch()
            raise KeyError

    with pytest.raises(KeyError) as caught:
        fail()
    assert "could not be removed" in caught.value.__notes__[0]


def leave_orphans(path):
    """Have a writer killed that has two shards closed and one open."""
    child = os.fork()
    if child == 0:
        options = {"shard_rows": 2, "append": True, "atomic": True, "sync": False}
        writer = ingot.DatasetWriter(path, SPEC, **options)
        writer.extend({"a": k} for k in range(5))
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return names(path)


@pytest.mark.parametrize("how", [{"append": True}, {"overwrite": True}, {"shard": (0, 1)}])
def test_files_of_a_killed_writer_are_removed_by_the_next(tmp_path, how):
    path = tmp_path / "x"
    if "shard" not in how:
        write(path, [1])
    before = names(path) if path.exists() else set()
    assert len(leave_orphans(path) - before) == 4
    (path / "notes.txt").write_text("mine")
    (path / "000000-mine.ingot").write_text("mine")
    write(path, [2], **how)
    assert names(path) == listed(path) | {"notes.txt", "000000-mine.ingot"}
    assert column(path) == ([1, 2] if "append" in how else [2])


def test_files_of_a_live_writer_are_not_removed(tmp_path):
    path = tmp_path / "x"
    living = ingot.DatasetWriter(path, SPEC, shard_rows=2, atomic=True)
    living.extend({"a": k} for k in range(5))  # two shards are closed, one is open
    write(path, [10], append=True)
    write(path, [11], overwrite=True)
    code = "import ingot, sys; ingot.DatasetWriter(sys.argv[1], {'a': 'int'}, append=True).close()"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    with pytest.warns(UserWarning, match="another writer has made a data set here"):
        living.close()
    assert column(path) == [11, *range(5)]
    check_tidy(path)


def test_files_that_another_machine_may_be_writing_are_reported(tmp_path):
    path = tmp_path / "x"
    write(path, [1])
    leave_orphans(path)
    (lock,) = path.glob(".writer-*")
    lock.write_text("another machine\n")
    before = names(path)
    with pytest.warns(UserWarning, match="3 files such as .* are not in the data set"):
        write(path, [2], append=True)
    assert before <= names(path)
    write(path, [3], append=True, shard=(0, 1))
    assert column(path) == [1, 2, 3]


def test_a_copy_without_its_manifest_is_not_taken_for_leftovers(tmp_path):
    path = tmp_path / "x"
    write(path, [1, 2, 3])
    manifest = (path / "dataset.json").read_bytes()
    (path / "dataset.json").unlink()
    before = names(path)
    ingot.DatasetWriter(path, SPEC).abandon()
    assert names(path) == before
    (path / "dataset.json").write_bytes(manifest)
    assert column(path) == [1, 2, 3]


def test_links_lead_readers_and_never_writers(tmp_path):
    path, store = tmp_path / "x", tmp_path / "store"
    write(path, [1, 2, 3])
    store.mkdir()
    for entry in sorted(path.iterdir()):
        entry.rename(store / entry.name)
        entry.symlink_to(store / entry.name)
    kept = {entry.name: entry.read_bytes() for entry in store.iterdir()}
    assert column(path) == [1, 2, 3]
    write(path, [4], append=True)
    assert column(path) == [1, 2, 3, 4]
    write(path, [5], overwrite=True)
    assert column(path) == [5]
    check_tidy(path)
    assert {entry.name: entry.read_bytes() for entry in store.iterdir()} == kept


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "nowhere", "/etc/passwd"])
def test_a_shard_that_leads_to_no_record_file_is_rejected(tmp_path, target):
    path = tmp_path / "x"
    write(path, [1])
    os.mkfifo(tmp_path / "pipe")
    (shard,) = path.glob("*.ingot")
    shard.unlink()
    shard.symlink_to(tmp_path / target)
    with pytest.raises((ingot.FormatError, FileNotFoundError, OSError), match=shard.name):
        ingot.open(path)


def shard_of(**change):
    return {"name": "x.ingot", "rows": 1, "nbytes": 1, **change}


HOSTILE = [
    b"",
    b"[]",
    b"3",
    b"\xff",
    b"[" * 200_000,
    b'{"version":' * 50_000,
    {"version": 2},
    {"spec": []},
    {"spec": {"a": 3}},
    {"shards": {}},
    {"shards": [3]},
    {"shards": [[]]},
    {"shards": [shard_of(extra=1)]},
    {"shards": [shard_of(name="../x.ingot")]},
    {"shards": [shard_of(name="/etc/passwd")]},
    {"shards": [shard_of(name="a/b")]},
    {"shards": [shard_of(name="..")]},
    {"shards": [shard_of(name="")]},
    {"shards": [shard_of(name="a\0b")]},
    {"shards": [shard_of(name=3)]},
    {"shards": [shard_of(rows=-1)]},
    {"shards": [shard_of(rows=True)]},
    {"shards": [shard_of(rows=1.0)]},
    {"shards": [shard_of(rows=2**63)]},
    {"shards": [shard_of(nbytes="1")]},
    {"shards": [shard_of(nbytes=10**400)]},
    {"shards": [shard_of(), shard_of()]},
    {"metadata": []},
]


def hostile_text(content, **more):
    if isinstance(content, bytes):
        return content
    base = {"version": 1, "spec": SPEC, "shards": [], "metadata": {}, **more}
    return json.dumps(base | content).encode()


@pytest.mark.parametrize("content", [*HOSTILE, {"runs": 3}, {"runs": [3]}, {"build": 3}])
def test_hostile_manifests_are_rejected_and_nothing_is_removed(tmp_path, content):
    path = tmp_path / "x"
    write(path, [1])
    leave_orphans(path)
    (path / "dataset.json").write_bytes(hostile_text(content))
    before = names(path)
    tries = [lambda: ingot.open(path), lambda: write(path, [2], overwrite=True)]
    for attempt in [*tries, lambda: write(path, [2], append=True)]:
        with pytest.raises(ingot.FormatError, match=r"dataset\.json"):
            attempt()
    assert names(path) == before


@pytest.mark.parametrize("content", [*HOSTILE, {"overwrite": 1}])
def test_hostile_parts_are_rejected_and_nothing_is_removed(tmp_path, content):
    path = tmp_path / "x"
    write(path, [1], shard=(1, 2))
    leave_orphans(path)
    (path / "part-0-00001-of-00002.json").write_bytes(hostile_text(content, overwrite=False))
    before = names(path)
    for attempt in (lambda: write(path, [0], shard=(0, 2)), lambda: commit(path)):
        with pytest.raises(ingot.FormatError, match=r"part-0-00001-of-00002\.json"):
            attempt()
    assert names(path) == before


@pytest.mark.parametrize("name", ["dataset.json", "part-0-00001-of-00002.json", "build.journal"])
def test_pipes_and_directories_are_not_lists_of_files(tmp_path, name):
    for make in (os.mkfifo, os.mkdir):
        path = tmp_path / make.__name__
        write(path, [1], shard=(0, 2))
        leave_orphans(path)
        make(path / name)
        with pytest.raises(ingot.FormatError, match=rf"{name}: not a regular file"):
            write(path, [1], shard=(0, 2))


def test_parts_that_share_a_file_or_name_absurd_numbers_are_rejected(tmp_path):
    path = tmp_path / "x"
    write(path, [1], shard=(1, 2))
    part = path / "part-0-00001-of-00002.json"
    (path / "part-0-00000-of-00002.json").write_bytes(part.read_bytes())
    with pytest.raises(ingot.FormatError, match="list the same file"):
        commit(path)
    for name in ("part-0-00005-of-00002.json", "part-0-99999999999-of-99999999999.json"):
        (path / name).write_bytes(part.read_bytes())
    write(path, [0], shard=(0, 2))
    assert column(path) == [0, 1]


@pytest.mark.parametrize(
    "groups",
    [
        *({"names": [name]} for name in ("../../mine", "/etc/x.ingot", 3, "a/b")),
        *({"names": "x"}, {"at": "x"}, {"keep_for": -1}, {"keep_for": "x"}, {"more": 1}, 3),
        *({"at": one} for one in ("5", True, None, 10**400)),
        *({"keep_for": one} for one in ("5", True, 10**400)),
        {"names": ["a" * 300 + ".ingot"]},
    ],
)
def test_a_garbled_list_of_superseded_files_removes_nothing(tmp_path, groups):
    path = tmp_path / "x"
    write(path, [1])
    sound = {"names": [], "at": 0, "keep_for": 0}
    groups = [sound | groups] if isinstance(groups, dict) else groups
    text = json.dumps({"version": 1, "groups": groups})
    (path / ".superseded.json").write_text(text)
    before = names(path)
    with pytest.raises(ingot.FormatError, match=r"superseded.json: this is not a list of"):
        write(path, [2], append=True)
    assert names(path) == before
    assert column(path) == [1]


@pytest.mark.parametrize("name", [".superseded.json", "dataset.json"])
def test_a_link_to_itself_beside_the_files_removes_nothing(tmp_path, name):
    path = tmp_path / "x"
    write(path, [1])
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(name)
    before = names(path)
    with pytest.raises(ingot.StorageError, match=re.escape(f"{path / name}: ")):
        ingot.compact(path)
    with pytest.raises(ingot.StorageError, match=re.escape(f"{path / name}: ")):
        write(path, [2], append=True)
    assert names(path) == before


def test_a_list_of_a_writer_that_names_no_machine_removes_nothing(tmp_path):
    path = tmp_path / "x"
    write(path, [1])
    leave_orphans(path)
    (lock,) = path.glob(".writer-*")
    lock.write_text("\n")
    before = names(path)
    with pytest.warns(UserWarning, match="are not in the data set"):
        write(path, [2], append=True)
    assert set(names(path)) >= set(before)


def test_only_record_files_are_ever_removed(tmp_path):
    path = tmp_path / "x"
    write(path, [1])
    (shard,) = path.glob("*.ingot")
    (path / "thesis.txt").write_text("mine")
    (path / "000000-old.ingot").write_text("superseded")
    group = {"names": ["thesis.txt", "000000-old.ingot", shard.name], "at": 0, "keep_for": 5}
    text = json.dumps({"version": 1, "groups": [group]})
    (path / ".superseded.json").write_text(text)
    write(path, [2], append=True)
    assert names(path) == listed(path) | {"thesis.txt"}
    assert column(path) == [1, 2]


class Kelvin(Codec):
    name = "kelvin"

    def encode(self, value):
        return f"{value:.1f}".encode()

    def decode(self, data):
        return float(data)


def test_codecs_need_not_be_registered(tmp_path):
    spec = {"t": "kelvin", "all": "kelvin[]", "none": "kelvin?"}
    for k, codecs in enumerate([[Kelvin()], {"kelvin": Kelvin()}]):
        path = tmp_path / f"{k}.ingot"
        with ingot.DatasetWriter(path, spec, codecs=codecs) as writer:
            writer.append({"t": 21.54, "all": [1, 2.25]})
        with ingot.DatasetWriter(path, spec, codecs=codecs, append=True) as writer:
            assert writer.append({"t": 1, "all": []}) == 1
        with pytest.raises(ValueError, match=r"the file has the fields.*kelvin\[\]"):
            ingot.DatasetWriter(path, SPEC, append=True)
    with pytest.raises(ValueError, match="unknown type 'kelvin'"):
        ingot.DatasetWriter(tmp_path / "x.ingot", spec)


@pytest.mark.parametrize(
    ("codecs", "words"),
    [
        ("kelvin", "got str"),
        ([int], "derive from ingot.codecs.Codec"),
        ({"rankine": Kelvin()}, "under their own names"),
        ([Kelvin(), Kelvin()], "two codecs"),
        (3, "got int"),
    ],
)
def test_invalid_codecs_are_rejected(tmp_path, codecs, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ingot.DatasetWriter(tmp_path / "x.ingot", SPEC, codecs=codecs)
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("str", '"str" is utf8 here'),
        ("string", "utf8"),
        ("text", "utf8"),
        ("jpeg", "jpg"),
        ("JPG", "jpg"),
        ("image", "jpg or png"),
        ("float32", '"float32" is array(float32) here'),
        ("int64", '"int64" is int here'),
        ("float64", "float"),
        ("uint8", "array(uint8)"),
        ("np.int16", "array(int16)"),
        ("list[int]", r"int[]"),
        ("List[str]", r"utf8[]"),
        ("tuple[float, ...]", r"float[]"),
        ("Optional[str]", "utf8?"),
        ("str | None", "utf8?"),
        ("int?[]", "int[]?"),
        ("uint8[]", "array(uint8)[]"),
        ("uint8(64, 64)", "array(uint8,64,64)"),
        ("ndarray", "array"),
        ("dict", "json"),
        (int, 'say "int"'),
        (str, 'say "utf8"'),
        (np.float32, 'say "array(float32)"'),
        (list[int], 'say "json"'),
    ],
)
def test_types_by_other_names_get_a_hint(tmp_path, kind, hint):
    with pytest.raises((ValueError, TypeError)) as caught:
        ingot.DatasetWriter(tmp_path / "x.ingot", {"f": kind})
    words = hint if hint.startswith(("say", '"')) else f'"{kind}" is {hint} here'
    assert str(caught.value).startswith("field 'f': ")
    assert str(caught.value).endswith(f"; {words}")


def test_an_unknown_type_gets_no_hint(tmp_path):
    with pytest.raises(ValueError, match=r"ingot\.codecs\.register$"):
        ingot.DatasetWriter(tmp_path / "x.ingot", {"f": "frobnicate"})
    with pytest.raises(TypeError, match=r'such as \{"label": "int"\}, got list'):
        ingot.DatasetWriter(tmp_path / "x.ingot", ["a", "b"])


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ([1], "metadata must be a dict, got list"),
        ("x", "metadata must be a dict, got str"),
        ({"a": b"x"}, "must hold JSON values only: .*bytes"),
        ({"a": float("nan")}, "must hold JSON values only"),
        ({"a": np.int64(1)}, "must hold JSON values only: .*int64"),
    ],
)
def test_metadata_that_cannot_be_is_rejected(tmp_path, metadata, words):
    for name in ("x", "x.ingot"):
        with pytest.raises((ValueError, TypeError), match=words):
            ingot.DatasetWriter(tmp_path / name, SPEC, metadata=metadata)
    assert names(tmp_path) == set()


def test_metadata_stays_when_a_data_set_grows(tmp_path):
    for name in ("x", "x.ingot"):
        path = tmp_path / name
        ingot.DatasetWriter(path, SPEC, metadata={"k": [1]}).close()
        for metadata in (None, {"k": (1,)}):
            with ingot.DatasetWriter(path, SPEC, append=True, metadata=metadata) as writer:
                writer.append({"a": 1})
        with pytest.raises(ValueError, match="keeps the metadata"):
            ingot.DatasetWriter(path, SPEC, append=True, metadata={"k": 2})
        assert ingot.open(path).metadata == {"k": [1]}


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"shard_bytes": "9" * 30 + "TB"}, "shard_bytes must be at least 1 and below 2^63"),
        ({"shard_bytes": "9" * 900 + "TB"}, "is not a size"),
        ({"shard_bytes": 2**63}, "below 2^63"),
        ({"shard_bytes": "0.1B"}, "at least 1"),
        ({"shard_bytes": 1e9}, "must be a number, got 1000000000.0"),
        ({"shard_bytes": True}, "must be a number, got True"),
        ({"shard_bytes": "1 potato"}, "is not a size; pass 1GB"),
        ({"shard_rows": "7"}, "shard_rows must be a number"),
        ({"shard_rows": 10**400}, "below 2^63"),
    ],
)
def test_invalid_sizes_are_rejected(tmp_path, limit, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        ingot.DatasetWriter(tmp_path / "x", SPEC, **limit)
    assert words in str(caught.value)
    assert names(tmp_path) == set()


def test_files_are_as_large_as_was_said(tmp_path):
    for k, (size, files) in enumerate([("10kB", 10), ("10KiB", 10), ("20kB", 5), (1, 100)]):
        path = tmp_path / str(k)
        with ingot.DatasetWriter(path, {"b": "bytes"}, shard_bytes=size, sync=False) as writer:
            writer.extend({"b": bytes([j]) * 1024} for j in range(100))
        assert len(list(path.glob("*.ingot"))) == files


def test_a_commit_that_fails_after_its_rename_keeps_its_rows(tmp_path, monkeypatch):
    def refuse(_folder):
        raise OSError(5, "Input/output error")

    path = tmp_path / "x"
    write(path, [1])
    monkeypatch.setattr("ingot.dataset.atomic.sync_folder", refuse)
    for options in ({}, {"shard": (0, 1)}):
        with pytest.raises(ingot.StorageError, match=r"json: write failed: Input/output error"):
            write(path, [2], append=True, sync=True, **options)
    assert column(path)[:2] == [1, 2]
    monkeypatch.undo()
    with ingot.DatasetWriter(path, SPEC, append=True) as writer:
        writer.append({"a": 4})
    assert column(path) == [1, 2, 4]


def test_a_closed_writer_takes_nothing(tmp_path):
    for name in ("x", "x.ingot"):
        writer = ingot.DatasetWriter(tmp_path / name, SPEC)
        writer.close()
        with pytest.raises(ingot.ClosedError, match="the writer is closed"):
            writer.append({"a": 1})
        with pytest.raises(ingot.ClosedError, match="the writer is closed"):
            writer.flush()
        writer.close()
        writer.abandon()
        assert column(tmp_path / name) == []


def test_progress_is_reported_to_a_function(tmp_path):
    told = []
    with ingot.DatasetWriter(
        tmp_path / "x", {"b": "bytes"}, progress=lambda *numbers: told.append(numbers)
    ) as writer:
        writer.extend({"b": b"x" * 10} for _ in range(50))
    assert told[-1] == (50, 500)
    with pytest.raises(TypeError, match="progress must be True or a function"):
        ingot.DatasetWriter(tmp_path / "y", SPEC, progress="yes")


def test_progress_is_a_line_on_standard_error(tmp_path, capsys, monkeypatch):
    write(tmp_path / "x", range(1000), progress=True, shard_rows=None)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path / 'x'}: 1,000 rows, ")
    assert ", 8 kB, " in line
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    write(tmp_path / "y", range(10), progress=True, shard_rows=None)
    assert terminal.getvalue().startswith("\r")
    write(tmp_path / "z", range(10))
    assert "z" not in terminal.getvalue()


def test_many_threads_share_a_writer(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, SPEC, shard_rows=50) as w, ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda k: w.append({"a": k}), range(800)))
    found = column(tmp_path / "x")
    assert sorted(found) == list(range(800))
    assert [found[number] for number in numbers] == list(range(800))


def test_a_directory_of_something_else_is_rejected(tmp_path):
    records, granular = tmp_path / "records", tmp_path / "granular"
    records.mkdir()
    with ingot.Writer(records / "a.ingot") as w:
        w.append(b"a")
    with compat.DatasetWriter(granular, {"k": "utf8"}, compat.encoders) as w:
        w.append({"k": "a"})
    before = {path: names(path) for path in (records, granular)}
    for path, there in before.items():
        for how in ({}, {"append": True}, {"overwrite": True}, {"shard": (0, 1)}):
            with pytest.raises(FileExistsError, match="choose another directory"):
                write(path, [1], **how)
        with pytest.raises(FileExistsError, match="choose another directory"):
            ingot.build(path, int, [1], spec=SPEC, workers=0)
        assert names(path) == there
    write(tmp_path / "x", [1])
    with pytest.raises(FileExistsError, match="an Ingot data set"):
        compat.DatasetWriter(tmp_path / "x", {"k": "utf8"}, compat.encoders)


def test_a_directory_that_is_being_built_is_rejected(tmp_path):
    path = tmp_path / "x"

    def row(k):
        with pytest.raises(BlockingIOError, match="another process is building"):
            write(path, [1])
        return {"a": k}

    assert len(ingot.build(path, row, range(3), spec=SPEC, workers=0, progress=None)) == 3


def test_sequences_of_structures_and_of_sequences_are_trees(tmp_path):
    with pytest.raises(ValueError, match=r"a sequence of structures is tree\[\] or json\[\]"):
        ingot.DatasetWriter(tmp_path / "x", {"steps[]": {"a": "int"}})
    with pytest.raises(ValueError, match=r'"int\[\]\[\]" is tree\[\] here'):
        ingot.DatasetWriter(tmp_path / "x", {"a": "int[][]"})


@pytest.mark.parametrize(
    "options", [{"compression": "gzip"}, {"compression": 3}, {"level": 0}, {"level": "3"}]
)
def test_a_compression_that_cannot_be_is_rejected_before_the_first_row(tmp_path, options):
    for name in ("x", "x.ingot"):
        with pytest.raises(ValueError, match=r"compression is one of 'auto'|level is 1"):
            ingot.DatasetWriter(tmp_path / name, SPEC, **options)
    assert names(tmp_path) == set()

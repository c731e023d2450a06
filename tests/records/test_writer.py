import gc
import importlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import ingot
from ingot.compat import ffrecord


def texts(count):
    rng = random.Random(1)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    return [
        json.dumps(
            {"id": k, "user": rng.choice(words), "text": " ".join(rng.choices(words, k=20))}
        ).encode()
        for k in range(count)
    ]


def read_all(path):
    with ingot.open(path) as reader:
        return list(reader)


def test_append_returns_the_index_of_the_record(path):
    with ingot.Writer(path) as writer:
        assert [writer.append(b"a"), writer.append(b"bc"), writer.append(b"")] == [0, 1, 2]
        assert len(writer) == 3
    assert read_all(path) == [b"a", b"bc", b""]


def test_extend_takes_lists_and_generators(path):
    with ingot.Writer(path) as writer:
        writer.extend([b"0", b"1"])
        writer.extend(str(k).encode() for k in range(2, 5000))
        writer.extend([])
        assert writer.append(b"last") == 5000
    assert read_all(path) == [*(str(k).encode() for k in range(5000)), b"last"]


def test_extend_passes_on_an_exception_of_its_generator(path):
    def broken():
        yield b"good"
        raise LookupError("no more")

    with ingot.Writer(path) as writer:
        with pytest.raises(LookupError, match="no more"):
            writer.extend(broken())
        assert len(writer) == 1
    assert read_all(path) == [b"good"]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (b"plain", b"plain"),
        (bytearray(b"array"), b"array"),
        (memoryview(b"a view")[2:], b"view"),
        (np.array([1, 2, 3], np.uint8), b"\1\2\3"),
        (np.array([[1, 2], [3, 4]], "<u2"), b"\1\0\2\0\3\0\4\0"),
        (np.array([], np.float64), b""),
        (memoryview(b""), b""),
    ],
)
def test_append_takes_anything_bytes_like(path, record, expected):
    with ingot.Writer(path) as writer:
        writer.append(record)
    assert read_all(path) == [expected]


def test_append_copies_the_record_at_once(path):
    buffer = bytearray(b"before")
    with ingot.Writer(path) as writer:
        writer.append(buffer)
        buffer[:] = b"after!"
        buffer.clear()
    assert read_all(path) == [b"before"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("text", "a record is bytes-like, not str; encode it first"),
        (None, "a record is bytes-like, not NoneType"),
        (7, "a record is bytes-like, not int"),
        ([1, 2], "a record is bytes-like, not list"),
    ],
)
def test_append_rejects_objects_that_are_not_bytes_like(path, record, message):
    with ingot.Writer(path) as writer:
        with pytest.raises(TypeError, match=message):
            writer.append(record)
        with pytest.raises(TypeError, match=message):
            writer.extend([b"first", record])
    assert read_all(path) == [b"first"]


def test_append_rejects_memory_that_is_not_contiguous(path):
    with ingot.Writer(path) as writer:
        with pytest.raises(ValueError, match="a record must be contiguous in memory"):
            writer.append(np.arange(10, dtype=np.uint8)[::2])
        with pytest.raises(ValueError, match="a record must be contiguous in memory"):
            writer.append(memoryview(b"abcdef")[::2])
    assert read_all(path) == []


@pytest.mark.parametrize("compression", ["auto", "zstd", "lz4", None])
def test_empty_records_and_empty_files_are_legal(make, compression):
    assert read_all(make([], name="none.ingot", compression=compression)) == []
    path = make([b"", b"x", b"", b""], name="some.ingot", compression=compression)
    assert read_all(path) == [b"", b"x", b"", b""]
    assert read_all(make([b""] * 10_000, name="many.ingot", compression=compression)) == (
        [b""] * 10_000
    )


@pytest.mark.parametrize("compression", ["auto", None])
def test_large_records_come_back_whole(make, compression):
    big = random.Random(2).randbytes(25 << 20) + bytes(25 << 20)
    path = make([b"before", big, b"after"], compression=compression)
    with ingot.open(path) as reader:
        assert reader[1] == big
        assert reader[[2, 0]] == [b"after", b"before"]


def test_flush_commits_what_was_appended(path):
    with ingot.Writer(path) as writer:
        writer.append(b"one")
        assert writer.num_committed == 0
        writer.flush()
        assert writer.num_committed == 1
        with ingot.open(path, partial=True) as reader:
            assert list(reader) == [b"one"]
        writer.append(b"two")
        writer.flush()
        writer.flush()
        assert writer.num_committed == 2
    assert read_all(path) == [b"one", b"two"]


def test_many_flushes_leave_a_whole_file(path):
    with ingot.Writer(path, sync=False) as writer:
        for k in range(500):
            writer.append(b"%d" % k)
            writer.flush()
    with ingot.open(path) as reader:
        assert list(reader) == [b"%d" % k for k in range(500)]
        assert reader.verify().ok


def test_close_may_be_repeated(path):
    writer = ingot.Writer(path)
    writer.append(b"one")
    assert not writer.closed
    writer.close()
    writer.close()
    assert writer.closed
    assert read_all(path) == [b"one"]


@pytest.mark.parametrize("call", ["append", "extend", "flush"])
def test_use_after_close_raises(path, call):
    writer = ingot.Writer(path)
    writer.close()
    arguments = {"append": [b"x"], "extend": [[b"x"]], "flush": []}[call]
    with pytest.raises(ingot.ClosedError, match="the writer is closed") as caught:
        getattr(writer, call)(*arguments)
    assert caught.value.path == str(path)
    assert read_all(path) == []


def fail_after_flush(writer):
    with writer:
        writer.extend([b"one", b"two"])
        writer.flush()
        writer.append(b"three")
        raise LookupError("the user's own")


def test_an_exception_inside_with_leaves_what_was_flushed_and_says_so(path):
    writer = ingot.Writer(path)
    with pytest.raises(LookupError, match="the user's own") as caught:
        fail_after_flush(writer)
    assert writer.closed
    (note,) = caught.value.__notes__
    assert note.startswith(f"{path}: left unfinished with 2 committed records")
    assert "partial=True" in note
    assert "append=True" in note
    assert "ingot.recover" in note
    with pytest.raises(ingot.UnfinishedFileError):
        ingot.open(path)
    with ingot.open(path, partial=True) as reader:
        assert list(reader) == [b"one", b"two"]
    with ingot.Writer(path, append=True) as writer:
        assert writer.append(b"more") == 2
    assert read_all(path) == [b"one", b"two", b"more"]


def test_an_existing_file_is_rejected_with_a_note(make):
    path = make([b"old"])
    with pytest.raises(FileExistsError) as caught:
        ingot.Writer(path)
    assert caught.value.filename == str(path)
    (note,) = caught.value.__notes__
    assert "append=True" in note
    assert "overwrite=True" in note
    assert read_all(path) == [b"old"]


def test_overwrite_keeps_the_old_file_until_close(make):
    path = make([b"old"])
    with ingot.Writer(path, overwrite=True, metadata={"new": True}) as writer:
        writer.append(b"new")
        writer.flush()
        assert read_all(path) == [b"old"]
    with ingot.open(path) as reader:
        assert list(reader) == [b"new"]
        assert reader.metadata == {"new": True}
    assert list(path.parent.iterdir()) == [path]


def test_overwrite_of_nothing_makes_a_new_file(path):
    with ingot.Writer(path, overwrite=True) as writer:
        writer.append(b"new")
    assert read_all(path) == [b"new"]


def test_a_reader_of_a_file_that_is_overwritten_keeps_the_old_records(make):
    path = make([b"old"])
    with ingot.open(path) as reader:
        with ingot.Writer(path, overwrite=True) as writer:
            writer.append(b"new")
        assert list(reader) == [b"old"]
        assert read_all(path) == [b"new"]


def test_an_exception_while_overwriting_leaves_the_old_file_alone(make):
    path = make([b"old"])
    with pytest.raises(LookupError):
        fail_after_flush(ingot.Writer(path, overwrite=True))
    assert read_all(path) == [b"old"]


def test_a_failed_overwrite_leaves_nothing_behind_and_may_be_tried_again(make):
    path = make([b"old"])
    with pytest.raises(LookupError) as caught:
        fail_after_flush(ingot.Writer(path, overwrite=True))
    assert list(path.parent.iterdir()) == [path]
    assert "left unfinished" not in "".join(caught.value.__notes__)
    with ingot.Writer(path, overwrite=True) as writer:
        writer.append(b"new")
    assert read_all(path) == [b"new"]


def test_append_continues_a_closed_file(make):
    path = make([b"0", b"1"], metadata={"kept": 1})
    for k in range(2, 6):
        with ingot.Writer(path, append=True) as writer:
            assert len(writer) == k
            assert writer.append(b"%d" % k) == k
    with ingot.open(path) as reader:
        assert list(reader) == [b"0", b"1", b"2", b"3", b"4", b"5"]
        assert reader.metadata == {"kept": 1}
        assert reader.verify().ok


def test_append_of_nothing_leaves_the_records_alone(make):
    path = make([b"0", b"1"])
    ingot.Writer(path, append=True).close()
    assert read_all(path) == [b"0", b"1"]


@pytest.mark.parametrize("compression", ["auto", "zstd", "lz4", None])
def test_append_may_compress_in_another_way(make, compression):
    records = texts(2000)
    path = make(records[:1000], compression="zstd")
    with ingot.Writer(path, append=True, compression=compression) as writer:
        writer.extend(records[1000:])
    assert read_all(path) == records


def test_append_cuts_a_torn_end(path):
    with pytest.raises(LookupError):
        fail_after_flush(ingot.Writer(path))
    whole = path.read_bytes()
    path.write_bytes(whole + b"half a segment that was never committed")
    with ingot.Writer(path, append=True) as writer:
        assert writer.append(b"three") == 2
    with ingot.open(path) as reader:
        assert list(reader) == [b"one", b"two", b"three"]
        assert reader.verify().ok


def test_append_makes_a_file_that_is_missing(path):
    with ingot.Writer(path, append=True) as writer:
        assert writer.append(b"first") == 0
    assert read_all(path) == [b"first"]


def test_append_rejects_a_file_of_another_kind(path):
    path.write_bytes(b"not a record file, but something dear to its owner")
    with pytest.raises(ingot.FormatError, match="not an Ingot file"):
        ingot.Writer(path, append=True)
    assert path.read_bytes() == b"not a record file, but something dear to its owner"


@pytest.mark.parametrize(
    ("suffix", "what"),
    [
        (".ffr", "an FFRecord file"),
        (".FFR", "an FFRecord file"),
        (".array_record", "an ArrayRecord file"),
        (".arrayrecord", "an ArrayRecord file"),
        (".array_record-00000-of-00002", "an ArrayRecord file"),
        (".bag", "a bag"),
        (".bagz", "a bag"),
        (".h5", "an HDF5 file"),
        (".hdf5", "an HDF5 file"),
        (".tfrecord", "a TFRecord file with ingot.convert"),
        (".jsonl", "a file of JSON lines with ingot.convert"),
        (".csv", "a CSV file with ingot.convert"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"append": True}, {"overwrite": True}])
def test_a_name_of_another_container_is_rejected_for_a_new_file(path, suffix, what, options):
    foreign = path.with_suffix(suffix)
    with pytest.raises(ingot.FormatError, match=f"would take an Ingot file for .*{what}") as caught:
        ingot.Writer(foreign, **options)
    assert not foreign.exists()
    for named in re.findall(r"ingot(?:\.\w+)+\.\w+", str(caught.value)):
        module, _, name = named.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_a_file_with_the_suffix_of_another_container_is_appended_to(make):
    path = make([b"one"])
    foreign = path.rename(path.with_suffix(".ffr"))
    with ingot.Writer(foreign, append=True) as writer:
        writer.append(b"two")
    assert read_all(foreign) == [b"one", b"two"]


def test_ffrecord_files_are_reported_where_an_ingot_file_belongs(tmp_path):
    path = tmp_path / "x.ffr"
    ffrecord.utils.dump([b"one", b"", b"three"], path, 1)
    content = path.read_bytes()
    for call in (ingot.recover, lambda path: ingot.Writer(path, append=True)):
        with pytest.raises(ingot.FormatError, match=r"an FFRecord file, .* neither appended to"):
            call(path)
    assert path.read_bytes() == content
    other = path.rename(tmp_path / "x.bin")
    with pytest.raises(ingot.FormatError, match=r"an FFRecord file, .* if it is named \.ffr"):
        ingot.open(other)


def test_the_error_for_a_missing_folder_names_the_target(tmp_path):
    target = tmp_path / "missing" / "x.ingot"
    for options in ({}, {"overwrite": True}):
        with pytest.raises(FileNotFoundError) as caught:
            ingot.Writer(target, **options)
        assert caught.value.filename == str(target)


def test_metadata_comes_back(make):
    metadata = {
        "name": "caf\u00e9",
        "sizes": [1, 2.5, None, True],
        "deep": {"a": {"b": "c" * 9999}},
    }
    with ingot.open(make([b"x"], metadata=metadata)) as reader:
        assert reader.metadata == metadata
        reader.metadata["name"] = "changed"
        assert reader.metadata == metadata


def test_metadata_is_empty_unless_given(make):
    with ingot.open(make([b"x"])) as reader:
        assert reader.metadata == {}


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"x": {1, 2}}, TypeError),
        ({"x": b"bytes"}, TypeError),
        ({"x": float("nan")}, ValueError),
        ([1, 2], TypeError),
        ("text", TypeError),
        ([], TypeError),
    ],
)
def test_metadata_that_is_not_a_json_object_is_rejected_before_a_file_is_created(
    path, metadata, error
):
    with pytest.raises(error):
        ingot.Writer(path, metadata=metadata)
    assert not path.exists()


def test_metadata_that_a_header_cannot_hold_leaves_no_file(path):
    deep = {}
    for _ in range(200):
        deep = {"a": deep}
    for metadata in [deep, {"long": "x" * (17 << 20)}]:
        with pytest.raises(ValueError, match="metadata"):
            ingot.Writer(path, metadata=metadata)
        assert not path.exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compression": "gzip"}, ValueError, 'compression is "auto", "zstd", "lz4" or None'),
        ({"compression": 3}, TypeError, "int"),
        ({"level": 0}, ValueError, "level is 1 to 22, not 0"),
        ({"level": 23}, ValueError, "level is 1 to 22, not 23"),
        ({"level": "high"}, TypeError, "str"),
        ({"append": True, "overwrite": True}, ValueError, "of the file; omit overwrite"),
        ({"append": True, "metadata": {}}, ValueError, "of the file; omit metadata"),
        ({"unknown": 1}, TypeError, "unknown"),
    ],
)
def test_bad_arguments_are_rejected_before_a_file_is_made(path, options, error, message):
    with pytest.raises(error, match=message):
        ingot.Writer(path, **options)
    assert not path.exists()


def test_a_path_that_cannot_be_written_raises_the_builtin_error(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        ingot.Writer(tmp_path / "missing" / "x.ingot")
    assert caught.value.filename == str(tmp_path / "missing" / "x.ingot")
    with pytest.raises(IsADirectoryError):
        ingot.Writer(tmp_path, append=True)
    with pytest.raises(TypeError):
        ingot.Writer(None)


def test_text_compresses_with_a_dictionary(make):
    records = texts(20_000)
    raw = sum(map(len, records))
    sizes = {
        name: make(records, name=f"{name}.ingot", compression=name).stat().st_size
        for name in ["auto", "zstd", "lz4", None]
    }
    assert sizes["auto"] < 0.40 * raw
    assert sizes["zstd"] < 0.40 * raw
    assert sizes["lz4"] < raw < sizes[None]
    with ingot.open(make(records, name="x.ingot")) as reader:
        assert list(reader) == records
        assert reader.stats().dictionaries == 1


def test_a_higher_level_makes_a_smaller_file(make):
    records = texts(5000)
    low = make(records, name="low.ingot", compression="zstd", level=1)
    high = make(records, name="high.ingot", compression="zstd", level=19)
    assert high.stat().st_size < low.stat().st_size
    assert read_all(low) == read_all(high) == records


def test_random_bytes_are_stored_as_they_are(make):
    rng = random.Random(3)
    records = [rng.randbytes(4096) for _ in range(2000)]
    path = make(records, compression="auto")
    data = path.read_bytes()
    assert records[17] in data
    assert records[1999] in data
    assert len(data) < 1.01 * 2000 * 4096
    assert read_all(path) == records


def test_the_index_costs_little(make):
    rng = random.Random(4)
    path = make((rng.randbytes(1024) for _ in range(20_000)), compression=None)
    assert path.stat().st_size < 1.012 * 20_000 * 1024


def lose(path):
    path.unlink()


def replace(path):
    path.with_suffix(".other").write_bytes(path.read_bytes())
    path.with_suffix(".other").replace(path)


def cut(path):
    os.truncate(path, 60)


@pytest.mark.parametrize("call", ["flush", "close"])
@pytest.mark.parametrize(
    ("interfere", "reason"),
    [(lose, "was removed"), (replace, "replaced by another"), (cut, "process changed the file")],
)
@pytest.mark.parametrize("sync", [True, False])
def test_a_file_that_others_took_away_is_not_said_to_be_committed(
    path, call, interfere, reason, sync
):
    writer = ingot.Writer(path, sync=sync)
    writer.append(b"one")
    writer.flush()
    interfere(path)
    with pytest.raises(ingot.StorageError, match=rf"x\.ingot: .*(write|commit) failed: .*{reason}"):
        getattr(writer, call)()
    with pytest.raises(ingot.StorageError, match=reason):
        writer.close()
    writer.abandon()


def test_a_second_writer_of_the_file_is_rejected(path):
    with ingot.Writer(path) as writer:
        writer.append(b"mine")
        writer.flush()
        with pytest.raises(ingot.StorageError, match="another writer has this file open") as caught:
            ingot.Writer(path, append=True)
        assert caught.value.path == str(path)
        with pytest.raises(FileExistsError):
            ingot.Writer(path)
    assert read_all(path) == [b"mine"]


def test_a_second_writer_in_another_process_is_rejected(path, run_fault):
    with ingot.Writer(path) as writer:
        writer.append(b"mine")
        writer.flush()
        refused = run_fault("append_one.py", path)
    assert refused.returncode == 1
    assert "ingot.errors.StorageError" in refused.stderr
    assert "another writer has this file open" in refused.stderr
    assert read_all(path) == [b"mine"]
    assert run_fault("append_one.py", path).returncode == 0
    assert read_all(path) == [b"mine", b"other"]


def test_of_many_writers_that_append_at_once_none_loses_a_record(make):
    path = make([b"first"])
    command = [
        sys.executable,
        "-c",
        f"import ingot\nw = ingot.Writer({str(path)!r}, append=True)\n",
    ]
    command[-1] += "input()\nw.append(b'other')\nw.close()"
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    for racer in racers:
        racer.communicate(b"\n")
    winners = [racer.returncode for racer in racers].count(0)
    assert winners >= 1
    assert read_all(path) == [b"first"] + [b"other"] * winners


def test_a_writer_is_rejected_in_a_forked_child(path, run_fault):
    outcome = run_fault("writer_in_child.py", path)
    assert outcome.returncode == 0, outcome.stderr
    assert read_all(path) == [b"parent", b"parent again"]


def test_a_writer_that_is_never_closed_warns_and_loses_nothing(path):
    writer = ingot.Writer(path)
    writer.append(b"kept")
    writer.flush()
    writer.append(b"kept too")
    with pytest.warns(ResourceWarning, match="never closed; left unfinished with 2 committed"):
        writer = gc.collect()
    with pytest.raises(ingot.UnfinishedFileError):
        ingot.open(path)
    with ingot.open(path, partial=True) as reader:
        assert list(reader) == [b"kept", b"kept too"]


@pytest.mark.parametrize("ending", ["", "raise ValueError", "raise SystemExit(3)"])
def test_records_of_a_writer_that_is_open_at_the_end_of_a_program_are_kept(path, ending):
    code = f"import ingot, sys\nw = ingot.Writer(sys.argv[1])\nw.extend([b'a', b'b'])\n{ending}\n"
    outcome = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert outcome.stderr.count(f"ingot: {path}: the writer was never closed;") == 1
    assert "Use a with block, or call close()" in outcome.stderr
    failed = "ValueError" in ending
    if failed:
        with pytest.raises(ingot.UnfinishedFileError):
            ingot.open(path)
    with ingot.open(path, partial=failed) as reader:
        assert list(reader) == [b"a", b"b"]


@pytest.mark.parametrize("compression", ["zstd", None])
def test_threads_may_append_at_once(path, compression):
    placed = [{} for _ in range(6)]

    def work(number):
        for k in range(2000):
            record = b"%d of thread %d" % (k, number)
            placed[number][writer.append(record)] = record
            if k % 500 == 0:
                writer.flush()

    with ingot.Writer(path, compression=compression, sync=False) as writer:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expected = dict(itertools.chain.from_iterable(one.items() for one in placed))
    assert sorted(expected) == list(range(12_000))
    assert read_all(path) == [expected[k] for k in range(12_000)]


@pytest.mark.parametrize("compression", ["auto", "None"])
def test_memory_stays_bounded_however_much_is_written(path, run_fault, compression):
    outcome = run_fault("write_much.py", path, compression, 300)
    assert outcome.returncode == 0, outcome.stderr
    assert int(outcome.stdout) < 100 << 20
    assert path.stat().st_size > 300 << 20


def test_sync_is_a_choice(path, strace):
    code = (
        "import ingot, sys\n"
        "with ingot.Writer(sys.argv[1], sync=sys.argv[2] == 'sync') as w:\n"
        "    w.append(b'x')\n"
        "    w.flush()\n"
    )
    synced = {}
    for choice in ["sync", "none"]:
        log = path.with_suffix(f".{choice}")
        program = [sys.executable, "-c", code, f"{path}.{choice}", choice]
        subprocess.run(
            [strace, "-f", "-e", "trace=fsync,fdatasync", "-o", log, *program],
            check=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        synced[choice] = log.read_text().count("sync(")
    assert synced["sync"] >= 3
    assert synced["none"] == 0


def test_repr_names_the_file_and_its_state(path):
    writer = ingot.Writer(path)
    writer.append(b"x")
    assert repr(writer) == f"<ingot.Writer {str(path)!r}, 1 record>"
    assert writer.path == str(path)
    writer.close()
    assert repr(writer) == f"<ingot.Writer {str(path)!r}, closed>"


def test_an_exception_before_the_first_commit_leaves_no_file(path):
    def write():
        with ingot.Writer(path) as writer:
            writer.append(b"lost")
            raise LookupError

    with pytest.raises(LookupError) as caught:
        write()
    assert caught.value.__notes__ == [f"{path}: nothing was committed; the file was removed"]
    assert not path.exists()


@pytest.mark.parametrize("length", [0, 7, 39, 50])
def test_a_file_that_ends_inside_its_header_is_started_over(path, length):
    with ingot.Writer(path):
        pass
    path.write_bytes(path.read_bytes()[:length])
    with ingot.Writer(path, append=True) as writer:
        writer.append(b"first")
    assert list(ingot.open(path)) == [b"first"]


def test_a_damaged_header_length_is_not_taken_for_an_empty_file(path):
    with ingot.Writer(path, compression=None) as writer:
        writer.append(b"kept")
        writer.flush()
        content = bytearray(path.read_bytes())
    content[34] |= 0x40  # the JSON would end far behind the file
    path.write_bytes(content)
    with pytest.raises(ingot.CorruptFileError, match="length is damaged"):
        ingot.recover(path)
    assert path.read_bytes() == content


def test_two_overwriting_writers_do_not_meet(make):
    path = make([b"old"])
    with ingot.Writer(path, overwrite=True) as writer:
        with pytest.raises(ingot.StorageError, match="another writer"):
            ingot.Writer(path, overwrite=True)
        with pytest.raises(ingot.StorageError, match="another writer"):
            ingot.Writer(path, append=True)
        writer.append(b"new")
    assert list(ingot.open(path)) == [b"new"]


def test_an_array_of_objects_is_rejected(path):
    with ingot.Writer(path) as writer:
        with pytest.raises(TypeError, match="Python objects"):
            writer.append(np.array([{}, [1]], dtype=object))
        assert writer.append(b"first") == 0


def test_overwriting_keeps_permissions_and_links(make, tmp_path):
    path = make([b"old"])
    path.chmod(0o600)
    link = tmp_path / "link.ingot"
    link.symlink_to(path)
    with ingot.Writer(link, overwrite=True) as writer:
        writer.append(b"new")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(ingot.open(path)) == [b"new"]


def test_overwriting_spares_a_foreign_file_under_the_name_of_the_new_one(make):
    path = make([b"old"])
    other = path.with_name(path.name + ".new")
    other.write_bytes(b"precious")
    with pytest.raises(ingot.FormatError, match="in the way"):
        ingot.Writer(path, overwrite=True)
    assert other.read_bytes() == b"precious"

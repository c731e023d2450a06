import contextlib
import itertools
import random
import threading
from functools import partial

import pytest

import ingot

RECORDS = [b"record %d " % k * 10 for k in range(300)]
WAYS = ["mmap", "uring", "pread"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setenv("INGOT_IO", request.param)
    return request.param


def damage(path, what, *, by=1):
    """Change one byte of `what`, which occurs once in the file; return where it begins."""
    content = bytearray(path.read_bytes())
    assert content.count(what) == 1
    offset = content.index(what)
    content[offset + len(what) // 2] ^= by
    path.write_bytes(content)
    return offset


def attempt(call, error):
    """Return what `call` returns and None, or None and the `error` that it raises."""
    try:
        return call(), None
    except error as raised:
        return None, raised


def leave_unfinished(path, *, commits, lost=(), **options):
    """Write a file whose writer stops without closing it."""
    writer = ingot.Writer(path, **options)
    for records in commits:
        writer.extend(records)
        writer.flush()
    writer.extend(lost)
    writer.abandon()


def test_a_damaged_record_is_named_with_file_and_offset(make, way):
    path = make(RECORDS, compression=None)
    offset = damage(path, RECORDS[123])
    with ingot.open(path) as reader:
        for read in [
            lambda: reader[123],
            lambda: reader[[5, 123, 200]],
            lambda: reader.read([123]),
            lambda: list(reader[120:130]),
            lambda: list(reader.iter([7, 123])),
        ]:
            with pytest.raises(ingot.CorruptFileError) as caught:
                read()
            error = caught.value
            assert (error.path, error.record, error.offset) == (str(path), 123, offset), way
            assert str(error).startswith(
                f"{path}: record 123: offset {offset}: checksum mismatch: expected "
            )


def test_the_other_records_are_still_read(make, way):
    path = make(RECORDS, compression=None)
    damage(path, RECORDS[123])
    others = [k for k in range(300) if k != 123]
    with ingot.open(path) as reader:
        assert reader[others] == [RECORDS[k] for k in others], way
        with pytest.raises(ingot.CorruptFileError):
            reader[123]
        assert [reader[k] for k in others] == [RECORDS[k] for k in others]
        assert list(reader.iter(others)) == [RECORDS[k] for k in others]
        assert reader.lengths()[123] == len(RECORDS[123])


def test_of_several_bad_records_a_batch_names_the_first(make, way):
    path = make(RECORDS, compression=None)
    for k in [250, 17, 123]:
        damage(path, RECORDS[k])
    with ingot.open(path) as reader:
        with pytest.raises(ingot.CorruptFileError) as caught:
            reader[range(300)]
        assert caught.value.record == 17, way
        with pytest.raises(ingot.CorruptFileError) as caught:
            reader[[1, 250, 17, 123]]
        assert caught.value.record == 250


def test_iteration_raises_behind_the_records_before_the_bad_one(path, way):
    records = [b"%d." % k * 40 for k in range(9000)]
    with ingot.Writer(path, compression=None) as writer:
        writer.extend(records)
    damage(path, records[7777])
    with ingot.open(path) as reader:
        for stream in [iter(reader), reader.iter(range(9000))]:
            assert list(itertools.islice(stream, 7777)) == records[:7777], way
            with pytest.raises(ingot.CorruptFileError) as caught:
                next(stream)
            assert caught.value.record == 7777
            assert list(stream) == []


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_damage_of_compressed_records_is_noticed(make, compression):
    path = make(RECORDS, compression=compression)
    content = path.read_bytes()
    with ingot.open(path) as reader:
        stats = reader.stats()
    first = content.index(b"}") + 1
    rng = random.Random(8)
    noticed = 0
    for _ in range(300):
        changed = bytearray(content)
        changed[rng.randrange(first, stats.file_bytes)] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            with ingot.open(path) as reader:
                found = []
                for k in range(300):
                    try:
                        found.append(reader[k])
                    except ingot.CorruptFileError:
                        found.append(RECORDS[k])
                assert found == RECORDS
                assert not reader.verify().ok
        except ingot.FormatError:
            noticed += 1
    assert noticed < 300


def test_verify_of_a_good_file_finds_nothing(make, way):
    with ingot.open(make(RECORDS)) as reader:
        found = reader.verify()
        assert found == ingot.Verification(300, []), way
        assert found.ok


def test_verify_reports_each_bad_record_by_number_and_offset(make, way):
    path = make(RECORDS, compression=None)
    offsets = {k: damage(path, RECORDS[k]) for k in [0, 123, 124, 299]}
    with ingot.open(path) as reader:
        found = reader.verify()
    assert not found.ok, way
    assert found.rows == 300
    assert [(one.record, one.records, one.offset) for one in found.damaged] == [
        (k, 1, offset) for k, offset in offsets.items()
    ]
    assert all("checksum mismatch" in one.reason for one in found.damaged)


def test_a_damaged_index_page_loses_its_own_records_alone(path, way):
    records = [b"%d" % k for k in range(20_000)]
    with ingot.Writer(path, compression=None) as writer:
        writer.extend(records)
    content = bytearray(path.read_bytes())
    second = content.index(b"IPAG", content.index(b"IPAG") + 1)
    content[second + 1000] ^= 4
    path.write_bytes(content)
    with ingot.open(path) as reader:
        (bad,) = reader.verify().damaged
        assert (bad.record, bad.records, bad.offset) == (8192, 8192, second), way
        assert "index page of records 8192 to 16383" in bad.reason
        assert reader[[0, 8191, 16_384, 19_999]] == [b"0", b"8191", b"16384", b"19999"]
        for read in [lambda: reader[8192], lambda: reader[[0, 9000]], reader.lengths]:
            with pytest.raises(ingot.CorruptFileError) as caught:
                read()
            assert (caught.value.path, caught.value.offset) == (str(path), second)
        stream = iter(reader)
        assert list(itertools.islice(stream, 8192)) == records[:8192]
        with pytest.raises(ingot.CorruptFileError, match="index page of records 8192 to 16383"):
            next(stream)


def test_verify_tells_its_progress(path):
    with ingot.Writer(path) as writer:
        writer.extend(b"%d" % k for k in range(20_000))
    told = []
    with ingot.open(path) as reader:
        assert reader.verify(progress=lambda done, total: told.append((done, total))).ok
    assert told == [(8192, 20_000), (16_384, 20_000), (20_000, 20_000)]


def test_verify_prints_its_progress_on_request(make, capsys):
    with ingot.open(make(RECORDS)) as reader:
        reader.verify(progress=True)
        assert capsys.readouterr().err == "verified 300 of 300 records\n"
        reader.verify()
        assert capsys.readouterr().err == ""


def test_progress_may_stop_a_verification_by_raising(path):
    with ingot.Writer(path) as writer:
        writer.extend(b"%d" % k for k in range(20_000))
    told = []

    def stop(done, _total):
        told.append(done)
        raise LookupError("enough")

    with ingot.open(path) as reader:
        with pytest.raises(LookupError, match="enough"):
            reader.verify(progress=stop)
        assert told == [8192]
        assert reader[19_999] == b"19999"


@pytest.mark.parametrize("compression", ["zstd", None])
def test_every_truncation_of_a_file_is_noticed(path, compression):
    records = [b"one", b"", b"three" * 20, b"four" * 5]
    with ingot.Writer(path, compression=compression, sync=False) as writer:
        for k in range(0, 4, 2):
            writer.extend(records[k : k + 2])
            writer.flush()
    content = path.read_bytes()
    seen = set()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ingot.UnfinishedFileError) as caught:
            ingot.open(path)
        rows = caught.value.rows
        committed = f"{rows} rows are committed" if rows else "nothing is committed"
        assert committed in str(caught.value)
        seen.add(rows)
        reader, error = attempt(lambda: ingot.open(path, partial=True), ingot.UnfinishedFileError)
        recovery = ingot.recover(path, sync=False)
        if error is not None:
            assert (error.rows, recovery.rows) == (0, 0)
            assert "inside its header" in str(error)
        else:
            with reader:
                assert list(reader) == records[:rows]
        assert recovery.rows >= rows
        with ingot.open(path) as reader:
            assert list(reader) == records[: recovery.rows]
            assert reader.verify().ok
    assert seen == {0, 2, 4}


def test_every_flipped_bit_of_a_small_file_is_noticed(path):
    records = [b"one", b"", b"three" * 20]
    with ingot.Writer(path, compression=None, metadata={"a": 1}) as writer:
        writer.extend(records)
    content = path.read_bytes()
    for at, bit in itertools.product(range(len(content)), range(8)):
        changed = bytearray(content)
        changed[at] ^= 1 << bit
        path.write_bytes(changed)
        reader, error = attempt(lambda: ingot.open(path), ingot.FormatError)
        if error is not None:
            assert error.path == str(path)
            continue
        with reader:
            assert not reader.verify().ok, (at, bit)
            for k, record in enumerate(records):
                found, error = attempt(partial(reader.__getitem__, k), ingot.CorruptFileError)
                assert found == record or error.offset < len(content), (at, bit)


def test_a_record_that_looks_like_the_end_of_a_file_is_not_taken_for_one(path, make):
    inner = make([b"inner"] * 3, name="inner.ingot").read_bytes()
    leave_unfinished(path, commits=[[b"first"], [inner]], compression=None)
    content = path.read_bytes()
    end = content.index(inner) + len(inner)
    path.write_bytes(content[:end])
    with pytest.raises(ingot.UnfinishedFileError) as caught:
        ingot.open(path)
    assert caught.value.rows == 1
    assert ingot.recover(path).rows == 1
    with ingot.open(path) as reader:
        assert list(reader) == [b"first"]


def test_an_unfinished_file_reports_its_rows_and_how_to_continue(path):
    leave_unfinished(path, commits=[[b"0", b"1"], [b"2"]], lost=[b"3"])
    with pytest.raises(ingot.UnfinishedFileError) as caught:
        ingot.open(path)
    error = caught.value
    assert (error.path, error.rows) == (str(path), 3)
    assert isinstance(error.offset, int)
    assert str(error).startswith(f"{path}: the file is not finished (offset {error.offset}: ")
    assert "3 rows are committed" in str(error)
    assert "partial=True" in str(error)
    assert "ingot.recover" in str(error)


def test_a_file_that_is_being_written_says_so(path):
    with ingot.Writer(path) as writer:
        writer.append(b"0")
        writer.flush()
        writer.append(b"1")
        words = "a writer is still writing it, and 1 row is committed so far.*partial=True"
        with pytest.raises(ingot.UnfinishedFileError, match=words) as caught:
            ingot.open(path)
        assert "recover" not in str(caught.value)
        assert list(ingot.open(path, partial=True)) == [b"0"]
    assert len(ingot.open(path)) == 2


def test_looking_for_a_writer_keeps_no_writer_out(path):
    leave_unfinished(path, commits=[[b"0"]], lost=[b"1"])
    done = threading.Event()

    def look():
        while not done.is_set():
            with contextlib.suppress(ingot.UnfinishedFileError):
                ingot.open(path)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            writer = ingot.Writer(path, append=True, sync=False)
            writer.append(b"2")
            writer.abandon()
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_recover_closes_an_unfinished_file(path):
    leave_unfinished(path, commits=[[b"0", b"1"], [b"2"]], lost=[b"3"], metadata={"kept": True})
    committed = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"torn")
    recovery = ingot.recover(path)
    assert recovery == ingot.Recovery(rows=3, was_whole=False, cut_bytes=4, damaged=[])
    assert path.stat().st_size > committed
    with ingot.open(path) as reader:
        assert list(reader) == [b"0", b"1", b"2"]
        assert reader.metadata == {"kept": True}
        assert reader.verify().ok
    with ingot.Writer(path, append=True) as writer:
        assert writer.append(b"3") == 3


def test_recover_of_a_whole_file_does_nothing(make):
    path = make(RECORDS)
    before = path.read_bytes()
    assert ingot.recover(path) == ingot.Recovery(300, was_whole=True, cut_bytes=0, damaged=[])
    assert path.read_bytes() == before


def test_recover_of_a_file_without_commits_gives_an_empty_one(path):
    with ingot.Writer(path):
        pass
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"IDIR")])
    assert ingot.recover(path).rows == 0
    with ingot.open(path) as reader:
        assert list(reader) == []


def test_recover_cuts_what_follows_a_closed_file(make):
    path = make(RECORDS)
    before = path.read_bytes()
    path.write_bytes(before + b"something else")
    with pytest.raises(ingot.UnfinishedFileError, match="300 rows are committed"):
        ingot.open(path)
    recovery = ingot.recover(path)
    assert (recovery.rows, recovery.was_whole, recovery.cut_bytes) == (300, False, 14)
    with ingot.open(path) as reader:
        assert list(reader) == RECORDS


def test_recover_restores_a_damaged_header(make):
    path = make(RECORDS, metadata={"kept": True})
    content = bytearray(path.read_bytes())
    content[:30] = bytes(30)
    path.write_bytes(content)
    with pytest.raises(ingot.FormatError):
        ingot.open(path)
    assert ingot.recover(path).rows == 300
    with ingot.open(path) as reader:
        assert list(reader) == RECORDS
        assert reader.metadata == {"kept": True}


def test_recover_rejects_a_file_that_is_being_written(path):
    with ingot.Writer(path) as writer:
        writer.append(b"one")
        writer.flush()
        with pytest.raises(ingot.StorageError, match="another writer has this file open") as caught:
            ingot.recover(path)
        assert caught.value.path == str(path)
        writer.append(b"two")
    with ingot.open(path) as reader:
        assert list(reader) == [b"one", b"two"]


def test_recover_of_a_missing_file_is_the_builtin_error(path):
    with pytest.raises(FileNotFoundError):
        ingot.recover(path)


@pytest.mark.parametrize("way", ["", *WAYS])
@pytest.mark.parametrize(
    "how",
    [
        "one",
        "batch",
        "iterate",
        "threads",
        "verify",
    ],
)
def test_a_file_cut_short_under_a_reader_raises_and_never_kills(path, run_fault, way, how):
    outcome = run_fault("cut_under_reader.py", path, how, env={"INGOT_IO": way})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    assert outcome.stdout == "ok"

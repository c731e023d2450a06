"""What it costs to open files of other formats, and the cache of what was made of them."""

import fcntl
import gzip
import json
import logging
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ingot
from tests.formats.test_unpacking import LINES, tar_of
from tests.support.foreign_files import example, tfrecord, write

OPEN = "import sys, ingot; ingot.open(sys.argv[1])"


def calls(strace: str, tmp_path: Path, names: str, *arguments: object) -> list[str]:
    """Return the system calls of a program that opens a data set, with the paths of their files."""
    log = tmp_path / "calls"
    # A log for each thread: in a common one, calls are in two pieces.
    under = [strace, "-ff", "-qq", "-y", "-o", str(log), "-e", f"trace={names}"]
    program = [sys.executable, "-c", OPEN, *map(str, arguments)]
    env = {**os.environ, "INGOT_IO": "pread"}
    subprocess.run([*under, *program], check=True, env=env)
    return [line for one in tmp_path.glob("calls.*") for line in one.read_text().splitlines()]


FILES = {
    "x.tar": tar_of(30),
    "x.csv": b"n,text\n" + b"".join(b"%d,t%d\n" % (k, k) for k in range(100)),
    "x.jsonl": LINES,
    "x.tfrecord": tfrecord([example(n=[k], text=[b"t%d" % k]) for k in range(40)]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_opened_once(tmp_path, strace, name):
    path = write(tmp_path / name, FILES[name])
    ingot.open(path)
    found = [one for one in calls(strace, tmp_path, "open,openat", path) if f'"{path}"' in one]
    assert len(found) == 1


def test_a_file_is_sampled_once(tmp_path, strace):
    path = write(tmp_path / "x.csv", b"n\n" + b"12345678\n" * 50_000)
    ingot.open(path)
    reads = [one for one in calls(strace, tmp_path, "pread64", path) if f"<{path}>" in one]
    # Sixteen samples, and the front.
    assert len(reads) <= 17


def test_opening_many_indexes_reads_little_of_each(tmp_path, strace, cache):
    for k in range(5):
        write(tmp_path / f"{k}.csv", b"n,t\n" + b"1234,text\n" * 50_000)
    ingot.open(str(tmp_path / "*.csv"))
    assert all(one.stat().st_size > 1_000_000 for one in cache.rglob("*.index"))
    lines = calls(strace, tmp_path, "pread64", tmp_path / "*.csv")
    reads = [one for one in lines if ".index>" in one]
    sizes = [int(re.search(r"= (\d+)$", one)[1]) for one in reads]
    assert len(reads) <= 5 * 4
    assert sum(sizes) <= 5 * 16_384


@pytest.mark.parametrize("name", FILES)
def test_an_ingot_file_may_have_any_name(tmp_path, name):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"n": "int"}) as writer:
        writer.append({"n": 7})
    (tmp_path / "x.ingot").rename(tmp_path / name)
    assert list(ingot.open(tmp_path / name)) == [{"n": 7}]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_derived_files_are_no_more_accessible_than_their_file(tmp_path, cache, mode):
    for name, data in (("x.jsonl.gz", gzip.compress(LINES)), ("y.jsonl", LINES)):
        path = write(tmp_path / name, data)
        path.chmod(mode)
        ingot.open(path)
    made = [*cache.rglob("*.unpacked"), *cache.rglob("*.index")]
    assert len(made) == 3
    assert {stat.S_IMODE(one.stat().st_mode) & ~mode for one in made} == {0}


def test_a_device_that_fails_is_not_reported_as_damage(tmp_path, strace):
    # More reads of one thread than the samples are.
    path = write(tmp_path / "x.jsonl.gz", gzip.compress(bytes(80 << 20), compresslevel=0))
    under = [strace, "-f", "-qq", "-o", os.devnull, "-P", str(path)]
    under += ["-e", "trace=pread64", "-e", "inject=pread64:error=EIO:when=18+"]
    done = subprocess.run(
        [*under, sys.executable, "-c", OPEN, str(path)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "INGOT_IO": "pread"},
    )
    assert f"ingot.errors.StorageError: {path}: " in done.stderr, done.stderr


def test_a_copy_stays_if_it_cannot_be_made_again(tmp_path, cache):
    lines = b'{"n": 1}\n' * 100_000
    path = write(tmp_path / "x.jsonl.gz", gzip.compress(lines))
    ingot.open(path)
    (copy,), (note,) = cache.rglob("*.unpacked"), cache.rglob("*.copy")
    note.unlink()
    ingot.set_max_decoded_bytes(1000)
    try:
        with pytest.raises(ingot.FormatError):
            ingot.open(path)
    finally:
        ingot.set_max_decoded_bytes(1 << 30)
    assert copy.read_bytes() == lines


def test_errors_about_rows_of_a_compressed_file_name_the_file(tmp_path):
    path = write(tmp_path / "x.jsonl.gz", gzip.compress(b'{"n": 1}\n' * 2000 + b"{\n"))
    with pytest.raises(ingot.FormatError, match=r"x\.jsonl\.gz: ") as caught:
        ingot.open(path)
    assert caught.value.path == str(path)
    assert "unpacked" not in str(caught.value)


def test_rows_that_are_damaged_in_a_copy_name_the_file(tmp_path, cache):
    path = write(tmp_path / "x.jsonl.gz", gzip.compress(LINES))
    ds = ingot.open(path)
    (copy,) = cache.rglob("*.unpacked")
    with copy.open("r+b") as file:
        file.seek(LINES.index(b"line 77"))
        file.write(b"LINE")
    with pytest.raises(ingot.CorruptFileError, match=r"x\.jsonl\.gz: record 77"):
        ds[77]


def test_listed_hashes_are_compared_before_a_copy_that_was_found_is_indexed(golden, cache):
    folder = golden("mds_zstd")
    ingot.open(folder)
    for one in cache.rglob("*.index"):
        one.unlink()
    index = json.loads((folder / "index.json").read_text())
    hashes = index["shards"][0]["zip_data"]["hashes"]
    if not hashes:
        hashes["sha1"] = ""
    hashes.update(dict.fromkeys(hashes, "0" * 40))
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(ingot.CorruptFileError, match="is listed"):
        ingot.open(folder)


def copies(cache: Path) -> list[str]:
    return sorted(one.name.split(".")[0] for one in cache.rglob("*.unpacked"))


def compressed(folder: Path, name: str) -> Path:
    return write(folder / f"{name}.jsonl.gz", gzip.compress(LINES), parents=True)


def test_copies_that_were_not_used_for_the_longest_time_are_removed(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_BYTES", str(3 * len(LINES)))
    for k, name in enumerate("abcd"):
        ingot.open(compressed(tmp_path / str(k % 2), name)).close()
        for note in cache.rglob("*.copy"):
            os.utime(note, (0, ord(note.name[0])))
    assert copies(cache) == ["b", "c", "d"]
    ingot.open(tmp_path / "1" / "b.jsonl.gz").close()  # Used just now.
    assert len(ingot.open(tmp_path / "0" / "a.jsonl.gz")) == 500
    assert copies(cache) == ["a", "b", "d"]


def test_copies_in_use_are_not_removed(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_BYTES", "1")
    first = compressed(tmp_path, "a")
    program = "import sys, ingot; ds = ingot.open(sys.argv[1]); print(len(ds), flush=True); input()"
    command = [sys.executable, "-c", program, str(first)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as other:
        assert other.stdout.readline() == "500\n"
        own = ingot.open(compressed(tmp_path, "b"))
        ingot.open(compressed(tmp_path, "c")).close()
        assert copies(cache) == ["a", "b", "c"]
        other.communicate("\n")
    own.close()
    del own
    ingot.open(compressed(tmp_path, "d"))
    assert copies(cache) == ["d"]


def test_copies_in_a_chosen_directory_are_not_limited(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_BYTES", "1")
    for name in "abc":
        ingot.open(compressed(tmp_path, name), index_dir=tmp_path / "mine").close()
    assert copies(tmp_path / "mine") == ["a", "b", "c"]


def test_a_limit_that_is_not_a_number_is_refused(tmp_path):
    path = compressed(tmp_path, "a")
    env = {**os.environ, "INGOT_CACHE_BYTES": "much"}
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)],
        check=False,
        capture_output=True,
        text=True,
        env=env,
    )
    assert "INGOT_CACHE_BYTES=much: expected a number of bytes" in done.stderr


def test_a_process_that_waits_for_another_logs_it(tmp_path, cache, caplog):
    path = write(tmp_path / "x.csv", b"a\n1\n")
    ingot.open(path)
    (index,) = cache.rglob("*.index")
    index.unlink()
    with (index.parent / "lock").open("a") as lock, caplog.at_level(logging.WARNING, "ingot"):
        fcntl.flock(lock, fcntl.LOCK_EX)
        opening = threading.Thread(target=ingot.open, args=[path])
        opening.start()
        opening.join(1.5)
        while not caplog.records and opening.is_alive():
            opening.join(0.1)
        fcntl.flock(lock, fcntl.LOCK_UN)
        opening.join()
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith(f"{path}: waiting for another process")


def test_notes_about_arrays_are_where_the_user_wants_them(tmp_path, cache):
    import numpy as np  # noqa: PLC0415

    np.savez(tmp_path / "x.npz", a=np.arange(300_000))
    ingot.open(tmp_path / "x.npz", index_dir=tmp_path / "mine")
    assert [one.suffix for one in (tmp_path / "mine").rglob("*") if one.is_file()] == [".sum"]
    assert not cache.exists()

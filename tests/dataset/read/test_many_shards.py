"""Data sets of very many files, and processes with few descriptors."""

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

import ingot
from ingot.formats.bag import BagWriter

SHARDS = 10_000
ROWS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a data set of 10,000 files, each of which is a link to the same one."""
    folder = tmp_path_factory.mktemp("many") / "x"
    with ingot.DatasetWriter(folder, {"a": "int", "b": "utf8"}, sync=False) as writer:
        writer.extend({"a": k, "b": f"row {k}"} for k in range(ROWS))
    manifest = json.loads((folder / "dataset.json").read_text())
    (first,) = manifest["shards"]
    shards = [first]
    for k in range(1, SHARDS):
        shards.append(first | {"name": f"{k:06}.ingot"})
        (folder / f"{k:06}.ingot").hardlink_to(folder / first["name"])
    (folder / "dataset.json").write_text(json.dumps(manifest | {"shards": shards}))
    return folder


def test_files_are_opened_when_they_are_needed(folder, open_files):
    ds = ingot.open(folder)
    assert len(ds) == SHARDS * ROWS
    assert len(open_files(folder)) <= 2
    assert ds[-1] == {"a": ROWS - 1, "b": f"row {ROWS - 1}"}
    rows = random.Random(1).sample(range(len(ds)), 64)
    assert ds[rows]["b"] == [f"row {row % ROWS}" for row in rows]
    assert len(ds.paths) == SHARDS


def test_a_pickle_is_as_small_as_that_of_one_file(folder):
    data = pickle.dumps(ingot.open(folder))
    assert len(data) < 1000
    again = pickle.loads(data)  # noqa: S301
    assert len(again) == SHARDS * ROWS
    assert again[ROWS * 77 + 3]["a"] == 3


def test_a_column_of_all_files_is_read(folder):
    column = ingot.open(folder).column("a")
    assert column.shape == (SHARDS * ROWS,)
    assert column.reshape(SHARDS, ROWS).sum(1).tolist() == [sum(range(ROWS))] * SHARDS


SCRIPT = """
import random, resource, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import ingot
source, kind = sys.argv[1:]
if kind == "records":
    reader = ingot.open(source + "/*.ingot")
    expected = lambda row: f"{row // 3} {row % 3}".encode()
    found = lambda rows: reader[rows]
    check = lambda rows: [expected(row) for row in rows]
else:
    reader = ingot.open(source)
    found = lambda rows: reader[rows]["b"]
    check = lambda rows: [f"row {row % 5}" for row in rows]
def work(seed):
    rng = random.Random(seed)
    for _ in range(15):
        rows = rng.choices(range(len(reader)), k=64)
        assert found(rows) == check(rows)
    done.append(seed)
done = []
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
assert len(done) == 4, done
print("read", len(reader))
"""


def run(*arguments):
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_64_descriptors_suffice_for_10_000_files(folder):
    done = run(str(folder), "rows")
    assert done.stdout == f"read {SHARDS * ROWS}\n", done.stderr


def test_64_descriptors_suffice_for_files_without_a_manifest(tmp_path):
    for k in range(300):
        with ingot.Writer(tmp_path / f"{k:03}.ingot", sync=False) as writer:
            writer.extend(f"{k} {row}".encode() for row in range(3))
    done = run(str(tmp_path), "records")
    assert done.stdout == "read 900\n", done.stderr


def test_a_file_that_was_replaced_is_rejected_when_it_is_first_read(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).hardlink_to(path)
    ds = ingot.open(tmp_path)
    with ingot.DatasetWriter(tmp_path / "other", {"a": "int", "b": "utf8"}) as writer:
        writer.extend({"a": -k, "b": f"row {k}"} for k in range(ROWS))
    (other,) = (tmp_path / "other").glob("*.ingot")
    other.replace(tmp_path / "004000.ingot")
    assert ds[0]["a"] == 0
    with pytest.raises(ingot.FormatError, match=r"004000.ingot: another file is in its place"):
        ds[4000 * ROWS]
    (tmp_path / "005000.ingot").unlink()
    with pytest.raises(FileNotFoundError, match=r"005000.ingot"):
        ds[5000 * ROWS]
    with pytest.raises(FileNotFoundError, match=r"005000.ingot"):
        ingot.open(tmp_path)


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    for k in range(200):
        with BagWriter(folder / f"{k:04}.bag") as writer:
            writer.extend(b"%06d" % (3 * k + j) * 20 for j in range(3))
    return folder


@pytest.mark.parametrize("access", ["", "mmap", "uring", "pread"])
def test_a_child_reads_the_files_that_its_parent_was_opening(bags, run_fault, access):
    outcome = run_fault("fork_among_files.py", bags, 25, env={"INGOT_IO": access})
    assert outcome.stdout == "0 failed", outcome.stderr


def test_children_of_children_close_the_files_of_their_parents(bags, run_fault):
    outcome = run_fault("fork_in_turn.py", bags, 12)
    assert outcome.stdout == "600 rows", outcome.stderr


def test_the_error_of_a_column_names_the_row_of_the_data_set(tmp_path):
    with ingot.DatasetWriter(tmp_path, {"a": "int", "b": "utf8"}, shard_rows=3) as writer:
        writer.extend({"a": k, "b": "text" * 50} for k in range(12))
    ds = ingot.open(tmp_path)
    third = Path(ds.paths[2])
    with third.open("r+b") as file:
        file.write(bytes(third.stat().st_size))
    with pytest.raises(ingot.CorruptFileError) as caught:
        ds.column("a")
    assert caught.value.record == 6

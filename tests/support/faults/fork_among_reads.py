"""Read in threads, fork meanwhile, and read in each child, which must end.

Run as `fork_among_reads.py KIND FOLDER FORKS`. The kind says what is read, and how. Prints which
children failed, and how.
"""

import faulthandler
import io
import itertools
import json
import os
import sys
import tarfile
import threading
import traceback
import warnings
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet as pq

import ingot

ROWS = 300
SECONDS = 60
"""A child that takes longer waits for something that it does not have."""

kind, forks = sys.argv[1], int(sys.argv[3])
folder = Path(sys.argv[2])
THREADS = 12 if kind == "batches" else 4
warnings.simplefilter("ignore", DeprecationWarning)  # Forks among threads are what this is about.
numbers = itertools.count()


def some(count=16):
    """Return other rows each time."""
    return np.random.default_rng([os.getpid(), next(numbers)]).integers(0, ROWS, count).tolist()


def write_rows(path):
    spec = {"label": "int", "text": "utf8", "image": "array(uint8,8,8)", "words": "utf8[]"}
    with ingot.DatasetWriter(path, spec, sync=False, shard_rows=100) as writer:
        for k in range(ROWS):
            image = np.full((8, 8), k % 256, np.uint8)
            words = ["w"] * (k % 3)
            writer.append({"label": k, "text": f"{k}", "image": image, "words": words})
    return ingot.open(path)


def write_records(path, **options):
    with ingot.Writer(path, sync=False, **options) as writer:
        writer.extend(b"%d " % k * 40 for k in range(ROWS))
    return ingot.open(path)


def records():
    reader = write_records(folder / "x.ingot", compression="zstd")

    def read():
        rows = some()
        assert [int(one.split()[0]) for one in reader[rows]] == rows
        assert [int(bytes(one).split()[0]) for one in reader.read(rows)] == rows

    return read


def streams():
    reader = write_records(folder / "x.ingot")

    def read():
        rows = some()
        assert [int(one.split()[0]) for one in reader.iter(rows)] == rows
        stream = iter(reader)
        assert int(next(stream).split()[0]) == 0

    return read


def groups():
    write_records(folder / "x.ingot")
    ingot.convert(folder / "x.ingot", folder / "x.array_record")
    reader = ingot.open(folder / "x.array_record")

    def read():
        rows = some()
        assert [int(one.split()[0]) for one in reader[rows]] == rows

    return read


def batches():
    spec = {f"text{k}": "utf8" for k in range(200)}
    with ingot.DatasetWriter(folder / "rows", spec, sync=False) as writer:
        writer.extend({name: list(map(str, range(ROWS))) for name in spec})
    ds = ingot.open(folder / "rows")

    def read():
        rows = some(1)
        assert ds[rows]["text7"] == [str(row) for row in rows]

    return read


def rows():
    ds = write_rows(folder / "rows")

    def read():
        for row in some(8):
            assert ds[row]["text"] == f"{row}"

    return read


def columns():
    ds = write_rows(folder / "rows")

    def read():
        assert ds.column("label").tolist() == list(range(ROWS))
        assert len(ds.where(ds.column("label") < 7)) == 7

    return read


def passes():
    ds = write_rows(folder / "rows")

    def read():
        assert ds.verify().ok
        assert sum(row["label"] for row in ds) == sum(range(ROWS))

    return read


def loader():
    ds = write_rows(folder / "rows")
    with_threads = ingot.Loader(ds.shuffle(0), 32, workers=2)
    taking = threading.Lock()
    parent = os.getpid()

    def read():
        if os.getpid() == parent:
            with taking:
                assert sum(len(batch["label"]) for batch in with_threads) == ROWS
        else:  # The lock is this script's own, and a thread of the parent may hold it.
            assert len(next(iter(ingot.Loader(ds, 32, workers=2)))["label"]) == 32
            assert len(with_threads.batch(3)["label"]) == 32

    return read


def foreign(path, field):
    ds = ingot.open(path)
    assert len(ds) == ROWS

    def read():
        rows = some()
        found = ds[rows][field]
        assert [int(one) for one in found] == rows
        assert int(ds[rows[0]][field]) == rows[0]

    return read


def tfrecord():
    write_rows(folder / "rows").select("label").save(folder / "labels")
    ingot.convert(folder / "labels", folder / "x.tfrecord")
    return foreign(folder / "x.tfrecord", "label")


def tar():
    with tarfile.open(folder / "x.tar", "w") as archive:
        for k in range(ROWS):
            member = tarfile.TarInfo(f"{k:06d}.txt")
            member.size = len(str(k))
            archive.addfile(member, io.BytesIO(str(k).encode()))
    return foreign(folder / "x.tar", "txt")


def jsonlines():
    lines = (json.dumps({"label": k, "text": f"{k}"}) for k in range(ROWS))
    (folder / "x.jsonl").write_text("\n".join(lines))
    return foreign(folder / "x.jsonl", "text")


def parquet():
    table = pa.table({"label": list(range(ROWS)), "text": [f"{k}" for k in range(ROWS)]})
    pq.write_table(table, folder / "x.parquet", row_group_size=50)
    return foreign(folder / "x.parquet", "text")


def arrow():
    table = pa.table({"label": list(range(ROWS)), "text": [f"{k}" for k in range(ROWS)]})
    with pa.ipc.new_file(folder / "x.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=50)
    return foreign(folder / "x.arrow", "text")


def hdf5():
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("label", data=np.arange(ROWS), chunks=(10,), compression="gzip")
        file["text"] = [f"{k}" for k in range(ROWS)]
    return foreign(folder / "x.h5", "text")


def images():
    for k in range(8):
        (folder / "images" / f"{k}").mkdir(parents=True)
        Image.fromarray(np.full((8, 8, 3), k, np.uint8)).save(folder / "images" / f"{k}" / "x.png")
    ds = ingot.open(folder / "images")

    def read():
        place = some(1)[0] % 8
        assert int(ds[[place, 0]]["image"][0][0, 0, 0]) == place

    return read


def pictures():
    with ingot.DatasetWriter(folder / "rows", {"image": "jpg"}, sync=False) as writer:
        for k in range(ROWS):
            stream = io.BytesIO()
            Image.fromarray(np.full((16, 16, 3), k % 256, np.uint8)).save(stream, "jpeg")
            writer.append({"image": stream.getvalue()})
    ds = ingot.open(folder / "rows")

    def read():
        assert len(ds[some(8)]["image"]) == 8

    return read


def writer():
    parent = os.getpid()
    spec = {"label": "int", "text": "utf8"}
    rows = ingot.DatasetWriter(folder / "rows", spec, sync=False)
    records = ingot.Writer(folder / "x.ingot", sync=False)

    def read():
        if os.getpid() == parent:
            rows.extend({"label": [1, 2], "text": ["a", "b"]})
            rows.flush()
            records.append(bytes(10_000))
            records.flush()
            return
        for use in (rows.flush, records.flush, lambda: records.append(b"x"), rows.close):
            try:
                use()
            except ValueError:
                continue
            message = "the parent's writer was used"
            raise AssertionError(message)
        name = f"{os.getpid()}-{next(numbers)}.ingot"
        with ingot.Writer(folder / name, sync=False) as own:
            own.append(b"x")

    return read


def run_child(read):
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        for _ in range(3):
            read()
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def keep_reading(read):
    try:
        while not done.is_set():
            read()
    except BaseException:  # noqa: BLE001
        failures.append(traceback.format_exc())


read = globals()[kind]()
read()  # A module that a thread is importing at a fork would never be there in the child.
done, failures = threading.Event(), []
threads = [threading.Thread(target=keep_reading, args=(read,), daemon=True) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for number in range(forks):
    child = os.fork()
    if child == 0:
        run_child(read)
    if status := os.waitpid(child, 0)[1]:
        failures.append(f"child {number}: {status}")
        break
done.set()
for thread in threads:
    thread.join()
sys.stdout.write(f"{failures}")
sys.stdout.flush()
os._exit(0)

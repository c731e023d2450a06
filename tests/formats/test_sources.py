"""Sources of every format read together, and answer alike."""

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

import ingot
from ingot.compat import granular
from ingot.dataset.read.source import ALL, Source
from ingot.formats.arrow.parquet import ParquetFile
from ingot.formats.granular.columns import Columns
from ingot.formats.hdf5 import chunks
from ingot.formats.images import source as images
from ingot.threads import READS, Begun

COUNT = 10
ROWS = 12
PATIENCE_S = 30


def write_ingot(path, first):
    with ingot.DatasetWriter(path, {"k": "int", "text": "utf8"}, sync=False) as writer:
        writer.extend({"k": first + k, "text": f"row {first + k}"} for k in range(ROWS))


def write_parquet(path, first):
    numbers = range(first, first + ROWS)
    save(pa.table({"k": numbers, "text": [f"row {k}" for k in numbers]}), path)


def save(table, path):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
        return
    with pa.OSFile(str(path), "w") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_hdf5(path, first):
    numbers = np.arange(first, first + ROWS)
    with h5py.File(path, "w") as file:
        file.create_dataset("k", data=numbers, compression="gzip")
        file["text"] = [f"row {k}" for k in numbers]


def write_granular(path, first):
    spec = {"k": "int", "text": "utf8"}
    with granular.DatasetWriter(path, spec, granular.encoders) as writer:
        for k in range(first, first + ROWS):
            writer.append({"k": k, "text": f"row {k}"})


def write_images(path, first):
    path.mkdir()
    lines = []
    for k in range(first, first + ROWS):
        Image.fromarray(np.full((4, 4, 3), k, np.uint8)).save(path / f"{k:03}.png")
        lines.append(f'{{"file_name": "{k:03}.png", "k": {k}, "text": "row {k}"}}\n')
    (path / "metadata.jsonl").write_text("".join(lines))


FORMATS = {
    "x.ingot": write_ingot,
    "x.parquet": write_parquet,
    "x.arrow": write_parquet,
    "x.h5": write_hdf5,
    "granular": write_granular,
    "images": write_images,
}
READERS = {
    "x.parquet": (ParquetFile, "read"),
    "x.h5": (chunks, "read"),
    "granular": (Columns, "read_many"),
    "images": (images, "_contents"),
}


def meeting(read: Callable[..., object], barrier: threading.Barrier) -> Callable[..., object]:
    """Return a reader whose first reads wait for each other, each on a thread of its own."""
    met = set()

    def wait_and_read(*arguments):
        if threading.get_ident() not in met and len(met) < COUNT:
            met.add(threading.get_ident())
            barrier.wait(PATIENCE_S)
        return read(*arguments)

    return wait_and_read


def mix_of(folder, name):
    sets = {}
    for k in range(COUNT):
        path = folder / f"{k}{name}"
        FORMATS[name](path, k * ROWS)
        sets[str(k)] = ingot.open(path)
    return ingot.mix(sets, dict.fromkeys(sets, 1))


def first_batch(order):
    with ingot.Loader(order, COUNT, workers=1) as loader:
        return sorted(next(iter(loader))["k"].tolist())


EXPECTED = [k * ROWS for k in range(COUNT)]


@pytest.mark.parametrize("name", READERS)
def test_the_sources_of_a_batch_are_read_at_the_same_time(name, tmp_path, monkeypatch):
    order = mix_of(tmp_path, name)
    barrier = threading.Barrier(COUNT)
    owner, reader = READERS[name]
    monkeypatch.setattr(owner, reader, meeting(getattr(owner, reader), barrier))
    assert first_batch(order) == EXPECTED
    assert not barrier.broken


@pytest.mark.parametrize("name", ["x.parquet", "images"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_reads_sources_at_the_same_time(name, tmp_path, monkeypatch):
    order = mix_of(tmp_path, name)
    assert first_batch(order) == EXPECTED  # The threads of the parent have read.
    owner, reader = READERS[name]
    read = getattr(owner, reader)

    def work():
        monkeypatch.setattr(owner, reader, meeting(read, threading.Barrier(COUNT)))
        assert sorted(one["k"] for one in order[COUNT : 2 * COUNT]) == [k + 1 for k in EXPECTED]

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(2 * PATIENCE_S)
    assert child.exitcode == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_read_that_was_begun_before_a_fork_ends_in_the_child():
    go_on = threading.Event()
    begun = [Begun(lambda: go_on.wait(PATIENCE_S)) for _ in range(2 * READS)]

    def work():
        go_on.set()
        assert all(one.end() for one in begun)
        assert Begun(lambda: 5).end() == 5

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(2 * PATIENCE_S)
    go_on.set()
    assert child.exitcode == 0
    assert all(one.end() for one in begun)


def test_reads_that_begin_reads_do_not_wait_for_threads():
    def read(depth):
        begun = [Begun(lambda: read(depth - 1)) for _ in range(3 if depth else 0)]
        return 1 + sum(one.end() for one in begun)

    begun = [Begun(lambda: read(3)) for _ in range(2 * READS)]
    assert [one.end() for one in begun] == [40] * (2 * READS)


def test_the_caller_reads_if_no_thread_can_be_started(tmp_path, monkeypatch):
    def refuse(*_):
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    assert sorted(one["k"] for one in mix_of(tmp_path, "x.parquet")[:COUNT]) == EXPECTED


def test_the_first_error_of_a_batch_is_raised(tmp_path, monkeypatch):
    order = mix_of(tmp_path, "x.parquet")

    def fail(file, *_):
        message = f"{file.path}: no"
        raise ingot.CorruptFileError(message, file.path)

    monkeypatch.setattr(ParquetFile, "read", fail)
    with pytest.raises(ingot.CorruptFileError, match=r"0x\.parquet: no"):
        order[:COUNT].__getitems__(range(COUNT))


def test_batches_of_images_share_the_threads_of_the_process(tmp_path):
    write_images(tmp_path / "images", 0)
    ds = ingot.open(tmp_path / "images")
    for _ in range(5):
        assert len(ds[[*range(ROWS)]]["image"]) == ROWS
    readers = [one for one in threading.enumerate() if one.name.startswith("ingot-read")]
    assert len(readers) <= READS


@pytest.fixture(params=FORMATS)
def opened(request, tmp_path):
    FORMATS[request.param](tmp_path / request.param, 0)
    return ingot.open(tmp_path / request.param)


def plain(rows):
    return [
        {name: one.tolist() if hasattr(one, "tolist") else one for name, one in row.items()}
        for row in rows
    ]


def test_rows_are_alike_however_they_are_read(opened):
    alone = [opened[k] for k in range(ROWS)]
    again = pickle.loads(pickle.dumps(opened))  # noqa: S301 -- it was made here
    for rows in (list(opened), opened.__getitems__(range(ROWS)), again):
        assert plain(rows) == plain(alone)
        assert list(map(types, rows)) == list(map(types, alone))
    assert (alone[3]["k"], alone[3]["text"]) == (3, "row 3")


def types(row):
    return [type(one) for one in row.values()]


def test_rows_as_stored_come_back_from_a_pickle(opened):
    if opened._selection.source.format == "hdf5":
        with pytest.raises(TypeError, match="requires rows that are stored as bytes"):
            opened.stored()
        return
    stored = opened.stored()
    again = pickle.loads(pickle.dumps(stored))  # noqa: S301 -- it was made here
    assert list(stored) == list(again) == [stored[k] for k in range(ROWS)]
    assert (stored[3]["k"], stored[3]["text"]) == (3, b"row 3")
    assert stored.stored()[3] == opened.concat(opened).stored()[ROWS + 3] == stored[3]


def test_what_a_format_has_faster_is_what_all_sources_have(opened):
    source = opened._selection.source
    numbers = np.array([3, 0, 11, 3], np.int64)
    for rows in (numbers, range(ROWS), range(1, 9, 2)):
        assert source.column("k", rows).tolist() == list(rows)
        assert Source.column(source, "k", rows).tolist() == list(rows)
        assert source.present("text", rows).all()
    for name in ("text", "nothing"):
        with pytest.raises((TypeError, KeyError), match=name):
            source.column(name, numbers)
    wanted = {"text": ALL, "k": ALL}
    assert source.read_row(7, wanted) == Source.read_row(source, 7, wanted)
    names = list(source.spec)
    assert source.available(5, names) == Source.available(source, 5, names)
    assert source.available(5, names) == dict.fromkeys(names, True)


def test_every_source_returns_values_as_an_ingot_file_stores_them(opened, tmp_path):
    opened.save(tmp_path / "copy.ingot")
    names = list(opened.spec)
    numbers = np.array([3, 0, 11, 3], np.int64)
    expected = held(ingot.open(tmp_path / "copy.ingot"), names, numbers)
    assert held(opened, names, numbers) == expected
    assert held(opened.concat(opened), names, numbers + ROWS * np.array([0, 1, 0, 1])) == expected
    others = opened.select(*[name for name in names if name != "k"])
    assert held(others.zip(opened.select("k")), names, numbers) == expected


def held(dataset, names, numbers):
    found = dataset._selection.source.packed(names, numbers)
    return [[None if one is None else bytes(one) for one in values] for values in found]


@pytest.mark.parametrize("name", ["x.ingot", "x.parquet", "x.arrow", "x.h5"])
def test_runs_have_the_same_lengths_in_every_source(name, tmp_path):
    runs = [np.arange(k % 4) for k in range(ROWS)]
    if name == "x.h5":
        with h5py.File(tmp_path / name, "w") as file:
            data = file.create_dataset("runs", ROWS, h5py.vlen_dtype(np.int64))
            for k, one in enumerate(runs):
                data[k] = one
    elif name == "x.ingot":
        with ingot.DatasetWriter(tmp_path / name, {"runs": "int[]"}, sync=False) as writer:
            writer.extend({"runs": one} for one in runs)
    else:
        save(pa.table({"runs": [one.tolist() for one in runs]}), tmp_path / name)
    source = ingot.open(tmp_path / name)._selection.source
    for rows in (np.array([3, 0, 11, 3], np.int64), range(ROWS)):
        expected = [len(runs[k]) for k in rows]
        assert source.lengths("runs", rows).tolist() == expected
        assert Source.lengths(source, "runs", rows).tolist() == expected
    assert source.available(3, ["runs"]) == {"runs": range(3)}

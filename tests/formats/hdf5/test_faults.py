"""HDF5 files that are damaged, being written or changed, and processes that share them."""

import errno
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

import ingot
from tests.support import FAULTS

TEXTS = ["one", "", "three three"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


@pytest.fixture
def plain(path):
    """A file without a filter: numbers, and text."""
    with h5py.File(path, "w", libver="earliest") as file:
        file["number"] = [7, 8, 9]
        file["text"] = TEXTS
    return path


@pytest.fixture
def summed(path):
    """A file of which one of three fields has checksums."""
    with h5py.File(path, "w") as file:
        numbers = np.arange(100, dtype="u2")
        file.create_dataset("summed", data=numbers, chunks=(10,), fletcher32=True)
        file.create_dataset("bare", data=numbers + 1000, chunks=(10,))
        file["text"] = [f"row {k}" for k in range(100)]
    return path


def place_of(path, name, chunk=None):
    """Return where a data set, or a chunk of it, begins."""
    with h5py.File(path) as file:
        dataset = file[name].id
        return dataset.get_offset() if chunk is None else dataset.get_chunk_info(chunk).byte_offset


def patch(path, place, data):
    content = bytearray(path.read_bytes())
    content[place : place + len(data)] = data
    path.write_bytes(content)


def flip(path, place):
    patch(path, place, bytes([path.read_bytes()[place] ^ 1]))


def test_verify_says_which_fields_have_no_checksums(summed):
    calls = []
    found = ingot.open(summed).verify(lambda done, total: calls.append((done, total)))
    assert found.ok
    assert (found.rows, found.damaged) == (100, [])
    assert sorted(found.unchecked) == ["bare", "text"]
    assert calls[-1] == (100, 100)
    assert ingot.open(summed / "summed").verify() == ingot.Verification(100, [], ())


def test_a_flipped_byte_under_a_checksum_is_damage_of_the_rows_of_its_chunk(summed):
    flip(summed, place_of(summed, "summed", 3) + 5)
    ds = ingot.open(summed)
    found = ds.verify()
    assert not found.ok
    assert found.rows == 100
    assert [(one.record, one.records) for one in found.damaged] == [(k, 1) for k in range(30, 40)]
    assert sorted(found.unchecked) == ["bare", "text"]
    with pytest.raises(ingot.CorruptFileError, match="record 31") as caught:
        ds[31]
    assert (caught.value.path, caught.value.record) == (str(summed), 31)
    for read in (lambda: ds[[1, 35]], lambda: ds.column("summed"), lambda: list(ds)):
        with pytest.raises(ingot.CorruptFileError, match=str(summed)):
            read()
    assert ds[40]["summed"] == 40
    assert ds.select("bare", "text")[35] == {"bare": 1035, "text": "row 35"}


def test_a_flipped_byte_without_a_checksum_is_not_noticed_and_its_field_is_named(summed):
    flip(summed, place_of(summed, "bare", 3))
    found = ingot.open(summed).verify()
    assert found.ok
    assert "bare" in found.unchecked
    assert ingot.open(summed)[30]["bare"] == 1030 ^ 1


def test_a_chunk_that_hdf5_does_not_find_leaves_its_field_unchecked(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000, 1040), chunks=(10,), fletcher32=True)
        file["other"] = np.zeros(40)
    assert ingot.open(path / "x").verify() == ingot.Verification(40, [], ())
    whole, lost = path.read_bytes(), 0
    keys = whole.index(b"TREE", whole.index(b"TREE") + 1) + 24
    for place in (keys + 32 * k + byte for k in range(5) for byte in range(24)):
        patch(path, 0, whole)
        flip(path, place)
        with ingot.open(path / "x") as ds:
            found = ds.verify()
            if found == ingot.Verification(40, [], ()):
                assert ds.column("x").tolist() == list(range(1000, 1040)), place
            lost += found.ok and bool(found.unchecked)
    assert lost


def test_chunks_that_were_never_written_leave_their_field_unchecked(path):
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (40,), "i8", chunks=(10,), fletcher32=True, fillvalue=7)
        x[20:30] = np.arange(10)
    calls = []
    found = ingot.open(path).verify(lambda *call: calls.append(call))
    assert found == ingot.Verification(40, [], ("x",))
    assert calls == [(30, 40), (40, 40)]
    assert ingot.open(path).column("x").tolist() == [7] * 20 + list(range(10)) + [7] * 10
    flip(path, place_of(path, "x", 0))
    damaged = ingot.open(path).verify().damaged
    assert [one.record for one in damaged] == list(range(20, 30))


def make_chunked(file):
    file.create_dataset("x", (2**60,), "i8", chunks=(1024,))[2**59] = 5


def make_contiguous(file):
    file.create_dataset("x", (2**60,), "i4")


def make_virtual(file):
    file["part"] = [1, 2]
    layout = h5py.VirtualLayout((2**60,), "i8")
    layout[:2] = h5py.VirtualSource(file["part"])
    file.create_virtual_dataset("x", layout)


@pytest.mark.parametrize("make", [make_chunked, make_contiguous, make_virtual])
def test_rows_that_a_small_file_only_claims_are_not_scanned(path, make):
    with h5py.File(path, "w") as file:
        make(file)
    calls = []
    with ingot.open(path / "x") as ds:
        assert ds.verify(lambda *call: calls.append(call)) == ingot.Verification(2**60, [], ("x",))
        assert len(calls) <= 2
        assert calls[-1] == (2**60, 2**60)
        assert next(iter(ds))["x"] in {0, 1}
        assert ds[2**59]["x"] in {0, 5}
        with pytest.raises((ingot.IngotError, MemoryError)):
            ds.column("x")


@pytest.fixture
def hold(path):
    """Return a function that has another process write the file; all of them end with the test."""
    started = []

    def hold(version, mode="plain"):
        script = FAULTS / "hdf5_hold.py"
        child = subprocess.Popen(
            [sys.executable, str(script), str(path), version, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(child)
        assert child.stdout.readline() == b"open\n"
        return child

    yield hold
    for child in started:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("version", ["earliest", "v110", "latest"])
def test_a_file_that_another_process_writes_is_not_opened(path, hold, version):
    child = hold(version)
    for partial in (False, True):
        with pytest.raises(ingot.StorageError, match="another process has this file") as caught:
            ingot.open(path, partial=partial)
        assert (caught.value.path, caught.value.errno) == (str(path), errno.EAGAIN)
    child.communicate()
    assert ingot.open(path).column("x").tolist() == list(range(100))


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("version", ["v110", "latest"])
def test_the_mark_of_a_killed_writer_is_reported(path, hold, version, partial):
    child = hold(version)
    child.send_signal(signal.SIGKILL)
    child.wait()
    with pytest.raises(ingot.UnfinishedFileError, match=r"marked.*h5clear --status") as caught:
        ingot.open(path, partial=partial)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("is_alive", [True, False])
def test_committed_rows_of_an_open_writer_are_read_on_demand(path, hold, is_alive):
    child = hold("latest", "swmr")
    if not is_alive:
        child.kill()
        child.wait()
    with pytest.raises(ingot.UnfinishedFileError, match=str(path)):
        ingot.open(path)
    ds = ingot.open(path, partial=True)
    assert ds[[99, 0]]["x"].tolist() == [99, 0]
    assert pickle.loads(pickle.dumps(ds))[5] == {"x": 5}  # noqa: S301


@pytest.mark.parametrize("content", [b"", b"text\n", b"\x89HDF\r\n\x1a", b"\0" * 5000])
def test_a_file_that_is_not_hdf5_is_reported(path, content):
    path.write_bytes(content)
    with pytest.raises(ingot.FormatError, match=f"^{path}: this is not an HDF5 file") as caught:
        ingot.open(path)
    assert caught.value.path == str(path)
    with pytest.raises(ingot.FormatError, match=str(path)):
        ingot.open(path / "group")


def test_missing_and_irregular_files_are_reported(path):
    for missing in (path, path / "group"):
        with pytest.raises(FileNotFoundError, match=str(missing)):
            ingot.open(missing)
    path.mkdir()
    with pytest.raises(ingot.FormatError, match=f"^{path}: this directory holds no record files"):
        ingot.open(path)


@pytest.mark.parametrize("version", ["earliest", "v110", "latest"])
def test_a_truncated_file_is_reported(path, version):
    with h5py.File(path, "w", libver=version) as file:
        file["x"] = np.arange(1000)
        file.create_dataset("packed", data=np.arange(1000), chunks=(100,), compression="gzip")
        file["text"] = [f"row {k}" for k in range(1000)]
    content = path.read_bytes()
    for length in [*range(100, len(content), 501), len(content) - 1]:
        path.write_bytes(content[:length])
        message = f"^{path}: the file is truncated: {length} of {len(content)} bytes"
        with pytest.raises(ingot.CorruptFileError, match=message) as caught:
            ingot.open(path)
        assert caught.value.offset == length


def test_a_chunk_beyond_the_end_of_a_file_is_reported(path):
    with h5py.File(path, "w", libver="earliest") as file:
        file["first"] = np.arange(10)
        file.create_dataset("chunked", data=np.arange(1000).reshape(10, 100), chunks=(1, 100))
    length = place_of(path, "chunked", 5) + 3
    content = path.read_bytes()
    path.write_bytes(content[:40] + struct.pack("<Q", length) + content[48:length])
    with pytest.raises(ingot.CorruptFileError, match=r"ends past the .* bytes of the file"):
        ingot.open(path)[0]
    assert ingot.open(path).select("first")[9] == {"first": 9}


FAR = struct.pack("<Q", 1 << 40)
MOST = b"\xff" * 8
LIES = {
    "length more than its object has": ("text", 0, struct.pack("<I", 4)),
    "length more than the file has": ("text", 0, MOST[:4]),
    "address behind the file": ("text", 4, FAR),
    "address that overflows": ("text", 4, MOST),
    "address of no heap": ("text", 4, struct.pack("<Q", 96)),
    "address at the end of the file": ("text", 4, None),
    "index of no object": ("text", 12, struct.pack("<I", 77)),
    "index past all objects": ("text", 12, MOST[:4]),
    "index of free space": ("text", 12, struct.pack("<I", 0)),
    "signature of no heap": ("heap", 0, b"GCOK"),
    "version of no heap": ("heap", 4, b"\7"),
    "heap of no size": ("heap", 8, bytes(8)),
    "heap smaller than any": ("heap", 8, struct.pack("<Q", 64)),
    "heap longer than the file": ("heap", 8, FAR),
    "heap that overflows": ("heap", 8, MOST),
    "object of another index": ("heap", 16, b"\x4d\0"),
    "object longer than the heap": ("heap", 24, struct.pack("<Q", 5000)),
    "object that overflows": ("heap", 24, MOST),
    "object shorter than its value": ("heap", 24, struct.pack("<Q", 2)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_heap_or_a_reference_that_lies_is_damage_of_its_row(plain, lie):
    where, offset, data = LIES[lie]
    text, heap = place_of(plain, "text"), plain.read_bytes().index(b"GCOL")
    end = struct.pack("<Q", plain.stat().st_size - 8)
    # The first object is that of the last row, which is written first.
    first = 0 if plain.read_bytes()[heap + 32 : heap + 35] == b"one" else 2
    row = 0 if where == "text" else first
    place = text + offset if where == "text" else heap + offset
    patch(plain, place, end if data is None else data)
    ds = ingot.open(plain)
    with pytest.raises(ingot.CorruptFileError, match=f"^{plain}: record {row}: ") as caught:
        ds[row]
    assert (caught.value.path, caught.value.record) == (str(plain), row)
    with pytest.raises(ingot.CorruptFileError, match=f"^{plain}: record "):
        ds[[1, 2, 0]]
    assert ds.select("number")[[1, 2, 0]]["number"].tolist() == [8, 9, 7]
    damaged = [one.record for one in ds.verify().damaged]
    assert row in damaged
    assert 1 not in damaged
    assert ds[1] == {"number": 8, "text": ""}


def test_invalid_text_is_reported_with_its_row(path):
    with h5py.File(path, "w") as file:
        file["fixed"] = np.array([b"ok", b"\xff\xfe", b"y"])
        text = file.create_dataset("text", (3,), h5py.string_dtype())
        text[:] = ["ok", b"\xc3(", "y"]
        packed = file.create_dataset("packed", (3,), h5py.string_dtype(), compression="gzip")
        packed[:] = ["ok", b"\xc3(", "y"]
    ds = ingot.open(path)
    for name in ds.spec:
        message = f"^{path}: row 1: field '{name}' is not valid utf8"
        for read in (lambda part: part[1], lambda part: part[[2, 0, 1]]):
            with pytest.raises(ingot.FormatError, match=message):
                read(ds.select(name))
        assert ds.select(name)[[2, 0]] == {name: ["y", "ok"]}
    assert [one.record for one in ds.verify().damaged] == [1]


def test_a_filter_that_is_not_installed_is_named(path):
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", data=np.arange(10), chunks=(5,), compression="gzip")
        file["y"] = np.arange(10)
    name = path.read_bytes().index(b"deflate\0")
    patch(path, name - 8, struct.pack("<HHH", 32015, 8, 0))  # Zstandard, which must be there.
    ds = ingot.open(path)
    with pytest.raises(ingot.FormatError, match=r"x.h5: .*filter.*hdf5plugin") as caught:
        ds[3]
    assert not isinstance(caught.value, ingot.CorruptFileError)
    assert ds.select("y")[3] == {"y": 3}


@pytest.mark.parametrize("kind", ["cut", "flip"])
def test_no_damaged_byte_is_more_than_an_error_or_another_value(path, run_fault, kind):
    outcome = run_fault("hdf5_damage.py", path, kind, timeout=200)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    seen = dict(one.split("=") for one in outcome.stdout.split())
    assert set(seen) == {"cut": {"error"}, "flip": {"error", "right", "other"}}[kind]


CHANGES = {
    "in place": lambda path: os.utime(path, ns=(1, 1)),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "shorter": lambda path: os.truncate(path, path.stat().st_size - 8),
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: path.with_name("other.h5").replace(path),
}


@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_changed_is_rejected(path, change, compression, is_warm):
    for name, shift in ((path, 0), (path.with_name("other.h5"), 1)):
        with h5py.File(name, "w") as file:
            data = np.arange(10) + shift
            file.create_dataset("x", data=data, chunks=(2,), compression=compression)
    os.utime(path.with_name("other.h5"), ns=(5, 5))
    ds = ingot.open(path)
    if is_warm:
        assert ds[3] == {"x": 3}
    pickled = pickle.dumps(ds)
    CHANGES[change](path)
    tries = [lambda: ds[3], lambda: ds[[1, 2]], lambda: list(ds), lambda: ds.column("x")]
    tries += [lambda: ds[::2].column("x"), lambda: ds.take([1, 2]).column("x")]
    for read in tries:
        with pytest.raises((ingot.FormatError, FileNotFoundError), match=str(path)):
            read()
    with pytest.raises((ingot.FormatError, FileNotFoundError), match=str(path)):
        pickle.loads(pickled)  # noqa: S301


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_closed_data_set_refuses_to_read(path, compression):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(10), chunks=(2,), compression=compression)
    with ingot.open(path) as ds:
        assert ds[3] == {"x": 3}
    ds.close()
    tries = [lambda: ds[3], lambda: ds[[1, 2]], lambda: ds.column("x"), ds.verify]
    tries += [lambda: ds.take([2]).column("x"), lambda: next(iter(ds))]
    for read in tries:
        with pytest.raises(ingot.ClosedError, match=str(path)):
            read()
    with h5py.File(path, "a") as file:  # Nothing holds it.
        file["y"] = 1


def make(path, rows):
    with h5py.File(path, "w") as file:
        image = np.arange(rows * 12, dtype="i4").reshape(rows, 3, 4)
        file.create_dataset("image", data=image, chunks=(7, 2, 4))
        file.create_dataset("packed", data=image + 1, chunks=(7, 3, 4), compression="gzip")
        file["label"] = np.arange(rows)
        file["text"] = [f"row {k}" for k in range(rows)]
    return ingot.open(path)


def check(rows):
    """Return the labels of rows whose fields belong together."""
    for row in rows:
        k = int(row["label"])
        assert row["image"].tolist() == np.arange(12 * k, 12 * k + 12).reshape(3, 4).tolist()
        assert (row["packed"] == row["image"] + 1).all()
        assert row["text"] == f"row {k}"
    return [int(row["label"]) for row in rows]


def test_threads_read_at_once(path):
    make(path, 200).close()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            ds, start = ingot.open(path), threading.Barrier(8)

            def work(seed, ds=ds, start=start):
                order = np.random.default_rng(seed).integers(0, 200, 20)
                part = ds.select(["label", "text", "image", "packed"][seed % 4], "label")
                start.wait()
                assert part[order]["label"].tolist() == order.tolist()
                assert ds.column("label").tolist() == list(range(200))
                assert ds.metadata == {}
                return check([ds[k] for k in order]) == order.tolist()

            with ThreadPoolExecutor(8) as pool:
                assert all(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_forks_while_threads_read_find_the_same(path, run_fault, compression):
    outcome = run_fault("hdf5_forks.py", path, compression, 60, timeout=120)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "[]", outcome.stderr


def test_a_data_set_pickles_to_a_path(path):
    ds = make(path, 5000)
    for one in (ds, ds[5:], ds.select("text", "label"), ingot.open(path / "label")):
        assert one[7]["label"] in {7, 12}
        pickled = pickle.dumps(one)
        assert len(pickled) < 1000
        assert pickle.loads(pickled)[-1]["label"] == 4999  # noqa: S301


def test_without_h5py_the_error_says_how_to_install_it(plain, run_fault):
    outcome = run_fault("hdf5_missing.py", plain)
    assert outcome.returncode == 0, outcome.stderr
    hint = "pip install 'ingot-data[hdf5]' (in a checkout: pip install '.[hdf5]')"
    assert outcome.stdout == f"h5py: HDF5 requires h5py: {hint}"


def test_an_interrupt_while_hdf5_is_written_crashes_nothing(tmp_path, run_fault):
    outcome = run_fault("hdf5_interrupted.py", tmp_path, 60)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert int(outcome.stdout) > 10

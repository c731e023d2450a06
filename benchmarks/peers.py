"""The systems that are compared, each behind the same few calls; nothing here measures."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import itertools
import mmap
import os
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 64
"""Records in a batch, wherever records are read in batches."""

_LMDB_MAP_BYTES = 1 << 40
_LMDB_COMMIT_RECORDS = 100_000
_ARROW_BATCH_RECORDS = 1024


def in_batches(indices: Iterable[int]) -> Iterator[list[int]]:
    """Yield `indices` in lists of `BATCH`."""
    iterator = iter(indices)
    while batch := list(itertools.islice(iterator, BATCH)):
        yield batch


@dataclass(frozen=True)
class Reader:
    """An open file of a system.

    `one[i]` is a record, `batch(indices)` a sequence of records, `scan()` iterates over all of
    them, and `stream(indices)` over any order with whatever read-ahead the system has.
    """

    one: Any
    batch: Callable[[list[int]], Sequence[Any]]
    scan: Callable[[], Iterable[Any]]
    stream: Callable[[Iterable[int]], Iterable[Any]]
    close: Callable[[], object]


def _streamed(batch: Callable[[list[int]], Sequence[Any]]) -> Callable[[Iterable[int]], Any]:
    """Return a stream made of batched reads, for a system that has no stream of its own."""
    return lambda indices: itertools.chain.from_iterable(map(batch, in_batches(indices)))


class _Indexed:
    """Gives a function the syntax of a sequence: `indexed[i]`."""

    def __init__(self, get: Callable[[int], Any]) -> None:
        self._get = get

    def __getitem__(self, index: int) -> Any:
        return self._get(index)


class System:
    """One way to store records. `variant_of` names the system whose file it reads."""

    name: str
    bench = "records"
    package: str | None = None
    suffix: str
    variant_of: str | None = None

    def version(self) -> str:
        """Return the installed version, or raise PackageNotFoundError."""
        return importlib.metadata.version(self.package) if self.package else "-"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write `records` to a new file at `path` and close it, without forcing it to the disk."""
        raise NotImplementedError

    def write_synced(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write as `write` does, and return once the bytes are on the disk."""
        self.write(path, records, compressed=compressed)
        for file in self.files(path):
            sync(file)

    def open(self, path: Path) -> Reader:
        """Open what `write` left at `path`."""
        raise NotImplementedError

    def files(self, path: Path) -> list[Path]:
        """Return the files that hold what was written to `path`."""
        return [path]

    def remove(self, path: Path) -> None:
        """Delete what `write` left at `path`."""
        for file in self.files(path):
            file.unlink(missing_ok=True)

    def size(self, path: Path) -> int:
        """Return the bytes that are used on the disk."""
        return sum(file.stat().st_size for file in self.files(path))


def sync(path: Path) -> None:
    """Force the content of a file to the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Ingot(System):
    """This library: a list of indices is one native read, checksums are verified."""

    name = "ingot"
    package = "ingot-data"
    suffix = ".ingot"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write with `extend`, and checksums as always."""
        self._write(path, records, compressed=compressed, sync=False)

    def write_synced(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Let the writer itself sync."""
        self._write(path, records, compressed=compressed, sync=True)

    def _write(self, path: Path, records: Iterable[bytes], *, compressed: bool, sync: bool) -> None:
        ingot = importlib.import_module("ingot")
        compression = "auto" if compressed else None
        with ingot.Writer(path, compression=compression, overwrite=True, sync=sync) as writer:
            self._fill(writer, records)

    def _fill(self, writer: Any, records: Iterable[bytes]) -> None:
        writer.extend(records)

    def open(self, path: Path) -> Reader:
        """Open with the defaults."""
        reader = importlib.import_module("ingot").open(path)
        return Reader(reader, reader.__getitem__, reader.__iter__, reader.iter, reader.close)


class IngotAppend(Ingot):
    """The same writer, called once per record."""

    name = "ingot append()"
    variant_of = "ingot"

    def _fill(self, writer: Any, records: Iterable[bytes]) -> None:
        for record in records:
            writer.append(record)


class IngotViews(Ingot):
    """The same reader without a bytes object per record: numpy views on one buffer."""

    name = "ingot read()"
    variant_of = "ingot"

    def open(self, path: Path) -> Reader:
        """Open with the defaults; a batch is one buffer."""
        reader = importlib.import_module("ingot").open(path)
        return Reader(reader, reader.read, reader.__iter__, reader.iter, reader.close)


class IngotFfr(System):
    """FFRecord's file and API, as this library has them: arrays of bytes, checksums verified."""

    name = "ingot ffrecord"
    package = "ingot-data"
    suffix = ".ffr"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write without a known count; the container has no compression."""
        del compressed
        ffrecord = importlib.import_module("ingot.compat.ffrecord")
        with ffrecord.FileWriter(path, sync=False) as writer:
            for record in records:
                writer.write_one(record)

    def open(self, path: Path) -> Reader:
        """Open with the defaults."""
        reader = importlib.import_module("ingot.compat.ffrecord").FileReader(path)
        stream = _streamed(reader.read)
        return Reader(reader, reader.read, lambda: stream(range(reader.n)), stream, reader.close)


class Bagz(System):
    """Bagz on one thread, which is its fast setting while the data is in memory."""

    name = "bagz"
    package = "bagz"
    suffix = ".bagz"
    max_parallelism = 1

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write with its defaults for the wanted compression."""
        bagz = importlib.import_module("bagz")
        codec = bagz.CompressionZstd() if compressed else bagz.CompressionNone()
        with bagz.Writer(path, bagz.Writer.Options(compression=codec)) as writer:
            for record in records:
                writer.write(record)
        path.with_suffix(".codec").write_text("zstd" if compressed else "none")

    def open(self, path: Path) -> Reader:
        """Open with the compression that `write` chose."""
        bagz = importlib.import_module("bagz")
        zstd = path.with_suffix(".codec").read_text() == "zstd"
        codec = bagz.CompressionZstd() if zstd else bagz.CompressionNone()
        options = bagz.Reader.Options(max_parallelism=self.max_parallelism, compression=codec)
        reader = bagz.Reader(path, options)
        return Reader(
            reader, reader.read_indices, reader.__iter__, reader.read_indices_iter, lambda: None
        )

    def remove(self, path: Path) -> None:
        """Delete the file and the note of its compression."""
        super().remove(path)
        path.with_suffix(".codec").unlink(missing_ok=True)


class BagzThreads(Bagz):
    """Bagz with the parallelism it has by default, which helps when the data is on the disk."""

    name = "bagz threads"
    variant_of = "bagz"
    max_parallelism = 100


class Granular(System):
    """Granular's bag of bytes; it reads ranges at once, but no batches of any indices."""

    name = "granular"
    package = "granular"
    suffix = ".bag"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:  # noqa: ARG002
        """Write batch by batch; there is no compression to choose."""
        granular = importlib.import_module("granular")
        with granular.BagWriter(str(path)) as writer:
            for number, record in enumerate(records, 1):
                writer.append(record, flush=number % BATCH == 0)

    def open(self, path: Path) -> Reader:
        """Open with the index in memory."""
        reader = importlib.import_module("granular").BagReader(str(path))
        ranges = [range(start, start + BATCH) for start in range(0, len(reader), BATCH)]

        def batch(indices: list[int]) -> list[bytes]:
            return [reader[index] for index in indices]

        return Reader(
            reader,
            batch,
            lambda: itertools.chain.from_iterable(map(reader.__getitem__, ranges)),
            _streamed(batch),
            reader.close,
        )

    def files(self, path: Path) -> list[Path]:
        """Return the bag and its index."""
        return [path, path.with_suffix(".idx")]


class ArrayRecord(System):
    """ArrayRecord with one record per group, its setting for random access."""

    name = "array-record"
    package = "array-record"
    suffix = ".array_record"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write with zstd, its default, or uncompressed."""
        module = importlib.import_module("array_record.python.array_record_module")
        codec = "zstd:3" if compressed else "uncompressed"
        writer = module.ArrayRecordWriter(str(path), f"group_size:1,{codec}")
        for record in records:
            writer.write(record)
        writer.close()

    def open(self, path: Path) -> Reader:
        """Open with the options that its documentation gives for random access."""
        module = importlib.import_module("array_record.python.array_record_module")
        options = "readahead_buffer_size:0,max_parallelism:0"
        reader = module.ArrayRecordReader(str(path), options)
        ahead = module.ArrayRecordReader(str(path), "readahead_buffer_size:16M,max_parallelism:0")

        def scan() -> Iterator[bytes]:
            ahead.seek(0)
            return (ahead.read() for _ in range(ahead.num_records()))

        def close() -> None:
            reader.close()
            ahead.close()

        one = _Indexed(lambda index: reader.read([index])[0])
        return Reader(one, reader.read, scan, _streamed(reader.read), close)


class Lmdb(System):
    """LMDB with big-endian numbers as keys, written in order."""

    name = "lmdb"
    package = "lmdb"
    suffix = ".lmdb"
    _key = struct.Struct(">Q").pack

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:  # noqa: ARG002
        """Write in large transactions that append; there is no compression to choose."""
        lmdb = importlib.import_module("lmdb")
        options = {"map_size": _LMDB_MAP_BYTES, "subdir": False, "sync": False, "lock": False}
        numbered = enumerate(records)
        with lmdb.open(str(path), **options) as env:
            added = _LMDB_COMMIT_RECORDS
            while added == _LMDB_COMMIT_RECORDS:
                part = itertools.islice(numbered, _LMDB_COMMIT_RECORDS)
                items = ((self._key(index), record) for index, record in part)
                with env.begin(write=True) as txn, txn.cursor() as cursor:
                    _, added = cursor.putmulti(items, append=True)

    def open(self, path: Path) -> Reader:
        """Open without read-ahead, as its documentation advises for random access."""
        lmdb = importlib.import_module("lmdb")
        env = lmdb.open(str(path), readonly=True, lock=False, subdir=False, readahead=False)
        txn = env.begin()
        key = self._key

        def batch(indices: list[int]) -> list[bytes]:
            return [txn.get(key(index)) for index in indices]

        def scan() -> Iterator[bytes]:
            return txn.cursor().iternext(keys=False, values=True)

        one = _Indexed(lambda index: txn.get(key(index)))
        return Reader(one, batch, scan, _streamed(batch), env.close)


class H5py(System):
    """HDF5: rows of a matrix if all records are equally long, else variable-length rows."""

    name = "h5py"
    package = "h5py"
    suffix = ".h5"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write block by block; HDF5 cannot compress rows of variable length."""
        h5py = importlib.import_module("h5py")
        with h5py.File(path, "w") as file:
            rows = None
            iterator = iter(records)
            while block := list(itertools.islice(iterator, 1024)):
                arrays = [np.frombuffer(record, np.uint8) for record in block]
                rows = (
                    self._rows(file, len(block[0]), fixed=not compressed) if rows is None else rows
                )
                rows.resize(rows.shape[0] + len(block), axis=0)
                rows[-len(block) :] = np.stack(arrays) if rows.ndim == 2 else _ragged(arrays)

    def _rows(self, file: Any, width: int, *, fixed: bool) -> Any:
        if not fixed:
            dtype = importlib.import_module("h5py").vlen_dtype(np.uint8)
            return file.create_dataset("records", (0,), dtype, maxshape=(None,), chunks=(1024,))
        chunk = max(1, 65536 // width)
        return file.create_dataset(
            "records", (0, width), np.uint8, maxshape=(None, width), chunks=(chunk, width)
        )

    def open(self, path: Path) -> Reader:
        """Open with the default chunk cache."""
        file = importlib.import_module("h5py").File(path, "r")
        rows = file["records"]

        def batch(indices: list[int]) -> list[bytes]:
            return [rows[index].tobytes() for index in indices]

        def scan() -> Iterator[bytes]:
            blocks = (rows[start : start + 1024] for start in range(0, len(rows), 1024))
            return (row.tobytes() for block in blocks for row in block)

        one = _Indexed(lambda index: rows[index].tobytes())
        return Reader(one, batch, scan, _streamed(batch), file.close)


def _ragged(arrays: list[np.ndarray]) -> np.ndarray:
    """Return an array of arrays, also when all have the same length."""
    ragged = np.empty(len(arrays), object)
    ragged[:] = arrays
    return ragged


class Lance(System):
    """Lance with one column of binary values."""

    name = "pylance"
    package = "pylance"
    suffix = ".lance"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write one fragment from a stream of Arrow batches."""
        lance = importlib.import_module("lance")
        pyarrow = importlib.import_module("pyarrow")
        metadata = {"lance-encoding:compression": "zstd"} if compressed else None
        field = pyarrow.field("record", pyarrow.large_binary(), metadata=metadata)
        schema = pyarrow.schema([field])

        def batches() -> Iterator[Any]:
            iterator = iter(records)
            while block := list(itertools.islice(iterator, _ARROW_BATCH_RECORDS)):
                column = pyarrow.array(block, pyarrow.large_binary())
                yield pyarrow.record_batch([column], schema=schema)

        lance.write_dataset(batches(), str(path), schema=schema, mode="create")

    def open(self, path: Path) -> Reader:
        """Open the latest version."""
        dataset = importlib.import_module("lance").dataset(str(path))

        def batch(indices: list[int]) -> list[bytes]:
            return dataset.take(indices).column(0).to_pylist()

        def scan() -> Iterator[bytes]:
            return (row for part in dataset.to_batches() for row in part.column(0).to_pylist())

        one = _Indexed(lambda index: batch([index])[0])
        return Reader(one, batch, scan, _streamed(batch), lambda: None)

    def files(self, path: Path) -> list[Path]:
        """Return every file of the dataset's directory."""
        return [file for file in path.rglob("*") if file.is_file()]

    def remove(self, path: Path) -> None:
        """Delete the dataset's directory."""
        shutil.rmtree(path, ignore_errors=True)


class Mapping(System):
    """The reference: records end to end, mapped and sliced from Python. Nothing is checked."""

    name = "mmap"
    suffix = ".bin"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:  # noqa: ARG002
        """Write the bytes and the ends."""
        ends, end = [], 0
        with path.open("wb") as file:
            for record in records:
                end += file.write(record)
                ends.append(end)
        np.array(ends, np.int64).tofile(path.with_suffix(".ends"))

    def open(self, path: Path) -> Reader:
        """Map the bytes and load the ends."""
        bounds = [0, *np.fromfile(path.with_suffix(".ends"), np.int64).tolist()]
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

        def batch(indices: list[int]) -> list[bytes]:
            return [data[bounds[index] : bounds[index + 1]] for index in indices]

        def scan() -> Iterator[bytes]:
            return (data[start:end] for start, end in itertools.pairwise(bounds))

        one = _Indexed(lambda index: data[bounds[index] : bounds[index + 1]])
        return Reader(one, batch, scan, _streamed(batch), data.close)

    def files(self, path: Path) -> list[Path]:
        """Return the bytes and the ends."""
        return [path, path.with_suffix(".ends")]


@dataclass(frozen=True)
class Layout:
    """One of the ways to lay out an ArrayRecord file."""

    name: str
    dataset: str
    options: str


LAYOUTS = (
    Layout("zstd", "4kb", "group_size:1,zstd:3"),
    Layout("uncompressed", "4kb", "group_size:1,uncompressed"),
    Layout("groups", "text", "group_size:256,zstd:3"),
)


class LaidOut(System):
    """ArrayRecord itself on files of one layout: its reader, its data source for single reads."""

    bench = "arrayrecord"
    label = "array-record"
    package = "array-record"
    suffix = ".array_record"
    scan_options = "readahead_buffer_size:16M,max_parallelism:0"
    module = "array_record.python"

    def __init__(self, layout: Layout) -> None:
        """Make the system of a layout."""
        self.layout = layout
        self.name = f"{self.label} {layout.name}"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write as the layout says."""
        del compressed
        module = importlib.import_module(f"{self.module}.array_record_module")
        writer = module.ArrayRecordWriter(str(path), self.layout.options)
        for record in records:
            writer.write(record)
        writer.close()

    def open(self, path: Path) -> Reader:
        """Open with the options that its documentation gives for each kind of access."""
        module = importlib.import_module(f"{self.module}.array_record_module")
        source = importlib.import_module(f"{self.module}.array_record_data_source")
        random = module.ArrayRecordReader(str(path), "readahead_buffer_size:0,max_parallelism:0")
        ahead = module.ArrayRecordReader(str(path), self.scan_options)

        def scan() -> Iterator[bytes]:
            ahead.seek(0)
            return (ahead.read() for _ in range(ahead.num_records()))

        def close() -> None:
            random.close()
            ahead.close()

        one = source.ArrayRecordDataSource(str(path))
        return Reader(one, random.read, scan, _streamed(random.read), close)


class LaidOutParallel(LaidOut):
    """The same, with the options by which it decodes on several threads in a scan."""

    label = "array-record parallel"
    scan_options = ""

    def __init__(self, layout: Layout) -> None:
        """Make the system of a layout."""
        super().__init__(layout)
        self.variant_of = f"{LaidOut.label} {layout.name}"


class IngotLaidOut(LaidOutParallel):
    """This library through ArrayRecord's API, on the files that ArrayRecord wrote."""

    label = "ingot compat"
    package = "ingot-data"
    module = "ingot.compat.array_record"


class IngotReads(LaidOutParallel):
    """This library through its own API, on the files that ArrayRecord wrote."""

    label = "ingot"
    package = "ingot-data"

    def open(self, path: Path) -> Reader:
        """Open with the defaults."""
        reader = importlib.import_module("ingot").open(path)
        scan = functools.partial(iter, reader)
        return Reader(reader, reader.__getitem__, scan, reader.iter, reader.close)


class IngotWrites(LaidOut):
    """This library writing ArrayRecord files."""

    label = "ingot writer"
    package = "ingot-data"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write as the layout says."""
        del compressed
        options = importlib.import_module("ingot.compat.array_record.options")
        module = importlib.import_module("ingot.formats.arrayrecord")
        arguments = options.parse_writer_options(self.layout.options)
        with module.ArrayRecordWriter(path, **arguments) as writer:
            writer.extend(records)


_LAID_OUT = (LaidOut, LaidOutParallel, IngotReads, IngotLaidOut, IngotWrites)

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        *(kind(layout) for layout in LAYOUTS for kind in _LAID_OUT),
        Ingot(),
        IngotViews(),
        IngotAppend(),
        IngotFfr(),
        Bagz(),
        BagzThreads(),
        Granular(),
        ArrayRecord(),
        Lmdb(),
        H5py(),
        Lance(),
        Mapping(),
    )
}


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each of `names` that can be used here."""
    versions = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = SYSTEMS[name].version()
    return versions

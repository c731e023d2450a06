"""Bags, read and written by Granular, by Bagz and by Ingot through each of its APIs."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from peers import BATCH, SYSTEMS, Granular, Reader, System


@dataclass(frozen=True)
class Bag:
    """One of the kinds of bags, and which records it holds."""

    name: str
    dataset: str
    suffix: str
    peer: str
    title: str

    @property
    def has_separate_limits(self) -> bool:
        """Return whether it is of two files, as Granular writes it."""
        return self.peer == "granular"


BAGS = (
    Bag("granular", "4kb", ".bag", "granular", "4 KB, Granular's .bag and .idx"),
    Bag("plain", "4kb", ".bag", "bagz", "4 KB, Bagz's .bag"),
    Bag("zstd", "text", ".bagz", "bagz", "1 KB text, Bagz's .bagz"),
)


class BagSystem(System):
    """A way to read or write bags of one kind; those who only read share the peer's file."""

    bench = "bags"
    label: str

    def __init__(self, bag: Bag) -> None:
        """Make the system of a kind of bags."""
        self.bag = bag
        self.name = f"{self.label} {bag.name}"
        self.suffix = bag.suffix

    def files(self, path: Path) -> list[Path]:
        """Return the bag, and its limits where they are apart."""
        return [path, path.with_suffix(".idx")] if self.bag.has_separate_limits else [path]


class RealBagz(BagSystem):
    """Bagz on one thread, which is its fast setting while the data is in memory."""

    label = "bagz"
    package = "bagz"
    module = "bagz"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write one record after the other."""
        del compressed
        with importlib.import_module(self.module).Writer(path) as writer:
            for record in records:
                writer.write(record)

    def open(self, path: Path) -> Reader:
        """Open with one thread."""
        bagz = importlib.import_module(self.module)
        reader = bagz.Reader(path, bagz.Reader.Options(max_parallelism=1))
        return Reader(
            reader, reader.read_indices, reader.__iter__, reader.read_indices_iter, lambda: None
        )


class RealGranular(BagSystem):
    """Granular, which flushes after each batch."""

    label = "granular"
    package = "granular"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write batch by batch."""
        Granular().write(path, records, compressed=compressed)

    def open(self, path: Path) -> Reader:
        """Open with the index in memory."""
        return Granular().open(path)


class IngotBags(BagSystem):
    """This library through its own API."""

    label = "ingot"
    package = "ingot"

    def __init__(self, bag: Bag) -> None:
        """Make the system of a kind of bags."""
        super().__init__(bag)
        self.variant_of = f"{bag.peer} {bag.name}"

    def open(self, path: Path) -> Reader:
        """Open with the defaults."""
        reader = importlib.import_module("ingot").open(path)
        return Reader(reader, reader.__getitem__, reader.__iter__, reader.iter, reader.close)


class IngotWritesBags(BagSystem):
    """This library writing bags."""

    label = "ingot writer"
    package = "ingot"

    def write(self, path: Path, records: Iterable[bytes], *, compressed: bool) -> None:
        """Write with `extend`; a bag of two files is flushed after each batch."""
        module = importlib.import_module("ingot.formats.bag")
        level = 0 if compressed else None
        if not self.bag.has_separate_limits:
            with module.BagWriter(path, level=level) as writer:
                writer.extend(records)
            return
        with module.BagWriter(path, path.with_suffix(".idx")) as writer:
            for number, record in enumerate(records, 1):
                writer.append(record)
                if number % BATCH == 0:
                    writer.flush()


class IngotBagz(RealBagz):
    """This library through Bagz's API."""

    label = "ingot compat"
    package = "ingot"
    module = "ingot.compat.bagz"

    def __init__(self, bag: Bag) -> None:
        """Make the system of a kind of bags."""
        super().__init__(bag)
        self.variant_of = f"{bag.peer} {bag.name}"


class IngotGranular(IngotBags):
    """This library through Granular's API."""

    label = "ingot compat"

    def open(self, path: Path) -> Reader:
        """Open with the defaults."""
        reader = importlib.import_module("ingot.compat.granular").BagReader(str(path))

        def batch(indices: list[int]) -> list[bytes]:
            return [reader[index] for index in indices]

        return Reader(
            reader,
            batch,
            lambda: map(reader.__getitem__, range(len(reader))),
            lambda indices: map(reader.__getitem__, indices),
            reader.close,
        )


def _kinds(bag: Bag) -> list[type[BagSystem]]:
    if bag.peer == "bagz":
        return [RealBagz, IngotBags, IngotBagz, IngotWritesBags]
    kinds: list[type[BagSystem]] = [RealGranular, IngotBags, IngotWritesBags]
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("ingot.compat.granular")
        kinds.append(IngotGranular)
    return kinds


SYSTEMS.update({system.name: system for bag in BAGS for system in (k(bag) for k in _kinds(bag))})

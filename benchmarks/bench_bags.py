"""How fast are the bags of Granular and Bagz, read and written by them and by Ingot?"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import command
import measure
from bags import BAGS, Bag
from data import DATASETS, Source
from measure import Store, WarmReader, in_fresh_process
from peers import SYSTEMS
from report import Goal, Question, Row
from rounds import interleaved, label

_READS = {"granular": {"one": 5}, "bagz": {"batch": 1.5, "one": None, "scan": None}}
"""How records of each peer's bags are read, and how many times as fast it is to be."""
_TITLES = {
    "batch": "random batches of 64",
    "one": "one at a time, at random",
    "scan": "sequential",
    "write": "write to close()",
}


@dataclass(frozen=True)
class Settings:
    """How long and how large."""

    directory: Path
    rounds: int = 5
    window_s: float = 0.3
    num_records: int = 100_000
    bags: tuple[Bag, ...] = BAGS


def _question(bag: Bag, kind: str, factor: float | None) -> Question:
    goals = () if factor is None else (Goal(factor, "best peer"),)
    return Question(f"{kind}-{bag.name}", f"{_TITLES[kind]}, {bag.title}", goals=goals)


def ask(settings: Settings) -> Iterator[list[Row]]:
    """Write bags of each kind, read them in every way, and yield the rows of each question."""
    for bag in settings.bags:
        dataset = DATASETS[bag.dataset].resized(settings.num_records)
        source = Source(dataset, settings.directory)
        source.prepare()
        stores = [
            Store(name, f"{dataset.name}-{bag.name}", dataset.size, settings.directory)
            for name, system in SYSTEMS.items()
            if getattr(system, "bag", None) == bag
        ]
        yield from _ask_about(settings, bag, source, stores)
        for store in stores:
            store.system.remove(store.path)


def _ask_about(
    settings: Settings, bag: Bag, source: Source, stores: list[Store]
) -> Iterator[list[Row]]:
    def write(store: Store, _: int) -> float:
        seconds = in_fresh_process(measure.write_seconds, store, source, synced=False)
        return source.dataset.size / seconds

    writers = [store for store in stores if label(store) != "ingot compat"]
    writers = [store for store in writers if store.system_name != f"ingot {bag.name}"]
    yield interleaved(_question(bag, "write", None), writers, settings.rounds, write)
    readers = [store for store in stores if not store.system_name.startswith("ingot writer")]
    open_readers = {store: WarmReader(store, source) for store in readers}
    for kind, factor in _READS[bag.peer].items():

        def read(store: Store, seed: int, kind: str = kind) -> float:
            return open_readers[store].rate(kind, settings.window_s, seed)

        yield interleaved(_question(bag, kind, factor), readers, settings.rounds, read)
    for reader in open_readers.values():
        reader.close()


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    names = [bag.name for bag in BAGS]
    arguments = command.parser(__doc__, "bags", "BAG", names).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    chosen = tuple(bag for bag in BAGS if not arguments.only or bag.name in arguments.only)
    settings = Settings(arguments.dir, bags=chosen)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 0.1, 20_000, chosen)
    described = {
        "rounds": settings.rounds,
        "window_s": settings.window_s,
        "records": settings.num_records,
    }
    versions = {
        name: importlib.metadata.version(name) for name in ("ingot-data", "bagz", "granular")
    }
    command.publish(arguments, described, versions, ask(settings))


if __name__ == "__main__":
    main()

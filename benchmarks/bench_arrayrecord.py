"""How fast are ArrayRecord's own files, read and written by ArrayRecord and by Ingot?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import command
import measure
from data import DATASETS, Source
from measure import Store, WarmReader, in_fresh_process
from peers import LAYOUTS, SYSTEMS, Layout, installed
from report import Goal, Question, Row
from rounds import interleaved, label

_READS = {"batch": 10, "one": 50, "scan": 2}
_TITLES = {
    "batch": "random batches of 64",
    "one": "data source, one at a time",
    "scan": "sequential",
    "write": "write to close()",
    "size": "size of the file",
}
_WRITERS = ("array-record", "ingot writer")


@dataclass(frozen=True)
class Settings:
    """How long and how large."""

    directory: Path
    rounds: int = 5
    window_s: float = 0.3
    num_records: int = 100_000
    layouts: tuple[Layout, ...] = LAYOUTS


def _question(layout: Layout, kind: str) -> Question:
    goals = {
        **{read: (Goal(factor, "best peer"),) for read, factor in _READS.items()},
        "write": (Goal(1.5, "best peer"),),
        "size": (Goal(1, "best peer"),),
    }
    size = "4 KB" if layout.dataset == "4kb" else "1 KB text"
    return Question(
        f"{kind}-{layout.name}",
        f"{_TITLES[kind]}, {size}, {layout.options}",
        unit="of the size" if kind == "size" else "rec/s",
        higher_is_better=kind != "size",
        goals=goals[kind],
    )


def ask(settings: Settings) -> Iterator[list[Row]]:
    """Write files of each layout, read them in every way, and yield the rows of each question."""
    for layout in settings.layouts:
        dataset = DATASETS[layout.dataset].resized(settings.num_records)
        source = Source(dataset, settings.directory)
        source.prepare()
        names = [name for name, system in SYSTEMS.items() if _is_of(system, layout)]
        stores = {
            name: Store(name, f"{dataset.name}-{layout.name}", dataset.size, settings.directory)
            for name in names
        }
        yield from _ask_about(settings, layout, source, stores)
        for store in stores.values():
            store.system.remove(store.path)


def _is_of(system: object, layout: Layout) -> bool:
    return getattr(system, "layout", None) == layout


def _ask_about(
    settings: Settings, layout: Layout, source: Source, stores: dict[str, Store]
) -> Iterator[list[Row]]:
    writers = [stores[f"{label} {layout.name}"] for label in _WRITERS]

    def write(store: Store, _: int) -> float:
        seconds = in_fresh_process(measure.write_seconds, store, source, synced=False)
        return source.dataset.size / seconds

    yield interleaved(_question(layout, "write"), writers, settings.rounds, write)
    size = _question(layout, "size")
    yield [
        Row(size, label(store), (store.system.size(store.path) / source.payload_bytes(),))
        for store in writers
    ]
    readers = [store for name, store in stores.items() if not name.startswith("ingot writer")]
    open_readers = {store: WarmReader(store, source) for store in readers}
    for kind in _READS:

        def read(store: Store, seed: int, kind: str = kind) -> float:
            return open_readers[store].rate(kind, settings.window_s, seed)

        yield interleaved(_question(layout, kind), readers, settings.rounds, read)
    for reader in open_readers.values():
        reader.close()


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    names = [layout.name for layout in LAYOUTS]
    arguments = command.parser(__doc__, "arrayrecord", "LAYOUT", names).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    chosen = tuple(one for one in LAYOUTS if not arguments.only or one.name in arguments.only)
    settings = Settings(arguments.dir, layouts=chosen)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 0.1, 20_000, chosen)
    described = {
        "rounds": settings.rounds,
        "window_s": settings.window_s,
        "records": settings.num_records,
    }
    command.publish(arguments, described, installed(["ingot", "array-record"]), ask(settings))


if __name__ == "__main__":
    main()

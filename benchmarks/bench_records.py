"""How fast, how small and how cheap are record files, Ingot's and others'?"""

from __future__ import annotations

import argparse
from dataclasses import replace

import command
from peers import SYSTEMS, installed
from questions import QUESTIONS, Settings, ask

_QUICK_SIZES = (("4kb", 30_000), ("text", 10_000), ("100kb", 1_000), ("1kb", 10_000))
_NAMES = [name for name, system in SYSTEMS.items() if system.bench == "records"]


def _parser() -> argparse.ArgumentParser:
    parser = command.parser(__doc__, "records", "QUESTION", [q.key for q in QUESTIONS])
    parser.add_argument("--systems", nargs="+", metavar="SYSTEM", choices=_NAMES)
    parser.add_argument("--open-records", type=int, help="records of the file that is opened")
    parser.add_argument("--memory-bytes", type=int, help="bytes written to see the writer grow")
    return parser


def _settings(arguments: argparse.Namespace, systems: tuple[str, ...]) -> Settings:
    settings = Settings(arguments.dir, systems)
    if arguments.quick:
        settings = replace(
            settings, rounds=2, slow_rounds=1, window_s=0.1, cold_window_s=0.3, sizes=_QUICK_SIZES,
            open_records=100_000, memory_bytes=128 << 20,
        )  # fmt: skip
    if arguments.only:
        asked = tuple(question for question in QUESTIONS if question.key in arguments.only)
        settings = replace(settings, questions=asked)
    sizes = {"open_records": arguments.open_records, "memory_bytes": arguments.memory_bytes}
    return replace(settings, **{name: size for name, size in sizes.items() if size})


def _described(settings: Settings) -> dict[str, object]:
    names = ("rounds", "slow_rounds", "window_s", "cold_window_s", "open_records", "memory_bytes")
    sizes = {name: settings.dataset(name).size for name in ("4kb", "text", "100kb", "1kb")}
    return {**{name: getattr(settings, name) for name in names}, "records": sizes}


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = _parser().parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    wanted = arguments.systems or _NAMES
    versions = installed(wanted)
    for name in wanted:
        if name not in versions:
            print(f"{name}: not installed, left out")
    settings = _settings(arguments, tuple(versions))
    command.publish(arguments, _described(settings), versions, ask(settings))


if __name__ == "__main__":
    main()

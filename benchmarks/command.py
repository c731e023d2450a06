"""What the commands of all benchmarks have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import report

_HOME = Path(__file__).resolve().parent.parent / ".bench"


def parser(
    description: str | None, name: str, metavar: str, choices: Iterable[str]
) -> argparse.ArgumentParser:
    """Return a parser of what every benchmark can be told."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="smaller data, fewer windows")
    made.add_argument("--only", nargs="+", metavar=metavar, choices=list(choices))
    made.add_argument("--json", type=Path, default=_HOME / f"{name}.json")
    made.add_argument("--chart", type=Path, default=_HOME / f"{name}.png")
    made.add_argument("--dir", type=Path, default=_HOME / "data", help="where the data goes")
    return made


def publish(
    arguments: argparse.Namespace,
    settings: dict[str, Any],
    versions: dict[str, str],
    answers: Iterable[Iterable[report.Row]],
) -> None:
    """Print answers as they come, and write the JSON file and the chart."""
    result = report.Report(report.machine(arguments.dir), settings, versions)
    result.print_head()
    for rows in answers:
        result.add(rows)
    result.print_goals()
    result.write_json(arguments.json)
    result.write_chart(arguments.chart)
    print(f"\nwritten: {arguments.json} {arguments.chart}")

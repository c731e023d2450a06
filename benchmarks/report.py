"""Results: the rows, the table on the terminal, the JSON file and the chart."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

OURS = "ingot"
REFERENCES = frozenset(
    {"mmap", "fio", "fio 2 jobs", "fio straddling", "fio in order", "import torch"}
)


@dataclass(frozen=True)
class Goal:
    """What Ingot is to reach: `factor` times the value of `versus`, or `factor` itself.

    `ours` names the way of Ingot's that is to reach it, where there are several.
    """

    factor: float
    versus: str | None = None
    ours: str = OURS


@dataclass(frozen=True)
class Question:
    """Something to find out about every system, on one data set.

    `versus` names the system that the others are compared with, if not with the best peer.
    """

    key: str
    title: str
    unit: str = "rec/s"
    dataset: str = "4kb"
    higher_is_better: bool = True
    goals: tuple[Goal, ...] = ()
    versus: str = "best peer"


@dataclass(frozen=True)
class Row:
    """The answer for one system: the best of its windows."""

    question: Question
    system: str
    windows: tuple[float, ...]
    note: str = ""

    @property
    def value(self) -> float | None:
        """Return the best window, or None if there was none."""
        best = max if self.question.higher_is_better else min
        return best(self.windows) if self.windows else None


@dataclass
class Report:
    """All rows of a run, with the machine and the settings it was made with."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    versions: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    def add(self, rows: Iterable[Row]) -> None:
        """Add the rows of one question and print them."""
        added = list(rows)
        self.rows += added
        print("\n".join(_section(added)), flush=True)

    def values(self, question: Question) -> dict[str, float]:
        """Return the value of each system that has one."""
        found = {row.system: row.value for row in self.rows if row.question == question}
        return {system: value for system, value in found.items() if value is not None}

    def print_head(self) -> None:
        """Print the machine, the settings and the versions."""
        for part in (self.machine, self.settings, self.versions):
            print("; ".join(f"{name} {value}" for name, value in part.items()))

    def print_goals(self) -> None:
        """Print what Ingot reached of what it is to reach."""
        print("\ngoals")
        for question in dict.fromkeys(row.question for row in self.rows):
            for goal in question.goals:
                reached = _reached(self.values(question), question, goal)
                print(f"  {question.title:<46} {reached} {self._note(question)}".rstrip())

    def _note(self, question: Question) -> str:
        """Return what was noted about Ingot's answer, such as the size it was measured at."""
        notes = [
            r.note for r in self.rows if r.question == question and r.system == OURS and r.note
        ]
        return f"({notes[0]})" if notes else ""

    def write_json(self, path: Path) -> None:
        """Write everything."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "machine": self.machine,
            "settings": self.settings,
            "versions": self.versions,
            "rows": [_plain(row) for row in self.rows],
        }
        path.write_text(json.dumps(content, indent=1) + "\n")

    def write_chart(self, path: Path) -> None:
        """Draw one panel of bars per question."""
        import matplotlib as mpl  # noqa: PLC0415  (slow to import, and not needed by the workers)

        mpl.use("agg")
        from matplotlib import pyplot as plt  # noqa: PLC0415

        questions = [q for q in dict.fromkeys(row.question for row in self.rows) if self.values(q)]
        num_columns = min(3, len(questions))
        num_rows = -(-len(questions) // num_columns)
        figure, axes = plt.subplots(
            num_rows, num_columns, figsize=(5 * num_columns, 3.2 * num_rows), squeeze=False
        )
        for axis, question in zip(axes.flat, questions, strict=False):
            _draw(axis, question, self.values(question))
        for axis in axes.flat[len(questions) :]:
            axis.set_visible(False)
        figure.suptitle(f"{self.machine['cpu']}, {self.machine['cores']} cores")
        figure.tight_layout(rect=(0, 0, 1, 0.98))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def _section(rows: list[Row]) -> list[str]:
    question = rows[0].question
    values = {row.system: row.value for row in rows if row.value is not None}
    best = _compared(values, question, question.versus)
    lines = [f"\n{question.title} [{question.unit}]"]
    for row in rows:
        if row.value is None:
            lines.append(f"  {row.system:<18} {'-':>12}   {row.note}")
            continue
        ratio = f"{row.value / best[1]:6.2f} x {best[0]}" if best and best[1] else ""
        spread = f"{number(min(row.windows))} .. {number(max(row.windows))}"
        lines.append(
            f"  {row.system:<18} {number(row.value):>12}   {ratio:<22} {spread:<26} {row.note}"
        )
    return lines


def best_peer(values: dict[str, float], question: Question) -> tuple[str, float] | None:
    """Return the best of the other systems; the references do not count."""
    peers = {
        system: value
        for system, value in values.items()
        if not system.startswith(OURS) and system not in REFERENCES
    }
    if not peers:
        return None
    best = max if question.higher_is_better else min
    name = best(peers, key=lambda system: peers[system])
    return name, peers[name]


def _compared(
    values: dict[str, float], question: Question, versus: str
) -> tuple[str, float] | None:
    """Return the system that `versus` means, and its value."""
    if versus == "best peer":
        return best_peer(values, question)
    return (versus, values[versus]) if versus in values else None


def _reached(values: dict[str, float], question: Question, goal: Goal) -> str:
    ours = values.get(goal.ours)
    if ours is None:
        return "not measured"
    if goal.versus is None:
        ratio, against = ours, question.unit
    else:
        peer = _compared(values, question, goal.versus)
        if peer is None:
            return f"{goal.versus} was not measured"
        ratio, against = ours / peer[1], f"x {peer[0]}"
    met = ratio >= goal.factor if question.higher_is_better else ratio <= goal.factor
    bound = "at least" if question.higher_is_better else "at most"
    verdict = "reached" if met else "NOT REACHED"
    way = "" if goal.ours == OURS else f"{goal.ours}: "
    return f"{way}{number(ratio)} {against}, goal {bound} {number(goal.factor)}: {verdict}"


def number(value: float) -> str:
    """Return `value` with as many digits as a reader wants."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _plain(row: Row) -> dict[str, Any]:
    return {
        **asdict(row),
        "value": row.value,
        "question": row.question.key,
        "unit": row.question.unit,
    }


def _draw(axis: Any, question: Question, values: dict[str, float]) -> None:
    systems = list(reversed(values))
    colours = ["tab:orange" if name.startswith(OURS) else "tab:blue" for name in systems]
    colours = ["tab:gray" if n in REFERENCES else c for n, c in zip(systems, colours, strict=True)]
    bars = axis.barh(systems, [values[name] for name in systems], color=colours)
    axis.bar_label(bars, [number(values[name]) for name in systems], padding=3, fontsize=7)
    axis.set_title(f"{question.title} [{question.unit}]", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.xaxis.set_visible(False)
    axis.margins(x=0.2)
    axis.spines[["top", "right", "bottom"]].set_visible(False)


def machine(directory: Path) -> dict[str, Any]:
    """Return what this machine is, and what it is busy with."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{memory / 2**30:.0f} GB",
        "kernel": platform.release(),
        "filesystem": _filesystem(directory),
        "python": sys.version.split()[0],
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _filesystem(directory: Path) -> str:
    """Return the type of the file system that holds `directory`."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    holding = [fields for fields in mounts if directory.resolve().is_relative_to(fields[1])]
    return max(holding, key=lambda fields: len(fields[1]))[2]

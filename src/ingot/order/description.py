"""What an order is composed of, as JSON and in words."""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.read.dataset import selection_of
from ingot.order.pictures import Pictures
from ingot.records import Reader, View

Description: TypeAlias = dict[str, Any]

ALGORITHM = 2
"""The version of what orders compute: which row is at which position. Version 1 had the same
permutation for all parts of a mix, an interleave or a concat with equal lengths and seeds; other
orders are the same in both."""

_NOTHING = "nothing more"


_PLAIN = (bool, int, float, str)


def fingerprint_of(description: Description) -> str:
    """Return a short hash of a description, the same on every machine."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe_source(
    source: Sequence[Any], num_rows: int, table: npt.NDArray[np.int64] | None
) -> Description:
    """Describe a source by its type, its name, and which rows of it there are."""
    found = {"kind": "source", "type": type(source).__name__, "rows": num_rows}
    match source:
        case Dataset():
            found |= {"name": _name(source.path), "subset": _subset(selection_of(source).rows)}
        case Reader():
            found |= {"name": _name(source.path)}
        case View():
            found |= {"name": _name(source.reader.path), "subset": _subset(source.rows)}
    if table is not None:
        found |= {"rows": len(table), "table": digest_of(table)}
    return found


def digest_of(array: npt.NDArray[np.int64]) -> str:
    """Return a short hash of numbers."""
    return hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()[:16]


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function; of a callable object, that of its class.

    The module is not part of it: a script and those who import it have the same function. The
    arguments of a `functools.partial` are, if they are numbers, text, booleans or None. So are
    all of `Pictures`.
    """
    if isinstance(function, Pictures):
        return repr(function)
    if isinstance(function, functools.partial):
        given = [*map(_plain, function.args)]
        given += [f"{name}={_plain(value)}" for name, value in sorted(function.keywords.items())]
        name = name_of(function.func)
        return f"{name}({', '.join(given)})" if given else name
    named = function if hasattr(function, "__qualname__") else type(function)
    return named.__qualname__


def _plain(value: object) -> str:
    return repr(value) if isinstance(value, _PLAIN) or value is None else "..."


def _name(path: str) -> str:
    return Path(path).name


def _subset(rows: range | npt.NDArray[np.int64]) -> str:
    if isinstance(rows, range):
        return f"{rows.start}:{rows.stop}:{rows.step}"
    return digest_of(rows)


def text_of(step: Description) -> str:
    """Return one step of a description in words, such as `shuffle(seed=0)`."""
    match step:
        case {"kind": "source", "type": kind, "rows": rows}:
            inside = f"{step['name']!r}, {rows:,} rows" if "name" in step else f"{rows:,} rows"
        case {"kind": "slice", "start": start, "stop": stop, "step": stride}:
            return f"[{_bound(start)}:{_bound(stop)}:{stride}]"
        case {"kind": "map" as kind, "function": function}:
            name, bracket, arguments = function.partition("(")
            inside = name.rpartition(".")[2] + bracket + arguments
        case {"kind": "repeat" as kind, "times": times}:
            inside = _bound(times)
        case {"kind": "take" | "skip" as kind, "n": n}:
            inside = str(n)
        case {"kind": "mix" as kind, "names": names, "schedule": schedule}:
            inside = _weights(names, schedule)
        case _:
            kind, hidden = step["kind"], {"kind", "of", "parts", "algorithm"}
            options = (f"{key}={value!r}" for key, value in step.items() if key not in hidden)
            inside = ", ".join(options)
    return f"{kind}({inside})"


def _bound(number: int | None) -> str:
    return "" if number is None else str(number)


def _weights(names: Sequence[str], schedule: Sequence[tuple[int, Sequence[int]]]) -> str:
    entries = []
    for start, weights in schedule:
        listed = ", ".join(
            f"{name!r}: {weight}" for name, weight in zip(names, weights, strict=True)
        )
        entries.append(f"{{{listed}}}" if len(schedule) == 1 else f"({start}, {{{listed}}})")
    return entries[0] if len(schedule) == 1 else f"[{', '.join(entries)}]"


def steps_of(description: Description) -> list[Description]:
    """Return the steps of a description, from the source or the parts on."""
    steps = [description]
    while "of" in steps[-1]:
        steps.append(steps[-1]["of"])
    return steps[::-1]


def lines_of(description: Description, label: str = "", indent: str = "") -> Iterator[str]:
    """Yield a description in words: one line, and one for each part of a mix."""
    steps = steps_of(description)
    yield indent + label + " -> ".join(map(text_of, steps))
    parts = steps[0].get("parts", [])
    names = steps[0].get("names", range(len(parts)))
    for name, part in zip(names, parts, strict=True):
        yield from lines_of(part, f"{name}: ", indent + "  ")


def difference(one: Description, other: Description) -> tuple[str, str] | None:
    """Return the first step in which two descriptions differ, in the words of both.

    Steps are compared from the sources on.

    Args:
        one: What `Order.describe` returned.
        other: The same of another order.

    Returns:
        For example `("shuffle(seed=1)", "shuffle(seed=2)")`; None if they do not differ.
    """
    for left, right in zip_longest(steps_of(one), steps_of(other)):
        if left is None or right is None:
            return text_of(left) if left else _NOTHING, text_of(right) if right else _NOTHING
        if found := _difference_of_steps(left, right):
            return found
    return None


def _difference_of_steps(left: Description, right: Description) -> tuple[str, str] | None:
    deep = {"of", "parts"}
    for key in dict.fromkeys([*left, *right]):
        if key not in deep and left.get(key) != right.get(key):
            texts = text_of(left), text_of(right)
            if texts[0] != texts[1]:
                return texts
            return (
                f"{texts[0]} with {key} {left.get(key)}",
                f"{texts[1]} with {key} {right.get(key)}",
            )
    parts = left.get("parts", []), right.get("parts", [])
    if len(parts[0]) != len(parts[1]):
        texts = text_of(left), text_of(right)
        return f"{texts[0]} of {len(parts[0])} parts", f"{texts[1]} of {len(parts[1])} parts"
    pairs = zip(*parts, strict=True)
    return next(filter(None, (difference(*pair) for pair in pairs)), None)

"""What an order is composed of, as JSON and in words."""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.source import digest_of, subset_of
from ingot.errors import counted
from ingot.order.arguments import Samples
from ingot.order.pictures import Pictures
from ingot.records import Reader, View
from ingot.records.expand import short_name

Description: TypeAlias = dict[str, Any]

ALGORITHM = 2
"""The version of what orders compute: which row is at which position. Version 1 had the same
permutation for all parts of a mix, an interleave or a concat with equal lengths and seeds; other
orders are the same in both."""

_NOTHING = "nothing more"

_DIGITS = 16
_SHOWN = 500

_DATA = frozenset({"type", "name", "fields", "data"})

_PLAIN = (bool, int, float, str)


def fingerprint_of(description: Description) -> str:
    """Return a short hash of a description, the same on every machine.

    The name of a source whose content is known is not part of it: data may be renamed.
    """
    told = _each_source(description, _unnamed)
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe_source(
    source: Samples, num_rows: int, table: npt.NDArray[np.int64] | None
) -> Description:
    """Describe a source by its type, its name, its fields, and which rows of it there are."""
    found = {"kind": "source", "type": type(source).__name__, "rows": num_rows}
    match source:
        case Dataset():
            found |= {"name": _name(source), "subset": subset_of(selection_of(source).rows)}
            found |= {"fields": _fields(source.spec)}
        case Reader():
            found |= {"name": _name(source)}
        case View():
            found |= {"name": _name(source.reader), "subset": subset_of(source.rows)}
    if table is not None:
        found |= {"rows": len(table), "table": digest_of(table)}
    return found


def data_of(source: Samples) -> Description:
    """Return what tells the data of a source from others, wherever they are.

    Of a source that is closed, or that is not one of this library, nothing is known.
    """
    match source:
        case Dataset() if not source.closed:
            return {"data": selection_of(source).source.identity[:_DIGITS]}
        case Reader() if not source.closed:
            return {"data": source._identity().hex()[:_DIGITS]}  # noqa: SLF001 -- of this library
        case View():
            return data_of(source.reader)
    return {}


def with_data(description: Description, data: Iterator[Description]) -> Description:
    """Return a description whose sources are told by their data, which are in their order."""
    return _each_source(description, lambda source: source | next(data))


def other_data(one: Description, other: Description) -> tuple[str, str] | None:
    """Return the first sources that differ in their data, in words, of orders of one composition.

    Where the data of one of them are not known, names are compared.
    """
    for left, right in zip(_sources_in(one), _sources_in(other), strict=True):
        is_known = "data" in left and "data" in right
        for key in ("type", "fields", "data" if is_known else "name"):
            if key in left and key in right and left[key] != right[key]:
                return _data_text(left, key), _data_text(right, key)
    return None


def _data_text(source: Description, key: str) -> str:
    text = text_of(source)
    match key:
        case "data":
            return f"{text} with id {source[key]}"
        case "fields":
            return f"{text} with the fields {source[key]!r}"
    return text


def _sources_in(description: Description) -> list[Description]:
    found: list[Description] = []

    def keep(source: Description) -> Description:
        found.append(source)
        return source

    _each_source(description, keep)
    return found


def _unnamed(source: Description) -> Description:
    return {k: one for k, one in source.items() if k != "name" or "data" not in source}


def _each_source(
    description: Description, change: Callable[[Description], Description]
) -> Description:
    """Return a description with its sources changed, in their order."""
    if description.get("kind") == "source":
        return change(description)
    found = dict(description)
    if isinstance(below := found.get("of"), dict):
        found["of"] = _each_source(below, change)
    if isinstance(parts := found.get("parts"), list):
        found["parts"] = [_each_source(one, change) for one in parts if isinstance(one, dict)]
    return found


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function; of a callable object, that of its class.

    The module is not part of it: in a script, and where it is imported, it is the same function.
    The arguments of a `functools.partial` are, if they are numbers, text, booleans or None. So
    are all of `Pictures`.
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


def _name(source: Dataset | Reader) -> str:
    is_folder = Path(source.path).is_dir()
    return short_name(source.path, () if is_folder else source.paths)


def _fields(spec: Mapping[str, str]) -> str:
    """Return fields and their types in words; of very many, a hash."""
    text = ", ".join(f"{name}: {kind}" for name, kind in spec.items())
    return text if len(text) <= _SHOWN else hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def text_of(step: Description) -> str:
    """Return one step of a description in words, such as `shuffle(seed=0)`."""
    match step:
        case {"kind": "source", "type": kind, "rows": rows}:
            name = f"{step['name']!r}, " if "name" in step else ""
            inside = name + counted(rows, "row")
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
    return _difference(one, other, frozenset())


def difference_of_composition(one: Description, other: Description) -> tuple[str, str] | None:
    """Return the first difference that is not one of the data, but may be of numbers of rows."""
    return _difference(one, other, _DATA)


def difference_of_verbs(one: Description, other: Description) -> tuple[str, str] | None:
    """Return the first difference that is neither one of the data nor of which rows there are."""
    return _difference(one, other, _DATA | {"rows", "subset"})


def _difference(
    one: Description, other: Description, ignored: AbstractSet[str]
) -> tuple[str, str] | None:
    for left, right in zip_longest(steps_of(one), steps_of(other)):
        if left is None or right is None:
            return text_of(left) if left else _NOTHING, text_of(right) if right else _NOTHING
        if found := _difference_of_steps(left, right, ignored):
            return found
    return None


def _difference_of_steps(
    left: Description, right: Description, ignored: AbstractSet[str]
) -> tuple[str, str] | None:
    hidden = {"of", "parts"}
    if left["kind"] == right["kind"] == "source":
        hidden |= {"name"} if "data" in left and "data" in right else set()
        hidden |= ignored
    for key in dict.fromkeys([*left, *right]):
        if key not in hidden and left.get(key) != right.get(key):
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
        one, other = (counted(len(own), "part") for own in parts)
        return f"{texts[0]} of {one}", f"{texts[1]} of {other}"
    pairs = zip(*parts, strict=True)
    return next(filter(None, (_difference(*pair, ignored) for pair in pairs)), None)

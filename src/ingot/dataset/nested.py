"""Nested fields: a dot in a name is a nesting level."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

DOT = "."


def flat(tree: Mapping[Any, Any], above: str = "") -> Iterator[tuple[Any, Any]]:
    """Yield the full name and the content of each field of nested dicts.

    Raises:
        ValueError: A dict is empty, or a name in a nested dict is invalid.
    """
    if not tree:
        raise ValueError(f"{above or 'a specification'} must have at least one field")
    for key, content in tree.items():
        name = f"{above}{DOT}{key}" if above and isinstance(key, str) else key
        if isinstance(content, Mapping):
            yield from flat(content, str(name))
        else:
            yield name, content


def groups(names: Iterable[str]) -> frozenset[str]:
    """Return the names that contain fields."""
    found = set()
    for name in names:
        while DOT in name:
            name = name.rpartition(DOT)[0]  # noqa: PLW2901
            found.add(name)
    return frozenset(found)


def deep(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of fields with full names as nested dicts."""
    if DOT not in "".join(values):
        return values
    found: dict[str, Any] = {}
    for name, value in values.items():
        *above, last = name.split(DOT)
        inner = found
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return found


def at(values: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field with a full name, from nested dicts."""
    if DOT not in name:
        return values[name]
    for part in name.split(DOT):
        values = values[part]
    return values


def deep_each(rows: Iterable[dict[str, Any]], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Return rows with the fields `names` as nested dicts; rows without nesting as they are."""
    return map(deep, rows) if DOT in "".join(names) else iter(rows)

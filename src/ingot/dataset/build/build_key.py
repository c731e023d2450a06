"""The key of a build: what must not change between calls that resume."""

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ingot.dataset.build.inputs import ADDRESS, Inputs
from ingot.dataset.spec import Spec
from ingot.dataset.write.shards import Options


def build_key_of(
    spec: Spec, metadata: str, fn: Callable[[Any], Any], options: Options, source: Inputs
) -> dict[str, Any]:
    """Return the key as JSON values."""
    written = {name: value for name, value in asdict(options).items() if name != "sync"}
    build_key = {
        "fn": _name_of(fn),
        "inputs": source.total,
        "spec": dict(spec),
        "metadata": json.loads(metadata),
        "chunk": source.chunk,
        **written,
    }
    loaded: dict[str, Any] = json.loads(json.dumps(build_key))
    return loaded


def _name_of(fn: Any) -> str:
    if isinstance(fn, functools.partial):
        bound = [*map(repr, fn.args), *(f"{name}={one!r}" for name, one in fn.keywords.items())]
        return f"{_name_of(fn.func)}({', '.join(ADDRESS.sub('', one) for one in bound)})"
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"


def check_same(path: Path, found: Mapping[str, Any], given: Mapping[str, Any], hint: str) -> None:
    """Refuse to resume a build that has another key.

    Raises:
        ValueError: The key differs; `hint` says what to do.
    """
    for name, value in given.items():
        if found.get(name) != value:
            message = (
                f"{path}: this build has {name} {found.get(name)!r:.100}, got {value!r:.100}; "
                f"{hint}"
            )
            raise ValueError(message)

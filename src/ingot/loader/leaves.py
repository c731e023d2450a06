"""The arrays and other leaves of a batch."""

from collections.abc import Callable, Mapping
from typing import Any


def each_array(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with each array and each other leaf changed by a function."""
    if isinstance(batch, Mapping):
        return {key: each_array(one, change) for key, one in batch.items()}
    if isinstance(batch, tuple):
        changed = [each_array(one, change) for one in batch]
        return type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
    if isinstance(batch, list):
        return [each_array(one, change) for one in batch]
    return change(batch)

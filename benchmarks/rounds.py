"""Windows of several systems, one after the other in each round."""

from __future__ import annotations

from collections.abc import Callable

from measure import Store
from report import Question, Row


def label(store: Store) -> str:
    """Return the name of a system without its layout; what writes for Ingot is Ingot."""
    name = store.system_name.rsplit(" ", 1)[0]
    return "ingot" if name == "ingot writer" else name


def interleaved(
    question: Question, stores: list[Store], rounds: int, window: Callable[[Store, int], float]
) -> list[Row]:
    """Return the rows of a question, to which `window(store, seed)` is one answer."""
    windows: dict[str, list[float]] = {label(store): [] for store in stores}
    for seed in range(rounds):
        for store in stores:
            windows[label(store)].append(window(store, seed))
    return [Row(question, name, tuple(values)) for name, values in windows.items()]

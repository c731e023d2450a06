"""Shell patterns over a tree, as in `pathlib`."""

import fnmatch
import re
from collections.abc import Iterator
from typing import TypeAlias

from ingot.packed.tree import Tree

_Level: TypeAlias = tuple[str, set[int], "Iterator[tuple[str, int | Tree]]"]

_ANY_FOLDERS = "**"


class Pattern:
    """A pattern such as `images/**/*.png`.

    `*` matches any part of a name, `**` any number of folders; at the end, `**` matches
    everything below. A pattern that ends in `/` matches only folders.

    A place in the pattern is the number of its parts that are matched so far. A path can be at
    several places at once. `select` carries them down the tree together, so it visits and
    yields every entry once, however many `**` there are.
    """

    def __init__(self, text: str) -> None:
        if text.startswith("/"):
            raise NotImplementedError(f"expected a relative pattern, got {text!r}")
        parts = [part for part in text.split("/") if part not in {"", "."}]
        if not parts:
            raise ValueError(f"{text!r} is not a valid pattern")
        self._folders_only = text.endswith("/")
        self._parts = [
            None if part == _ANY_FOLDERS else re.compile(fnmatch.translate(part)) for part in parts
        ]

    def select(self, tree: Tree) -> Iterator[str]:
        """Yield each path in `tree` that matches, in the order of the tree.

        The tree itself is the path `""`.
        """
        places = self._settle({0})
        if len(self._parts) in places:
            yield ""
        above: list[_Level] = [("", places, iter(tree.items()))]
        while above:
            prefix, places, items = above[-1]
            for name, entry in items:
                path = prefix + name
                if isinstance(entry, dict):
                    reached = self._settle(self._step(places, name))
                    if len(self._parts) in reached:
                        yield path
                    if reached:
                        above.append((path + "/", reached, iter(entry.items())))
                        break
                elif self._takes_file(places, name):
                    yield path
            else:
                above.pop()

    def _settle(self, places: set[int]) -> set[int]:
        """Add the places after each `**`, which may match no folder at all."""
        settled = set(places)
        for place, part in enumerate(self._parts):
            if place in settled and part is None:
                settled.add(place + 1)
        return settled

    def _step(self, places: set[int], name: str) -> set[int]:
        reached = set()
        for place in places:
            if place == len(self._parts):
                continue
            part = self._parts[place]
            if part is None:
                reached.add(place)
            elif part.match(name):
                reached.add(place + 1)
        return reached

    def _takes_file(self, places: set[int], name: str) -> bool:
        if self._folders_only:
            return False
        last = len(self._parts) - 1
        part = self._parts[last]
        return last in places and (part is None or part.match(name) is not None)

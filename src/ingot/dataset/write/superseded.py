"""Files that a data set does not list any more, which readers may need for a while."""

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import time
from typing import Any

from ingot.dataset import atomic
from ingot.dataset.manifest import VERSION, Manifest, check_name, check_version, items
from ingot.dataset.write import contribution, journal

NAME = ".superseded.json"
SUFFIX = ".ingot"
KEEP_S = 86_400.0
"""How long superseded files stay: a reader of many files opens them one after another."""

_SECONDS_MAX = sys.float_info.max


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that were superseded together.

    Attributes:
        names: Their names.
        at: When that was, in seconds since 1970.
        keep_for: How many seconds they stay.
    """

    names: tuple[str, ...]
    at: float
    keep_for: float

    def is_over(self, now: float, limit: float) -> bool:
        """Return whether their time is over; a clock that went back does not prolong it."""
        return abs(now - self.at) >= min(self.keep_for, limit)

    def among(self, names: set[str]) -> "_Group":
        """Return those of the files that have one of these names."""
        return replace(self, names=tuple(name for name in self.names if name in names))


def check_keep_for(keep_for: Any) -> float:
    """Return a number of seconds.

    Raises:
        TypeError: It is not a number.
        ValueError: It is negative, infinite, NaN or too large for a number of seconds.
    """
    if type(keep_for) not in (int, float):
        message = f"keep_for must be a number of seconds, got {keep_for!r:.50}"
        raise TypeError(message)
    if not 0 <= keep_for <= _SECONDS_MAX:
        message = f"keep_for must be 0 seconds or more, and finite, got {keep_for!r:.50}"
        raise ValueError(message)
    return float(keep_for)


def _check_time(at: Any) -> None:
    """Refuse what is not a time, by a TypeError or a ValueError."""
    if type(at) not in (int, float):
        message = f"at must be a number of seconds, got {at!r:.50}"
        raise TypeError(message)
    if not abs(at) <= _SECONDS_MAX:
        message = f"at must be a time in seconds since 1970, got {at!r:.50}"
        raise ValueError(message)


def supersede(folder: Path, names: Iterable[str], keep_for: float, *, sync: bool) -> None:
    """Record that files will not be listed any more, before they are not; needs the lock.

    If this process is killed then, whoever changes the data set next removes them in time.
    """
    new = set(names)
    if new:
        old = [group.among(set(group.names) - new) for group in _read(folder)]
        groups = [*old, _Group(tuple(sorted(new)), time(), keep_for)]
        _replace(folder, [one for one in groups if one.names], sync=sync)


def clear(folder: Path, keep_for: float = math.inf) -> None:
    """Remove the files whose time is over, or will be in `keep_for` seconds; needs the lock."""
    now = time()
    groups = _read(folder)
    over = [one for one in groups if one.is_over(now, keep_for)]
    if not over:
        return
    # A writer that was killed has not dropped its part or its journal yet.
    needed = contribution.names_in(folder) | {one.name for one in journal.shards_in(folder)}
    left = [one for one in groups if one not in over]
    for group in over:
        is_free = remove(folder, set(group.names) - needed)
        left.append(group.among(needed) if is_free else group)
    _replace(folder, [one for one in left if one.names], sync=False)


def names_in(folder: Path) -> set[str]:
    """Return the names of the files that stay for a while."""
    return {name for group in _read(folder) for name in group.names}


def _read(folder: Path) -> list[_Group]:
    path = folder / NAME
    try:
        data = atomic.load(path)
    except FileNotFoundError:
        return []
    with atomic.parsing(path, "a list of superseded files"):
        content = atomic.object_of(data)
        check_version(path, content)
        groups = [_Group(**one) for one in items(content["groups"])]
        for group in groups:
            check_keep_for(group.keep_for)
            _check_time(group.at)
            for name in items(group.names):
                check_name(name)
    return groups


def _replace(folder: Path, groups: list[_Group], *, sync: bool) -> None:
    if not groups:
        (folder / NAME).unlink(missing_ok=True)
        return
    content = {"version": VERSION, "groups": [asdict(group) for group in groups]}
    atomic.replace(folder / NAME, json.dumps(content, indent=1) + "\n", sync=sync)


def remove(folder: Path, names: Iterable[str]) -> bool:
    """Remove record files that the manifest does not list.

    Every file of a data set that is removed is removed here: what the manifest on disk lists
    stays, whoever asks. Returns whether no process has one of the others open for writing.
    """
    free = True
    asked = set(names)
    committed = Manifest.names(folder) if asked else set()
    for path in (folder / name for name in asked - committed):
        if path.suffix == SUFFIX and path.is_symlink():
            path.unlink(missing_ok=True)
        elif path.suffix == SUFFIX and path.exists():
            held = is_held(path)
            free = free and not held
            if not held:
                path.unlink(missing_ok=True)
    return free


def is_held(path: Path) -> bool:
    """Return whether a process has the lock of a file, or that cannot be known."""
    try:
        return atomic.is_held(path)
    except (FileNotFoundError, PermissionError):
        return True

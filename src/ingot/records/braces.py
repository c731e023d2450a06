"""Braces in paths: `train-{000..127}.tar` and `{train,val}.tar` expand to several paths."""

import os
import re

from ingot.errors import FormatError

_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})(?:\.\.([0-9]{1,18}))?")
_PATHS_MAX = 100_000
_BRACES_MAX = 100
_LENGTH_MAX = 4096
"""No path is longer, on the systems that there are."""


def braces(path: str) -> list[str]:
    """Return the paths that a path with braces expands to, in order.

    Braces mean what they mean in a shell: `{000..127}` or `{0..127..2}` is a range of numbers,
    with as many digits as the bounds have if one begins with 0, and `{train,val}` a list, which
    may have braces in it. Other braces are part of a name, and so are those of a file or of a
    directory that exists under the very name.

    Raises:
        FormatError: There are more than 100 braces, or they expand to more than 100,000 paths.
    """
    if "{" not in path or len(path) > _LENGTH_MAX:
        return [path]
    if path.count("{") > _BRACES_MAX:
        raise FormatError(f"{path}: there are more than {_BRACES_MAX} braces", path)
    known = path
    while known and not os.path.exists(os.path.expanduser(known)):  # noqa: PTH110, PTH111
        above = os.path.dirname(known)  # noqa: PTH120 -- text, which may be longer than any path
        known = above if above != known else ""
    return [known + one for one in _texts(path[len(known) :], path)]


def _texts(text: str, path: str) -> list[str]:
    """Return what a part of a path expands to."""
    found, at = [""], 0
    while (group := _group(text, at, path)) is not None:
        start, stop, each = group
        _check(len(found) * len(each), path)
        found = [before + text[at:start] + one for before in found for one in each]
        at = stop
    return [one + text[at:] for one in found]


def _group(text: str, at: int, path: str) -> tuple[int, int, list[str]] | None:
    """Return where the next braces begin and end, and what they expand to; None without any."""
    start = text.find("{", at)
    while start >= 0:
        parts = _parts(text, start)
        stop = start + sum(map(len, parts)) + len(parts) + 1
        if len(parts) > 1:
            each = [one for part in parts for one in _texts(part, path)]
            _check(len(each), path)
            return start, stop, each
        if parts and (bounds := _RANGE.fullmatch(parts[0])) is not None:
            return start, stop, _numbers(bounds, path)
        start = text.find("{", start + 1)
    return None


def _parts(text: str, start: int) -> list[str]:
    """Return what commas separate between a brace and the one that closes it; none without."""
    depth, parts, begin = 0, [], start + 1
    for at in range(start, len(text)):
        letter = text[at]
        depth += (letter == "{") - (letter == "}")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(text[begin:at])
            begin = at + 1
        if depth == 0:
            return parts
    return []


def _numbers(bounds: re.Match[str], path: str) -> list[str]:
    first, last, by = bounds.groups()
    step = max(1, int(by or 1))
    start, stop = int(first), int(last)
    numbers = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    _check(len(numbers), path)
    is_padded = any(len(one) > 1 and one.startswith("0") for one in (first, last))
    width = max(len(first), len(last)) if is_padded else 0
    return [f"{number:0{width}}" for number in numbers]


def _check(count: int, path: str) -> None:
    """Refuse braces that expand to too many paths, by a FormatError."""
    if count > _PATHS_MAX:
        raise FormatError(f"{path}: the braces expand to more than {_PATHS_MAX:,} files", path)

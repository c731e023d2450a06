"""Which data sets of an HDF5 file make rows.

A file that was downloaded may name any file of this machine, whose content would then be among
its rows. So links and virtual data sets are followed by hand as long as they stay in the file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ingot.dataset.nested import DOT, groups
from ingot.errors import FormatError, UnfinishedFileError, counted
from ingot.formats.hdf5.column import Column
from ingot.formats.hdf5.file import UNFINISHED, Location, h5py

_HERE = "."
"""What a virtual data set calls its own file."""

_STEPS_MAX = 64
"""Links that lead to each other end here."""


@dataclass(frozen=True, slots=True)
class Table:
    """Data sets that share their first dimension.

    Attributes:
        rows: Number of their rows.
        columns: The data sets.
        others: The paths of the other contents of the file.
    """

    rows: int
    columns: list[Column]
    others: tuple[str, ...]

    @classmethod
    def of(cls, file: Any, location: Location, *, partial: bool, allow_external: bool) -> "Table":
        """Return the rows at a place in a file.

        They are those that most data sets have; if several numbers of rows are as frequent,
        the largest.

        Raises:
            FormatError: There is nothing of that name, or nothing that has rows; or values are
                in other files, which is not allowed.
            UnfinishedFileError: A writer of Ingot has not finished it.
        """
        root = _root(file, location)
        found = list(_datasets(root))
        if not allow_external:
            for _, one in found:
                _check_inside(file, one)
        # A single value makes a row when it is asked for by its name.
        with_rows = [(name, one) for name, one in found if one.shape or one == root]
        columns = [Column.of(name, one) for name, one in with_rows]
        usable = [one for one in columns if one is not None]
        if not usable:
            listed = _listed(name for name, _ in found)
            message = f"{location}: there are no data sets whose rows can be read, but {listed}"
            raise FormatError(message, location.file)
        frequency = Counter(one.rows for one in usable if one.rows) or Counter([0])
        rows = max(frequency, key=lambda rows: (frequency[rows], rows))
        chosen = _without_clashes([one for one in usable if one.rows == rows])
        if UNFINISHED in file.attrs and not partial:
            message = (
                f"{location.file}: the writer of this file did not finish; it has "
                f"{counted(rows, 'row')}: ingot.open(path, partial=True) reads them"
            )
            raise UnfinishedFileError(message, location.file, rows)
        taken = {one.path for one in chosen}
        others = (one.name.strip("/") for _, one in found)
        return cls(rows, chosen, tuple(name for name in others if name not in taken))


def _root(file: Any, location: Location) -> Any:
    if not location.inside:
        return file
    try:
        _found_in(file, location.inside)  # It does not leave the file.
        return file[location.inside]
    except FormatError:
        raise
    except (KeyError, ValueError):
        raise FormatError(_missing(file, location), location.file) from None


def _missing(file: Any, location: Location) -> str:
    """Return what to say of a name that a file does not have: what is beside it."""
    *above, last = location.inside.split("/")
    group = "/".join(above)
    try:
        found = _found_in(file, group)
    except (KeyError, FormatError):
        found = file
    if not group or not isinstance(found, h5py().Group):
        found, group, last = file, "", location.inside
    names = list(found)
    near = [one for one in get_close_matches(last, names, 2) if one != last]
    meant = f"; did you mean {near[0]!r}?" if near else ""
    where = f"{location.file}/{group}" if group else location.file
    return f"{where}: there is no {last!r}, but {_listed(names)}{meant}"


def _datasets(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield the data sets below a group with their names as fields; links are not followed."""
    library = h5py()
    if isinstance(root, library.Dataset):
        yield root.name.rpartition("/")[2], root
    if not isinstance(root, library.Group):
        return
    found: list[tuple[str, Any]] = []

    def visit(name: str | bytes, one: Any) -> None:
        if isinstance(name, str) and isinstance(one, library.Dataset):
            found.append((name.replace("/", DOT), one))

    root.visititems(visit)
    yield from found


def _without_clashes(columns: list[Column]) -> list[Column]:
    """Return columns without those whose names, with dots for steps, are taken."""
    names: set[str] = set()
    chosen = []
    for column in columns:
        more = names | set(column.fields)
        if len(more) == len(names) + len(column.fields) and groups(more).isdisjoint(more):
            names = more
            chosen.append(column)
    return chosen


def _listed(names: Iterable[str]) -> str:
    listed = sorted(names)
    shown = ", ".join(map(repr, listed[:10])) + (", ..." if len(listed) > 10 else "")  # noqa: PLR2004
    return shown or "nothing"


def _found_in(file: Any, path: str) -> Any:
    """Return what a path in a file leads to, by way of links within the file.

    Raises:
        KeyError: There is nothing.
        FormatError: There is a link to another file.
    """
    library = h5py()
    names, here, steps = _names(path), file, 0
    while names:
        name = names.pop(0)
        if not isinstance(here, library.Group) or steps > _STEPS_MAX:
            raise KeyError(path)
        links, kinds = here.id.links, library.h5l  # To ask `in here` would follow a link.
        if not links.exists(name.encode()):
            raise KeyError(path)
        kind = links.get_info(name.encode()).type
        if kind == kinds.TYPE_HARD:
            here = here[name]
        elif kind == kinds.TYPE_SOFT:
            target = links.get_val(name.encode()).decode()
            names = [*_names(target), *names]
            here, steps = file if target.startswith("/") else here, steps + 1
        else:
            other = links.get_val(name.encode())[0].decode(errors="replace")
            message = f"{file.filename}/{path}: this is a link to {other}: open that file"
            raise FormatError(message, file.filename)
    return here


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]


def _check_inside(file: Any, dataset: Any) -> None:
    """Refuse a virtual data set whose values are in another file, directly or not."""
    pending, seen = [dataset], set()
    while pending:
        one = pending.pop()
        plan = one.id.get_create_plist()
        if one.name in seen:
            continue
        seen.add(one.name)
        if one is not dataset and plan.get_external_count():
            raise _outside(file, dataset, plan.get_external(0)[0].decode(errors="replace"))
        if plan.get_layout() != h5py().h5d.VIRTUAL:
            continue
        for k in range(plan.get_virtual_count()):
            other = plan.get_virtual_filename(k)
            if other != _HERE:
                raise _outside(file, dataset, other)
            try:
                pending.append(_found_in(file, plan.get_virtual_dsetname(k)))
            except KeyError:
                continue  # HDF5 fills in for what is missing.


def _outside(file: Any, dataset: Any, other: str) -> FormatError:
    message = (
        f"{file.filename}{dataset.name}: values of this virtual data set are in another file, "
        f"{other!r}: if you trust this file, ingot.open(path, allow_external=True) reads them"
    )
    return FormatError(message, file.filename)

"""Which data sets of an HDF5 file make rows."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ingot.dataset.nested import DOT, groups
from ingot.errors import FormatError, UnfinishedFileError, counted
from ingot.formats.hdf5.attributes import UNFINISHED
from ingot.formats.hdf5.column import Column
from ingot.formats.hdf5.handle import h5py
from ingot.formats.hdf5.location import Location
from ingot.formats.hdf5.outside import check_inside, found_in


@dataclass(frozen=True, slots=True)
class Table:
    """Data sets that share their first dimension.

    Attributes:
        rows: Number of their rows.
        columns: The data sets.
        others: The paths of what is in the file besides.
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
                check_inside(file, one)
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
        found_in(file, location.inside)  # It does not leave the file.
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
        found = found_in(file, group)
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

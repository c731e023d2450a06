"""What of an HDF5 file lies outside of it: in other files that it names.

A file that was downloaded may name any file of this machine, whose content would then be among
its rows. So links and virtual data sets are followed by hand as long as they stay in the file.
"""

from typing import Any

from ingot.errors import FormatError
from ingot.formats.hdf5.handle import h5py

_HERE = "."
"""What a virtual data set calls its own file."""

_STEPS_MAX = 64
"""Links that lead to each other are not followed for ever."""


def found_in(file: Any, path: str) -> Any:
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


def check_inside(file: Any, dataset: Any) -> None:
    """Refuse a virtual data set whose values are in another file, directly or not.

    Raises:
        FormatError: They are.
    """
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
                pending.append(found_in(file, plan.get_virtual_dsetname(k)))
            except KeyError:
                continue  # HDF5 fills in for what is missing.


def _outside(file: Any, dataset: Any, other: str) -> FormatError:
    message = (
        f"{file.filename}{dataset.name}: values of this virtual data set are in another file, "
        f"{other!r}: if you trust this file, ingot.open(path, allow_external=True) reads them"
    )
    return FormatError(message, file.filename)

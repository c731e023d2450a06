"""The layouts of formats whose files say all about themselves."""

import json

from ingot.records.formats import format_of, plain_name

_LAYOUTS = {name: {"format": name} for name in ("tfrecord", "webdataset", "jsonlines", "csv")}
"""The layout of the rows of a file, by the name of its format."""


def layout_of(path: str, *, partial: bool = False) -> str | None:
    """Return the layout of a file by its name; None if no index finds its rows.

    The file may be compressed as a whole. With `partial`, an archive that is cut short is read
    as far as it goes.
    """
    found = format_of(plain_name(path))
    if found is None or found.name not in _LAYOUTS:
        return None
    is_partial = partial and found.name == "webdataset"
    return json.dumps(_LAYOUTS[found.name] | ({"partial": True} if is_partial else {}))

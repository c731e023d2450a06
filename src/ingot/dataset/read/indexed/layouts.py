"""The layouts of formats whose files say all about themselves."""

import json

from ingot.records.formats import format_of, plain_name

_LAYOUTS = ("tfrecord", "webdataset", "jsonlines", "csv")
"""The formats whose rows an index finds, one file at a time."""


def layout_of(path: str, *, partial: bool = False, separator: str | None = None) -> str | None:
    """Return the layout of a file by its name; None if no index finds its rows.

    The file may be compressed as a whole. With `partial`, an archive that is cut short is read
    as far as it goes; `separator` is that of a CSV file.

    Raises:
        ValueError: There cannot be such a separator.
    """
    found = format_of(plain_name(path))
    if found is None or found.name not in _LAYOUTS:
        return None
    layout: dict[str, object] = {"format": found.name}
    if partial and found.name == "webdataset":
        layout["partial"] = True
    if separator is not None and found.name == "csv":
        if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
            message = f"separator={separator!r}: expected one ASCII character, such as ';'"
            raise ValueError(message)
        layout["separator"] = separator
    return json.dumps(layout)

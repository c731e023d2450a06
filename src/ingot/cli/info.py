"""`ingot info`: what is in a file or a data set, and how it is laid out."""

from typing import Any

from ingot.cli import opened
from ingot.cli.layout import Layout, layout_of
from ingot.cli.options import AsJson, Partial, Source, shown, write_json
from ingot.cli.picture import picture_of
from ingot.cli.text import line, size, table
from ingot.errors import counted

_FILES = 12


def info(path: Source, partial: Partial = False, as_json: AsJson = False) -> None:
    """Show fields, rows, sizes, compression, files and the layout.

    Sizes of fields come from at most 10,000 rows that lie evenly across the data.
    """
    with opened.opened(path, partial=partial) as found:
        about = layout_of(found)
    if as_json:
        write_json(about.content())
        return
    line(f"{shown(about.path)}: {_title(about)}", "bold")
    if about.fields:
        rows = [
            (one.name, one.type, one.place, _about(one.nbytes), _share(one.nbytes, about))
            for one in about.fields
        ]
        table(("field", "type", "stored", "bytes", "share"), rows, right=(3, 4))
    for text, style in picture_of(about):
        line(text, style)
    if about.metadata:
        line(f"metadata: {_shortened(about.metadata)}")
    if about.others:
        line(f"besides, with other numbers of rows: {', '.join(about.others)}")


def _title(about: Layout) -> str:
    rows = counted(about.rows, "row" if about.fields is not None else "record")
    words = [rows, f"{size(about.file_bytes)} in {counted(len(about.files), 'file')}"]
    if about.value_bytes and about.file_bytes:
        words.append(f"{about.file_bytes / about.value_bytes:.2f} of the size of the values")
    words.append(about.compression)
    if about.closed is False:
        words.append("not finished")
    return ", ".join(words)


def _about(nbytes: int | None) -> str:
    return "" if nbytes is None else size(nbytes)


def _share(nbytes: int | None, about: Layout) -> str:
    return "" if nbytes is None or not about.value_bytes else f"{nbytes / about.value_bytes:.1%}"


def _shortened(metadata: dict[str, Any]) -> str:
    text = repr(metadata)
    return text if len(text) <= 200 else f"{text[:200]}..."  # noqa: PLR2004

"""JSON lines: an object for each row."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ingot.dataset.nested import deep
from ingot.dataset.read.ingot_source import IngotSource
from ingot.formats.content import Content
from ingot.formats.indexed import Indexing, open_indexed
from ingot.formats.lines import Lines
from ingot.formats.options import Options
from ingot.formats.sink import Writing, refuse


def open_files(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open files of lines; return None if there are none whose fields could be inferred."""
    return open_indexed("jsonlines", paths, name, Indexing.of(options, "jsonlines"))


class JsonLines(Lines):
    """Rows on their way to JSON lines: an object for each, in which groups of fields nest."""

    _TITLE = "a file of JSON lines"

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        del options
        fields = content.fields or {}
        for field in fields.values():
            dtype = field.codec.dtype
            if dtype is None and field.codec.name not in {"array", "json", "utf8"}:
                refuse(field, self._TITLE, "has numbers, text, lists and JSON only")
            if dtype is not None and dtype.kind == "c":
                refuse(field, self._TITLE, "has no complex numbers")
        before: dict[str, str] = {}
        after = _nest(deep({name: name for name in fields}), "", before)
        super().__init__(path, content, "json", before, f"{after}\n")


def _nest(names: Mapping[str, Any], text: str, before: dict[str, str]) -> str:
    """Note what comes before the value of each field; return what comes behind the last.

    Args:
        names: Keys and the full names of their fields, or further such mappings.
        text: What comes before the object.
        before: Where to note it.
    """
    text += "{"
    for key, inner in names.items():
        text += f"{json.dumps(key, ensure_ascii=False)}:"
        if isinstance(inner, str):
            before[inner], text = text, ""
        else:
            text = _nest(inner, text, before)
        text += ","
    return f"{text.removesuffix(',')}}}"

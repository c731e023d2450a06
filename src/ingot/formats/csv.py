"""CSV: text in quotes, everything else without."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ingot.dataset.read.ingot_source import IngotSource
from ingot.formats.content import Content
from ingot.formats.indexed import Indexing, open_indexed
from ingot.formats.lines import Lines
from ingot.formats.options import Options
from ingot.formats.sink import Writing, refuse


def open_files(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open files; the first row has the names of the fields.

    Raises:
        ValueError: The separator is not one ASCII character.
    """
    separator = options.separator
    if separator is None:
        return open_indexed("csv", paths, name, Indexing.of(options, "csv"))
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        message = f"separator={separator!r}: expected one ASCII character, such as ';'"
        raise ValueError(message)
    return open_indexed("csv", paths, name, Indexing.of(options, "csv", separator=separator))


class Csv(Lines):
    """Rows on their way to a CSV file: text in quotes, everything else without."""

    _TITLE = "a CSV file"

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        del options
        fields = content.fields or {}
        for field in fields.values():
            if field.is_sequence or not (field.is_number or field.codec.name == "utf8"):
                refuse(field, self._TITLE, "has single numbers and text only")
            if field.codec.dtype is not None and field.codec.dtype.kind == "c":
                refuse(field, self._TITLE, "has no complex numbers")
            if field.name != field.name.strip():
                refuse(field, self._TITLE, "has no names that begin or end with a space")
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        before = dict.fromkeys(fields, separator) | dict.fromkeys(list(fields)[:1], "")
        super().__init__(path, content, "csv", before, "\n")
        self._write(f"{separator.join(_quoted(fields, separator))}\n".encode())


def _quoted(names: Iterable[str], separator: str) -> Iterator[str]:
    for name in names:
        has_marks = separator in name or '"' in name
        yield '"{}"'.format(name.replace('"', '""')) if has_marks else name

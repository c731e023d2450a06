"""Opening Parquet and Arrow files, and what Hugging Face's library has saved."""

from collections.abc import Sequence
from pathlib import Path

from ingot.errors import FormatError
from ingot.formats.arrow.choice import Choice
from ingot.formats.arrow.location import find, splits_of
from ingot.formats.arrow.origin import Files, SavedFolder
from ingot.formats.arrow.source import ArrowRows
from ingot.formats.base.options import Options


def open_files(paths: Sequence[str], name: str, options: Options) -> ArrowRows:
    """Open files."""
    choice = Choice(options.spec, options.allow_pickle)
    return ArrowRows(Files(paths, options.partial, name), choice)


def open_directory(folder: Path, options: Options) -> ArrowRows | None:
    """Open what `save_to_disk` has written; return None for any other directory.

    Raises:
        FormatError: It has several splits.
    """
    if splits := splits_of(folder):
        message = (
            f"{folder}: this is a DatasetDict with the splits {', '.join(map(repr, splits))}; "
            f"open one of them: ingot.open({str(folder / splits[0])!r})"
        )
        raise FormatError(message, str(folder))
    if find(folder) is None:
        return None
    choice = Choice(options.spec, options.allow_pickle)
    return ArrowRows(SavedFolder(str(folder), options.partial), choice)

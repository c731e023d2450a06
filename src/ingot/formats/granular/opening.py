"""Opening Granular's data sets, in one folder or in several."""

from collections.abc import Container
from pathlib import Path

from ingot.dataset.read.compound import chained
from ingot.dataset.read.source import Source
from ingot.errors import FormatError
from ingot.formats.granular import layout
from ingot.formats.granular.columns import Columns
from ingot.formats.granular.handles import HandleBag
from ingot.formats.granular.paths import AnyPath, local
from ingot.formats.granular.source import GranularRows, open_columns
from ingot.formats.options import Options


def open_directory(folder: Path, options: Options) -> Source | None:
    """Open a data set; return None for any other directory.

    Raises:
        FormatError: It is damaged, or its writer has not finished it.
    """
    del options
    try:
        if layout.is_dataset(folder):
            found = GranularRows.open(folder)
            _ = found.spec  # A key may be both a field and a group of fields.
            return found
        if layout.is_sharded(folder):
            names = layout.shards((one.name for one in folder.iterdir()), str(folder))
            return chained([GranularRows.open(folder / name) for name in names], str(folder))
    except FormatError:
        raise
    except ValueError as error:
        message = f"{folder}: {error}"
        raise FormatError(message, str(folder)) from error
    if layout.is_unfinished(folder):
        message = f"{folder}: Granular's writer did not finish this data set"
        raise FormatError(message, str(folder))
    return None


def open_folder(folder: AnyPath, cached: Container[str] = ()) -> Columns:
    """Open the stored values of a data set in one folder, of any version and of any types.

    Args:
        folder: A path, or an object with the interface of one.
        cached: Keys to read completely now, on other file systems than the local one.

    Raises:
        FileNotFoundError: The folder is not a data set.
        FormatError: It is damaged.
    """
    place = local(folder)
    spec = layout.read_spec(place)
    if isinstance(place, Path):
        return open_columns(place, spec)
    has_refs = layout.REFS not in spec and (place / f"{layout.REFS}.bag").exists()

    def open_bag(name: str) -> HandleBag:
        limits = None if has_refs else place / f"{name}.idx"
        return HandleBag(place / f"{name}.bag", limits, cached=name in cached)

    return Columns(str(place), spec, has_refs=has_refs, open_bag=open_bag)

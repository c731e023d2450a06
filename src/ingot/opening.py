"""Opening whatever a user has: records or a data set.

The module is not called `open`: `ingot.open` is the function, and whatever resolves that name
by the names of files, as documentation tools do, would find a module of this name instead.
"""

from collections.abc import Sequence

from ingot.dataset import Dataset
from ingot.dataset.read.discovery import Options, find_dataset
from ingot.errors import FormatError
from ingot.records.expand import StrPath
from ingot.records.reader import Reader


def open(  # noqa: A001
    source: StrPath | Sequence[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
) -> Reader | Dataset:
    """Open record files or a data set for reading.

    Files of records open as a `Reader`, one sequence of bytes. Files whose rows have fields,
    HDF5 files, and directories written by `DatasetWriter` or Granular open as a `Dataset`.
    Opening an Ingot file takes two or three small reads, whatever its size; for FFRecord
    (`.ffr`) and ArrayRecord files it reads the index.

    Args:
        source: A file, a directory (its record files, sorted by name), a pattern such as
            `train-*.ingot`, a location in an HDF5 file such as `mnist.h5/train`, or a list of
            these.
        partial: Read the committed records of an unfinished Ingot file, even while it is
            still being written; `Reader.refresh` finds further records.
        allow_pickle: Read fields that are stored as pickle, which can execute any code.
            Without it, reading such a field raises FormatError.
        skip_damaged: Open a data set in a directory without those of its files that are
            missing, truncated or damaged at their ends; a warning lists them.

    Raises:
        FileNotFoundError: There is no such file.
        UnfinishedFileError: The file was not closed by its writer.
        FormatError: The file is damaged, or its format is unknown.
    """
    options = Options(partial, allow_pickle, skip_damaged)
    found = find_dataset(source, options)
    return Reader(source, partial=partial) if found is None else found


def open_dataset(
    source: StrPath | Sequence[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
) -> Dataset:
    """Open a data set, as `open` does; refuse files of records.

    Raises:
        FormatError: These are records without fields, or as for `open`.
    """
    found = open(source, partial=partial, allow_pickle=allow_pickle, skip_damaged=skip_damaged)
    if isinstance(found, Dataset):
        return found
    message = f"{found.path}: these are records without fields; open with ingot.open_records"
    raise FormatError(message, found.path)


def open_records(source: StrPath | Sequence[StrPath], *, partial: bool = False) -> Reader:
    """Open files of records, as `open` does; refuse a data set.

    Raises:
        FormatError: These are rows of named fields, or as for `open`.
    """
    found = open(source, partial=partial)
    if isinstance(found, Reader):
        return found
    message = f"{found.path}: these are rows of named fields; open with ingot.open_dataset"
    raise FormatError(message, found.path)

"""Opening whatever a user has: records or a data set.

The module is not called `open`: `ingot.open` is the function, and whatever resolves that name
by the names of files, as documentation tools do, would find a module of this name instead.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from ingot.dataset import Dataset
from ingot.dataset.spec import SpecLike
from ingot.errors import FormatError, storage_errors
from ingot.formats.base.options import Labels, Options
from ingot.formats.discovery import find_dataset
from ingot.formats.table import OPENED, format_of, plain_name
from ingot.options import names_options
from ingot.records.expand import StrPath, absolute, list_files
from ingot.records.reader import Reader


@names_options
def open(  # noqa: A001
    source: StrPath | Iterable[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
    spec: SpecLike | None = None,
    index_dir: StrPath | None = None,
    labels: str | None = "auto",
    classes: Sequence[str] | None = None,
    separator: str | None = None,
    allow_external: bool = False,
) -> Any:  # noqa: ANN401 -- of a union, type checkers would refuse what only one of the two has
    """Open record files or a data set for reading.

    Files of records open as a `Reader`, one sequence of bytes. Files whose rows have fields,
    HDF5, Parquet and Arrow files, and directories written by `DatasetWriter`, by Granular or by
    Hugging Face's `save_to_disk` open as a `Dataset`.
    Opening an Ingot file takes two or three small reads, whatever its size; for FFRecord
    (`.ffr`) and ArrayRecord files it reads the index. Other formats open as a `Dataset` too:
    TFRecord files of examples, WebDataset archives (`.tar`), JSON lines, CSV, `.npy`, `.npz`,
    and directories of MDS, LitData or images. Ingot reads such files in place. The first time
    it goes through them once and keeps an index. Those that are compressed as a whole, such as
    `.tar.gz` or `.jsonl.zst`, are decompressed once, into the user's cache directory or
    `index_dir`.

    Type checkers take the result for Any; `open_dataset` and `open_records` have exact types.

    Args:
        source: A file, a directory (its record files, sorted by name), a pattern such as
            `train-*.ingot`, `train-{000..127}.tar` or `{train,val}.parquet`, a location in an
            HDF5 file such as `mnist.h5/train`, or a list of these. Data sets in a list may have
            several formats if they have the same fields.
        partial: Read the committed records of an unfinished Ingot file, even while it is
            still being written; `Reader.refresh` finds further records. Of a tar archive that
            is cut short, read the whole samples.
        allow_pickle: Read fields that are stored as pickle, which can execute any code.
            Without it, reading such a field raises FormatError.
        skip_damaged: Open a data set in a directory without those of its files that are
            missing, truncated or damaged at their ends; a warning lists them.
        spec: The fields to read from files of other formats and their types, such as
            {"image": "jpg", "label": "int"}; other fields are ignored. By default, Ingot infers
            them from the first rows. Refused for Ingot's own files, Granular, HDF5, `.npy` and
            `.npz`, which know their fields.
        index_dir: The directory for the indexes of files of other formats. By default they
            are in the user's cache directory; INGOT_INDEX_DIR sets another default, and
            INGOT_INDEX=beside writes them into `.ingot-index` beside the files. Indexes that are
            there are always used.
        labels: What is the class of an image in a directory of images: "folder", the first
            directory below the one that is opened, as in torchvision; "parent", the directory
            that the image is in; "path", all directories, such as "cats/raw". None for no
            classes. "auto" is "folder", or None if all images are in the directory itself.
        classes: The names of the classes of a directory of images, in the order of their
            numbers, so that parts of a data set such as train and val share them. A class may
            be without images; images of a class that is not listed are refused. By default the
            classes are those there are, sorted.
        separator: What separates the values of a CSV file. By default a tab in `.tsv` files; in
            others a comma or, if the first row has none, the one of `;`, `|` and tab that it
            has.
        allow_external: Read virtual data sets of HDF5 whose values are in other files. Any file
            that this process may read can be among them, so do this for files that you trust.
            Without it, such a file raises FormatError.

    Returns:
        A `Dataset` or a `Reader`.

    Raises:
        FileNotFoundError: There is no such file.
        UnfinishedFileError: The file was not closed by its writer.
        FormatError: The file is damaged, its format is unknown, or a directory of images has
            a class without images and `classes` is not given.
        ValueError: `spec`, `labels`, `classes` or `separator` is given for what does not take
            it.
    """
    if not isinstance(source, str | bytes | os.PathLike | Sequence) and isinstance(
        source, Iterable
    ):
        source = list(source)  # A generator of paths.
    folder = None if index_dir is None else str(absolute(index_dir))
    chosen = Labels.of(labels, classes)
    options = Options(
        partial, allow_pickle, skip_damaged, spec, folder, chosen, separator, allow_external
    )
    with storage_errors():
        found = find_dataset(source, options)
    if found is not None:
        return found
    for name, is_given, what in (
        ("spec=", spec is not None, "files of other formats whose rows have fields"),
        ("labels= and classes=", chosen.is_given, "directories of images"),
        ("separator=", separator is not None, "CSV files"),
    ):
        if is_given:
            raise ValueError(f"{source}: {name} {'are' if 'and' in name else 'is'} for {what}")
    try:
        return Reader(source, partial=partial)
    except FormatError as error:
        if type(error) is not FormatError or format_of(error.path or "") is not None:
            raise
        raise FormatError(f"{error}; {OPENED}", error.path) from None


@names_options
def open_dataset(
    source: StrPath | Iterable[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
    spec: SpecLike | None = None,
    index_dir: StrPath | None = None,
    labels: str | None = "auto",
    classes: Sequence[str] | None = None,
    separator: str | None = None,
    allow_external: bool = False,
) -> Dataset:
    """Open a data set, as `open` does; refuse files of records.

    Raises:
        FormatError: These are records without fields, or as for `open`.
    """
    found: Reader | Dataset = open(
        source,
        partial=partial,
        allow_pickle=allow_pickle,
        skip_damaged=skip_damaged,
        spec=spec,
        index_dir=index_dir,
        labels=labels,
        classes=classes,
        separator=separator,
        allow_external=allow_external,
    )
    if isinstance(found, Dataset):
        return found
    why = "these are records without fields; open with ingot.open_records"
    first = format_of(plain_name(found.paths[0])) if found.paths else None
    if not len(found) and first is not None and first.has_records:
        why = "the file is empty, so its fields are unknown: pass spec={...}"
    found.close()
    raise FormatError(f"{found.path}: {why}", found.path)


@names_options
def open_records(source: StrPath | Sequence[StrPath], *, partial: bool = False) -> Reader:
    """Open files of records, as `open` does; refuse a data set.

    The records of TFRecord files and the lines of JSON lines open as they are, even if they
    have fields. Files of these formats that are compressed as a whole are decompressed once,
    into the user's cache directory.

    Raises:
        FormatError: These are rows of named fields, or as for `open`.
    """
    paths = list_files(source)
    first = format_of(plain_name(paths[0])) if paths else None
    if first is not None and first.has_records:
        return Reader(source, partial=partial)
    found: Reader | Dataset = open(source, partial=partial)
    if isinstance(found, Reader):
        return found
    message = f"{found.path}: these are rows of named fields; open with ingot.open_dataset"
    raise FormatError(message, found.path)

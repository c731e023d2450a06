"""The table of formats: what their files are called, and which modules read and write them.

It imports nothing else of Ingot, so that every layer can read it. A module that it names is
loaded when it is used.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ingot._core import formats


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Functions and classes are named as `module:name`, relative to `ingot.formats`.

    Attributes:
        name: Its name, as `ingot.convert` takes it for `format=`.
        title: What a user calls such a file or directory, with an article.
        suffixes: How the names of its files end, in small letters.
        marks: Names of files, one of which each directory of this format has.
        signature: The bytes that each file begins with, if they tell it from any other.
        parts: How the names of the files in a directory end, if only those belong to it.
        options: The options of `ingot.open` that this format alone takes.
        is_checked: Whether every record has a checksum.
        is_indexed: Whether Ingot builds an index to find its rows; files of such a format may be
            compressed as a whole, as `.gz`.
        is_text: Whether values are stored as text.
        is_any: Whether a file may begin with any bytes, so that only its name tells the format.
        has_fields: Whether it stores the names and types of its fields, so that `spec=` is
            refused.
        has_records: Whether its rows are also records.
        locate: What finds out whether a path is such a file, or leads into one.
        files: What opens files as a data set.
        directory: What opens a directory as a data set.
        records: The sink for records.
        rows: The sink for rows.
        build: What builds a directory of rows in parallel, in place of a sink.
        writer: What writes such files.
    """

    name: str
    title: str
    suffixes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    signature: bytes = b""
    parts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    is_checked: bool = False
    is_indexed: bool = False
    is_text: bool = False
    is_any: bool = False
    has_fields: bool = False
    has_records: bool = False
    locate: str | None = None
    files: str | None = None
    directory: str | None = None
    records: str | None = None
    rows: str | None = None
    build: str | None = None
    writer: str | None = None

    def __post_init__(self) -> None:
        if self.writer is None and self.is_written and self.suffixes:
            object.__setattr__(self, "writer", "ingot.convert")

    @property
    def is_written(self) -> bool:
        """Whether `ingot.convert` writes it."""
        return bool(self.records or self.rows or self.build)


def load(place: str) -> Any:
    """Return a function or class that the table names."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"ingot.formats.{module}"), name)


_NATIVE = {
    name: Format(name, title, tuple(suffixes), is_checked=is_checked)
    for name, title, suffixes, is_checked in formats()
}
"""What the engine says about the formats that it reads."""

FORMATS = (
    replace(
        _NATIVE["ingot"],
        signature=b"\x89INGOT\r\n",
        has_fields=True,
        files="ingot.source:open_files",
        records="base.records:IngotRecords",
        rows="ingot.sink:IngotRows",
    ),
    Format(
        "directory",
        "a data set directory",
        marks=("dataset.json",),
        is_checked=True,
        has_fields=True,
        directory="ingot.source:open_directory",
        build="ingot.sink:build_directory",
    ),
    replace(
        _NATIVE["ffrecord"],
        records="base.records:ffrecord",
        writer="ingot.formats.ffrecord.FFRecordWriter",
    ),
    replace(
        _NATIVE["arrayrecord"],
        records="base.records:array_record",
        writer="ingot.formats.arrayrecord.ArrayRecordWriter",
    ),
    replace(
        _NATIVE["bag"],
        is_any=True,
        records="base.records:bag",
        writer="ingot.formats.bag.BagWriter",
    ),
    Format(
        "granular",
        "a Granular data set",
        marks=("spec.json", "000000/spec.json", ".spec.json.unfinished"),
        parts=(".bag", ".idx", ".json"),
        has_fields=True,
        directory="granular.source:open_directory",
        rows="granular.sink:GranularSink",
    ),
    Format(
        "hdf5",
        "an HDF5 file",
        (".h5", ".hdf5"),
        signature=b"\x89HDF\r\n\x1a\n",
        has_fields=True,
        locate="hdf5.file:locate",
        files="hdf5.source:open_files",
        rows="hdf5.sink:Hdf5Sink",
        writer="ingot.formats.hdf5.Hdf5Writer",
    ),
    Format(
        "parquet",
        "a Parquet file",
        (".parquet",),
        signature=b"PAR1",
        files="arrow:open_files",
        rows="arrow.sink:ParquetSink",
    ),
    Format(
        "arrow",
        "an Arrow file",
        (".arrow", ".feather"),
        signature=b"ARROW1",
        files="arrow:open_files",
        writer="pyarrow.feather.write_feather, given Dataset.to_arrow()",
    ),
    Format(
        "huggingface",
        "a data set saved by Hugging Face's save_to_disk",
        marks=("state.json", "dataset_dict.json"),
        directory="arrow:open_directory",
    ),
    replace(
        _NATIVE["tfrecord"],
        is_indexed=True,
        has_records=True,
        files="tfrecord:open_files",
        records="tfrecord:FramedRecords",
        rows="tfrecord:Examples",
    ),
    replace(
        _NATIVE["webdataset"],
        name="tar",
        is_indexed=True,
        files="tar:open_files",
        rows="tar:TarSink",
    ),
    replace(
        _NATIVE["jsonlines"],
        is_indexed=True,
        is_text=True,
        has_records=True,
        files="lines:open_jsonlines",
        rows="lines:JsonLines",
    ),
    replace(
        _NATIVE["csv"],
        options=("separator",),
        is_indexed=True,
        is_text=True,
        files="lines:open_csv",
        rows="lines:Csv",
    ),
    replace(_NATIVE["npy"], has_fields=True, files="npy:open_files"),
    Format(
        "npz",
        "an .npz file",
        (".npz",),
        is_checked=True,
        has_fields=True,
        files="npy:open_files",
    ),
    Format(
        "mds",
        "an MDS data set",
        marks=("index.json",),
        is_indexed=True,
        directory="mds:open_directory",
    ),
    Format(
        "litdata",
        "a LitData data set",
        marks=("index.json",),
        is_indexed=True,
        directory="litdata:open_directory",
    ),
    Format(
        "images",
        "a directory of images",
        options=("labels", "classes"),
        directory="images.source:open_directory",
    ),
)
"""All formats, Ingot's own first. A directory is of the first one whose function opens it."""

OWN = FORMATS[0]
"""The format of Ingot files."""

SUFFIXES = tuple(suffix for one in FORMATS for suffix in one.suffixes)

OPENED = (
    "ingot.open takes .ingot, ArrayRecord, Bagz, FFRecord, TFRecord, WebDataset, JSON lines, CSV, "
    "NumPy, HDF5, Parquet and Arrow files, and directories (docs/guide/read_dataset.md)"
)
"""What opens, in words."""

COMPRESSIONS = {".bz2": "bz2", ".gz": "gz", ".tgz": "gz", ".zst": "zstd"}
"""How files are compressed as a whole, by the end of their names."""

_PLAIN = {".tgz": ".tar"}


def plain_name(path: str) -> str:
    """Return the name that a file has without compression."""
    name = Path(path)
    suffix = name.suffix.lower()
    if suffix not in COMPRESSIONS:
        return path
    plain = str(name.with_suffix(_PLAIN.get(suffix, "")))
    found = format_of(plain)
    return plain if found is not None and found.is_indexed else path


def format_of(path: str | Path) -> Format | None:
    """Return the format of a file by its name; shards such as `x.bag-00000-of-00002` have one."""
    suffix = Path(path).suffix.lower().partition("-")[0]
    return next((one for one in FORMATS if suffix in one.suffixes), None)


def format_named(name: str) -> Format:
    """Return the format of a name that the table has."""
    return next(one for one in FORMATS if one.name == name)


def target_format(path: Path, name: str | None) -> Format:
    """Return the format of a file or directory to be written.

    Args:
        path: The target; if it has no suffix, it is a data set directory.
        name: The name of the format; None for the one that has the suffix.

    Raises:
        ValueError: No format has this name or suffix, or the suffix is that of another one.
    """
    suffix = path.suffix.lower()
    written = [one for one in FORMATS if one.is_written]
    by_suffix = next((one for one in written if suffix in one.suffixes), None)
    if name is not None:
        found = next((one for one in written if one.name == name), None)
    else:
        found = by_suffix if suffix else format_named("directory")
    if found is None and name is not None:
        names = ", ".join(one.name for one in written)
        message = f"unknown format {name!r}: expected one of {names}"
    elif found is None:
        known = ", ".join(suffix for one in written for suffix in one.suffixes)
        read = next((one for one in FORMATS if suffix in one.suffixes), None)
        why = f"Ingot reads {suffix} files but does not write them" if read else "unknown suffix"
        message = f"{path}: {why}: expected {known}, or no suffix for a data set directory"
    elif found is not by_suffix and (found.suffixes or by_suffix is not None):
        expected = " or ".join(found.suffixes) or "no suffix"
        message = f"{path}: the name of {found.title} ends in {expected}, got {suffix or 'none'}"
    else:
        return found
    raise ValueError(message)

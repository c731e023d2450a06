"""The table of formats: what their files are called, and how their names end."""

from dataclasses import dataclass
from pathlib import Path

from ingot._core import formats

_WRITERS = {
    "arrayrecord": "ingot.compat.array_record.array_record_module.ArrayRecordWriter",
    "bag": "ingot.compat.bagz.Writer",
    "csv": "ingot.convert",
    "ffrecord": "ingot.compat.ffrecord.FileWriter",
    "hdf5": "ingot.compat.h5record.H5Dataset",
    "jsonlines": "ingot.convert",
    "parquet": "pyarrow.parquet.write_table, given Dataset.to_arrow()",
    "arrow": "pyarrow.feather.write_feather, given Dataset.to_arrow()",
    "tfrecord": "ingot.convert",
    "webdataset": "ingot.convert",
}
"""What writes a format, besides `ingot.Writer`."""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: Its name.
        title: What a user calls such a file, with an article.
        suffixes: How the names of its files end, in small letters.
        is_checked: Whether every record has a checksum.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    is_checked: bool

    @property
    def writer(self) -> str | None:
        """The full name of what writes such files; None for Ingot's own."""
        return _WRITERS.get(self.name)


FORMATS = (
    *(Format(name, title, tuple(ends), checked) for name, title, ends, checked in formats()),
    Format("hdf5", "an HDF5 file", (".h5", ".hdf5"), is_checked=False),
    Format("parquet", "a Parquet file", (".parquet",), is_checked=False),
    Format("arrow", "an Arrow file", (".arrow", ".feather"), is_checked=False),
    Format("npz", "an .npz file", (".npz",), is_checked=False),
)
"""All formats: those that the engine opens, and those of Python."""

SUFFIXES = tuple(suffix for one in FORMATS for suffix in one.suffixes)

OPENED = (
    "ingot.open takes .ingot, ArrayRecord, Bagz, FFRecord, TFRecord, WebDataset, JSON lines, CSV, "
    "NumPy, HDF5, Parquet and Arrow files, and directories (docs/guide/read_dataset.md)"
)
"""What opens, in words."""

COMPRESSIONS = {".bz2": "bz2", ".gz": "gz", ".tgz": "gz", ".zst": "zstd"}
"""How files are compressed as a whole, by the end of their names."""

_SIGNATURE = b"\x89INGOT\r\n"
_PLAIN = {".tgz": ".tar"}
_UNPACKED = ("csv", "jsonlines", "tfrecord", "webdataset")
"""The formats whose files are decompressed to be read."""


def is_ingot(path: str | Path) -> bool:
    """Return whether a file begins as Ingot's own do."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE
    except FileNotFoundError:
        return False


def plain_name(path: str) -> str:
    """Return the name that a file has without compression."""
    name = Path(path)
    suffix = name.suffix.lower()
    if suffix not in COMPRESSIONS:
        return path
    plain = str(name.with_suffix(_PLAIN.get(suffix, "")))
    found = format_of(plain)
    return path if found is None or found.name not in _UNPACKED else plain


def format_of(path: str | Path) -> Format | None:
    """Return the format of a file by its name; shards such as `x.bag-00000-of-00002` have one."""
    suffix = Path(path).suffix.lower().partition("-")[0]
    return next((one for one in FORMATS if suffix in one.suffixes), None)

"""The table of formats that a conversion writes."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ingot.conversion.content import Content
from ingot.conversion.sinks.sink import Options, Sink


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be written.

    Attributes:
        name: Its name, for `format=`.
        title: What a user calls such a target, with an article.
        suffixes: How the names of its files end; none if it is a folder.
        records: Where the sink for records is, `module:name`; None if it holds only rows.
        rows: Where the sink for rows is; None if it holds only records.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    records: str | None = None
    rows: str | None = None

    def open(self, path: Path, content: Content, options: Options) -> Sink:
        """Open a target; the module of the format is loaded by the first."""
        place = (self.records if content.fields is None else self.rows) or ""
        module, _, name = place.partition(":")
        sink: Sink = getattr(import_module(f"{__package__}.{module}"), name)(path, content, options)
        return sink


DIRECTORY = Format("directory", "a data set directory", (), rows="ingot:IngotRows")
"""A directory of Ingot files. `ingot.build` makes it, which calls no sink."""

FORMATS = (
    Format("ingot", "an Ingot file", (".ingot",), "records:IngotRecords", "ingot:IngotRows"),
    DIRECTORY,
    Format("ffrecord", "an FFRecord file", (".ffr",), records="records:ffrecord"),
    Format(
        "arrayrecord",
        "an ArrayRecord file",
        (".array_record", ".arrayrecord"),
        records="records:array_record",
    ),
    Format("bag", "a bag", (".bag", ".bagz"), records="records:bag"),
    Format("granular", "a Granular data set", (), rows="granular:GranularSink"),
    Format("hdf5", "an HDF5 file", (".h5", ".hdf5"), rows="hdf5:Hdf5Sink"),
    Format("parquet", "a Parquet file", (".parquet",), rows="parquet:ParquetSink"),
    Format(
        "tfrecord",
        "a TFRecord file",
        (".tfrecord", ".tfrecords", ".tfrec"),
        "tfrecord:FramedRecords",
        "tfrecord:Examples",
    ),
    Format("tar", "a tar of files", (".tar",), rows="tar:TarSink"),
    Format("jsonlines", "a file of JSON lines", (".jsonl", ".ndjson"), rows="lines:JsonLines"),
    Format("csv", "a CSV file", (".csv",), rows="lines:Csv"),
)


def format_for(path: Path, name: str | None) -> Format:
    """Return the format of a target.

    Args:
        path: The target; if it has no suffix, it is a data set directory.
        name: The name of the format; None goes by the suffix.

    Raises:
        ValueError: There is no such format, or the suffix is that of another one.
    """
    suffix = path.suffix.lower()
    by_suffix = next((one for one in FORMATS if suffix in one.suffixes), None)
    if name is None:
        found = by_suffix if suffix else DIRECTORY
    else:
        found = next((one for one in FORMATS if one.name == name), None)
    if found is None and name is not None:
        names = ", ".join(one.name for one in FORMATS)
        message = f"unknown format {name!r}: expected one of {names}"
        raise ValueError(message)
    if found is None:
        known = ", ".join(suffix for one in FORMATS for suffix in one.suffixes)
        message = (
            f"{path}: no format has the suffix {suffix}: expected {known}, or no suffix for a "
            "data set directory"
        )
        raise ValueError(message)
    if found is not by_suffix and (found.suffixes or by_suffix is not None):
        expected = " or ".join(found.suffixes) or "no suffix"
        message = f"{path}: the name of {found.title} ends in {expected}, got {suffix or 'none'}"
        raise ValueError(message)
    return found

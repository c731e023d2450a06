"""Ingot: record files for training data, any record in any order, every byte verified."""

from ingot._core import __version__ as __version__
from ingot.codecs.limit import set_max_decoded_bytes
from ingot.conversion import Conversion, convert
from ingot.dataset import Dataset, DatasetWriter
from ingot.dataset.build.build import build
from ingot.dataset.write.arrow import from_arrow, from_generator, from_pandas
from ingot.dataset.write.compaction import compact
from ingot.dataset.write.metadata import set_metadata
from ingot.dataset.write.recovery import recover
from ingot.errors import (
    ClosedError,
    CorruptFileError,
    FormatError,
    IngotError,
    StorageError,
    UnfinishedFileError,
    UnsupportedVersionError,
    WorkerError,
)
from ingot.loader import Loader
from ingot.opening import open, open_dataset, open_records  # noqa: A004
from ingot.order import Order, Pictures, concat, interleave, mix
from ingot.packed import PackedFolder, PackedPath, pack
from ingot.records import (
    Batch,
    Damage,
    Reader,
    Recovery,
    Stats,
    Verification,
    View,
    Writer,
)
from ingot.threads import set_threads

__all__ = [
    "Batch",
    "ClosedError",
    "Conversion",
    "CorruptFileError",
    "Damage",
    "Dataset",
    "DatasetWriter",
    "FormatError",
    "IngotError",
    "Loader",
    "Order",
    "PackedFolder",
    "PackedPath",
    "Pictures",
    "Reader",
    "Recovery",
    "Stats",
    "StorageError",
    "UnfinishedFileError",
    "UnsupportedVersionError",
    "Verification",
    "View",
    "WorkerError",
    "Writer",
    "build",
    "compact",
    "concat",
    "convert",
    "from_arrow",
    "from_generator",
    "from_pandas",
    "interleave",
    "mix",
    "open",
    "open_dataset",
    "open_records",
    "pack",
    "recover",
    "set_max_decoded_bytes",
    "set_metadata",
    "set_threads",
]

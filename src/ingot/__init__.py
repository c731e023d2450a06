"""Ingot: record files for training data, any record in any order, every byte verified."""

from ingot import interrupts

if interrupts.is_command():
    interrupts.end_quietly()  # Most of the time that it takes to load is spent below.

from importlib import import_module
from typing import TYPE_CHECKING

from ingot._core import __version__ as __version__
from ingot.codecs.limit import set_max_decoded_bytes
from ingot.dataset import Dataset
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
from ingot.opening import open, open_dataset, open_records  # noqa: A004
from ingot.records import (
    Batch,
    Damage,
    Reader,
    Recovery,
    Stats,
    Verification,
    View,
    Writer,
    list_files,
)
from ingot.threads import set_threads

if TYPE_CHECKING:
    from ingot.conversion import Conversion, convert
    from ingot.dataset.build.build import build
    from ingot.dataset.write.compaction import compact
    from ingot.dataset.write.file import recover
    from ingot.dataset.write.metadata import set_metadata
    from ingot.dataset.write.writer import DatasetWriter
    from ingot.interchange import ArrowBatch, from_arrow, from_generator, from_pandas
    from ingot.loader import Loader
    from ingot.order import Order, Pictures, concat, interleave, mix
    from ingot.packed import PackedFolder, PackedPath, pack

__all__ = [
    "ArrowBatch",
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
    "list_files",
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

_MODULES = ("beam", "codecs", "compat", "fsspec", "grain", "hf", "jax", "tf", "torch")
"""Public modules, imported when they are first used."""

_LATER = {
    "ArrowBatch": "ingot.interchange",
    "Conversion": "ingot.conversion",
    "DatasetWriter": "ingot.dataset.write.writer",
    "Loader": "ingot.loader",
    "Order": "ingot.order",
    "PackedFolder": "ingot.packed",
    "PackedPath": "ingot.packed",
    "Pictures": "ingot.order",
    "build": "ingot.dataset.build.build",
    "compact": "ingot.dataset.write.compaction",
    "concat": "ingot.order",
    "convert": "ingot.conversion",
    "from_arrow": "ingot.interchange",
    "from_generator": "ingot.interchange",
    "from_pandas": "ingot.interchange",
    "interleave": "ingot.order",
    "mix": "ingot.order",
    "pack": "ingot.packed",
    "recover": "ingot.dataset.write.file",
    "set_metadata": "ingot.dataset.write.metadata",
}
"""What is imported when it is first used, so that programs which only read start sooner."""


if not TYPE_CHECKING:  # With a `__getattr__`, checkers of types would accept any name.

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name in _MODULES:
            return import_module(f"ingot.{name}")
        if name not in _LATER:
            message = f"module 'ingot' has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=import_module("ingot"))
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found


def __dir__() -> list[str]:
    from ingot.extras import is_installed  # noqa: PLC0415 -- only those who look need it

    # help() looks at all of these, and a module whose package is missing would raise.
    return sorted([*__all__, *filter(is_installed, _MODULES)])

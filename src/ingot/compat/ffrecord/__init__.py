"""FFRecord's API over Ingot: `from ingot.compat import ffrecord`."""

from importlib import import_module
from types import ModuleType

from ingot.compat.ffrecord import fileio, package, utils
from ingot.compat.ffrecord.fileio import FileReader, FileWriter, checkFsAlign
from ingot.compat.ffrecord.package import PackedFolder, pack_folder

__version__ = "1.4.0"

__all__ = [
    "FileReader",
    "FileWriter",
    "PackedFolder",
    "checkFsAlign",
    "fileio",
    "pack_folder",
    "package",
    "utils",
]


def __getattr__(name: str) -> ModuleType:
    """Import `torch` on first access, so that the package does not require PyTorch."""
    if name == "torch":
        return import_module("ingot.compat.ffrecord.torch")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)

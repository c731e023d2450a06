"""FFRecord's API over Ingot: `from ingot.compat import ffrecord`."""

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

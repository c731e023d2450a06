"""Packed folders: a folder of files as one record file."""

from ingot.packed.folder import PackedFolder
from ingot.packed.pack import pack
from ingot.packed.path import PackedPath

__all__ = ["PackedFolder", "PackedPath", "pack"]

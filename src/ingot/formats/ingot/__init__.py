"""Ingot's own files, and directories of them."""

from ingot.formats.ingot.opening import open_directory, open_files

__all__ = ["open_directory", "open_files"]

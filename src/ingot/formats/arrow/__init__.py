"""Parquet and Arrow files, and data sets that Hugging Face's library has saved."""

from ingot.formats.arrow.source import open_directory, open_files

__all__ = ["open_directory", "open_files"]

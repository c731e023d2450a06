"""Parquet and Arrow files, and data sets that Hugging Face's library has saved."""

from ingot.dataset.read.arrow.choice import Choice
from ingot.dataset.read.arrow.litdata import Chunks
from ingot.dataset.read.arrow.location import find, is_arrow, splits_of
from ingot.dataset.read.arrow.origin import Files, SavedFolder
from ingot.dataset.read.arrow.source import ArrowRows

__all__ = [
    "ArrowRows",
    "Choice",
    "Chunks",
    "Files",
    "SavedFolder",
    "find",
    "is_arrow",
    "splits_of",
]

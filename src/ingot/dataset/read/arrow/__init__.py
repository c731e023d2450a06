"""Parquet and Arrow files, and data sets that Hugging Face's library has saved."""

from ingot.dataset.read.arrow.location import find, is_arrow, splits_of
from ingot.dataset.read.arrow.source import ArrowRows

__all__ = ["ArrowRows", "find", "is_arrow", "splits_of"]

"""Granular's data sets: a folder with one bag per key."""

from ingot.dataset.read.granular.column import Column
from ingot.dataset.read.granular.columns import Bag, Columns
from ingot.dataset.read.granular.source import GranularRows, open_columns

__all__ = ["Bag", "Column", "Columns", "GranularRows", "open_columns"]

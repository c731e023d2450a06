"""Data sets: rows of named, typed fields."""

from ingot.dataset.dataset import Dataset
from ingot.dataset.spec import Spec
from ingot.dataset.target import commit
from ingot.dataset.writer import DatasetWriter

__all__ = ["Dataset", "DatasetWriter", "Spec", "commit"]

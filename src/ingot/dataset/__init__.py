"""Data sets: rows of named, typed fields."""

from ingot.dataset.read.dataset import Dataset
from ingot.dataset.spec import Spec
from ingot.dataset.write.run import commit
from ingot.dataset.write.writer import DatasetWriter

__all__ = ["Dataset", "DatasetWriter", "Spec", "commit"]

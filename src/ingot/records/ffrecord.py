"""FFRecord files: what it takes to write them. Reading goes by `ingot.open`."""

from ingot._core import FFRecordWriter

__all__ = ["FFRecordWriter"]

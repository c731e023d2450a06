"""Data sets from Arrow, pandas and generators, and back to Arrow."""

from ingot.interchange.export import ArrowBatch
from ingot.interchange.generator import from_generator
from ingot.interchange.intake import from_arrow, from_pandas

__all__ = ["ArrowBatch", "from_arrow", "from_generator", "from_pandas"]

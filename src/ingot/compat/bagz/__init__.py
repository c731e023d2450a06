"""Bagz's API over Ingot: `from ingot.compat import bagz`."""

from ingot.compat.bagz.index import Index, MultiIndex
from ingot.compat.bagz.options import (
    CompressionAutoDetect,
    CompressionNone,
    CompressionZstd,
    LimitsPlacement,
    LimitsStorage,
    ShardingLayout,
)
from ingot.compat.bagz.reader import Reader, ReaderIterator
from ingot.compat.bagz.writer import Writer

__all__ = [
    "CompressionAutoDetect",
    "CompressionNone",
    "CompressionZstd",
    "Index",
    "LimitsPlacement",
    "LimitsStorage",
    "MultiIndex",
    "Reader",
    "ReaderIterator",
    "ShardingLayout",
    "Writer",
]

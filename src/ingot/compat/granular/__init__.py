"""Granular's API over Ingot, of its versions 0.21 and 0.24: `from ingot.compat import granular`."""

from ingot.compat.granular import bag, dataset, formats, loader, sharded, sources, utils
from ingot.compat.granular.bag import BagReader, BagWriter
from ingot.compat.granular.dataset import DatasetReader, DatasetWriter
from ingot.compat.granular.formats import decoders, encoders
from ingot.compat.granular.loader import Loader
from ingot.compat.granular.sharded import ShardedDatasetReader, ShardedDatasetWriter

__all__ = [
    "BagReader",
    "BagWriter",
    "DatasetReader",
    "DatasetWriter",
    "Loader",
    "ShardedDatasetReader",
    "ShardedDatasetWriter",
    "bag",
    "dataset",
    "decoders",
    "encoders",
    "formats",
    "loader",
    "sharded",
    "sources",
    "utils",
]

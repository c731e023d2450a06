"""Batches along an order, read ahead by threads."""

from ingot.loader.collate import collate_packs
from ingot.loader.loader import Loader as Loader
from ingot.loader.maker import Replacement
from ingot.loader.stats import LoaderStats

__all__ = ["LoaderStats", "Replacement", "collate_packs"]

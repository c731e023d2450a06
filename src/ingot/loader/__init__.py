"""Batches along an order, read ahead by threads."""

from ingot.loader.loader import Loader as Loader
from ingot.loader.making import Replacement
from ingot.loader.packs import collate_packs
from ingot.loader.timing import LoaderStats

__all__ = ["LoaderStats", "Replacement", "collate_packs"]

"""Rows in files of other formats, read in place through an index."""

from ingot.dataset.read.indexed.files import Indexing, open_indexed
from ingot.dataset.read.indexed.folder import open_folder
from ingot.dataset.read.indexed.layouts import layout_of
from ingot.dataset.read.indexed.listed import listed_in
from ingot.dataset.read.indexed.unpacking import unpacked

__all__ = ["Indexing", "layout_of", "listed_in", "open_folder", "open_indexed", "unpacked"]

"""Rows in files of other formats, read in place through an index."""

from ingot.dataset.read.indexed.files import Indexing, open_indexed
from ingot.dataset.read.indexed.folder import Shard, check_rows, open_folder, stored_file
from ingot.dataset.read.indexed.layouts import layout_of
from ingot.dataset.read.indexed.listed import listed_in
from ingot.dataset.read.indexed.litdata import arrow_span

__all__ = [
    "Indexing",
    "Shard",
    "arrow_span",
    "check_rows",
    "layout_of",
    "listed_in",
    "open_folder",
    "open_indexed",
    "stored_file",
]

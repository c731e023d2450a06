"""Granular's data sets: a folder with one bag per key.

`ingot.open` reads such folders. What is here writes them, and reads what is stored in them, also
by path objects of other file systems, such as `elements.Path`. `codecs` has the functions of its
types.
"""

from ingot.formats.granular.bag import BagWriter, Closing, open_bag
from ingot.formats.granular.columns import Bag, Columns, Stored
from ingot.formats.granular.layout import (
    REFS,
    SPEC,
    AnyPath,
    check_spec,
    element,
    is_sequence,
    local,
    shard_name,
    shards,
)
from ingot.formats.granular.source import open_folder
from ingot.formats.granular.writer import GranularWriter, Layout, layout_of, open_writer

__all__ = [
    "REFS",
    "SPEC",
    "AnyPath",
    "Bag",
    "BagWriter",
    "Closing",
    "Columns",
    "GranularWriter",
    "Layout",
    "Stored",
    "check_spec",
    "element",
    "is_sequence",
    "layout_of",
    "local",
    "open_bag",
    "open_folder",
    "open_writer",
    "shard_name",
    "shards",
]

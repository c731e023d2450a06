"""HDF5 files: data sets that share their first dimension are the fields of rows.

`ingot.open` reads such files, and `ingot.convert` writes rows of a data set to one. `Hdf5Writer`
writes rows batch by batch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingot.formats.hdf5.writer import Hdf5Writer, NewColumn, partial_path

__all__ = ["Hdf5Writer", "NewColumn", "partial_path"]


if not TYPE_CHECKING:  # With a `__getattr__`, checkers of types would accept any name.

    def __getattr__(name):  # noqa: ANN001, ANN202 -- programs that only read start sooner
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message, name=name)
        return getattr(import_module("ingot.formats.hdf5.writer"), name)

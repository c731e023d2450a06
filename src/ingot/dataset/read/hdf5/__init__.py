"""HDF5 files: data sets that share their first dimension are the fields of rows."""

from ingot.dataset.read.hdf5.location import Location
from ingot.dataset.read.hdf5.source import Hdf5Rows

__all__ = ["Hdf5Rows", "Location"]

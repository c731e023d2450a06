"""Writing HDF5 files."""

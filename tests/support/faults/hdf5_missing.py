"""Import Ingot, and open a file of HDF5 where there is no h5py."""

import sys

import ingot

assert "h5py" not in sys.modules, "importing ingot imports h5py"
sys.modules["h5py"] = None
try:
    ingot.open(sys.argv[1])
except ModuleNotFoundError as error:
    sys.stdout.write(f"{error.name}: {error}")

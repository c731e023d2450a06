"""Have a file open for writing until standard input ends."""

import sys

import h5py

path, version, mode = sys.argv[1:]
with h5py.File(path, "w", libver=version) as file:
    numbers = file.create_dataset("x", (100,), "i8", chunks=(10,), maxshape=(None,))
    numbers[:] = range(100)
    if mode == "swmr":
        file.swmr_mode = True
    file.flush()
    sys.stdout.write("open\n")
    sys.stdout.flush()
    sys.stdin.read()

"""Write rows by H5Record's API without end, and tell of each one that was taken."""

import itertools
import sys

from ingot.compat.h5record import H5Dataset, Integer


def rows():
    for k in itertools.count():
        sys.stdout.write(f"{k}\n")
        sys.stdout.flush()
        yield {"i": k}


H5Dataset([Integer("i")], sys.argv[1], rows(), chunk_size=50)

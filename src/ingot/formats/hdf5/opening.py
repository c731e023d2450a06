"""Opening HDF5 files, and locations inside of them."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from ingot.dataset.read.compound import chained
from ingot.dataset.read.source import Source
from ingot.errors import FormatError
from ingot.formats.hdf5.location import Location
from ingot.formats.hdf5.source import Hdf5Rows
from ingot.formats.options import Options


def open_files(paths: Sequence[str], name: str, options: Options) -> Source:
    """Open files, or locations in files such as `train.h5/images`.

    Raises:
        FormatError: One of them is not an HDF5 file.
    """
    sources = []
    for path in paths:
        location = Location.find(path)
        if location is None and not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if location is None:
            message = f"{path}: not an HDF5 file, but {paths[0]} is; open them separately"
            raise FormatError(message, path)
        partial, external = options.partial, options.allow_external
        sources.append(Hdf5Rows(location, partial=partial, allow_external=external))
    return chained(sources, name)

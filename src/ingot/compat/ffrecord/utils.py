"""`ffrecord.utils`."""

import re
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from ingot.compat.ffrecord.fileio import FileWriter, StrPath

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

_PROCESSES = 16


def dump(
    dataset: "Sequence[BytesLike]", fname: StrPath, nfiles: int, verbose: bool = False
) -> None:
    """Write a data set of bytes to one file, or to the files of a directory.

    Args:
        dataset: Has `len()` and returns bytes for each index.
        fname: The file if `nfiles` is 1, else the directory, which may exist; surplus files of
            an earlier dump are removed.
        nfiles: The number of files. Fewer are written if there are too few samples.
        verbose: Print each file as it is written.

    Raises:
        ValueError: `nfiles` is not positive, or there are no samples to write to several files.
    """
    if nfiles < 1:
        message = f"nfiles must be at least 1, got {nfiles}"
        raise ValueError(message)
    if nfiles == 1:
        _dump_part(dataset, str(fname), range(len(dataset)), verbose=verbose)
        return
    if len(dataset) == 0:
        message = "there are no samples to write to several files"
        raise ValueError(message)
    step = -(-len(dataset) // nfiles)
    starts = range(0, len(dataset), step)
    if len(starts) < nfiles:
        message = f"writing {len(starts)} files, not {nfiles}: there are {len(dataset)} samples"
        warnings.warn(message, stacklevel=2)
    folder = Path(fname)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ProcessPoolExecutor(min(_PROCESSES, len(starts)), get_context()) as pool:
            parts = [range(start, min(start + step, len(dataset))) for start in starts]
            names = [str(folder / f"PART_{k:05d}.ffr") for k in range(len(parts))]
            list(pool.map(partial(_dump_part, dataset, verbose=verbose), names, parts))
    except BaseException:
        if is_new:
            with suppress(OSError):  # Other parts are in it.
                folder.rmdir()
        raise
    for stale in folder.glob("PART_*.ffr"):
        number = re.fullmatch(r"PART_(\d{5})\.ffr", stale.name)
        if number and int(number[1]) >= len(starts):
            stale.unlink()


def _dump_part(
    dataset: "Sequence[BytesLike]", fname: str, indices: range, *, verbose: bool
) -> None:
    with FileWriter(fname, len(indices)) as writer:
        for index in indices:
            writer.write_one(dataset[index])
    if verbose:
        print(f"{fname}: {len(indices)} samples")  # noqa: T201

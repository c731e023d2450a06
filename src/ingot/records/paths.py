"""What a user calls a data set, as the files it stands for."""

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from ingot.errors import FormatError

StrPath: TypeAlias = str | os.PathLike[str]

SUFFIXES = (".array_record", ".arrayrecord", ".bag", ".bagz", ".ffr", ".ingot")

_FFRECORD = "an FFRecord file; ingot.compat.ffrecord.FileWriter and pack_folder write these"
_ARRAYRECORD = (
    "an ArrayRecord file; "
    "ingot.compat.array_record.array_record_module.ArrayRecordWriter writes these"
)
_BAG = "a bag of Bagz or Granular"
_HDF5 = "an HDF5 file"
_FOREIGN = {
    ".array_record": _ARRAYRECORD,
    ".arrayrecord": _ARRAYRECORD,
    ".bag": _BAG,
    ".bagz": _BAG,
    ".ffr": _FFRECORD,
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".tfrecord": "a file of TensorFlow's records",
}
"""What files of other containers are, by their suffixes."""


def check_target(path: StrPath) -> None:
    """Refuse the path of a new file if its name says that it is of another container.

    Raises:
        FormatError: It does.
    """
    name = text_of(path)
    suffix = Path(name).suffix.lower().partition("-")[0]  # that of x.bag-00000-of-00002 is .bag
    what = _FOREIGN.get(suffix)
    if what is not None:
        message = f"{name}: an Ingot file would pass for {what}; name it .ingot"
        raise FormatError(message, name)


def expand(source: StrPath | Sequence[StrPath]) -> list[str]:
    """Return the absolute paths of the files that `source` stands for, in order.

    Args:
        source: A file, a directory (its record files, by name), a pattern such as
            `train-*.ingot`, or several of these.

    Raises:
        FormatError: A directory holds no record files, or files of several containers.
        FileNotFoundError: A pattern matches nothing.
        TypeError: It is no path and no list of paths.
    """
    return [path for one in _listed(source) for path in _expand_one(text_of(one))]


def text_of(path: object) -> str:
    """Return a path as text.

    Raises:
        TypeError: It is no path, or one of bytes.
    """
    if isinstance(path, str):
        return path
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        message = f"a path is a str or an os.PathLike of one, not {type(text).__name__}"
        raise TypeError(message)
    return text


def _listed(source: object) -> Iterable[object]:
    if isinstance(source, str | os.PathLike):
        return [source]
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        message = f"expected a path or a list of paths, not {type(source).__name__}"
        raise TypeError(message)
    return source


def _expand_one(path: str) -> list[str]:
    if not path:
        message = "the path is empty"
        raise FileNotFoundError(message)
    absolute = str(Path(path).absolute())
    if Path(absolute).is_dir():
        return _record_files(absolute)
    if glob.has_magic(path) and not Path(absolute).exists():
        found = sorted(glob.glob(absolute, recursive=True))  # noqa: PTH207 -- the pattern is a whole path
        if not found:
            message = f"{path}: no file matches this pattern"
            raise FileNotFoundError(message)
        return found
    return [absolute]


def _record_files(folder: str) -> list[str]:
    if (Path(folder) / "spec.json").exists():
        message = f"{folder}: this is a data set of Granular: each of its files is a column"
        raise FormatError(message, folder)
    found = [
        entry.path
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if entry.name.endswith(SUFFIXES)
        and not entry.name.startswith("limits.")
        and entry.is_file()
    ]
    suffixes = {Path(path).suffix for path in found}
    if len(suffixes) == 1:
        return found
    listed = " and ".join(sorted(suffixes)) or "no"
    message = f"{folder}: this directory holds {listed} files, expected those of one container"
    raise FormatError(message, folder)

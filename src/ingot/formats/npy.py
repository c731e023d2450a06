"""Arrays in `.npy` and `.npz` files: rows along the first axis, read in place."""

import os
import struct
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ingot._core import Rows as NativeRows
from ingot.dataset.read.ingot_source import IngotSource
from ingot.errors import CorruptFileError, FormatError
from ingot.formats.base.indexed import ForeignFiles
from ingot.formats.base.options import Options

_LOCAL = struct.Struct("<4s22xHH")
"""The head of a file in a zip archive: signature, length of the name, length of the rest."""

_END = struct.Struct("<4s6xH10x")
"""The end of a zip archive without a comment: signature, number of files."""

_MANY = 0xFFFF
"""The number of files that means that the real one is elsewhere."""

_UTF8 = 0x800
"""The flag of files in a zip archive whose names are UTF-8."""


def open_files(paths: Sequence[str], name: str, options: Options) -> IngotSource:
    """Open files of arrays, one after the other.

    Raises:
        FormatError: A file is damaged or compressed, or its arrays do not form rows.
    """
    arrays = [(path, _arrays(Path(path))) for path in paths]
    native = NativeRows.arrays(arrays, options.index_dir)
    kind = "npz" if Path(paths[0]).suffix.lower() == ".npz" else "npy"
    opener = partial(open_files, list(paths), name, options)
    files = ForeignFiles(kind, list(paths), name, opener)
    return IngotSource.of(native, paths[0], files, allow_pickle=False)


def _arrays(path: Path) -> Sequence[tuple[str, int, int, int | None]]:
    """Return the name, the offset, the size and the CRC-32 of each array in a file."""
    if path.suffix.lower() == ".npy":
        return [("array", 0, path.stat().st_size, None)]
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            _check_count(archive, file, path)
            found = [
                (one.filename.removesuffix(".npy"), _start(one, file, path), one.file_size, one.CRC)
                for one in archive.infolist()
            ]
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        if isinstance(error, FormatError | FileNotFoundError | PermissionError):
            raise
        message = f"{path}: this is not an .npz file: {error}"
        raise CorruptFileError(message, str(path)) from error
    if not found:
        message = f"{path}: the file has no arrays"
        raise FormatError(message, str(path))
    return found


def _check_count(archive: zipfile.ZipFile, file: Any, path: Path) -> None:
    """Refuse an archive that says that it has other files than it lists."""
    file.seek(-_END.size, os.SEEK_END)
    signature, count = _END.unpack(file.read(_END.size))
    listed = len(archive.infolist())
    if signature == b"PK\5\6" and count not in (listed, _MANY):
        message = f"{path}: the archive has {count} files, but lists {listed}"
        raise CorruptFileError(message, str(path))


def _start(member: zipfile.ZipInfo, file: Any, path: Path) -> int:
    """Return where the bytes of a file in an archive begin."""
    if member.compress_type != zipfile.ZIP_STORED:
        message = (
            f"{path}: {member.filename} is compressed, so its rows cannot be read alone; save it "
            "with numpy.savez"
        )
        raise FormatError(message, str(path))
    file.seek(member.header_offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\3\4":
        message = f"{path}: offset {member.header_offset}: {member.filename} has no header"
        raise CorruptFileError(message, str(path))
    _, length, extra = _LOCAL.unpack(head)
    name = file.read(length).decode("utf-8" if member.flag_bits & _UTF8 else "cp437", "replace")
    if name != member.orig_filename:
        message = (
            f"{path}: offset {member.header_offset}: the archive lists "
            f"{member.orig_filename!r}, but {name!r} is stored here"
        )
        raise CorruptFileError(message, str(path))
    return int(member.header_offset + _LOCAL.size + length + extra)

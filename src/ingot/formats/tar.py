"""Tars of files in the layout of WebDataset: a key for each row, an ending per field."""

import io
import json
import tarfile
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ingot._core import archive_files
from ingot.codecs.codec import offsets_of
from ingot.codecs.signature import checked, is_file_type
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Field
from ingot.errors import FormatError
from ingot.formats.base.content import MEDIA, Content, Piece
from ingot.formats.base.indexed import open_indexed
from ingot.formats.base.options import Options
from ingot.formats.base.sink import Stream, Writing, refuse

KEY = "__key__"
_TITLE = "a tar of files"
_BLOCK = tarfile.BLOCKSIZE
_DIGITS = 6
_TYPES = {"cls": "int", "json": "json", "mp": "msgpack", "npy": "array", "txt": "utf8"}
"""The types of files by their endings; others are bytes."""

_File: TypeAlias = Callable[[Any], bytes]


def open_files(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open archives; with `partial`, one that is truncated is read as far as it is whole."""
    partly = {"partial": True} if options.partial else {}
    return open_indexed("tar", paths, name, options, format="webdataset", **partly)


class TarSink(Stream):
    """Rows on their way to a tar.

    The files of row 7 are `000007.NAME.ENDING`, or `000007.ENDING` if the field is called like
    its ending. If there is a field `__key__`, it has the keys in place of numbers. A missing value
    has no file.
    """

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        fields = self._fields
        self._has_keys = KEY in fields
        if self._has_keys and fields[KEY].type.removesuffix("?") != "utf8":
            refuse(fields[KEY], _TITLE, "has text for keys")
        self._files = {name: _file_of(one) for name, one in fields.items() if name != KEY}
        self._check_endings()
        self._last: tuple[int, str] = (-1, "")
        self._digits = max(_DIGITS, len(str(max(0, len(content) - 1))))
        self._length = 0

    def _check_endings(self) -> None:
        """Refuse fields whose files have one ending: readers of such tars ignore case."""
        names: dict[str, str] = {}
        for name, (ending, _) in self._files.items():
            other = names.setdefault(ending.lower(), name)
            if other != name:
                message = (
                    f"{self._source}: the fields {other!r} and {name!r} would have one file name "
                    f"in {_TITLE}, which ignores case; name the fields to convert with names="
                )
                raise ValueError(message)

    @property
    def spec(self) -> dict[str, str]:
        """The files of a row and their types; images and the like as bytes.

        Readers of such tars ignore case.
        """
        found = {KEY: "utf8"} if self._has_keys else {}
        for name, (ending, _) in self._files.items():
            kind = _TYPES.get(ending.rpartition(".")[2], "bytes")
            found[ending.lower()] = kind + "?" * self._fields[name].is_optional
        return found

    def expected(self, piece: Piece) -> Piece:
        """Return the values of rows by the endings of their files."""
        keys = {KEY: piece[KEY]} if self._has_keys else {}
        return keys | {ending.lower(): piece[name] for name, (ending, _) in self._files.items()}

    def encode(self, rows: range, piece: Piece) -> bytes:
        """Return the files of rows, each after its header."""
        names: list[str] = []
        cells: list[bytes] = []
        for place, row in enumerate(rows):
            key = self._key(row, piece[KEY][place]) if self._has_keys else self._number(row)
            before = len(names)
            for name, (ending, encode) in self._files.items():
                value = piece[name][place]
                if value is not None or not self._fields[name].is_optional:
                    names.append(f"{key}.{ending}")
                    cells.append(self._encoded(row, name, encode, value))
            if len(names) == before:
                message = f"{self._source}: row {row} has no values, so {_TITLE} cannot hold it"
                raise ValueError(message)
        found = archive_files(names, b"".join(cells), offsets_of(map(len, cells)))
        self._length += len(found)
        return found

    def _encoded(self, row: int, name: str, encode: _File, value: Any) -> bytes:
        try:
            return encode(value)
        except ValueError as error:
            message = f"{self._source}: row {row}: field {name!r}: {error}"
            raise FormatError(message, self._source) from error

    def _number(self, row: int) -> str:
        return f"{row:0{self._digits}}"

    def _key(self, row: int, key: str | None) -> str:
        """Return the key of a row.

        Raises:
            ValueError: It is missing, cannot be the name of files, or is that of the row before.
        """
        if key is None or not _is_key(key) or (row - 1, key) == self._last:
            message = (
                f"{self._source}: row {row}: {KEY!r} is {key!r}, expected the name of a file "
                "without a dot, other than that of the row before, and not in a folder such as "
                "__meta__; names= with the other fields leaves it out"
            )
            raise ValueError(message)
        self._last = row, key
        return key

    def end(self) -> bytes:
        """Return the two empty blocks that end a tar, and what fills its last record."""
        end = 2 * _BLOCK
        return bytes(end + -(self._length + end) % tarfile.RECORDSIZE)


def _is_key(key: str) -> bool:
    """Return whether files with this name and an ending are those of one sample.

    Readers take files in a folder such as `__meta__` for notes about the archive.
    """
    *folders, name = key.split("/")
    is_plain = bool(name) and "." not in name and "\0" not in key
    is_note = bool(folders) and folders[0].startswith("__") and folders[0].endswith("__")
    return is_plain and not is_note and {"", ".", ".."}.isdisjoint(folders)


def _file_of(field: Field) -> tuple[str, _File]:
    """Return the ending of the files of a field, and what makes a file of a value."""
    if field.is_sequence and not field.is_number:
        refuse(field, _TITLE, "has sequences of numbers only")
    if "/" in field.name:
        refuse(field, _TITLE, "takes a slash for a folder")
    found = _kind(field)
    if found is None:
        refuse(field, _TITLE, "has no such kind of file")
    ending, encode = found
    return (ending if field.name == ending else f"{field.name}.{ending}"), encode


def _kind(field: Field) -> tuple[str, _File] | None:
    codec = field.codec
    if codec.name in MEDIA:
        is_known = is_file_type(codec.name)
        return codec.name, partial(checked, codec.name) if is_known else bytes
    if codec.dtype is not None:
        if codec.dtype.kind == "c":
            return None
        if field.is_sequence or codec.shape or codec.dtype == np.uint64:  # A `.cls` has an int64.
            return "npy", _npy
        return ("cls" if codec.dtype.kind in "iu" else "json"), _number
    kinds: dict[str, tuple[str, _File]] = {
        "array": ("npy", _npy),
        "bytes": ("bin", bytes),
        "json": ("json", codec.encode),
        "msgpack": ("mp", codec.encode),
        "utf8": ("txt", str.encode),
    }
    return kinds.get(codec.name)


def _npy(value: Any) -> bytes:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        message = f"an array of {array.dtype} has no file in {_TITLE}"
        raise ValueError(message)
    return _npy_head(array.dtype, array.shape) + array.tobytes()


@lru_cache(maxsize=1024)
def _npy_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return what comes before the numbers of an array in a `.npy` file, in C order."""
    stream = io.BytesIO()
    description = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, description)
    return stream.getvalue()


def _number(value: Any) -> bytes:
    return json.dumps(np.asarray(value).item()).encode()

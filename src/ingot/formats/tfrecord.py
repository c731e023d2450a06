"""TFRecord files: records, or rows as `tf.train.Example`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import encode_examples, frame_records
from ingot.codecs.codec import offsets_of
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Field
from ingot.formats.base.content import MEDIA, Content, Piece, block_of
from ingot.formats.base.indexed import open_indexed
from ingot.formats.base.options import Options
from ingot.formats.base.sink import Stream, Writing, refuse
from ingot.records import Batch

_TITLE = "a TFRecord file"
_BYTES = frozenset({"bytes", "json", "msgpack", "utf8", *MEDIA})


def open_files(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open files of examples; return None if their records are something else."""
    return open_indexed("tfrecord", paths, name, options)


class FramedRecords(Stream):
    """Records on their way to a file, each in its frame."""

    has_records = True

    def read(self, content: Content, rows: range) -> Batch:
        """Read records into one block."""
        return block_of(content, rows)

    def encode(self, rows: range, piece: Piece) -> bytes:
        """Return records in frames."""
        del rows
        return frame_records(piece.data, piece.offsets.tobytes())


class Examples(Stream):
    """Rows on their way to a file, each as a message in its frame."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        self._kinds = {name: _kind(one) for name, one in self._fields.items()}

    @property
    def spec(self) -> dict[str, str]:
        """The features: numbers in one dimension, images and the like as bytes."""
        return {name: _type_of(one, self._kinds[name]) for name, one in self._fields.items()}

    def expected(self, piece: Piece) -> Piece:
        """Return the values of rows as features hold them."""
        numbers = {"int": np.int64, "float": np.float32}
        return {
            name: values
            if self._kinds[name] == "bytes"
            else _rounded(self._fields[name], values, np.dtype(numbers[self._kinds[name]]))
            for name, values in piece.items()
        }

    def encode(self, rows: range, piece: Piece) -> bytes:
        """Return rows as messages in frames."""
        features = [self._feature(rows, self._fields[name], piece[name]) for name in self._fields]
        return encode_examples(features, len(rows))

    def _feature(
        self, rows: range, field: Field, values: Sequence[Any] | npt.NDArray[Any]
    ) -> tuple[str, str, bytes, bytes, bytes, bytes]:
        """Return the values of a field as one buffer."""
        kind = self._kinds[field.name]
        present = np.array([one is not None or not field.is_optional for one in values], np.uint8)
        marks = b"" if present.all() else present.tobytes()
        if kind == "bytes":
            each = [_listed(field, one) for one in values]
            cells = [_cell(field, one) for some in each for one in some]
            firsts = offsets_of(map(len, each))
            return field.name, kind, b"".join(cells), offsets_of(map(len, cells)), firsts, marks
        item, numbers = (4, np.float32) if kind == "float" else (8, np.int64)
        arrays = [_numbers(one) for one in values]
        flat = np.concatenate(arrays) if arrays else np.empty(0, numbers)
        data = self._exact(rows, field, flat, arrays, np.dtype(numbers))
        offsets = (np.arange(len(flat) + 1, dtype=np.int64) * item).tobytes()
        return field.name, kind, data, offsets, offsets_of(map(len, arrays)), marks

    def _exact(
        self,
        rows: range,
        field: Field,
        flat: npt.NDArray[Any],
        arrays: list[npt.NDArray[Any]],
        dtype: np.dtype[Any],
    ) -> bytes:
        """Return numbers as the format stores them."""
        with np.errstate(over="ignore"):
            stored = flat.astype(dtype)
        wrong = np.isinf(stored) & ~np.isinf(flat) if dtype.kind == "f" else stored != flat
        if wrong.any():
            place = int(np.argmax(wrong))
            row = rows[
                int(np.searchsorted(np.cumsum([len(one) for one in arrays]), place, "right"))
            ]
            message = (
                f"{self._source}: row {row}: field {field.name!r}: {flat[place]} does not "
                f"fit into {dtype}, which {_TITLE} holds"
            )
            raise ValueError(message)
        if dtype.kind == "f" and (stored[~np.isnan(flat)] != flat[~np.isnan(flat)]).any():
            self.rounded.add(field.name)
        return stored.tobytes()


def _kind(field: Field) -> str:
    """Return which list a feature has."""
    codec = field.codec
    if codec.dtype is not None and codec.dtype.kind in "biu":
        return "int"
    if codec.dtype is not None and codec.dtype.kind == "f":
        return "float"
    if codec.name not in _BYTES:
        refuse(field, _TITLE, "has lists of bytes, int64 and float32 only")
    return "bytes"


def _type_of(field: Field, kind: str) -> str:
    """Return the type of a feature in the file."""
    is_list = field.is_sequence or (kind != "bytes" and bool(field.codec.shape))
    base = {"int": "int", "float": "array(float32)"}.get(kind, field.codec.name)
    base = "bytes" if base in MEDIA else base
    return base + "[]" * is_list + "?" * field.is_optional


def _rounded(
    field: Field, values: Sequence[Any] | npt.NDArray[Any], dtype: np.dtype[Any]
) -> list[Any]:
    """Return the numbers of each row as the format holds them: one, or in one dimension."""
    shape = (-1,) if field.is_sequence or field.codec.shape else ()
    return [None if one is None else np.asarray(one).astype(dtype).reshape(shape) for one in values]


def _listed(field: Field, value: Any) -> list[Any]:
    if value is None and field.is_optional:
        return []
    return list(value) if field.is_sequence else [value]


def _cell(field: Field, value: Any) -> bytes:
    return value if isinstance(value, bytes) else field.codec.encode(value)


def _numbers(value: Any) -> npt.NDArray[Any]:
    return np.empty(0, np.int8) if value is None else np.asarray(value).reshape(-1)

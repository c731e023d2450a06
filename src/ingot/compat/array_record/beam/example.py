"""`array_record.beam.example`: rows as `tf.train.Example`, and files of them."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ingot.beam import write_tfrecord
from ingot.formats.arrayrecord import ArrayRecordWriter

Feature: TypeAlias = Sequence[bytes] | Sequence[float] | Sequence[int]

_ROWS: list[dict[str, Feature]] = [
    {
        "Age": [34],
        "Movie": [b"Metropolis", b"Nosferatu"],
        "Movie Ratings": [8.5, 7.75],
        "Suggestion": [b"M"],
        "Suggestion Purchased": [1.0],
        "Purchase Price": [4.5],
    },
    {
        "Age": [27],
        "Movie": [b"The General", b"City Lights", b"Safety Last!"],
        "Movie Ratings": [9.0, 9.25, 8.0],
        "Suggestion": [b"Modern Times"],
        "Suggestion Purchased": [0.0],
        "Purchase Price": [6.25],
    },
    {
        "Age": [61],
        "Movie": [b"Sunrise"],
        "Movie Ratings": [8.75],
        "Suggestion": [b"The Last Laugh"],
        "Suggestion Purchased": [1.0],
        "Purchase Price": [3.0],
    },
]


class Example:
    """A row of named lists, which serializes as a `tf.train.Example`.

    Args:
        features: A list of bytes, of floats or of integers for each name.

    Attributes:
        features: As given.
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self.features = dict(features)

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Serialize the protocol buffer, with the names sorted."""
        entries = (
            _field(1, _field(1, name.encode()) + _field(2, _encode(self.features[name])))
            for name in sorted(self.features)
        )
        return _field(1, b"".join(entries))


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    parts = bytearray()
    while number >= 0x80:  # noqa: PLR2004
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _encode(values: Feature) -> bytes:
    """Encode a `Feature`: field 1 is a list of bytes, 2 of floats, 3 of integers."""
    strings = [value for value in values if isinstance(value, bytes)]
    if strings:
        return _field(1, b"".join(_field(1, value) for value in strings))
    numbers = [value for value in values if not isinstance(value, bytes)]
    if any(isinstance(value, float) for value in numbers):
        return _field(2, _field(1, struct.pack(f"<{len(numbers)}f", *numbers)))
    return _field(3, _field(1, b"".join(_varint(int(value)) for value in numbers)))


def generate_movie_examples() -> list[Example]:
    """Return a few rows, to try a pipeline on, as examples."""
    return [Example(row) for row in _ROWS]


def generate_serialized_movie_examples() -> list[bytes]:
    """Return a few rows, to try a pipeline on, as serialized examples."""
    return [one.SerializeToString() for one in generate_movie_examples()]


def write_example_to_tfrecord(example: Any, file_path: str) -> None:
    """Write a TFRecord file of one example, of this module or of TensorFlow."""
    write_tfrecord(file_path, [example.SerializeToString()])


def write_example_to_arrayrecord(example: Any, file_path: str) -> None:
    """Write an ArrayRecord file of one example."""
    with ArrayRecordWriter(file_path) as writer:
        writer.append(example.SerializeToString())

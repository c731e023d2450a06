"""`array_record.beam.example`: rows as `tf.train.Example`, and files of them."""

import struct
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from ingot.beam.tfrecord import write_tfrecord
from ingot.compat.array_record.beam.arrayrecordio import OPTIONS
from ingot.compat.array_record.beam.testdata import data
from ingot.records.arrayrecord import ArrayRecordWriter

Feature: TypeAlias = Sequence[bytes] | Sequence[float] | Sequence[int]

KITTY = (
    "https://storage.googleapis.com/download.tensorflow.org/example_images/"
    "320px-Felis_catus-cat_on_snow.jpg"
)


class Message(Protocol):
    """A protocol buffer: an `Example` of this module or of TensorFlow."""

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Serialize the message."""
        ...


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
    """Return the rows of `testdata` as examples."""
    return [
        Example(
            {
                "Age": [row["Age"]],
                "Movie": [movie.encode() for movie in row["Movie"]],
                "Movie Ratings": row["Movie Ratings"],
                "Suggestion": [row["Suggestion"].encode()],
                "Suggestion Purchased": [row["Suggestion Purchased"]],
                "Purchase Price": [row["Purchase Price"]],
            }
        )
        for row in data
    ]


def generate_serialized_movie_examples() -> list[bytes]:
    """Return the rows of `testdata` as serialized examples."""
    return [one.SerializeToString() for one in generate_movie_examples()]


def write_example_to_tfrecord(example: Message, file_path: str) -> None:
    """Write a TFRecord file of one example."""
    write_tfrecord(file_path, [example.SerializeToString()])


def write_example_to_arrayrecord(example: Message, file_path: str) -> None:
    """Write an ArrayRecord file of one example."""
    with ArrayRecordWriter(file_path, **OPTIONS) as writer:
        writer.append(example.SerializeToString())


def kitty_tfrecord(prefix: str = "") -> None:
    """Write `kittymeow.tfrecord`, with an image from the network, to the folder `prefix`."""
    with urllib.request.urlopen(KITTY) as response:
        image = response.read()
    height, width, depth = _jpeg_shape(image)
    example = Example(
        {
            "height": [height],
            "width": [width],
            "depth": [depth],
            "label": [0],
            "image_raw": [image],
        }
    )
    write_example_to_tfrecord(example, str(Path(prefix) / "kittymeow.tfrecord"))


def _jpeg_shape(image: bytes) -> tuple[int, int, int]:
    """Return height, width and channels, from the first frame header of a JPEG.

    Raises:
        ValueError: The bytes are not a JPEG.
    """
    offset = 2
    while image[offset : offset + 1] == b"\xff" and len(image) >= offset + 10:
        marker, length = struct.unpack_from(">xBH", image, offset)
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:  # noqa: PLR2004
            height, width, depth = struct.unpack_from(">HHB", image, offset + 5)
            return height, width, depth
        offset += 2 + length
    message = f"expected a frame header of a JPEG at offset {offset}"
    raise ValueError(message)

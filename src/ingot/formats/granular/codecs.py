"""The types of Granular's data sets: encoding and decoding functions by name.

In MessagePack, an array is packed as the name of its dtype as numpy writes it (`<f4`), its shape,
and its elements in C order; within a tree, a `_` precedes these three.
"""

import io
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs.array import size_of
from ingot.codecs.codec import Codec
from ingot.codecs.image import pillow
from ingot.codecs.objects import Msgpack
from ingot.codecs.registry import codec_of
from ingot.extras import require

Encoder: TypeAlias = Callable[[Any], bytes]
"""Returns the stored form of a value."""
Decoder: TypeAlias = Callable[[bytes], Any]
"""Returns the value of a stored form."""
Order: TypeAlias = Literal["little", "big"]

_MSGPACK = Msgpack()
_DTYPE = re.compile(r"[<>|][biufcSUV]\d{1,9}|[<>][mM]8(?:\[\d{0,9}[A-Za-z]{1,7}\])?")
_MARK = "_"
_MARKED = 4
_IMAGES = {"jpg": "JPEG", "png": "PNG"}
_EBML = b"\x1a\x45\xdf\xa3"
_LEAST = 1 << 30
_RATIO = 1000
"""Pixels of a video may have this many times the bytes of its file, or `_LEAST` bytes."""
_LIMITS = {"max_pixels": str(1 << 25)}
"""The maximum size of a frame: decoders allocate it before they know that it exists."""


def encode_bytes(value: object) -> bytes:
    """Return the bytes unchanged."""
    if not isinstance(value, bytes):
        message = f"expected bytes, got {type(value).__name__}"
        raise TypeError(message)
    return value


def decode_bytes(buffer: bytes) -> bytes:
    """Return the bytes unchanged."""
    return buffer


def encode_utf8(value: object) -> bytes:
    """Encode text as UTF-8."""
    if not isinstance(value, str):
        message = f"expected a str, got {type(value).__name__}"
        raise TypeError(message)
    return value.encode()


def decode_utf8(buffer: bytes) -> str:
    """Decode UTF-8 text.

    Raises:
        ValueError: The bytes are not UTF-8.
    """
    return buffer.decode()


def encode_int(
    value: SupportsIndex,
    size: int | None = None,
    signed: bool = True,  # noqa: FBT001, FBT002 -- Granular's signature
    endian: Order = "little",
) -> bytes:
    """Encode an integer.

    Args:
        value: The integer, of any type and size.
        size: The number of bytes; None for as few as possible.
        signed: Whether one bit is the sign.
        endian: The byte order.

    Raises:
        TypeError: It is not an integer.
        OverflowError: It does not fit.
    """
    number = operator.index(value)
    if size is None:
        size = max(1, (number.bit_length() + 7 + signed) // 8)
    return number.to_bytes(max(1, size), endian, signed=signed)


def decode_int(
    buffer: bytes,
    size: int | None = None,
    signed: bool = True,  # noqa: FBT001, FBT002 -- Granular's signature
    endian: Order = "little",
) -> int:
    """Decode an integer; no bytes are 0.

    Raises:
        ValueError: The number of bytes is not `size`.
    """
    if size is not None and len(buffer) != size:
        message = f"expected an integer of {size} bytes, got {len(buffer)}"
        raise ValueError(message)
    return int.from_bytes(buffer, endian, signed=signed)


def _packb(value: Any) -> bytes:
    packed: bytes = require("msgpack", "this type").packb(value)
    return packed


def encode_msgpack(value: Any) -> bytes:
    """Encode a value in MessagePack.

    Raises:
        TypeError: MessagePack has no form for it.
        ValueError: It could not be decoded: a key is neither text nor bytes.
    """
    packed = _packb(value)
    decode_msgpack(packed)
    return packed


def decode_msgpack(buffer: bytes) -> Any:
    """Decode a value in MessagePack; tuples come back as lists.

    Raises:
        ValueError: The bytes are not MessagePack.
    """
    return _MSGPACK.decode(buffer)


def encode_array(value: Any) -> bytes:
    """Encode the dtype, the shape and the elements of an array."""
    return _packb(_parts(value))


def decode_array(buffer: bytes) -> npt.NDArray[Any]:
    """Decode a read-only array.

    Raises:
        ValueError: The bytes are not an array, or an array of objects.
    """
    parts = decode_msgpack(buffer)
    if not _is_array(parts):
        message = "expected the dtype, the shape and the elements of an array"
        raise ValueError(message)
    return _array(*parts)


def encode_tree(value: Any) -> bytes:
    """Encode nested lists and dicts of values and arrays.

    Raises:
        ValueError: A list would come back as an array.
    """
    return encode_msgpack(_packed(value))


def decode_tree(buffer: bytes) -> Any:
    """Decode nested lists and dicts of values and arrays; tuples come back as lists.

    Raises:
        ValueError: The bytes are not such a tree.
    """
    try:
        return _unpacked(decode_msgpack(buffer))
    except RecursionError as error:
        message = "the tree is nested too deeply"
        raise ValueError(message) from error


def _parts(value: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(value)
    if array.dtype.hasobject or not array.dtype.itemsize:
        message = "expected an array of numbers or text, got objects"
        raise TypeError(message)
    return array.dtype.str, array.shape, array.tobytes()


def _is_array(parts: Any) -> bool:
    if not isinstance(parts, list) or [type(part) for part in parts] != [str, list, bytes]:
        return False
    return all(type(length) is int for length in parts[1])


@lru_cache
def _dtype(kind: str) -> np.dtype[Any]:
    if _DTYPE.fullmatch(kind) is None:
        message = f"expected an array of numbers or text, got dtype {kind!r}"
        raise ValueError(message)
    try:
        return np.dtype(kind)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _array(kind: str, shape: list[int], data: bytes) -> npt.NDArray[Any]:
    dtype = _dtype(kind)
    if size_of(dtype, shape) != len(data) or not dtype.itemsize:
        message = f"{len(data)} bytes do not match an array of {kind} of shape {shape}"
        raise ValueError(message)
    try:
        return np.ndarray(shape, dtype, data)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (_MARK, *_parts(value))
    if isinstance(value, dict):
        return {key: _packed(one) for key, one in value.items()}
    if not isinstance(value, list | tuple):
        return value
    packed = [_packed(one) for one in value]
    if _is_marked(packed):
        message = "a list of '_', a str, a list of ints and bytes would decode as an array"
        raise ValueError(message)
    return packed


def _is_marked(value: list[Any]) -> bool:
    return len(value) == _MARKED and value[0] == _MARK and _is_array(value[1:])


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unpacked(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    return _array(*value[1:]) if _is_marked(value) else [_unpacked(one) for one in value]


def encode_image(value: Any, quality: int = 75, format: str = "jpg") -> bytes:  # noqa: A002
    """Encode an image as a file.

    Args:
        value: An array of shape (height, width) or (height, width, channels).
        quality: The quality of a JPEG file, up to 100.
        format: "jpg" or "png".

    Raises:
        TypeError: The array is not an image.
        ValueError: The format is unknown, or cannot store such an image.
    """
    kind = _IMAGES.get(format)
    if kind is None:
        message = f'the image format must be "jpg" or "png", got {format!r}'
        raise ValueError(message)
    array = np.asarray(value)
    if array.shape[2:] == (1,):
        array = array[:, :, 0]
    stream = io.BytesIO()
    try:
        pillow().fromarray(array).save(stream, kind, quality=quality)
    except OSError as error:
        raise ValueError(str(error)) from error
    return stream.getvalue()


def decode_image(buffer: bytes, *args: object) -> npt.NDArray[Any]:
    """Return the pixels of a JPEG or PNG file as a read-only array.

    Raises:
        ValueError: The file is invalid, or has more pixels than Pillow allows.
    """
    del args
    images = pillow()
    try:
        with images.open(io.BytesIO(buffer), formats=list(_IMAGES.values())) as image:
            return np.asarray(image)
    except (
        OSError,
        SyntaxError,
        images.DecompressionBombError,
        images.DecompressionBombWarning,
    ) as error:
        message = f"cannot read this JPEG or PNG image: {error}"
        raise ValueError(message) from error


def encode_video(
    array: Any,
    fps: int = 20,
    format: str | None = None,  # noqa: A002
    codec: str = "h264",
) -> bytes:
    """Encode a video as a file.

    Args:
        array: Frames of shape (time, height, width, 3), or (time, height, width) for gray
            frames, in uint8. Gray frames come back with three channels.
        fps: Frames per second.
        format: "mp4" or "webm"; None to choose it by the codec.
        codec: "h264" or "vp9".

    Raises:
        TypeError: The array is not a video.
    """
    frames = np.asarray(array)
    if frames.ndim == 3:  # noqa: PLR2004
        frames = np.repeat(frames[..., np.newaxis], 3, axis=-1)
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:  # noqa: PLR2004
        message = (
            "expected a video of time, height, width and three channels in uint8, "
            f"got shape {frames.shape} in {frames.dtype}"
        )
        raise TypeError(message)
    av = require("av", "video")
    file = io.BytesIO()
    kind = format or ("webm" if codec.startswith("vp") else "mp4")
    _, height, width, _ = frames.shape
    with av.open(file, mode="w", format=kind) as output:
        stream = output.add_stream(codec, rate=fps)
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuv444p" if height % 2 or width % 2 else "yuv420p"
        for time, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            frame.pts = time
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def decode_video(buffer: bytes, *args: object) -> npt.NDArray[np.uint8]:
    """Decode the frames of an MP4 or WebM file.

    Raises:
        ValueError: The file is invalid, or its pixels take more than a gigabyte and more than a
            thousand times its size, or a frame has more than 32 million pixels.
    """
    del args
    av = require("av", "video")
    room = max(_LEAST, _RATIO * len(buffer))
    kind = "webm" if buffer.startswith(_EBML) else "mp4"
    frames = []
    try:
        with av.open(io.BytesIO(buffer), format=kind, options=dict(_LIMITS)) as container:
            for frame in _decoded(container):
                room -= 3 * frame.width * frame.height
                if room < 0:
                    break
                frames.append(frame.to_ndarray(format="rgb24"))
    except (av.FFmpegError, IndexError) as error:
        message = f"cannot read this MP4 or WebM video: {error}"
        raise ValueError(message) from error
    if room < 0 or not frames:
        message = "its pixels take too much memory" if room < 0 else "the video has no frames"
        raise ValueError(message)
    return np.stack(frames)


def _decoded(container: Any) -> Iterable[Any]:
    stream = container.streams.video[0]
    if stream.codec_context is None:
        return []
    stream.codec_context.options = dict(_LIMITS)
    frames: Iterable[Any] = container.decode(stream)
    return frames


ENCODERS: Mapping[str, Encoder] = {
    "bytes": encode_bytes,
    "utf8": encode_utf8,
    "msgpack": encode_msgpack,
    "int": encode_int,
    "i64": partial(encode_int, size=8, signed=True),
    "u64": partial(encode_int, size=8, signed=False),
    "array": encode_array,
    "tree": encode_tree,
    "jpg": partial(encode_image, format="jpg"),
    "png": partial(encode_image, format="png"),
    "mp4": partial(encode_video, format="mp4", codec="h264"),
    "webm": partial(encode_video, format="webm", codec="vp9"),
}
"""The encoding functions of Granular's types."""

DECODERS: Mapping[str, Decoder] = {
    "bytes": decode_bytes,
    "utf8": decode_utf8,
    "msgpack": decode_msgpack,
    "int": decode_int,
    "i64": partial(decode_int, size=8, signed=True),
    "u64": partial(decode_int, size=8, signed=False),
    "array": decode_array,
    "tree": decode_tree,
    "jpg": decode_image,
    "png": decode_image,
    "mp4": decode_video,
    "webm": decode_video,
}
"""The decoding functions of Granular's types."""

_OWN = {"i64": "int", "u64": "array(uint64)", "webm": "bytes"}
"""What types of Granular become that Ingot does not have."""


class GranularCodec(Codec):
    """One of Granular's types.

    Args:
        name: Granular's name of the type.

    Raises:
        KeyError: Granular has no such type.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._encode = ENCODERS[name]
        self._decode = DECODERS[name]

    @property
    def own(self) -> Codec:
        """The codec that Ingot has for such values."""
        return codec_of(_OWN.get(self.name, self.name))

    def encode(self, value: Any) -> bytes:
        """Encode a value as Granular does."""
        return self._encode(value)

    def decode(self, data: bytes) -> Any:
        """Decode bytes that Granular stored; arrays may be changed."""
        value = self._decode(data)
        is_view = isinstance(value, np.ndarray) and not value.flags.writeable
        return value.copy() if is_view else value


__all__ = [
    "DECODERS",
    "ENCODERS",
    "Decoder",
    "Encoder",
    "GranularCodec",
    "decode_array",
    "decode_bytes",
    "decode_image",
    "decode_int",
    "decode_msgpack",
    "decode_tree",
    "decode_utf8",
    "decode_video",
    "encode_array",
    "encode_bytes",
    "encode_image",
    "encode_int",
    "encode_msgpack",
    "encode_tree",
    "encode_utf8",
    "encode_video",
]

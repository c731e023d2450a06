"""Videos as MP4 or WebM files."""

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.extras import require

_EBML = b"\x1a\x45\xdf\xa3"
_LEAST = 1 << 30
_RATIO = 1000
"""Pixels of a video may have this many times the bytes of its file, or `_LEAST` bytes."""
_LIMITS = {"max_pixels": str(1 << 25)}
"""The maximum size of a frame: decoders allocate it before they know that it exists."""


def _av() -> Any:
    return require("av", "video")


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
    av = _av()
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
    av = _av()
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

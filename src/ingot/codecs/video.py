"""Video: arrays of frames, or bytes that are such a file already."""

import io
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec
from ingot.codecs.signature import given

_BYTES_MAX = 1 << 30
_EXPANSION = 1000
_LIMITS = {"max_pixels": str(1 << 25)}


def _av() -> ModuleType:
    try:
        return import_module("av")
    except ImportError as error:
        message = "video needs PyAV: pip install 'ingot[video]'"
        raise ImportError(message) from error


class Video(Codec):
    """Frames of height, width and 3 colours, compressed by H.264 with some loss.

    Args:
        rate: Frames in a second, which is said in the file.
        quality: The loss: 0 is little, 51 much.
    """

    name = "mp4"

    def __init__(self, rate: int = 20, quality: int = 18) -> None:
        self.rate = rate
        self.quality = quality

    def encode(self, value: Any) -> bytes:
        """Return a video as a file; bytes are taken for one and stored as they are."""
        data = given(self.name, value)
        if data is not None:
            return data
        frames = np.asarray(value)
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:  # noqa: PLR2004
            message = (
                "a video of frames, height, width and 3 colours in uint8, "
                f"not shape {frames.shape} of {frames.dtype}"
            )
            raise TypeError(message)
        if 0 in frames.shape or frames.shape[1] % 2 or frames.shape[2] % 2:
            message = f"a video has frames of an even height and width, unlike {frames.shape}"
            raise ValueError(message)
        return self._encoded(frames)

    def _encoded(self, frames: npt.NDArray[np.uint8]) -> bytes:
        av, target = _av(), io.BytesIO()
        with av.open(target, "w", format="mp4") as file:
            stream = file.add_stream("libx264", self.rate, options={"crf": str(self.quality)})
            stream.height, stream.width = frames.shape[1:3]
            stream.pix_fmt = "yuv420p"
            for number, pixels in enumerate(frames):
                frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
                frame.pts, frame.time_base = number, Fraction(1, self.rate)
                file.mux(stream.encode(frame))
            file.mux(stream.encode())
        return target.getvalue()

    def decode(self, data: bytes) -> npt.NDArray[np.uint8]:
        """Return all frames of the first video stream."""
        av = _av()
        frames: list[npt.NDArray[np.uint8]] = []
        room = max(_BYTES_MAX, _EXPANSION * len(data))
        try:
            with av.open(io.BytesIO(data), format="mp4", options=dict(_LIMITS)) as file:
                for frame in file.decode(video=0):
                    room -= frame.width * frame.height * 3
                    if room < 0:
                        message = f"a file of {len(data)} bytes with too many pixels"
                        raise ValueError(message)
                    frames.append(frame.to_ndarray(format="rgb24"))
        except av.FFmpegError as error:
            raise ValueError(error.strerror) from error
        except IndexError as error:
            message = "there is no video in it"
            raise ValueError(message) from error
        if not frames:
            message = "a video without frames"
            raise ValueError(message)
        return np.stack(frames)

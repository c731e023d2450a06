"""Video: arrays of frames, or the bytes of a video file."""

import io
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_decoded
from ingot.codecs.signature import given
from ingot.extras import require

_LIMITS = {"max_pixels": str(1 << 25)}


def _av() -> Any:
    return require("av", "video")


class Video(Codec):
    """Frames of shape (height, width, 3), compressed with H.264, which is lossy.

    Args:
        rate: Frames per second, as stored in the file.
        quality: The constant rate factor: 0 is the best quality, 51 the worst.
    """

    name = "mp4"

    def __init__(self, rate: int = 20, quality: int = 18) -> None:
        self.rate = rate
        self.quality = quality

    def encode(self, value: Any) -> bytes:
        """Encode frames as a file; bytes of a file are stored unchanged."""
        data = given(self.name, value)
        if data is not None:
            return data
        frames = np.asarray(value)
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:  # noqa: PLR2004
            raise TypeError(
                "expected a video of frames, height, width and 3 channels in uint8, "
                f"got shape {frames.shape} in {frames.dtype}"
            )
        if 0 in frames.shape or frames.shape[1] % 2 or frames.shape[2] % 2:
            raise ValueError(f"a video requires an even height and width, got shape {frames.shape}")
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
        nbytes = 0
        try:
            with av.open(io.BytesIO(data), format="mp4", options=dict(_LIMITS)) as file:
                for frame in file.decode(video=0):
                    nbytes += frame.width * frame.height * 3
                    check_decoded(2 * nbytes)  # The frames are stacked at the end.
                    frames.append(frame.to_ndarray(format="rgb24"))
        except av.FFmpegError as error:
            raise ValueError(error.strerror) from error
        except IndexError as error:
            raise ValueError("the file has no video stream") from error
        if not frames:
            raise ValueError("the video has no frames")
        return np.stack(frames)

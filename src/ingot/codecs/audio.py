"""Audio: samples and sampling rate, or the bytes of an audio file."""

import io
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_decoded
from ingot.codecs.signature import given
from ingot.extras import require

Sound: TypeAlias = tuple[npt.NDArray[Any], int]

_SUBTYPES = {
    "wav": {"int16": "PCM_16", "int32": "PCM_32", "float32": "FLOAT", "float64": "DOUBLE"},
    "flac": {"int16": "PCM_16"},
}
_DTYPES = {"PCM_16": "int16", "PCM_32": "int32", "DOUBLE": "float64"}
_BLOCK = 1 << 20


def _soundfile() -> Any:
    return require("soundfile", "audio")


class Audio(Codec):
    """Pairs of samples and sampling rate. The shape is (length,) or (length, channels).

    Encoding is lossless, and samples keep their dtype: wav takes int16, int32, float32 and
    float64, flac takes int16. Files of other sample types decode to float32.

    Args:
        name: "wav" or "flac".
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, value: Any) -> bytes:
        """Encode a pair as a file; bytes of a file are stored unchanged."""
        data = given(self.name, value)
        if data is not None:
            return data
        samples, rate = self._checked(value)
        subtype = _SUBTYPES[self.name][samples.dtype.name]
        stream, soundfile = io.BytesIO(), _soundfile()
        try:
            soundfile.write(stream, samples, rate, format=self.name.upper(), subtype=subtype)
        except soundfile.LibsndfileError as error:
            message = f"samples of shape {samples.shape}, rate {rate}: {error.error_string}"
            raise ValueError(message) from error
        return stream.getvalue()

    def _checked(self, value: Any) -> Sound:
        if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004
            raise TypeError(f"expected a pair of samples and rate, got {type(value).__name__}")
        samples, rate = np.asarray(value[0]), value[1]
        known = _SUBTYPES[self.name]
        if samples.dtype.name not in known or samples.ndim not in (1, 2):
            raise TypeError(
                f"expected samples of length, or length and channels, in {' or '.join(known)}, "
                f"got shape {samples.shape} in {samples.dtype}"
            )
        if not samples.size:
            raise ValueError("expected at least one sample")
        is_number = isinstance(rate, int | np.integer) and not isinstance(rate, bool)
        if not is_number or not 0 < rate < 1 << 31:
            raise TypeError(f"expected a rate in samples per second, got {rate!r}")
        return samples, int(rate)

    def decode(self, data: bytes) -> Sound:
        """Return samples and sampling rate."""
        soundfile = _soundfile()
        try:
            with soundfile.SoundFile(io.BytesIO(data)) as file:
                if file.format != self.name.upper():
                    raise ValueError(f"the audio file has the format {file.format}")
                return _samples(file), file.samplerate
        except soundfile.LibsndfileError as error:
            raise ValueError(error.error_string) from error


def _samples(file: Any) -> npt.NDArray[Any]:
    """Read block by block, because the length in a file cannot be trusted."""
    dtype = _DTYPES.get(file.subtype, "float32")
    blocks, nbytes = [], 0
    while len(block := file.read(_BLOCK // file.channels, dtype=dtype)):
        blocks.append(block)
        nbytes += block.nbytes
        check_decoded(2 * nbytes)  # The blocks are concatenated at the end.
    return np.concatenate(blocks) if blocks else file.read(0, dtype=dtype)

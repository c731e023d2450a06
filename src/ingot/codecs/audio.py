"""Sound: samples and their rate, or bytes that are such a file already."""

import io
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec
from ingot.codecs.signature import given

Sound: TypeAlias = tuple[npt.NDArray[Any], int]

_SUBTYPES = {
    "wav": {"int16": "PCM_16", "int32": "PCM_32", "float32": "FLOAT", "float64": "DOUBLE"},
    "flac": {"int16": "PCM_16"},
}
_DTYPES = {"PCM_16": "int16", "PCM_32": "int32", "DOUBLE": "float64"}
_BLOCK = 1 << 20
_BYTES_MAX = 1 << 32


def _soundfile() -> ModuleType:
    try:
        return import_module("soundfile")
    except ImportError as error:
        message = "sound needs soundfile: pip install 'ingot[audio]'"
        raise ImportError(message) from error


class Audio(Codec):
    """Pairs of samples, an array of length or of length and channels, and their rate.

    What is written loses nothing, and comes back as the same type: wav takes int16, int32,
    float32 and float64, flac int16. Files of other types come back as float32.

    Args:
        name: "wav" or "flac".
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, value: Any) -> bytes:
        """Return a sound as a file; bytes are taken for one and stored as they are."""
        data = given(self.name, value)
        if data is not None:
            return data
        samples, rate = self._checked(value)
        subtype = _SUBTYPES[self.name][samples.dtype.name]
        stream, soundfile = io.BytesIO(), _soundfile()
        try:
            soundfile.write(stream, samples, rate, format=self.name.upper(), subtype=subtype)
        except soundfile.LibsndfileError as error:
            message = f"samples of shape {samples.shape} at a rate of {rate}: {error.error_string}"
            raise ValueError(message) from error
        return stream.getvalue()

    def _checked(self, value: Any) -> Sound:
        if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004
            message = f"a pair of samples and rate, not {type(value).__name__}"
            raise TypeError(message)
        samples, rate = np.asarray(value[0]), value[1]
        known = _SUBTYPES[self.name]
        if samples.dtype.name not in known or samples.ndim not in (1, 2):
            message = (
                f"samples of length, or length and channels, in {' or '.join(known)}, "
                f"not shape {samples.shape} of {samples.dtype}"
            )
            raise TypeError(message)
        if not samples.size:
            message = "a sound has at least one sample"
            raise ValueError(message)
        is_number = isinstance(rate, int | np.integer) and not isinstance(rate, bool)
        if not is_number or not 0 < rate < 1 << 31:
            message = f"a rate is a number of samples in a second, not {rate!r}"
            raise TypeError(message)
        return samples, int(rate)

    def decode(self, data: bytes) -> Sound:
        """Return samples and rate."""
        soundfile = _soundfile()
        try:
            with soundfile.SoundFile(io.BytesIO(data)) as file:
                if file.format != self.name.upper():
                    message = f"a file of the format {file.format}"
                    raise ValueError(message)
                return _samples(file), file.samplerate
        except soundfile.LibsndfileError as error:
            raise ValueError(error.error_string) from error


def _samples(file: Any) -> npt.NDArray[Any]:
    """Read block by block, as what a file says of its length may be anything."""
    dtype = _DTYPES.get(file.subtype, "float32")
    blocks, nbytes = [], 0
    while len(block := file.read(_BLOCK // file.channels, dtype=dtype)):
        blocks.append(block)
        nbytes += block.nbytes
        if nbytes > _BYTES_MAX:
            message = f"a sound of more than {_BYTES_MAX} bytes"
            raise ValueError(message)
    return np.concatenate(blocks) if blocks else file.read(0, dtype=dtype)

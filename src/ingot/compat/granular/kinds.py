"""The types of a data set, and its layout."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ingot.codecs import Codec
from ingot.codecs.granular import Decoder
from ingot.dataset.read.granular.layout import REFS, element, is_sequence

Layout: TypeAlias = Literal["0.21", "0.22"]
"""The layout that Granular 0.20 and 0.21 read, or that of 0.22 and later."""


class GivenCodec(Codec):
    """A type with a decoder from the user.

    Args:
        name: The type.
        decoder: Its decoder; None to return bytes.
    """

    def __init__(self, name: str, decoder: Decoder | None) -> None:
        self.name = name
        self._decoder = decoder

    def encode(self, value: Any) -> bytes:
        """Refuse: this codec only decodes."""
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        """Return the result of the decoder."""
        return data if self._decoder is None else self._decoder(data)


def function_of(functions: Mapping[str, Any], key: str, kind: str, what: str) -> Any:
    """Return the function for the type of a key.

    Raises:
        KeyError: There is none.
    """
    if element(kind) not in functions:
        message = f"key {key!r} has type {element(kind)!r}, for which {what} has no function"
        raise KeyError(message)
    return functions[element(kind)]


def layout_of(spec: Mapping[str, str], layout: Layout | None) -> Layout:
    """Return the layout to write a data set in.

    Raises:
        ValueError: The layout is unknown, or does not support these keys.
    """
    has_sequences = any(is_sequence(kind) for kind in spec.values())
    if layout is None:
        layout = "0.21" if has_sequences else "0.22"
    if layout not in ("0.21", "0.22"):
        message = f'the layout must be "0.21" or "0.22", got {layout!r}'
        raise ValueError(message)
    if has_sequences and layout == "0.22":
        message = f"the layout of 0.22 does not support sequences: {dict(spec)}"
        raise ValueError(message)
    if layout == "0.21" and REFS in spec:
        message = f"the key {REFS!r} is reserved in the layout of 0.21"
        raise ValueError(message)
    return layout

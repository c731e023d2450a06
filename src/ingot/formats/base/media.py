"""Images, sounds and videos that are stored as files."""

from typing import Any

from ingot.codecs import Codec, codec_of
from ingot.codecs.signature import name_of

MEDIA = {
    "Image": ("jpg", "png", "webp"),
    "Audio": ("wav", "flac"),
    "Video": ("mp4",),
}
"""Features of Hugging Face that are files, and the types that such files may have here."""


class AnyFile(Codec):
    """Files of one kind, such as images, of which some may be of another type than most.

    Args:
        name: The type of most.
        media: The feature: "Image", "Audio" or "Video".
    """

    def __init__(self, name: str, media: str) -> None:
        self.name = name
        self._media = media
        self._codec = codec_of(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return AnyFile, (self.name, self._media)

    def encode(self, value: Any) -> bytes:
        """Return a file of this type, as the codec of that name does."""
        return self._codec.encode(value)

    def decode(self, data: bytes) -> Any:
        """Return the content of a file, by the codec of its own type."""
        name = type_of_file(data, self._media)
        return self._codec.decode(data) if name is None else codec_of(name).decode(data)

    def decode_many(self, data: memoryview, offsets: bytes) -> Any:
        """Return the content of files that are all of this type, else None."""
        return self._codec.decode_many(data, offsets)


def type_of_file(data: bytes, media: str) -> str | None:
    """Return the type of a file of some kind, if there is one for it."""
    found = name_of(data)
    return found if found in MEDIA[media] else None

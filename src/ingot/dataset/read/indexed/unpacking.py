"""How files are compressed as a whole."""

from collections.abc import Sequence
from pathlib import Path

from ingot.records.formats import COMPRESSIONS

StoredFile = tuple[str, str | None, int | None]
"""A file, how it is compressed as a whole, and how many bytes it decompresses to, if known.

Compressed files are decompressed into `index_dir`, by default the user's cache directory. The
copies stay there, so this is done once.
"""


def stored_as(paths: Sequence[str]) -> list[StoredFile]:
    """Return how files are compressed, by the ends of their names."""
    return [(path, COMPRESSIONS.get(Path(path).suffix.lower()), None) for path in paths]

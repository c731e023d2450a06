"""The files of a directory that its manifest lists, open as one."""

from pathlib import Path

from ingot.dataset.manifest import Manifest
from ingot.dataset.stored import Stored
from ingot.errors import FormatError


def open_shards(folder: Path, manifest: Manifest, *, allow_pickle: bool = False) -> Stored:
    """Open the files that a manifest lists, which must be those that it tells of.

    Raises:
        FileNotFoundError: One is missing.
        CorruptFileError: One is cut short, or another file is in its place.
        FormatError: There are none, or they have other rows, fields or ids.
    """
    if not manifest.shards:
        message = f"{folder}: nothing is committed in this data set yet"
        raise FormatError(message, str(folder))
    for shard in manifest.shards:
        shard.check(folder)
    paths = [str(folder / shard.name) for shard in manifest.shards]
    source = Stored.open(
        paths, allow_pickle=allow_pickle, folder=str(folder), metadata=manifest.metadata
    )
    manifest.check(folder, len(source), source.spec, source.ids)
    return source

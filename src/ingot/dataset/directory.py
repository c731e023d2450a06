"""Opening the files of a directory that its manifest lists, as one."""

from pathlib import Path

from ingot.dataset.manifest import Manifest
from ingot.dataset.spec import Spec
from ingot.dataset.stored import Stored
from ingot.errors import FormatError


def open_shards(
    folder: Path, manifest: Manifest, *, allow_pickle: bool = False, spec: Spec | None = None
) -> Stored:
    """Open the files that a manifest lists, and check that they match it.

    Args:
        folder: The directory.
        manifest: Its manifest.
        allow_pickle: As for `ingot.open`.
        spec: Its fields, if the user's own codecs decode them.

    Raises:
        FileNotFoundError: A file is missing.
        CorruptFileError: A file is truncated, or was replaced by another.
        FormatError: There are no files, or their rows, fields or ids differ.
    """
    if not manifest.shards:
        message = f"{folder}: no rows are committed in this data set yet"
        raise FormatError(message, str(folder))
    for shard in manifest.shards:
        shard.check(folder)
    paths = [str(folder / shard.name) for shard in manifest.shards]
    source = Stored.open(
        paths,
        allow_pickle=allow_pickle,
        folder=str(folder),
        metadata=manifest.metadata,
        spec=spec,
    )
    manifest.check(folder, source.row_counts, source.spec, source.ids)
    return source

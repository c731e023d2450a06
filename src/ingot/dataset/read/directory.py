"""The files of a directory that its manifest lists, as one."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ingot._core import Listing
from ingot._core import Rows as NativeRows
from ingot.dataset.manifest import Manifest, Shard
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Spec
from ingot.errors import FormatError


@dataclass(frozen=True, slots=True)
class Directory:
    """A data set in a directory, as its manifest describes it.

    Attributes:
        folder: The directory.
        listing: Its files.
        spec: The fields and their types.
        metadata: The metadata of the data set.
    """

    folder: Path
    listing: Listing
    spec: dict[str, str]
    metadata: dict[str, Any]
    format: ClassVar[str] = "directory"
    is_checked: ClassVar[bool] = True

    @classmethod
    def read(cls, folder: Path) -> "Directory":
        """Read the manifest of a directory.

        Raises:
            FileNotFoundError: The directory has no manifest.
            FormatError: It is damaged, or names files outside of the directory.
        """
        listing, head = Manifest.load(folder)
        return cls(folder, listing, head.spec, head.metadata)

    @classmethod
    def of(cls, folder: Path, manifest: Manifest) -> "Directory":
        """Return the data set that a manifest describes."""
        return cls(folder, Listing(manifest.shards), manifest.spec, manifest.metadata)

    @property
    def path(self) -> str:
        """The directory."""
        return str(self.folder)

    @property
    def paths(self) -> Sequence[str]:
        """The files."""
        return [f"{self.folder}{os.sep}{name}" for name in self.listing.names()]

    def metadata_json(self, native: NativeRows) -> str:
        """Return the metadata of the data set as JSON."""
        del native
        return json.dumps(self.metadata)

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files."""
        del native
        return self.listing.nbytes

    def identity(self, native: NativeRows | None = None) -> str:
        """Return what tells these files from others, as the manifest has it."""
        del native
        return hashlib.sha256(self.listing.content()).hexdigest()[:32]

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., IngotSource], tuple[Any, ...]]:
        """Return what opens the same files again."""
        del native
        return _reopen, (str(self.folder), len(self.listing), self.identity(), allow_pickle)

    def open(self, *, allow_pickle: bool = False, spec: Spec | None = None) -> IngotSource:
        """Open the data set; its files are opened when they are needed.

        Args:
            allow_pickle: As for `ingot.open`.
            spec: Its fields, if the user's own codecs decode them.

        Raises:
            FileNotFoundError: A file is missing.
            CorruptFileError: A file is truncated, or was replaced by another.
            FormatError: There are no files, or the fields of the first one differ.
        """
        if not len(self.listing):
            message = f"{self.folder}: no rows are committed in this data set yet"
            raise FormatError(message, str(self.folder))
        if (odd := self.listing.odd(str(self.folder))) is not None:
            number, name, nbytes, found = odd
            shard = Shard(*self.listing.shard(number))
            raise shard._replace(name=name, nbytes=nbytes).misfit(self.folder, found)
        native = NativeRows.listed(str(self.folder), self.listing)
        first = str(self.folder / self.listing.shard(0)[0])
        source = IngotSource.of(native, first, self, spec=spec, allow_pickle=allow_pickle)
        if dict(source.spec) != self.spec:
            message = (
                f"{self.folder}: the manifest lists the fields {self.spec}, but its files have "
                f"{dict(source.spec)}"
            )
            raise FormatError(message, str(self.folder))
        return source


def _reopen(folder: str, count: int, identity: str, allow_pickle: bool) -> IngotSource:  # noqa: FBT001
    """Open the first files of a directory again, if they are still those that were pickled.

    Raises:
        FormatError: They were replaced.
    """
    found = Directory.read(Path(folder))
    first = replace(found, listing=found.listing.first(count))
    if len(first.listing) != count or first.identity() != identity:
        message = (
            f"{folder}: the data set was compacted or replaced since it was pickled; open it again"
        )
        raise FormatError(message, folder)
    return first.open(allow_pickle=allow_pickle)

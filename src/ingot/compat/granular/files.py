"""Bags by path or object: the engine opens paths, Python opens anything else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ingot.compat.granular.handles import HandleBag, HandleWriter
from ingot.compat.granular.paths import PathLike, is_local, local
from ingot.dataset.read.granular import Bag, Column, Columns, layout, open_columns
from ingot.records.bag import BagWriter
from ingot.records.expand import absolute


class Writer(Protocol):
    """A bag, open for writing."""

    @property
    def size(self) -> int:
        """Bytes of records and limits so far."""

    def __len__(self) -> int: ...
    def append(self, record: bytes) -> int:
        """Append a record; return its number."""

    def flush(self) -> None:
        """Write all records so far to the files."""

    def close(self) -> None:
        """Finish the bag."""

    def abandon(self) -> None:
        """Give up a bag with its limits at its end; a pair keeps what was flushed."""


def open_reader(source: Any, limits: Any = None, *, single: bool, cached: bool) -> Bag:
    """Open a bag of any version.

    Args:
        source: Its records: a path, bytes, or an object with `open`.
        limits: Its limits; None to look for them beside or after the records.
        single: Whether the limits follow the records, whatever is beside them.
        cached: Whether to read everything now, if the engine does not read it.
    """
    if is_local(source) and (limits is None or is_local(limits)):
        path = absolute(source)
        beside = path.with_suffix(".idx") if limits is None else absolute(limits)
        is_pair = limits is not None or (not single and beside.is_file())
        return Column.paired(path, beside) if is_pair else Column.single(path)
    source, limits = (Path(one) if is_local(one) else one for one in (source, limits))
    if limits is None and not single and hasattr(source, "with_suffix"):
        beside = source.with_suffix(".idx")
        limits = beside if beside.exists() else None
    return HandleBag(source, limits, cached=cached)


def open_writer(path: Any, limits: Any = None, *, paired: bool) -> Writer:
    """Open a bag for writing.

    Args:
        path: Its records.
        limits: Its limits, for a pair; None for the file beside the records.
        paired: Whether it is a pair of files, which is appended to, or a new single file.
    """
    target = local(path)
    if limits is None and paired:
        limits = target.with_suffix(".idx")
    if isinstance(target, Path) and (limits is None or is_local(limits)):
        return BagWriter(target, limits, mode="append" if paired else "create")
    return HandleWriter(target, limits)


def read_spec(folder: Path | PathLike) -> dict[str, str]:
    """Return the specification of a folder."""
    if isinstance(folder, Path):
        return layout.read_spec(folder)
    path = folder / layout.SPEC
    with path.open("rb") as file:
        return layout.parse_spec(file.read(), str(path))


def open_folder(
    folder: Path | PathLike, spec: Mapping[str, str], cache_keys: tuple[str, ...]
) -> Columns:
    """Open the bags of a folder."""
    if isinstance(folder, Path):
        return open_columns(folder, spec)
    has_refs = layout.REFS not in spec and (folder / f"{layout.REFS}.bag").exists()

    def open_bag(name: str) -> HandleBag:
        path = folder / f"{name}.bag"
        limits = None if has_refs else folder / f"{name}.idx"
        return HandleBag(path, limits, cached=name in cache_keys)

    return Columns(str(folder), spec, has_refs=has_refs, open_bag=open_bag)

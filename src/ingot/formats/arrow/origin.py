"""What rows of columns come from: files, or a folder that Hugging Face's library has saved."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from ingot.errors import FormatError
from ingot.formats.arrow.file import ColumnFile
from ingot.formats.arrow.ipc import ArrowFile
from ingot.formats.arrow.parquet import PARQUET, ParquetFile
from ingot.records.expand import check_regular

_STATE, _INFO, _DICT = "state.json", "dataset_info.json", "dataset_dict.json"


class Opened(NamedTuple):
    """Files that were opened together.

    Attributes:
        path: What errors call them.
        files: The files, whose columns are the same.
        features: The features of Hugging Face; empty if they are not known.
    """

    path: str
    files: Sequence[ColumnFile]
    features: Mapping[str, Any]


class Origin(Protocol):
    """What was opened. It is small when it is pickled, and opens the same again."""

    @property
    def format(self) -> str | None:
        """The name of its format; None if that depends on the files."""

    def open(self) -> Opened:
        """Open the files.

        Raises:
            FormatError: A file is damaged, or has other columns than the first.
        """


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet or Arrow files.

    Attributes:
        paths: The files.
        partial: Whether streams that have no end are read, too.
        name: What errors call them; by default as the first one.
    """

    paths: Sequence[str]
    partial: bool = False
    name: str | None = None
    format: ClassVar[None] = None

    def open(self) -> Opened:
        """Open the files, whose columns must be equal."""
        files = [_opened(path, partial=self.partial) for path in self.paths]
        _check_alike(files)
        return Opened(self.name or self.paths[0], files, {})


@dataclass(frozen=True, slots=True)
class SavedFolder:
    """A folder that `save_to_disk` has written.

    Attributes:
        folder: The folder.
        partial: Whether streams that have no end are read, too.
    """

    folder: str
    partial: bool = False
    format: ClassVar[str] = "huggingface"

    def open(self) -> Opened:
        """Open the files that the folder lists."""
        saved = find(Path(self.folder))
        if saved is None:
            message = f"{self.folder}: save_to_disk has written no data set here"
            raise FormatError(message, self.folder)
        opened = Files(saved.paths, self.partial).open()
        return opened._replace(path=saved.folder, features=saved.features)


def _opened(path: str, *, partial: bool) -> ColumnFile:
    check_regular(path)
    with Path(path).open("rb") as file:
        start = file.read(len(PARQUET))
    is_parquet = start == PARQUET or path.lower().endswith(".parquet")
    return ParquetFile(path) if is_parquet else ArrowFile(path, partial=partial)


def _check_alike(files: Sequence[ColumnFile]) -> None:
    """Refuse files that have other columns than the first.

    Raises:
        FormatError: They have.
    """
    first = files[0]
    kinds = {one.name: one.type for one in first.schema}
    for other in files[1:]:
        found = {one.name: one.type for one in other.schema}
        if found != kinds:
            name = next(k for k in [*kinds, *found] if found.get(k) != kinds.get(k))
            message = (
                f"{other.path}: column {name!r} is {found.get(name, 'missing')}, but in "
                f"{first.path} it is {kinds.get(name, 'missing')}; open them separately"
            )
            raise FormatError(message, other.path)


class Saved(NamedTuple):
    """A data set that Hugging Face's `save_to_disk` has written.

    Attributes:
        folder: Its directory.
        paths: Its files, in order.
        features: Its features, as in `dataset_info.json`; empty if they are not known.
    """

    folder: str
    paths: list[str]
    features: dict[str, Any]


def splits_of(folder: Path) -> list[str] | None:
    """Return the splits of a saved `DatasetDict`; None if the folder is not one.

    Raises:
        FormatError: Its list of splits is damaged.
    """
    if not (folder / _DICT).is_file():
        return None
    splits = _loaded(folder / _DICT).get("splits")
    if not isinstance(splits, list) or not all(isinstance(one, str) for one in splits):
        message = f"{folder / _DICT}: expected a list of splits"
        raise FormatError(message, str(folder / _DICT))
    return splits


def find(folder: Path) -> Saved | None:
    """Return what a folder consists of; None if `save_to_disk` has not written it.

    Raises:
        FormatError: Its description is damaged, or names files elsewhere.
    """
    if not (folder / _STATE).is_file() or not (folder / _INFO).is_file():
        return None
    files = _loaded(folder / _STATE).get("_data_files")
    listed = files if isinstance(files, list) else []
    names = [one.get("filename") if isinstance(one, dict) else None for one in listed]
    if not names or not all(_is_name(name) for name in names):
        message = (
            f"{folder / _STATE}: expected the names of files in this folder, got {names!r:.80}"
        )
        raise FormatError(message, str(folder / _STATE))
    features = _loaded(folder / _INFO).get("features")
    paths = [str(folder / str(name)) for name in names]
    return Saved(str(folder), paths, features if isinstance(features, dict) else {})


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name not in {"", ".", ".."} and Path(name).name == name


def _loaded(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        message = f"{path}: this is not JSON: {error}"
        raise FormatError(message, str(path)) from error
    return found if isinstance(found, dict) else {}

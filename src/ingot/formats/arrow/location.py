"""Which files are Parquet or Arrow files, and what a folder of Hugging Face consists of."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from ingot.errors import FormatError

STATE = "state.json"
INFO = "dataset_info.json"
DICT = "dataset_dict.json"
PARQUET = b"PAR1"
ARROW = b"ARROW1"


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
    if not (folder / DICT).is_file():
        return None
    splits = _loaded(folder / DICT).get("splits")
    if not isinstance(splits, list) or not all(isinstance(one, str) for one in splits):
        message = f"{folder / DICT}: expected a list of splits"
        raise FormatError(message, str(folder / DICT))
    return splits


def find(folder: Path) -> Saved | None:
    """Return what a folder consists of; None if `save_to_disk` has not written it.

    Raises:
        FormatError: Its description is damaged, or names files elsewhere.
    """
    if not (folder / STATE).is_file() or not (folder / INFO).is_file():
        return None
    files = _loaded(folder / STATE).get("_data_files")
    listed = files if isinstance(files, list) else []
    names = [one.get("filename") if isinstance(one, dict) else None for one in listed]
    if not names or not all(_is_name(name) for name in names):
        message = f"{folder / STATE}: expected the names of files in this folder, got {names!r:.80}"
        raise FormatError(message, str(folder / STATE))
    features = _loaded(folder / INFO).get("features")
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

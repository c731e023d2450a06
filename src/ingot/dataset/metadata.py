"""What users store with a data set."""

import json
from pathlib import Path
from typing import Any


def check_metadata(path: Path, found: dict[str, Any], given: dict[str, Any] | None) -> None:
    """Refuse other metadata than those of the data set that is gone on with.

    Raises:
        ValueError: They are others.
    """
    if given is not None and json.loads(json_of(given)) != found:
        message = f"{path}: append=True goes on with the metadata {found!r:.200}; leave it out"
        raise ValueError(message)


def json_of(metadata: object) -> str:
    """Return metadata as JSON.

    Raises:
        TypeError: It is no dict, or JSON has no word for something in it.
        ValueError: A number in it is none, or it is too deep.
    """
    if not isinstance(metadata, dict):
        message = f"metadata is a dict, not {type(metadata).__name__}"
        raise TypeError(message)
    try:
        return json.dumps(metadata, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"metadata is what JSON can say: {error}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error

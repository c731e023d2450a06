"""What schemas tell of themselves, as metadata of a data set, and back."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from ingot.dataset.nested import DOT
from ingot.errors import FormatError
from ingot.formats.arrow.library import pyarrow

_HUGGING_FACE = b"huggingface"
_OWN = (b"ARROW:schema", b"pandas", _HUGGING_FACE)


def metadata_of(schema: Any, features: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a schema, with the schema itself under "arrow".

    Features of Hugging Face are under "huggingface", the names of class labels under "labels".
    """
    found: dict[str, Any] = {
        _text(key): _text(value)
        for key, value in (schema.metadata or {}).items()
        if key not in _OWN
    }
    found["arrow"] = {"schema": b64encode(schema.serialize().to_pybytes()).decode()}
    if features:
        found["huggingface"] = {"features": features}
    if labels := dict(_labels(features, "")):
        found["labels"] = labels
    return found


def schema_in(metadata: Mapping[str, Any], path: str) -> Any:
    """Return the schema, of type pyarrow.Schema, in the metadata of a data set, or None.

    Raises:
        FormatError: It is damaged.
    """
    told = metadata.get("arrow")
    text = told.get("schema") if isinstance(told, dict) else None
    if not isinstance(text, str):
        return None
    try:
        buffer = pyarrow().py_buffer(b64decode(text, validate=True))
        return pyarrow("pyarrow.ipc").read_schema(buffer)
    except (ValueError, OSError, KeyError, TypeError, NotImplementedError) as error:
        message = f"{path}: the Arrow schema in the metadata is damaged: {error}"
        raise FormatError(message, path) from error


def features_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features in the metadata of a data set; empty if there are none."""
    told = metadata.get("huggingface")
    features = told.get("features") if isinstance(told, dict) else None
    return features if isinstance(features, dict) else {}


def features_of(schema: Any) -> dict[str, Any]:
    """Return the features that Hugging Face's library has put into a schema; {} without."""
    try:
        told = json.loads((schema.metadata or {}).get(_HUGGING_FACE, b"null"))
        features = told["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _labels(feature: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(feature, Mapping):
        return
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(one, str) for one in names):
            yield name, names
    elif "_type" in feature:
        yield from _labels(feature.get("feature"), name)
    else:
        for key, inner in feature.items():
            yield from _labels(inner, f"{name}{DOT}{key}" if name else str(key))

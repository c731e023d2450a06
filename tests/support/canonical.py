"""The hash of a record in the manifests of the golden files.

The fields, sorted by name, contribute the name, a zero, a code of the type, the length of the
payload and the payload.
"""

import hashlib
import json
import struct
from typing import Any

import numpy as np

from tests.support import DATA

FOREIGN = DATA / "foreign"


def manifest(name: str) -> dict[str, Any]:
    """Return the manifest of a directory of golden files."""
    loaded: dict[str, Any] = json.loads((FOREIGN / name / "manifest.json").read_text())
    return loaded


def record_sha256(record: dict[str, Any]) -> str:
    """Return the hash of a record."""
    return hashlib.sha256(_members(record)).hexdigest()


def _members(record: dict[str, Any]) -> bytes:
    return b"".join(_field(name, record[name]) for name in sorted(record))


def _field(name: str, value: Any) -> bytes:
    code, payload = _encoded(value)
    return name.encode() + b"\0" + code + struct.pack("<Q", len(payload)) + payload


def _encoded(value: Any) -> tuple[bytes, bytes]:  # noqa: PLR0911
    match value:
        case None:
            return b"n", b""
        case bool() | np.bool_():
            return b"t", bytes([int(value)])
        case int() | np.integer():
            return b"i", int(value).to_bytes(16, "little", signed=True)
        case float() | np.floating():
            return b"f", struct.pack("<d", float(value))
        case str():
            return b"s", value.encode()
        case bytes():
            return b"b", value
        case np.ndarray():
            head = value.dtype.name.encode() + b"\0" + bytes([value.ndim])
            return b"a", head + struct.pack(f"<{value.ndim}Q", *value.shape) + value.tobytes()
        case list():
            return b"l", b"".join(_field("", one) for one in value)
        case dict():
            return b"d", _members(value)
    raise TypeError(type(value))

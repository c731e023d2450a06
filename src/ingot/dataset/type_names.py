"""Hints for types that have another name in other libraries."""

import re
from typing import Any

_NAMES = {
    "utf8": ("str", "string", "text", "unicode", "utf-8"),
    "int": ("int64", "integer", "long", "i64", "label", "classlabel"),
    "float": ("float64", "double", "f64", "number"),
    "bool": ("boolean", "bool_"),
    "bytes": ("binary", "blob", "buffer", "raw", "bytearray"),
    "json": ("dict", "object", "map", "struct", "any", "list", "tuple"),
    "array": ("ndarray", "numpy", "np", "np.ndarray", "tensor", "npy"),
    "jpg": ("jpeg",),
    "mp4": ("video", "film", "movie"),
    "wav": ("audio", "sound", "wave"),
    "msgpack": ("messagepack", "mpk"),
    "tree": ("pytree", "nested"),
    "jpg or png": ("image", "img", "picture", "pil", "photo"),
}
_LENGTH = 100
_KNOWN = {name: ours for ours, names in _NAMES.items() for name in (ours, *names)}
_NUMBER = re.compile(r"(?:(?:np|numpy|torch)\.)?(u?int(?:8|16|32|64)|float(?:16|32|64)|complex\d+)")
_WRAPPED = re.compile(
    r"(?:typing\.)?(list|sequence|tuple|set|optional)[\[(](.+?)(?:, ?\.\.\.)?[\])]"
)
_ARRAY = re.compile(r"(.+?)[\[(]([\d, ]+)[\])]")
_SUFFIX = re.compile(r"(.*?)((?:\[\]|\?|\*|\s*\|\s*None)+)")


def hint_of(kind: Any) -> str:
    """Return a hint for an unknown type: the type that was probably meant, or nothing."""
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", repr(kind))
    if len(text) > _LENGTH:
        return ""
    meant = _meant(text.strip())
    if meant is None or meant == kind:
        return ""
    return f'; "{text}" is {meant} here' if isinstance(kind, str) else f'; say "{meant}"'


def _meant(text: str) -> str | None:
    lower = text.lower()
    if lower in _KNOWN:
        return _KNOWN[lower]
    if found := _NUMBER.fullmatch(lower):
        return f"array({found[1]})"
    if found := _WRAPPED.fullmatch(lower):
        inner = _meant(found[2])
        suffix = "?" if found[1] == "optional" else "[]"
        return None if inner is None else inner + suffix
    if found := _SUFFIX.fullmatch(text):
        inner = "tree" if text.count("[]") > 1 else _meant(found[1])
        many = "[]" if "[" in found[2] or "*" in found[2] else ""
        return None if inner is None else inner + many + "?" * ("?" in found[2] or "|" in found[2])
    if (found := _ARRAY.fullmatch(lower)) and (number := _NUMBER.fullmatch(found[1])):
        return f"array({number[1]},{found[2].replace(' ', '').strip(',')})"
    return None

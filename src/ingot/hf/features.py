"""The features that describe the fields of a data set."""

from collections.abc import Mapping
from typing import Any

from ingot.codecs import FixedArray
from ingot.dataset.nested import DOT
from ingot.dataset.spec import Field, Spec
from ingot.formats.arrow.schema import Kind, features_in, leaves_of, metadata_of
from ingot.formats.base.media import MEDIA
from ingot.hf.library import library

_VALUES = {
    "int": "int64",
    "float": "float64",
    "utf8": "string",
    "json": "string",
    "bytes": "binary",
}
_FILES = {name: feature for feature, names in MEDIA.items() for name in names}
_DIMENSIONS = (2, 5)


def features_of(spec: Spec, metadata: Mapping[str, Any], path: str) -> Any:
    """Return the features of fields, of type `datasets.Features`; without those of no type.

    Fields that came from Hugging Face have the features they had there.
    """
    hf = library()
    labels = metadata.get("labels")
    names = labels if isinstance(labels, Mapping) else {}
    known = hf.Features.from_dict(features_in(metadata))
    tops = {name: _fields(spec, name) for name in known}
    found = {
        name: feature
        for name, feature in known.items()
        if tops[name] and _covers(feature, name, tops[name], path)
    }
    for name, field in spec.fields.items():
        top = name.split(DOT)[0]
        if name in found or (top in found and top in known):
            continue
        if name.endswith("_path") and name.removesuffix("_path") in found:
            continue
        feature = _feature(field, names.get(name))
        if feature is not None:
            _put(found, name.split(DOT), feature)
    return hf.Features(found)


def _fields(spec: Spec, top: str) -> dict[str, Field]:
    return {name: spec.fields[name] for name in spec.under(top)}


def _covers(feature: Any, name: str, fields: Mapping[str, Field], path: str) -> bool:
    """Whether a feature describes exactly these fields."""
    one = library().Features({name: feature})
    leaves = leaves_of(Kind.of(one.arrow_schema), one.to_dict(), path)
    return {leaf.name for leaf in leaves} == set(fields)


def _put(found: dict[str, Any], path: list[str], feature: Any) -> None:
    for part in path[:-1]:
        found = found.setdefault(part, {})
    found[path[-1]] = feature


def _feature(field: Field, names: Any) -> Any:
    """Return the feature of a field; None if its values tell."""
    hf = library()
    inner = _single(field, names)
    if inner is None or not field.is_sequence:
        return inner
    is_file = field.codec.name in _FILES
    return hf.List(hf.Value("binary") if is_file else inner)


def _single(field: Field, names: Any) -> Any:
    hf = library()
    codec = field.codec
    if codec.name in _FILES:
        return getattr(hf, _FILES[codec.name])()
    if isinstance(names, list) and codec.name == "int":
        return hf.ClassLabel(names=names)
    if isinstance(codec, FixedArray) and codec.shape:
        first, last = _DIMENSIONS
        if first <= len(codec.shape) <= last:
            kind = getattr(hf, f"Array{len(codec.shape)}D")
            return kind(shape=codec.shape, dtype=codec.dtype.name)
        one = hf.Value(codec.dtype.name)
        return hf.List(one, length=codec.shape[0]) if len(codec.shape) == 1 else None
    if codec.dtype is not None:
        return hf.Value(_VALUES.get(codec.name, codec.dtype.name))
    return hf.Value(_VALUES[codec.name]) if codec.name in _VALUES else None


def metadata_with(features: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata whose schema is that of the features."""
    return {**metadata, **metadata_of(Kind.of(features.arrow_schema), features.to_dict())}

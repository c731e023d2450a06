"""The columns of a data set, from the user or from a file."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from ingot.compat.h5record.attributes import CLASSES, Attribute
from ingot.errors import FormatError

Schema: TypeAlias = dict[str, Attribute]

_REFUSED = {"/", "\0"}

KEY = "ingot.h5record"
"""Where a file stores its schema: an HDF5 attribute, or a key of the metadata."""


def schema_of(given: object) -> Schema:
    """Return the attributes of a schema by name.

    Raises:
        TypeError: It is not a list or dict of attributes.
        ValueError: It is empty, or two attributes have the same name.
    """
    listed = given.values() if isinstance(given, Mapping) else given
    if isinstance(listed, Attribute) or not isinstance(listed, list | tuple | type({}.values())):
        message = f"expected a list of attributes, such as [Integer('label')], got {given!r:.80}"
        raise TypeError(message)
    schema: Schema = {}
    for one in listed:
        if not isinstance(one, Attribute):
            message = f"expected an attribute, such as Integer('label'), got {one!r:.80}"
            raise TypeError(message)
        if not isinstance(one.name, str) or one.name in ("", ".") or _REFUSED & set(one.name):
            message = f"invalid attribute name {one.name!r}: expected text without / and NUL"
            raise ValueError(message)
        if not one.name.isascii() and one.name.encode("utf-8", "replace").decode() != one.name:
            message = f"invalid attribute name {one.name!r}: it is not valid Unicode text"
            raise ValueError(message)
        if one.name in schema:
            message = f"two attributes have the name {one.name!r}"
            raise ValueError(message)
        schema[one.name] = one
    if isinstance(given, Mapping) and list(given) != list(schema):
        message = f"the keys of a schema must be the names of its attributes, {list(schema)}"
        raise ValueError(message)
    above = {name[:end] for name in schema for end, letter in enumerate(name) if letter == "."}
    if inside := sorted(above & schema.keys()):
        message = f"{inside[0]!r} and an attribute whose name begins with {inside[0] + '.'!r}"
        raise ValueError(message + ": one would contain the other")
    if not schema:
        message = "a schema must have at least one attribute"
        raise ValueError(message)
    return schema


def value_of(row: Mapping[str, Any], name: str) -> Any:
    """Return the value of a column: in a row of Ingot, dots in names are nested dicts."""
    if "." not in name:
        return row[name]
    for part in name.split("."):
        row = row[part]
    return row


def text_of(schema: Schema) -> str:
    """Return a schema in its stored form."""
    return json.dumps([[type(one).__name__, one.options()] for one in schema.values()])


def parsed(text: object, path: str) -> Schema:
    """Return the schema that is stored in a file.

    Raises:
        FormatError: The file has no schema, or one with classes that are not Ingot's.
    """
    try:
        kept = json.loads(text if isinstance(text, str) else "null")
        return schema_of([CLASSES[kind](**options) for kind, options in kept])
    except (TypeError, ValueError, KeyError) as error:
        message = f"{path}: no schema is stored in the file; pass one, such as [Integer('label')]"
        raise FormatError(message, path) from error

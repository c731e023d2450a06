"""The columns of a data set, as a user gives them and as a file keeps them."""

import json
from collections.abc import Mapping
from typing import TypeAlias

from ingot.compat.h5record.attributes import CLASSES, Attribute
from ingot.dataset.nested import DOT, groups
from ingot.errors import FormatError

Schema: TypeAlias = dict[str, Attribute]

KEY = "ingot.h5record"
"""Where a file keeps its schema: an attribute of HDF5, or a key of the metadata."""


def schema_of(given: object) -> Schema:
    """Return a schema by the names of its attributes.

    Raises:
        TypeError: It is no list or dict of attributes.
        ValueError: It is empty, or two attributes have the same name.
    """
    listed = given.values() if isinstance(given, Mapping) else given
    if isinstance(listed, Attribute) or not isinstance(listed, list | tuple | type({}.values())):
        message = f"a schema is a list of attributes, such as [Integer('label')], not {given!r:.80}"
        raise TypeError(message)
    schema: Schema = {}
    for one in listed:
        if not isinstance(one, Attribute):
            message = f"a schema has attributes, such as Integer('label'), not {one!r:.80}"
            raise TypeError(message)
        if one.name in schema:
            message = f"two attributes have the name {one.name!r}"
            raise ValueError(message)
        schema[one.name] = one
    if isinstance(given, Mapping) and list(given) != list(schema):
        message = f"the keys of a schema are the names of its attributes, {list(schema)}"
        raise ValueError(message)
    if inside := sorted(groups(schema) & schema.keys()):
        message = f"{inside[0]!r} and an attribute whose name begins with {inside[0] + DOT!r}"
        raise ValueError(message + ": one would be inside of the other")
    if not schema:
        message = "a schema has at least one attribute"
        raise ValueError(message)
    return schema


def text_of(schema: Schema) -> str:
    """Return a schema as a file keeps it."""
    return json.dumps([[type(one).__name__, one.options()] for one in schema.values()])


def parsed(text: object, path: str) -> Schema:
    """Return the schema that a file keeps.

    Raises:
        FormatError: It keeps none, or one of classes that are not Ingot's.
    """
    try:
        kept = json.loads(text if isinstance(text, str) else "null")
        return schema_of([CLASSES[kind](**options) for kind, options in kept])
    except (TypeError, ValueError, KeyError) as error:
        message = f"{path}: the file does not tell its schema; pass one, such as [Integer('label')]"
        raise FormatError(message, path) from error

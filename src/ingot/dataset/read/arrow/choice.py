"""The fields of files of columns that a user has chosen, and their types."""

from collections.abc import Mapping

from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError

_BYTES = ("bytes", "utf8")
"""The types of values that any codec may make something of."""


def chosen(spec: Spec, fields: Mapping[str, Field], where: str) -> dict[str, Field]:
    """Return the fields of a specification.

    Args:
        spec: The specification.
        fields: What the files have.
        where: The name of the files in errors.

    Raises:
        FormatError: The files have no such field, or its values cannot be of the type.
    """
    for name, wanted in spec.fields.items():
        stored = fields.get(name)
        if stored is None:
            message = f"{where}: there is no field {name!r}, only {', '.join(map(repr, fields))}"
            raise FormatError(message, where)
        if not _is_readable(stored, wanted):
            found = f"field {name!r} is {stored.type}"
            message = f"{where}: {found}, which cannot be read as {wanted.type}"
            raise FormatError(message, where)
    return dict(spec.fields)


def _is_readable(stored: Field, wanted: Field) -> bool:
    """Whether the types are the same, or a codec decodes what is stored as bytes."""
    if wanted.codec.name == stored.codec.name:
        return wanted.is_sequence == stored.is_sequence
    return stored.codec.name in _BYTES and wanted.kind == stored.kind

"""The fields of files of columns that a user has chosen, and their types."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ingot.codecs import Pickle
from ingot.codecs.signature import is_file_type
from ingot.dataset.spec import Field, Spec, SpecLike
from ingot.errors import FormatError

_BYTES = ("bytes", "utf8")
"""The types of values that any codec may make something of."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which fields to read, and as what.

    Attributes:
        spec: The fields and their types; None for all, as they are stored.
        allow_pickle: Whether to read fields that are stored as pickle.
    """

    spec: SpecLike | None = None
    allow_pickle: bool = False

    @property
    def names(self) -> list[str] | None:
        """The full names of the fields; None for all."""
        return None if self.spec is None else list(Spec.of(self.spec, [Pickle(allowed=True)]))

    def of(self, fields: Mapping[str, Field], where: str) -> Spec:
        """Return the fields to read.

        Args:
            fields: What the files have.
            where: The name of the files in errors.

        Raises:
            FormatError: The files have no such field, or its values cannot be of the type.
        """
        if self.spec is None:
            return Spec(fields)
        spec = Spec.of(self.spec, [Pickle(allowed=self.allow_pickle)])
        for name, wanted in spec.fields.items():
            _check(fields.get(name), wanted, fields, where)
        return Spec({name: _as_stored(fields[name], one) for name, one in spec.fields.items()})


def _check(stored: Field | None, wanted: Field, fields: Mapping[str, Field], where: str) -> None:
    if stored is None:
        listed = ", ".join(map(repr, fields))
        message = f"{where}: there is no field {wanted.name!r}, only {listed}"
        raise FormatError(message, where)
    if not _is_readable(stored, wanted):
        found = f"field {wanted.name!r} is {stored.type}"
        message = f"{where}: {found}, which cannot be read as {wanted.type}"
        raise FormatError(message, where)


def _is_readable(stored: Field, wanted: Field) -> bool:
    """Whether types are the same, a codec decodes stored bytes, or files are wanted as bytes."""
    if wanted.codec.name == stored.codec.name:
        return wanted.is_sequence == stored.is_sequence
    is_file = is_file_type(stored.codec.name) and wanted.codec.name == "bytes"
    return (is_file or stored.codec.name in _BYTES) and wanted.kind == stored.kind


def _as_stored(stored: Field, wanted: Field) -> Field:
    """Return the field as it is wanted; files of several types are read as without a spec."""
    is_file = is_file_type(stored.codec.name) and wanted.codec.name == stored.codec.name
    return replace(wanted, codec=stored.codec) if is_file else wanted

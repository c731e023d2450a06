"""The specification of a data set: its fields and their types."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ingot.codecs import Codec, Pickle, codec_of
from ingot.dataset.nested import DOT, flat, groups
from ingot.dataset.type_names import hint_of
from ingot.locks import cached_property

SpecLike: TypeAlias = Mapping[str, Any]
"""Types or codecs by name, or nested mappings of these."""

_NAME_MAX = 1000
_TYPE = re.compile(r"(.*?)(\[\])?(\?)?", re.DOTALL)
PRESENT = "present"
"""The type of the column that records whether an optional value is present."""


@dataclass(frozen=True)
class Field:
    """One field of a row.

    Attributes:
        name: Its key in a row.
        codec: The codec of a single value.
        is_sequence: Whether a row has any number of values.
        is_optional: Whether the value may be missing.
    """

    name: str
    codec: Codec
    is_sequence: bool = False
    is_optional: bool = False

    @property
    def type(self) -> str:
        """Its type, as in a specification."""
        return self.codec.name + "[]" * self.is_sequence + "?" * self.is_optional

    @property
    def takes_none(self) -> bool:
        """Whether None is a value like any other."""
        return self.codec.takes_none and not self.is_sequence and not self.is_optional

    @property
    def is_number(self) -> bool:
        """Whether one value is a single number."""
        return self.codec.dtype is not None and self.codec.shape == ()

    @cached_property
    def kind(self) -> str:
        """Where its values are stored: numbers in the index, runs of numbers in one cell."""
        if self.is_number:
            return "cell" if self.is_sequence else "column"
        return "sequence" if self.is_sequence else "cell"

    @cached_property
    def width(self) -> int | None:
        """Bytes of a value in the index."""
        is_column = self.kind == "column" and self.codec.dtype is not None
        return self.codec.dtype.itemsize if is_column and self.codec.dtype else None


class Spec(Mapping[str, str]):
    """The fields of a data set: a mapping of names to types.

    A dot in a name is a nesting level: {"obs.image": "jpg"} is {"obs": {"image": "jpg"}}.

    Raises:
        ValueError: A field contains other fields.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.fields = dict(fields)
        if not self.groups.isdisjoint(self.fields):
            raise ValueError(f"a name is both a field and a group of fields: {self!r}")

    @cached_property
    def groups(self) -> frozenset[str]:
        """The names that contain fields."""
        return groups(self.fields)

    def under(self, name: str) -> list[str]:
        """Return the field with a name, or all fields inside it; empty if no field matches."""
        if name in self.fields:
            return [name]
        return [one for one in self.fields if one.startswith(f"{name}{DOT}")]

    @classmethod
    def of(cls, spec: object, codecs: object = None) -> "Spec":
        """Return the specification for a dict of types, codecs or further such dicts.

        Args:
            spec: The fields.
            codecs: Codecs to use by name here, besides the registered ones.

        Raises:
            ValueError: A name or a type is invalid.
            TypeError: It is not a dict of these.
        """
        if not isinstance(spec, Mapping):
            raise TypeError(
                'a specification must be a dict of names and types, such as {"label": "int"}, '
                f"got {type(spec).__name__}"
            )
        known = _known(codecs)
        fields = [_field(name, kind, known) for name, kind in flat(spec)]
        found = cls({field.name: field for field in fields})
        if len(found) < len(fields):
            raise ValueError(f"a field appears twice: {found!r}")
        return found

    def own(self) -> "Spec":
        """Return the fields with the codecs of Ingot."""
        return Spec({name: replace(one, codec=one.codec.own) for name, one in self.fields.items()})

    def shut(self) -> "Spec":
        """Return the specification without permission to read pickles."""
        shut = Pickle(allowed=False)
        fields = self.fields.values()
        return Spec(
            {
                one.name: replace(one, codec=shut) if isinstance(one.codec, Pickle) else one
                for one in fields
            }
        )

    def stored(self) -> list[tuple[str, str, int | None, str | None]]:
        """Return the fields as stored in a file: optional fields have an additional column."""
        fields = [(one.name, one.kind, one.width, one.type) for one in self.fields.values()]
        present = [
            (f"{one.name}?", "column", 1, PRESENT)
            for one in self.fields.values()
            if one.is_optional
        ]
        return [*fields, *present]

    @classmethod
    def of_stored(
        cls, stored: list[tuple[str, str, int | None, str | None]], *, allow_pickle: bool = False
    ) -> "Spec":
        """Return the specification for the fields of a file.

        Args:
            stored: The fields.
            allow_pickle: Whether to read fields that are stored as pickle.

        Raises:
            ValueError: They are not the fields of a data set.
        """
        kinds = {name: kind or "bytes" for name, _, _, kind in stored if kind != PRESENT}
        spec = cls.of(kinds, [Pickle(allowed=allow_pickle)])
        if spec.stored() != stored:
            raise ValueError("its fields are not stored like those of a data set")
        return spec

    def __getitem__(self, name: str) -> str:
        return self.fields[name].type

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        return repr(dict(self))


def _known(codecs: object) -> dict[str, Codec]:
    """Return codecs by name."""
    if codecs is None:
        return {}
    listed = codecs.values() if isinstance(codecs, Mapping) else codecs
    if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
        raise TypeError(f"codecs must be a list or a dict of codecs, got {type(codecs).__name__}")
    known: dict[str, Codec] = {}
    for codec in listed:
        if not isinstance(codec, Codec):
            raise TypeError(f"a codec must derive from ingot.codecs.Codec, got {codec!r}")
        if known.setdefault(codec.name, codec) is not codec:
            raise ValueError(f"two codecs are named {codec.name!r}")
    if isinstance(codecs, Mapping) and list(codecs) != [one.name for one in codecs.values()]:
        message = f"codecs must be listed under their own names, {list(known)}, got {list(codecs)}"
        raise ValueError(message)
    return known


def _field(name: object, kind: object, known: Mapping[str, Codec]) -> Field:
    if not isinstance(name, str) or not name.isprintable() or name.endswith("?"):
        raise ValueError(f"invalid field name {name!r}: expected text that does not end in ?")
    if len(name) > _NAME_MAX:
        raise ValueError(f"invalid field name {name[:40]!r}...: it has {len(name)} characters")
    if "[]" in name:
        message = f"{name!r}: put [] after the type; a sequence of structures is tree[] or json[]"
        raise ValueError(message)
    if not all(name.split(DOT)):
        raise ValueError(f"invalid field name {name!r}: a part between dots is empty")
    if isinstance(kind, Codec):
        return Field(name, kind)
    if not isinstance(kind, str):
        what = f"got {type(kind).__name__}{hint_of(kind)}"
        raise TypeError(f"field {name!r}: a type must be a str or a codec, {what}")
    found = _TYPE.fullmatch(kind)
    if found is None:
        raise ValueError(f"field {name!r}: {kind!r} is not a type")
    try:
        codec = known[found[1]] if found[1] in known else codec_of(found[1])
    except ValueError as error:
        raise ValueError(f"field {name!r}: {error}{hint_of(kind)}") from None
    return Field(name, codec, found[2] is not None, found[3] is not None)

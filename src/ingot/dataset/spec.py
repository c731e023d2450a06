"""What the rows of a data set are made of."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from ingot.codecs import Codec, Pickle, codec_of
from ingot.dataset.hint import hint_of
from ingot.dataset.nested import DOT, flat, groups

SpecLike: TypeAlias = Mapping[str, Any]
"""Types or codecs by name, or more such mappings."""

_NAME_MAX = 1000
_TYPE = re.compile(r"(.*?)(\[\])?(\?)?", re.DOTALL)
PRESENT = "present"
"""The type of the column that says whether an optional value is there."""


@dataclass(frozen=True)
class Field:
    """One field of a row.

    Attributes:
        name: Its key in a row.
        codec: How one value becomes bytes.
        is_sequence: Whether a row has any number of values.
        is_optional: Whether a row may go without.
    """

    name: str
    codec: Codec
    is_sequence: bool = False
    is_optional: bool = False

    @property
    def type(self) -> str:
        """Its type, as a specification says it."""
        return self.codec.name + "[]" * self.is_sequence + "?" * self.is_optional

    @property
    def takes_none(self) -> bool:
        """Whether None is a value like others."""
        return self.codec.takes_none and not self.is_sequence and not self.is_optional

    @property
    def is_number(self) -> bool:
        """Whether one value is a single number."""
        return self.codec.dtype is not None and self.codec.shape == ()

    @cached_property
    def kind(self) -> str:
        """Where its values are in a file: numbers in the index, runs of numbers in one cell."""
        if self.is_number:
            return "cell" if self.is_sequence else "column"
        return "sequence" if self.is_sequence else "cell"

    @property
    def width(self) -> int | None:
        """Bytes of a value in the index."""
        is_column = self.kind == "column" and self.codec.dtype is not None
        return self.codec.dtype.itemsize if is_column and self.codec.dtype else None


class Spec(Mapping[str, str]):
    """The fields of a data set: a mapping of names to types.

    A dot in a name is a step down: {"obs.image": "jpg"} is {"obs": {"image": "jpg"}}.

    Raises:
        ValueError: A field has others inside.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.fields = dict(fields)
        if not self.groups.isdisjoint(self.fields):
            message = f"a field has others inside: {self!r}"
            raise ValueError(message)

    @cached_property
    def groups(self) -> frozenset[str]:
        """The names that have fields inside."""
        return groups(self.fields)

    def under(self, name: str) -> list[str]:
        """Return the field of a name, or all fields inside of it; none if there are none."""
        if name in self.fields:
            return [name]
        return [one for one in self.fields if one.startswith(f"{name}{DOT}")]

    @classmethod
    def of(cls, spec: object, codecs: object = None) -> "Spec":
        """Return the specification of a dict of types, codecs or further such dicts.

        Args:
            spec: The fields.
            codecs: Codecs that are known by their names here, besides the registered ones.

        Raises:
            ValueError: A name or a type cannot be.
            TypeError: It is no such dict.
        """
        if not isinstance(spec, Mapping):
            message = (
                'a specification is a dict of names and types, such as {"label": "int"}, '
                f"not {type(spec).__name__}"
            )
            raise TypeError(message)
        known = _known(codecs)
        fields = [_field(name, kind, known) for name, kind in flat(spec)]
        found = cls({field.name: field for field in fields})
        if len(found) < len(fields):
            message = f"a field is there twice: {found!r}"
            raise ValueError(message)
        return found

    def shut(self) -> "Spec":
        """Return the specification without leave to read pickles."""
        shut = Pickle(allowed=False)
        fields = self.fields.values()
        return Spec(
            {
                one.name: replace(one, codec=shut) if isinstance(one.codec, Pickle) else one
                for one in fields
            }
        )

    def stored(self) -> list[tuple[str, str, int | None, str | None]]:
        """Return the fields as they are in a file: with a column for each optional one."""
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
        """Return the specification of the fields of a file.

        Args:
            stored: The fields.
            allow_pickle: Whether what is stored as pickle may be read.

        Raises:
            ValueError: They are not those of a data set.
        """
        kinds = {name: kind or "bytes" for name, _, _, kind in stored if kind != PRESENT}
        spec = cls.of(kinds, [Pickle(allowed=allow_pickle)])
        if spec.stored() != stored:
            message = "its fields are not stored as those of a data set are"
            raise ValueError(message)
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
    """Return codecs by their names."""
    if codecs is None:
        return {}
    listed = codecs.values() if isinstance(codecs, Mapping) else codecs
    if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
        message = f"codecs is a list of codecs or a dict of them, not {type(codecs).__name__}"
        raise TypeError(message)
    known: dict[str, Codec] = {}
    for codec in listed:
        if not isinstance(codec, Codec):
            message = f"a codec derives from ingot.codecs.Codec, {codec!r} does not"
            raise TypeError(message)
        if known.setdefault(codec.name, codec) is not codec:
            message = f"there are two codecs {codec.name!r}"
            raise ValueError(message)
    if isinstance(codecs, Mapping) and list(codecs) != [one.name for one in codecs.values()]:
        message = f"codecs are known by their own names, {list(known)}, not as {list(codecs)}"
        raise ValueError(message)
    return known


def _field(name: object, kind: object, known: Mapping[str, Codec]) -> Field:
    if not isinstance(name, str) or not name.isprintable() or name.endswith("?"):
        message = f"{name!r} cannot be the name of a field: text that does not end in a ?"
        raise ValueError(message)
    if len(name) > _NAME_MAX:
        message = f"{name[:40]!r}... cannot be the name of a field: it has {len(name)} characters"
        raise ValueError(message)
    if "[]" in name:
        message = f"{name!r}: [] goes behind a type; a sequence of structures is tree[] or json[]"
        raise ValueError(message)
    if not all(name.split(DOT)):
        message = f"{name!r} cannot be the name of a field: there is nothing beside a dot"
        raise ValueError(message)
    if isinstance(kind, Codec):
        return Field(name, kind)
    if not isinstance(kind, str):
        what = f"not {type(kind).__name__}{hint_of(kind)}"
        message = f"field {name!r}: a type is a str or a codec, {what}"
        raise TypeError(message)
    found = _TYPE.fullmatch(kind)
    if found is None:
        message = f"field {name!r}: {kind!r} is no type"
        raise ValueError(message)
    try:
        codec = known[found[1]] if found[1] in known else codec_of(found[1])
    except ValueError as error:
        message = f"field {name!r}: {error}{hint_of(kind)}"
        raise ValueError(message) from None
    return Field(name, codec, found[2] is not None, found[3] is not None)

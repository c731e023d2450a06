"""The fields that the columns of a schema become."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingot.dataset.nested import DOT
from ingot.dataset.spec import Spec
from ingot.errors import FormatError
from ingot.formats.arrow.library import pyarrow
from ingot.formats.arrow.types import is_binary, plain, shape_of, storage, type_of
from ingot.formats.base.media import MEDIA

BYTES, PATH = "bytes", "path"
"""The parts of an image, a sound or a video, as Hugging Face stores them."""

_OTHERS = ", or leave the column out: name the others with spec={...}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """Values of a column, or of a part of a struct, as a field.

    Attributes:
        name: The full name of the field.
        path: The names that lead to the values, the column first.
        type: The type of the field, without `?`.
        plain: What values are cast to before they are packed, of type pyarrow.DataType.
        nullable: Whether the schema allows nulls here, or above.
        media: The feature, if values are files: "Image", "Audio" or "Video".
    """

    name: str
    path: tuple[str, ...]
    type: str
    plain: Any
    nullable: bool
    media: str | None = None

    @property
    def parts(self) -> list[tuple[str, ...]]:
        """The paths of the values that are read: of a file also that of its own path."""
        return [(*self.path, BYTES), (*self.path, PATH)] if self.media else [self.path]

    @property
    def bytes_path(self) -> tuple[str, ...]:
        """The path of the values whose nulls are missing values."""
        return self.parts[0]


def leaves_of(
    schema: Any, features: Mapping[str, Any], where: str, wanted: Sequence[str] | None = None
) -> list[Leaf]:
    """Return the fields of a schema.

    Args:
        schema: The schema, of type pyarrow.Schema.
        features: Its features, as Hugging Face describes them; may be empty.
        where: The name of the file in errors.
        wanted: The fields that are read; None for all. A column without any of them may have
            any type and any name.

    Raises:
        FormatError: A column has a type or a name that fields cannot have.
    """
    columns = schema if wanted is None else _chosen(schema, wanted, where)
    found = [
        leaf
        for field in columns
        for leaf in _leaves(field, features.get(field.name), (), where, nullable=False)
    ]
    names = [one.name for one in found]
    twice = (
        {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()
    )
    if twice:
        message = f"{where}: two columns are named {min(twice)!r}; rename one of them{_OTHERS}"
        raise FormatError(message, where)
    try:
        Spec.of({one.name: one.type for one in found} or {"": ""})
    except ValueError as error:
        message = f"{where}: {error}; rename the column{_OTHERS}"
        raise FormatError(message, where) from error
    return found


def _chosen(schema: Any, wanted: Sequence[str], where: str) -> list[Any]:
    """Return the columns that have the wanted fields.

    Raises:
        FormatError: One is in no column.
    """
    for name in wanted:
        if not any(_is_inside(name, column) for column in schema.names):
            listed = ", ".join(map(repr, schema.names))
            message = f"{where}: there is no field {name!r}, only {listed}"
            raise FormatError(message, where)
    return [one for one in schema if any(_is_inside(name, one.name) for name in wanted)]


def _is_inside(name: str, column: str) -> bool:
    """Return whether a field is a column, or a part of it."""
    return name == column or name.startswith(column + DOT)


def _leaves(
    field: Any, feature: Any, above: tuple[str, ...], where: str, *, nullable: bool
) -> Iterator[Leaf]:
    path = (*above, field.name)
    name = DOT.join(path)
    nullable = nullable or field.nullable
    kind = storage(field.type)
    media = feature.get("_type") if isinstance(feature, dict) else None
    if media in MEDIA and _is_file(kind):
        yield Leaf(name, path, "bytes", pyarrow().large_binary(), nullable, media)
        return
    if pyarrow().types.is_struct(kind) and len(kind):
        inner = feature if isinstance(feature, dict) and "_type" not in feature else {}
        for one in kind:
            yield from _leaves(one, inner.get(one.name), path, where, nullable=nullable)
        return
    shape = shape_of(field, feature)
    found = type_of(field.type, shape)
    is_text = found is not None and found.startswith("tree")
    target = plain(field.type, text=is_text)
    if found is None or target is None:
        message = (
            f"{where}: column {name!r} is {field.type}, which no field can have; cast it with "
            f"pyarrow{_OTHERS}"
        )
        raise FormatError(message, where)
    yield Leaf(name, path, found, target, nullable)


def _is_file(kind: Any) -> bool:
    """Whether values are files, with bytes and a path."""
    if not pyarrow().types.is_struct(kind) or {one.name for one in kind} != {BYTES, PATH}:
        return False
    return is_binary(kind.field(BYTES).type)

"""The types of Arrow, the fields that columns become, and the metadata that keep a schema."""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ingot._core import arrow_kind
from ingot.codecs import Array, Bytes, Codec, Json, Utf8
from ingot.codecs.signature import is_file_type
from ingot.dataset.nested import DOT
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError, counted
from ingot.formats.arrow.file import pyarrow
from ingot.formats.base.media import MEDIA

BYTES, PATH = "bytes", "path"
"""The parts of an image, a sound or a video, as Hugging Face stores them."""

Layout: TypeAlias = tuple[str, Sequence[int], str]
"""How values are stored: what a cell is, the shape of an array, and "one", "run" or "many"."""

_OTHERS = ", or leave the column out"
_HUGGING_FACE = b"huggingface"
_OWN = (b"ARROW:schema", b"pandas", _HUGGING_FACE)
_NAME, _SERIALIZED = b"ARROW:extension:name", b"ARROW:extension:metadata"
_EXTENSION = (_NAME, _SERIALIZED)
_TENSOR = b"arrow.fixed_shape_tensor"
_ARRAY = b"datasets.features.features.Array"
_HF_ARRAYS = {f"Array{dims}D" for dims in range(2, 6)}
_NULLABLE = 2
_TEXT, _BYTES = ("u", "U", "vu"), ("z", "Z", "vz")
_SCALARS = {"int64": "int", "float64": "float", "bool": "bool"}
_DTYPES = {
    "b": "bool",
    "c": "int8",
    "s": "int16",
    "i": "int32",
    "l": "int64",
    "C": "uint8",
    "S": "uint16",
    "I": "uint32",
    "L": "uint64",
    "e": "float16",
    "f": "float32",
    "g": "float64",
}
_TIMES = {"tdD": "int32", "tts": "int32", "ttm": "int32", "tdm": "int64", "ttu": "int64"}
_NAMES = {
    "n": "null",
    "u": "string",
    "U": "large_string",
    "vu": "string_view",
    "z": "binary",
    "Z": "large_binary",
    "vz": "binary_view",
    "+r": "run_end_encoded",
    "+l": "list",
    "+L": "large_list",
    "+s": "struct",
    "+m": "map",
    "+vl": "list_view",
    "+vL": "large_list_view",
    "tdD": "date32[day]",
    "tdm": "date64[ms]",
    "tts": "time32[s]",
    "ttm": "time32[ms]",
    "ttu": "time64[us]",
    "ttn": "time64[ns]",
    "tiM": "month_interval",
    "tiD": "day_time_interval",
    "tin": "month_day_nano_interval",
}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
_PARTS = {"+l": 1, "+L": 1, "+vl": 1, "+vL": 1, "+w": 1, "+m": 1, "+r": 2}
"""How many types are inside of those that need some."""


class Kind(NamedTuple):
    """The type of a column, as Arrow's C data interface describes it.

    Attributes:
        name: The name of the column, or of the part.
        format: What the values are, as a format string of the interface.
        flags: 2, if the values may be null.
        metadata: Metadata of the column.
        children: The types inside.
        dictionary: The type of the values, if the column has their positions in a dictionary.
    """

    name: str
    format: str
    flags: int = _NULLABLE
    metadata: Mapping[bytes, bytes] = {}
    children: Sequence["Kind"] = ()
    dictionary: "Kind | None" = None

    @classmethod
    def of(cls, given: Any) -> "Kind":
        """Return the type that an object with `__arrow_c_schema__`, or its capsule, has.

        Raises:
            TypeError: It is another object.
            FormatError: The type is malformed.
        """
        if not hasattr(given, "__arrow_c_schema__") and type(given).__name__ != "PyCapsule":
            message = (
                "expected a schema: an object with __arrow_c_schema__, or its capsule, got "
                f"{type(given).__name__}"
            )
            raise TypeError(message)
        return cls.of_tuple(arrow_kind(given))

    @classmethod
    def of_tuple(cls, given: Sequence[Any]) -> "Kind":
        """Return the type that a tuple of the same parts has.

        Raises:
            FormatError: The type is malformed.
        """
        name, form, flags, metadata, children, dictionary = given
        inner = None if dictionary is None else cls.of_tuple(dictionary)
        found = cls(name, form, flags, metadata, [*map(cls.of_tuple, children)], inner)
        return found.checked()

    def checked(self) -> "Kind":
        """Return the type itself.

        Raises:
            FormatError: Its format is malformed, or does not have the types inside that it needs.
        """
        form, _, size = self.format.partition(":")
        is_valid = size.isdecimal() if form in {"w", "+w"} else bool(form)
        if not is_valid or len(self.children) != _PARTS.get(form, len(self.children)):
            message = (
                f"malformed Arrow schema: {self.name!r} has the format {self.format!r}, with "
                f"{counted(len(self.children), 'type')} inside"
            )
            raise FormatError(message, "Arrow data")
        return self

    @property
    def is_list(self) -> bool:
        """Whether values are lists of one length, or of any."""
        return self.format in {"+l", "+L"} or self.is_fixed

    @property
    def is_fixed(self) -> bool:
        """Whether values are lists of one length."""
        return self.format.startswith("+w:")

    @property
    def is_bytes(self) -> bool:
        """Whether values are bytes."""
        return self.dictionary is None and (self.format in _BYTES or self.format.startswith("w:"))

    @property
    def dtype(self) -> str | None:
        """The dtype of values that are numbers; times are."""
        if self.dictionary is not None:
            return None
        if self.format[:2] in {"ts", "tD"} or self.format == "ttn":
            return "int64"
        return _DTYPES.get(self.format) or _TIMES.get(self.format)

    def at(self, path: Sequence[str]) -> "Kind | None":
        """Return the type at a path; None if there is no such part."""
        found: Kind | None = self
        for name in path:
            inside = found.children if found is not None and found.format == "+s" else ()
            found = next((one for one in inside if one.name == name), None)
        return found

    def differs(self, other: "Kind") -> bool:
        """Whether values are others than those of a type, of whatever name and metadata.

        Positions in dictionaries may have any type.
        """
        if self.dictionary is not None and other.dictionary is not None:
            return self.dictionary.differs(other.dictionary)
        is_same = (
            (self.dictionary is None) == (other.dictionary is None)
            and self.format == other.format
            and [one.name for one in self.children] == [one.name for one in other.children]
            and all(self.metadata.get(key) == other.metadata.get(key) for key in _EXTENSION)
        )
        pairs = zip(self.children, other.children, strict=False)
        return not is_same or any(one.differs(two) for one, two in pairs)

    def __str__(self) -> str:
        if self.dictionary is not None:
            return f"dictionary<{self.dictionary}>"
        inside = [f"{one.name}: {one}" for one in self.children]
        name = _NAMES.get(self.format) or _DTYPES.get(self.format) or self._long_name
        return f"{name}<{', '.join(inside)}>" if inside else name

    @property
    def _long_name(self) -> str:
        """The name of a type with parameters, as pyarrow has it."""
        form, _, told = self.format.partition(":")
        if form == "+w":
            return f"fixed_size_list[{told}]"
        if form == "w":
            return f"fixed_size_binary[{told}]"
        if form == "d":
            *digits, bits = [*told.split(","), "128"][:3]
            return f"decimal{bits}({', '.join(digits)})"
        unit = _UNITS.get(form[2:])
        if unit is not None and form.startswith("ts"):
            return f"timestamp[{unit}, tz={told}]" if told else f"timestamp[{unit}]"
        if unit is not None and form.startswith("tD"):
            return f"duration[{unit}]"
        return "union" if form.startswith("+u") else self.format


@dataclass(frozen=True, slots=True)
class Leaf:
    """Values of a column, or of a part of a struct, as a field.

    Attributes:
        name: The full name of the field.
        path: The names that lead to the values, the column first.
        type: The type of the field, without `?`.
        kind: The type that they have in Arrow.
        nullable: Whether the schema allows nulls here, or above.
        media: The feature, if values are files: "Image", "Audio" or "Video".
    """

    name: str
    path: tuple[str, ...]
    type: str
    kind: Kind
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


def layout_of(field: Field) -> Layout | None:
    """Return how the values of a field are stored; None if only its codec can tell."""
    repeat = "one"
    if field.is_sequence:
        repeat = "many" if field.kind == "sequence" else "run"
    cell = _cell(field.codec)
    return None if cell is None else (cell, field.codec.shape, repeat)


def _cell(codec: Codec) -> str | None:
    if codec.dtype is not None:
        return None if codec.dtype.kind == "c" else codec.dtype.str
    if isinstance(codec, Utf8 | Json):
        return "text"
    if isinstance(codec, Array):
        return "array"
    return "bytes" if isinstance(codec, Bytes) or is_file_type(codec.name) else None


def usual(field: Field, name: str) -> Kind | None:
    """Return the type that a field has in Arrow; None if its values tell."""
    inner = _usual(field.codec, "item" if field.is_sequence else name)
    return Kind(name, "+l", children=[inner]) if inner and field.is_sequence else inner


def _usual(codec: Codec, name: str) -> Kind | None:
    if codec.dtype is not None:
        names = {dtype: form for form, dtype in _DTYPES.items()}
        form = names.get(codec.dtype.name)
        return None if form is None else _lists(name, [f"+w:{n}" for n in codec.shape], form)
    form = {"text": "u", "bytes": "z"}.get(_cell(codec) or "")
    return None if form is None else Kind(name, form)


def lists_of(name: str, dtype: str, dimensions: int) -> Kind:
    """Return the type of arrays of some dimensions, each with its own shape."""
    names = {one: form for form, one in _DTYPES.items()}
    return _lists(name, ["+l"] * dimensions, names[dtype])


def _lists(name: str, levels: Sequence[str], inner: str) -> Kind:
    if not levels:
        return Kind(name, inner)
    return Kind(name, levels[0], children=[_lists("item", levels[1:], inner)])


def leaves_of(
    schema: Kind,
    features: Mapping[str, Any],
    where: str,
    wanted: Sequence[str] | None = None,
    *,
    others: str = _OTHERS,
) -> list[Leaf]:
    """Return the fields of a schema.

    Args:
        schema: The schema: a struct of the columns.
        features: Its features, as Hugging Face describes them; may be empty.
        where: The name of the file in errors.
        wanted: The fields that are read; None for all. A column without any of them may have
            any type and any name.
        others: The advice at the end of errors, to do without a column.

    Raises:
        FormatError: A column has a type or a name that fields cannot have.
    """
    columns = schema.children if wanted is None else _chosen(schema, wanted, where)
    found = [
        leaf
        for column in columns
        for leaf in _leaves(column, features.get(column.name), (), nullable=False)
    ]
    for one in found:
        if not one.type:
            message = f"column {one.name!r} is {one.kind}, which no field can have"
            raise FormatError(f"{where}: {message}; cast it with pyarrow{others}", where)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        twice = min(name for name in names if names.count(name) > 1)
        message = f"{where}: two columns are named {twice!r}; rename one of them{others}"
        raise FormatError(message, where)
    try:
        Spec.of({one.name: one.type for one in found} or {"": ""})
    except ValueError as error:
        message = f"{where}: {error}; rename the column{others}"
        raise FormatError(message, where) from error
    return found


def _chosen(schema: Kind, wanted: Sequence[str], where: str) -> list[Kind]:
    """Return the columns that have the wanted fields.

    Raises:
        FormatError: One is in no column.
    """
    names = [one.name for one in schema.children]
    for name in wanted:
        if not any(_is_inside(name, column) for column in names):
            listed = ", ".join(map(repr, names))
            message = f"{where}: there is no field {name!r}, only {listed}"
            raise FormatError(message, where)
    return [one for one in schema.children if any(_is_inside(name, one.name) for name in wanted)]


def _is_inside(name: str, column: str) -> bool:
    """Return whether a field is a column, or a part of it."""
    return name == column or name.startswith(column + DOT)


def _leaves(kind: Kind, feature: Any, above: tuple[str, ...], *, nullable: bool) -> Iterator[Leaf]:
    path = (*above, kind.name)
    name = DOT.join(path)
    nullable = nullable or bool(kind.flags & _NULLABLE)
    media = feature.get("_type") if isinstance(feature, dict) else None
    if media in MEDIA and _is_file(kind):
        yield Leaf(name, path, "bytes", kind, nullable, media)
        return
    if kind.format == "+s" and kind.children:
        inner = feature if isinstance(feature, dict) and "_type" not in feature else {}
        for one in kind.children:
            yield from _leaves(one, inner.get(one.name), path, nullable=nullable)
        return
    yield Leaf(name, path, type_of(kind, _shape_of(kind, feature)) or "", kind, nullable)


def _is_file(kind: Kind) -> bool:
    """Whether values are files, with bytes and a path."""
    parts = {one.name: one for one in kind.children}
    return kind.format == "+s" and set(parts) == {BYTES, PATH} and parts[BYTES].is_bytes


_Shape: TypeAlias = tuple[int | None, ...]
"""The shape of arrays that are stored as lists of lists; None for a length that varies."""


def _shape_of(kind: Kind, feature: Any) -> _Shape | None:
    """Return the shape that an extension type, or its feature, gives its arrays."""
    name, told = kind.metadata.get(_NAME, b""), kind.metadata.get(_SERIALIZED, b"")
    lengths: Any = None
    if name == _TENSOR:
        found = _loaded(told)
        order = found.get("permutation") if isinstance(found, dict) else None
        if isinstance(found, dict) and (order is None or order == sorted(order)):
            lengths = found.get("shape")
    elif isinstance(feature, dict) and str(feature.get("_type", "")) in _HF_ARRAYS:
        lengths = feature.get("shape")
    elif name.startswith(_ARRAY):
        found = _loaded(told)
        lengths = found[0] if isinstance(found, list) and found else None
    if not isinstance(lengths, list | tuple):
        return None
    is_valid = lengths and all(one is None or (type(one) is int and one >= 0) for one in lengths)
    return tuple(lengths) if is_valid else None


def _loaded(serialized: bytes) -> Any:
    try:
        return json.loads(serialized or b"null")
    except ValueError:
        return None


def type_of(kind: Kind, shape: _Shape | None = None) -> str | None:  # noqa: PLR0911
    """Return the type of a field whose values are of an Arrow type; None if no field can have them.

    Args:
        kind: The type; not a struct.
        shape: The shape of its arrays, if that is known.
    """
    if shape is not None:
        return _array(kind, shape)
    if kind.dictionary is not None:
        return type_of(kind.dictionary)
    if kind.is_fixed:
        return _fixed(kind)
    if kind.is_list:
        return _sequence(kind.children[0])
    if kind.format in _TEXT or kind.format.startswith("d:"):
        return "utf8"
    if kind.is_bytes:
        return "bytes"
    if kind.dtype is not None:
        return _SCALARS.get(kind.dtype) or f"array({kind.dtype})"
    return "tree" if _is_readable(kind) else None


def _is_readable(kind: Kind) -> bool:
    """Whether values can be read, as objects if need be.

    Of maps, only those of plain values: pyarrow could not make others of these again. Of structs,
    only those whose parts have different names: a dict could not have both.
    """
    if kind.dictionary is not None:
        return _is_readable(kind.dictionary)
    if kind.format == "+m":
        return all(_is_plain(one) and _is_readable(one) for one in kind.children[0].children)
    if kind.is_list or (kind.format == "+s" and kind.children):
        is_clear = len({one.name for one in kind.children}) == len(kind.children)
        return is_clear and all(map(_is_readable, kind.children))
    is_known = kind.format == "n" or kind.format in _TEXT or kind.format.startswith("d:")
    return is_known or kind.is_bytes or kind.dtype is not None


def _is_plain(kind: Kind) -> bool:
    """Whether objects of Python become the same values again."""
    if kind.is_list or kind.format == "+m" or (kind.format == "+s" and kind.children):
        return all(map(_is_plain, kind.children))
    is_single = kind.format in _DTYPES or kind.format in {"n", "u", "U", "z", "Z"}
    return kind.dictionary is None and (is_single or kind.format.startswith("w:"))


def _array(kind: Kind, shape: _Shape) -> str | None:
    while kind.is_list:
        kind = kind.children[0]
    dtype = (kind.dictionary or kind).dtype
    if dtype is None:
        return None
    return "array" if None in shape else f"array({','.join([dtype, *map(str, shape)])})"


def _fixed(kind: Kind) -> str | None:
    """Return the type of lists of one length: arrays, if they are of numbers."""
    lengths, inner = [], kind
    while inner.is_fixed:
        lengths.append(int(inner.format[3:]))
        inner = inner.children[0]
    found = None if inner.is_list else _array(kind, tuple(lengths))
    return found or _sequence(kind.children[0])


def _sequence(inner: Kind) -> str | None:
    """Return the type of lists of values of a type."""
    if not _is_readable(inner):
        return None
    if (inner.dictionary or inner).format in {"n", "+s", "+m"}:
        return "tree[]"
    if inner.dictionary is not None and inner.dictionary.is_list:
        return "tree[]"
    if inner.is_fixed:
        found = _fixed(inner)
        return f"{found}[]" if found and found.startswith("array(") else "tree[]"
    if inner.is_list:
        value = inner.children[0]
        return "array[]" if (value.dictionary or value).dtype else "tree[]"
    found = type_of(inner)
    return None if found is None else f"{found}[]"


def metadata_of(schema: Kind, features: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a schema, with the schema itself under "arrow".

    Features of Hugging Face are under "huggingface", the names of class labels under "labels".
    """
    found: dict[str, Any] = {
        key.decode("utf-8", "backslashreplace"): value.decode("utf-8", "backslashreplace")
        for key, value in schema.metadata.items()
        if key not in _OWN
    }
    found["arrow"] = {"schema": _listed(schema)}
    if features:
        found["huggingface"] = {"features": features}
    if labels := dict(_labels(features, "")):
        found["labels"] = labels
    return found


def _listed(kind: Kind) -> list[Any]:
    """Return a type in the form that JSON has it; bytes are characters of Latin-1."""
    told = {key.decode("latin-1"): one.decode("latin-1") for key, one in kind.metadata.items()}
    inner = None if kind.dictionary is None else _listed(kind.dictionary)
    return [kind.name, kind.format, kind.flags, told, [*map(_listed, kind.children)], inner]


def _unlisted(listed: Any) -> Kind:
    name, form, flags, told, children, dictionary = listed
    metadata = {key.encode("latin-1"): one.encode("latin-1") for key, one in told.items()}
    inner = None if dictionary is None else _unlisted(dictionary)
    inside = [*map(_unlisted, children)]
    return Kind(str(name), str(form), int(flags), metadata, inside, inner).checked()


def schema_in(metadata: Mapping[str, Any], path: str) -> Kind | None:
    """Return the schema in the metadata of a data set, or None.

    Metadata of earlier versions have it in the form of Arrow's files, which pyarrow reads.

    Raises:
        FormatError: It is damaged.
    """
    told = metadata.get("arrow")
    found = told.get("schema") if isinstance(told, dict) else None
    try:
        if isinstance(found, list):
            return _unlisted(found)
        if isinstance(found, str):
            buffer = pyarrow().py_buffer(b64decode(found, validate=True))
            return Kind.of(pyarrow("pyarrow.ipc").read_schema(buffer))
    except (ValueError, OSError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        message = f"{path}: the Arrow schema in the metadata is damaged: {error}"
        raise FormatError(message, path) from error
    return None


def features_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features in the metadata of a data set; empty if there are none."""
    told = metadata.get("huggingface")
    features = told.get("features") if isinstance(told, dict) else None
    return features if isinstance(features, dict) else {}


def features_of(schema: Kind) -> dict[str, Any]:
    """Return the features that Hugging Face's library has put into a schema; {} without."""
    try:
        told = json.loads(schema.metadata.get(_HUGGING_FACE, b"null"))
        features = told["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _labels(feature: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(feature, Mapping):
        return
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(one, str) for one in names):
            yield name, names
    elif "_type" in feature:
        yield from _labels(feature.get("feature"), name)
    else:
        for key, inner in feature.items():
            yield from _labels(inner, f"{name}{DOT}{key}" if name else str(key))

"""`ingot get`: one row, or one of its values as a file."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ingot.cli.files import content_at, without_fields, write_file
from ingot.cli.options import AsJson, Fields, Full, Overwrite, Partial, Source, write_json
from ingot.cli.values import write_rows
from ingot.dataset import Dataset
from ingot.dataset.nested import at
from ingot.dataset.spec import Spec
from ingot.formats.base.content import bytes_of
from ingot.opening import open as open_any
from ingot.records import Reader
from ingot.records.expand import absolute

Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the stored bytes; - is standard output."
    ),
]
Element = Annotated[int | None, typer.Option(help="The element of a sequence to write with -o.")]


def _row(text: str) -> int:
    """Read the number of a row; an unknown option arrives here too, as `-1` is a row."""
    try:
        return int(text)
    except ValueError:
        wrong = f"no such option: {text}" if text.startswith("-") else f"{text!r} is not a number"
        raise typer.BadParameter(wrong) from None


def get(
    path: Source,
    row: Annotated[
        int,
        typer.Argument(metavar="ROW", parser=_row, help="The number of the row; -1 is the last."),
    ],
    field: Fields = None,
    output: Output = None,
    element: Element = None,
    overwrite: Overwrite = False,
    full: Full = False,
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """Print one row, or write a stored value to a file.

    ingot get cats 7 --field image -o cat.jpg
    """
    if output is None and element is not None:
        raise ValueError("--element chooses what -o writes; name a file with -o")
    with open_any(path, partial=partial) as found:
        number = _number(path, row, len(found))
        if output is not None:
            data = stored_bytes(found, number, field or [], element)
            write_file(output, data, overwrite=overwrite)
            if as_json and output != "-":
                write_json({"path": str(absolute(output)), "row": number, "bytes": len(data)})
            return
    with content_at(path, field, partial=partial) as content:
        write_rows(content, range(number, number + 1), full=full, as_json=as_json)


def _number(path: str, row: int, count: int) -> int:
    if not -count <= row < count:
        message = f"{path}: row {row} does not exist: the rows are 0 to {count - 1}"
        empty = f"{path}: row {row} does not exist: the file is empty"
        raise IndexError(message if count else empty)
    return row % count


def stored_bytes(
    found: Reader | Dataset, number: int, names: list[str], element: int | None
) -> bytes:
    """Return a value as it is stored.

    Raises:
        ValueError: It is not stored as bytes, or it is not said which value to take.
    """
    if isinstance(found, Reader):
        if names:
            raise without_fields(found.path)
        _refuse_element(f"{found.path}: row {number}", element)
        return found[number]
    name = _field(found.spec, names)
    try:
        rows = found.select(name).stored()
    except TypeError:
        rows = found.select(name)  # Its format has no stored form, but values.
    value: Any = at(rows[number], name)
    if value is None:
        raise ValueError(f"{found.path}: row {number}: field {name!r} is missing in this row")
    if isinstance(value, list):
        value = _element(found.path, number, name, value, element)
    else:
        _refuse_element(f"{found.path}: row {number}: field {name!r}", element)
    if isinstance(value, str | bytes) or getattr(value, "dtype", None) == "uint8":
        return bytes_of(value)
    message = f"{found.path}: field {name!r} is {found.spec[name]}, which has no bytes to write"
    raise ValueError(f"{message}; without -o, its value is printed")


def _field(spec: Spec | Mapping[str, str], names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if not names and len(spec) == 1:
        return next(iter(spec))
    raise ValueError(f"-o writes one value: name one of the fields {list(spec)} with --field")


def _refuse_element(where: str, element: int | None) -> None:
    if element is not None:
        raise ValueError(f"{where} is not a sequence; leave out --element")


def _element(path: str, number: int, name: str, values: list[Any], element: int | None) -> Any:
    if element is None:
        raise ValueError(
            f"{path}: row {number}: field {name!r} is a sequence of {len(values)}: name one of "
            "them with --element"
        )
    if not -len(values) <= element < len(values):
        message = f"{path}: row {number}: field {name!r} has {len(values)} elements, not {element}"
        raise IndexError(message)
    return values[element]

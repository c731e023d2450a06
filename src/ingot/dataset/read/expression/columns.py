"""What rows have for the names in an expression, read a limited number of rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ingot.dataset.read.column import TREES, Member, values_of
from ingot.dataset.read.expression.comparison import measured
from ingot.dataset.read.expression.text import Text
from ingot.dataset.read.expression.tree import Block, Tree, Use, What
from ingot.dataset.read.expression.value import (
    Elements,
    Known,
    Value,
    known_of,
    of_numbers,
    of_objects,
    of_texts,
)
from ingot.dataset.read.iteration import size_of
from ingot.dataset.read.selection import Selection, no_field
from ingot.dataset.spec import Field
from ingot.records.indices import Rows

ROW = "row"
"""The name of the number of a row, unless a field has it."""

_ROWS = 1 << 20
_CELLS = 1 << 16
_CELL_BYTES = 32 << 20
_WORDS = {"null": "None", "none": "None", "nil": "None", "true": "True", "false": "False"}

Cells: TypeAlias = dict[str, list[Any]]
"""The decoded values of fields that are not in the index."""

_Read: TypeAlias = Callable[[range, Cells], Value | Elements]
"""Returns what rows at some positions have, given their cells."""


class Columns:
    """The columns that an expression uses of a selection.

    Raises:
        KeyError: There is no such field.
        TypeError: A field cannot be used like this.
    """

    def __init__(self, tree: Tree, selection: Selection) -> None:
        self._text: Text = tree.text
        self._selection = selection
        self._nodes = tree.uses
        self._cells: dict[str, None] = {}
        self._unseen: dict[Use, Member] = {}
        self._reads: dict[Use, _Read] = {use: self._read_of(use) for use in tree.uses}

    def blocks(self, rows: range) -> Iterator[tuple[range, Block]]:
        """Yield positions in the selection and what the rows there have; at least one block.

        Raises:
            KeyError: No row has a member of JSON that is named.
            TypeError: The values of a member of JSON are of several types.
        """
        for places, cells in self._cell_blocks(rows) if self._cells else _ranges(rows):
            yield places, {use: read(places, cells) for use, read in self._reads.items()}
        for use, member in self._unseen.items():
            if len(rows):
                raise self._error(member.absent(self._selection), use, KeyError)

    def _cell_blocks(self, rows: range) -> Iterator[tuple[range, Cells]]:
        numbers = self._selection.rows[rows.start : rows.stop]
        part = Selection(self._selection.source, tuple(self._cells), numbers)
        start, nbytes, held = rows.start, 0, self._empty()
        for places, found in values_of(part, list(self._cells)):
            for name, values in held.items():
                values.extend(found[name])
            nbytes += size_of(found)
            stop = rows.start + places.stop
            if nbytes >= _CELL_BYTES or stop - start >= _CELLS:
                yield range(start, stop), held
                start, nbytes, held = stop, 0, self._empty()
        if start < rows.stop or not rows:
            yield range(start, rows.stop), held

    def _empty(self) -> Cells:
        return {name: [] for name in self._cells}

    def _numbers(self, places: range) -> Rows:
        return self._selection.rows[places.start : places.stop]

    def _read_of(self, use: Use) -> _Read:
        """Return how to read what is used of a field."""
        field = self._selection.spec.fields.get(use.name)
        if field is None and use.name == ROW:
            return self._read_row(use)
        if field is None:
            return self._read_member(use, self._member(use))
        if use.what == "presence":
            return self._read_presence(field)
        if field.codec.name in TREES and not field.is_sequence:
            return self._read_member(use, Member(field, ()))
        return (
            self._read_sequence(use, field) if field.is_sequence else self._read_single(use, field)
        )

    def _read_single(self, use: Use, field: Field) -> _Read:
        if field.codec.name == "utf8":
            return self._read_text(field, use.what)
        if use.what == "length" or not _is_number(field):
            raise self._unfit(use, field)
        return self._read_numbers(field)

    def _read_sequence(self, use: Use, field: Field) -> _Read:
        if use.what == "length":
            return self._read_lengths(field)
        if use.what == "value" or not (_is_number(field) or field.codec.name == "utf8"):
            raise self._unfit(use, field)
        return self._read_elements(field)

    def _unfit(self, use: Use, field: Field) -> Exception:
        if use.what == "value" and field.is_sequence:
            wanted = f"expected a number or text; len({use.name}) is the number of its elements"
        elif use.what == "value":
            wanted = f"expected a number or text; {use.name} is None is all that can be asked of it"
        elif use.what == "length":
            wanted = "expected text or a sequence"
        else:
            wanted = "expected text, or a sequence of numbers or of text"
        message = f"field {field.name!r} is {field.type}, {wanted}"
        return self._error(message, use, TypeError)

    def _error(self, message: str, use: Use, kind: type[Exception]) -> Exception:
        path = self._selection.path
        return self._text.error(message, self._nodes[use], kind, path=path)

    def _member(self, use: Use) -> Member:
        """Return the member of JSON with a name.

        Raises:
            KeyError: There is no such field.
        """
        try:
            return Member.find(self._selection, use.name)
        except KeyError:
            raise self._no_field(use) from None

    def _no_field(self, use: Use) -> Exception:
        name, spec = use.name, self._selection.spec
        if name in self._selection.source.spec:
            message = f"field {name!r} is not selected; call where before select"
            return self._error(message, use, KeyError)
        if name.lower() in _WORDS:
            return self._error(f"write {_WORDS[name.lower()]} for {name}", use, KeyError)
        message = str(no_field(spec, name, "").args[0]).removeprefix(": ")
        quoted = [one for one in spec if not one.isidentifier() and one in self._text.text]
        if quoted and quoted[0] != name:
            message += f'; write field("{quoted[0]}") for {quoted[0]}'
        return self._error(message, use, KeyError)

    def _read_row(self, use: Use) -> _Read:
        if use.what in {"length", "container"}:
            raise self._error(f"{ROW} is the number of the row, not text", use, TypeError)
        return lambda places, _: Value(np.arange(places.start, places.stop))

    def _known(self, field: Field, places: range) -> Known:
        if not field.is_optional:
            return None
        return self._selection.source.present(field.name, self._numbers(places))

    def _read_presence(self, field: Field) -> _Read:
        def read(places: range, _: Cells) -> Value:
            return Value(np.zeros(len(places), np.bool_), self._known(field, places))

        return read

    def _read_lengths(self, field: Field) -> _Read:
        def read(places: range, _: Cells) -> Value:
            found = self._selection.source.lengths(field.name, self._numbers(places))
            return Value(found.astype(np.int64, copy=False), self._known(field, places))

        return read

    def _read_numbers(self, field: Field) -> _Read:
        def read(places: range, _: Cells) -> Value:
            found = self._selection.source.column(field.name, self._numbers(places))
            return of_numbers(found, self._known(field, places))

        return read

    def _read_text(self, field: Field, what: What) -> _Read:
        self._cells[field.name] = None
        if what == "length":
            return lambda _, cells: measured(of_texts(cells[field.name]))
        return lambda _, cells: of_texts(cells[field.name])

    def _read_elements(self, field: Field) -> _Read:
        self._cells[field.name] = None

        def read(_: range, cells: Cells) -> Elements:
            values = cells[field.name]
            rows = [() if one is None else one for one in values]
            counts = np.array([len(one) for one in rows], np.int64)
            if _is_number(field):
                empty = np.empty(0, field.codec.own.dtype)
                flat = of_numbers(np.concatenate([empty, *filter(len, rows)]))
            else:
                flat = of_texts([one for row in rows for one in row])
            return Elements(flat, counts, known_of(values))

        return read

    def _read_member(self, use: Use, member: Member) -> _Read:
        """Return how to read a member of JSON, or its length or elements if it is a list."""
        self._cells[member.field.name] = None
        if use.what != "presence":
            self._unseen[use] = member

        def read(_: range, cells: Cells) -> Value | Elements:
            values = [member.reached(one) for one in cells[member.field.name]]
            known = known_of(values)
            if known is None or known.any():
                self._unseen.pop(use, None)
            if use.what == "presence":
                return Value(np.zeros(len(values), np.bool_), known)
            found = _of_json(values, known, use.what)
            if found is None:
                raise self._error(member.unlike(values), use, TypeError)
            return found

        return read


def _is_number(field: Field) -> bool:
    own = field.codec.own
    return own.dtype is not None and own.shape == () and own.dtype.kind in "biuf"


def _of_json(values: Sequence[Any], known: Known, what: What) -> Value | Elements | None:
    """Return values of JSON, their lengths or their elements; None if they are not alike."""
    kinds = {type(one) for one in values if one is not None}
    if what == "length" and kinds <= {str, list, dict}:
        return Value(np.array([0 if one is None else len(one) for one in values], np.int64), known)
    if what == "container" and kinds == {list}:
        rows = [one or [] for one in values]
        flat = of_objects([one for row in rows for one in row])
        counts = np.array([len(one) for one in rows], np.int64)
        return None if flat is None else Elements(flat, counts, known)
    return None if what == "length" else of_objects(values)


def _ranges(rows: range) -> Iterator[tuple[range, Cells]]:
    for start in range(rows.start, max(rows.stop, rows.start + 1), _ROWS):
        yield range(start, min(start + _ROWS, rows.stop)), {}

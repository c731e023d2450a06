"""Values of many rows, some of them unknown, and conditions made of others.

A value is unknown where a field is missing, or where a number was divided by zero. A comparison
with it is unknown too, and so is `not` of that. `and` and `or` are unknown where the unknown part
could decide. A row is chosen if the condition is true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Truths: TypeAlias = npt.NDArray[np.bool_]
Known: TypeAlias = Truths | None
"""Where a value is known; None for everywhere."""

INTEGERS = range(-(1 << 63), 1 << 63)
"""The integers that numpy holds; others are objects."""

_KINDS = {"b": "a condition", "i": "a number", "f": "a number", "O": "a number"}
_NOTHING = np.dtype("V1")


@dataclass(frozen=True, slots=True)
class Value:
    """A value in each of many rows; or a constant, whose array has no dimensions.

    Attributes:
        data: Booleans, 64-bit integers, floats, or objects: integers of more than 64 bits, or
            text, since numpy's own type of text is not exact if there are zero characters in it.
            An array of dtype V1 if the value is known in no row.
        known: Where it is known.
        is_text: Whether it is text.
    """

    data: npt.NDArray[Any]
    known: Known = None
    is_text: bool = False

    @property
    def kind(self) -> str | None:
        """What it is, in words; None if it is known in no row, and so may be anything."""
        return "text" if self.is_text else _KINDS.get(self.data.dtype.kind)


class Elements(NamedTuple):
    """The elements of a sequence in each of many rows.

    Attributes:
        flat: The elements of all rows.
        counts: How many each row has.
        known: Which rows have the sequence.
    """

    flat: Value
    counts: npt.NDArray[np.int64]
    known: Known


def constant(content: float | str) -> Value:
    """Return a constant."""
    if isinstance(content, str):
        return Value(np.array(content, object), is_text=True)
    is_large = isinstance(content, int) and content not in INTEGERS
    return Value(np.array(content, object if is_large else None))


def of_numbers(numbers: npt.NDArray[Any], known: Known = None) -> Value:
    """Return the numbers of a column."""
    if numbers.dtype.kind not in "iu":
        return Value(numbers, known)
    if numbers.dtype == np.uint64 and int(numbers.max(initial=0)) not in INTEGERS:
        return Value(numbers.astype(object), known)
    return Value(numbers.astype(np.int64, copy=False), known)


def of_objects(values: Sequence[Any]) -> Value | None:
    """Return Python's values, unknown where one is None.

    Returns:
        None, if they are neither all text, nor all booleans, nor all numbers.
    """
    known = known_of(values)
    kinds = {type(one) for one in values if one is not None}
    if not kinds:
        return nothing((len(values),))
    if kinds == {str}:
        return of_texts(values)
    if not (kinds <= {int, float} or kinds == {bool}):
        return None
    numbers = [0 if one is None else one for one in values]
    try:
        return Value(np.array(numbers, float if float in kinds else kinds.pop()), known)
    except OverflowError:
        return Value(np.array(numbers, object), known) if float not in kinds else None


def of_texts(values: Sequence[str | None]) -> Value:
    """Return text, unknown where one is None."""
    known = known_of(values)
    texts = values if known is None else ["" if one is None else one for one in values]
    return Value(np.array(texts, object), known, is_text=True)


def known_of(values: Sequence[Any]) -> Known:
    """Return where values are not None."""
    if all(one is not None for one in values):
        return None
    return np.array([one is not None for one in values], np.bool_)


def nothing(shape: tuple[int, ...]) -> Value:
    """Return a value that is known in no row."""
    return Value(np.zeros(shape, _NOTHING), np.zeros(shape, np.bool_))


def unknown(*values: Value) -> Value:
    """Return a condition on these values that is known in no row."""
    shape = np.broadcast_shapes(*(one.data.shape for one in values))
    return Value(np.zeros(shape, np.bool_), np.zeros(shape, np.bool_))


def known_in_both(one: Known, two: Known) -> Known:
    """Return where two values are known."""
    if one is None or two is None:
        return two if one is None else one
    return np.asarray(one & two)


def condition(value: Value) -> Value:
    """Return a value that is a condition.

    Raises:
        TypeError: It is not.
    """
    if value.kind not in {None, "a condition"}:
        how = '== "cat"' if value.kind == "text" else "!= 0"
        raise TypeError(f"expected a condition, got {value.kind}; compare it, such as {how}")
    return value if value.kind else unknown(value)


def truths(condition: Value, count: int) -> Truths:
    """Return in which of so many rows a condition is true."""
    true, _ = _decided(condition)
    return np.array(np.broadcast_to(true, (count,)))


def both(one: Value, two: Value) -> Value:
    """Return where two conditions are true."""
    (true, false), (also_true, also_false) = _decided(one), _decided(two)
    return _condition(true & also_true, false | also_false, is_known=_are_known(one, two))


def either(one: Value, two: Value) -> Value:
    """Return where one of two conditions is true."""
    (true, false), (also_true, also_false) = _decided(one), _decided(two)
    return _condition(true | also_true, false & also_false, is_known=_are_known(one, two))


def negated(condition: Value) -> Value:
    """Return where a condition is false."""
    return Value(np.asarray(~condition.data), condition.known)


def missing(value: Value) -> Value:
    """Return where a value is unknown."""
    if value.known is None:
        return Value(np.zeros(value.data.shape, np.bool_))
    return Value(np.asarray(~value.known))


def _decided(condition: Value) -> tuple[Truths, Truths]:
    """Return where a condition is true, and where it is false."""
    data, known = condition.data, condition.known
    if known is None:
        return data, np.asarray(~data)
    return np.asarray(data & known), np.asarray(~data & known)


def _condition(true: Any, false: Any, *, is_known: bool) -> Value:
    return Value(np.asarray(true), None if is_known else np.asarray(true | false))


def _are_known(*values: Value) -> bool:
    return all(one.known is None for one in values)

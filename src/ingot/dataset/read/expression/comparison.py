"""Comparisons of values with each other, with lists of constants, and tests of text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import translate
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.expression.number import comparable, is_any
from ingot.dataset.read.expression.value import (
    Elements,
    Value,
    known_in_both,
    truths,
    unknown,
)

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]

_COMPARE: dict[Comparison, Any] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compared(sign: Comparison, left: Value, right: Value) -> Value:
    """Compare values.

    Raises:
        TypeError: One is text, the other is not.
    """
    if left.kind is None or right.kind is None:
        return unknown(left, right)
    _check_alike(left.kind, right.kind)
    one, two = left.data, right.data
    if left.kind != "text":
        one, two = comparable(one, two)
    found = np.asarray(_COMPARE[sign](one, two), np.bool_)
    return Value(found, known_in_both(left.known, right.known))


def listed(value: Value, contents: Sequence[float | str]) -> Value:
    """Return where a value is one of several constants.

    Raises:
        TypeError: A constant is text and the value is not, or the other way round.
    """
    if value.kind is None:
        return unknown(value)
    for one in contents:
        _check_alike(value.kind, "text" if isinstance(one, str) else "a number")
    if value.kind == "text":
        wanted = frozenset(contents)
        found = _each(lambda one: one in wanted, value.data, np.bool_)
    else:
        found = is_any(value.data, [one for one in contents if not isinstance(one, str)])
    return Value(found, value.known)


def contained(needle: Value, place: Value | Elements) -> Value:
    """Return where text is part of other text, or a value is an element of a sequence.

    Raises:
        TypeError: It cannot be.
    """
    if isinstance(place, Elements):
        return _among(needle, place)
    if needle.kind is None or place.kind is None:
        return unknown(needle, place)
    for one in (place, needle):
        if one.kind != "text":
            raise TypeError(f"expected text or a sequence with in, got {one.kind}")
    texts, parts = np.broadcast_arrays(place.data, needle.data)
    each = zip(parts.ravel().tolist(), texts.ravel().tolist(), strict=True)
    found = np.array([part in text for part, text in each], np.bool_).reshape(texts.shape)
    return Value(found, known_in_both(needle.known, place.known))


def _among(needle: Value, place: Elements) -> Value:
    rows = np.repeat(np.arange(len(place.counts)), place.counts)
    one = needle
    if needle.data.ndim:
        known = needle.known
        if known is not None:
            known = np.broadcast_to(known, needle.data.shape)[rows]
        one = replace(needle, data=needle.data[rows], known=known)
    hits = truths(compared("==", place.flat, one), len(rows))
    found = np.zeros(len(place.counts), np.bool_)
    found[rows[hits]] = True
    return Value(found, known_in_both(place.known, needle.known))


def changed(function: Callable[[str], str], value: Value) -> Value:
    """Return what a function makes of text.

    Raises:
        TypeError: It is not text.
    """
    return Value(_each(function, _texts(value), object), value.known, is_text=True)


def measured(value: Value) -> Value:
    """Return the number of characters of text.

    Raises:
        TypeError: It is not text.
    """
    return Value(_each(len, _texts(value), np.int64), value.known)


def tested(test: Callable[[str], object], value: Value) -> Value:
    """Return where text passes a test.

    Raises:
        TypeError: It is not text.
    """
    return Value(_each(test, _texts(value), np.bool_), value.known)


def _texts(value: Value) -> npt.NDArray[Any]:
    if value.kind not in {None, "text"}:
        raise TypeError(f"expected text, got {value.kind}")
    return value.data if value.is_text else np.full(value.data.shape, "", object)


def matching(patterns: Sequence[str]) -> Callable[[str], object]:
    """Return the test of text that matches one of several patterns of `*`, `?` and `[...]`."""
    return re.compile("|".join(map(translate, patterns))).match


def _each(
    function: Callable[[str], object], texts: npt.NDArray[Any], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    found = [function(one) for one in texts.ravel().tolist()]
    return np.array(found, dtype).reshape(texts.shape)


def _check_alike(one: str, two: str) -> None:
    if (one == "text") != (two == "text"):
        raise TypeError(f"{one} cannot be compared with {two}; only text is written in quotes")

"""Arithmetic on the numbers of many rows, and how they are compared.

Numbers behave as in Python: integers are exact, whatever their size, and so are their comparisons
with floats. numpy computes where it does so too, Python where it does not.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.expression.value import (
    INTEGERS,
    Value,
    constant,
    known_in_both,
    nothing,
    unknown,
)

Numbers: TypeAlias = npt.NDArray[Any]
Arithmetic: TypeAlias = Literal["+", "-", "*", "/", "//", "%"]

_BITS_MAX = 1000
_EXACT = range(-(1 << 53), (1 << 53) + 1)
"""The integers that a float holds exactly."""

_COMPUTE: dict[Arithmetic, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def computed(sign: Arithmetic, left: Value, right: Value) -> Value:
    """Compute with numbers; the result is unknown where one is divided by zero.

    Raises:
        TypeError: One is text.
        ValueError: The result is an integer of more than 1,000 bits.
    """
    one, two = numbers_of(left), numbers_of(right)
    if one is None or two is None:
        return nothing(np.broadcast_shapes(left.data.shape, right.data.shape))
    known = known_in_both(left.known, right.known)
    if sign in {"/", "//", "%"}:
        divides = np.asarray(two != 0, np.bool_)
        if not divides.all():
            two = np.where(divides, two, np.ones((), two.dtype))
            known = known_in_both(known, divides)
    return Value(_result(sign, one, two), known)


def _result(sign: Arithmetic, one: Numbers, two: Numbers) -> Numbers:
    compute = _COMPUTE[sign]
    if "f" in {one.dtype.kind, two.dtype.kind}:
        return np.asarray(compute(one.astype(np.float64), two.astype(np.float64)))
    if _is_exact(sign, one, two):
        return np.asarray(compute(one, two))
    found = np.asarray(compute(one.astype(object), two.astype(object)), object)
    if sign == "/":
        return found.astype(np.float64)
    limits = _limits(found)
    if max(one.bit_length() for one in limits) > _BITS_MAX:
        raise ValueError(f"the result is a number of more than {_BITS_MAX:,} bits")
    return found.astype(np.int64) if all(one in INTEGERS for one in limits) else found


def _is_exact(sign: Arithmetic, one: Numbers, two: Numbers) -> bool:
    """Whether numpy computes with these integers as Python does."""
    if "O" in {one.dtype.kind, two.dtype.kind}:
        return False
    first, second = _limits(one), _limits(two)
    if sign == "/":
        return all(end in _EXACT for end in first + second)
    if sign in {"//", "%"}:
        return first[0] > INTEGERS.start  # The least of them, divided by -1, is too large.
    return all(_COMPUTE[sign](a, b) in INTEGERS for a in first for b in second)


def opposite(value: Value) -> Value:
    """Return numbers with the other sign.

    Raises:
        TypeError: They are text.
    """
    if value.data.dtype.kind == "f":
        return Value(np.asarray(-value.data), value.known)
    return computed("-", constant(0), value)


def unchanged(value: Value) -> Value:
    """Return numbers as they are.

    Raises:
        TypeError: They are text.
    """
    numbers = numbers_of(value)
    return value if numbers is None else Value(numbers, value.known)


def absolute(value: Value) -> Value:
    """Return numbers without their sign.

    Raises:
        TypeError: They are text.
    """
    numbers = numbers_of(value)
    if numbers is None:
        return value
    if numbers.dtype.kind == "i" and _limits(numbers)[0] == INTEGERS.start:
        numbers = numbers.astype(object)
    return Value(np.asarray(abs(numbers), numbers.dtype), value.known)


def is_nan(value: Value) -> Value:
    """Return where numbers are NaN.

    Raises:
        TypeError: They are text.
    """
    numbers = numbers_of(value)
    if numbers is None:
        return unknown(value)
    is_float = numbers.dtype.kind == "f"
    found = np.isnan(numbers) if is_float else np.zeros(numbers.shape, np.bool_)
    return Value(np.asarray(found), value.known)


def numbers_of(value: Value) -> Numbers | None:
    """Return numbers, or booleans as numbers; None if the value is known in no row.

    Raises:
        TypeError: It is text.
    """
    if value.kind == "text":
        raise TypeError("expected a number, got text")
    return None if value.kind is None else _counted(value.data)


def comparable(one: Numbers, two: Numbers) -> tuple[Numbers, Numbers]:
    """Return numbers in dtypes in which numpy compares them exactly.

    A float constant is rounded like the column that it is compared with.
    """
    one, two = _counted(one), _counted(two)
    kinds = {one.dtype.kind, two.dtype.kind}
    if kinds == {"f"}:
        return _rounded(one, two), _rounded(two, one)
    whole = one if one.dtype.kind != "f" else two
    if "O" in kinds or ("f" in kinds and not all(end in _EXACT for end in _limits(whole))):
        return one.astype(object), two.astype(object)
    return (one.astype(np.float64), two.astype(np.float64)) if "f" in kinds else (one, two)


def _rounded(one: Numbers, other: Numbers) -> Numbers:
    if one.ndim or not other.ndim:
        return one
    near = one.astype(other.dtype)
    return near if np.isfinite(near) else one


def is_any(numbers: Numbers, contents: Sequence[float]) -> npt.NDArray[np.bool_]:
    """Return where numbers are equal to one of several, as `comparable` has it."""
    numbers = _counted(numbers)
    if numbers.dtype.kind == "O":
        wanted = frozenset(contents)
        each = [one in wanted for one in numbers.ravel().tolist()]
        return np.array(each, np.bool_).reshape(numbers.shape)
    held = [_held(one, numbers.dtype) for one in contents]
    wanted_here = np.array([one for one in held if one is not None], numbers.dtype)
    return np.asarray(np.isin(numbers, wanted_here))


def _held(content: float, dtype: np.dtype[Any]) -> Any:
    """Return the number of a dtype that is equal to a constant; None if there is none."""
    if dtype.kind == "i":
        is_whole = isinstance(content, int) or content.is_integer()
        return int(content) if is_whole and int(content) in INTEGERS else None
    near = np.array(float(content)).astype(dtype)[()]
    if isinstance(content, float) and np.isfinite(near):
        return near
    return near if float(near) == content else None


def _counted(numbers: Numbers) -> Numbers:
    return numbers.astype(np.int64) if numbers.dtype.kind == "b" else numbers


def _limits(numbers: Numbers) -> tuple[int, int]:
    return int(numbers.min(initial=0)), int(numbers.max(initial=0))

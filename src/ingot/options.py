"""Options of functions, and what an unknown one was meant to be."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_ELSEWHERE = {"delimiter": "separator", "sep": "separator"}
"""What options are called in other libraries, and what they are called here."""


def names_options(
    function: Callable[P, T], instead: Mapping[str, str] | None = None
) -> Callable[P, T]:
    """Return the function; an option that it does not have raises an error that lists them.

    Args:
        function: The function.
        instead: What to write in place of options that functions of other libraries have.

    Raises:
        TypeError: There is no such option; the message names the nearest one.
    """
    known = inspect.signature(function).parameters
    options = [name for name, one in known.items() if one.kind is one.KEYWORD_ONLY]
    name = function.__qualname__.removesuffix(".__init__").removesuffix(".__new__")

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if not kwargs.keys() <= known.keys():
            wrong = next(one for one in kwargs if one not in known)
            foreign = get_close_matches(wrong, [*known, *instead], 1) if instead else []
            if instead and foreign and foreign[0] in instead:
                advice = instead[foreign[0]]
                raise TypeError(f"ingot.{name} has no argument {wrong!r}; instead: {advice}")
            same = _ELSEWHERE.get(wrong)
            near = [same] if same in known else get_close_matches(wrong, options, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"unknown option {wrong!r}{meant} ({name} has {', '.join(options)})")
        return function(*args, **kwargs)

    return checked


def names_options_besides(instead: Mapping[str, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return `names_options` for a function that people know from other libraries."""
    return lambda function: names_options(function, instead)

"""Attributes that are computed once."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class cached_property(Generic[T_co]):  # noqa: N801 -- it is read like the one in functools
    """As that in `functools`, without the lock that it has before Python 3.12.

    All instances of a class share that lock. A child that is forked while a thread holds it
    waits for it forever. Without it, threads that come first may compute the value each.
    """

    def __init__(self, function: Callable[[Any], T_co]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object, owner: type) -> Self | T_co:
        if instance is None:
            return self
        value: T_co = self._function(instance)
        return instance.__dict__.setdefault(self._name, value)  # type: ignore[no-any-return]

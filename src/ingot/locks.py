"""What threads share and the child of a fork finds free, whatever threads of its parent held."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["ProcessLock"]

T_co = TypeVar("T_co", covariant=True)


class ProcessLock:
    """A lock for each process. `with lock.own:` takes that of this one.

    In the child of a fork, the thread that held the lock of the parent is not there to release
    it. It has left what the lock guards as it was at that moment.
    """

    def __init__(self) -> None:
        self._locks: dict[int, AbstractContextManager[bool]] = {}

    @property
    def own(self) -> AbstractContextManager[bool]:
        """The lock of this process, which one thread may take several times."""
        process = os.getpid()
        return self._locks.get(process) or self._locks.setdefault(process, RLock())


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

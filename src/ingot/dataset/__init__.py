"""Data sets: rows of named, typed fields."""

from importlib import import_module
from typing import TYPE_CHECKING

from ingot.dataset.read.dataset import Dataset
from ingot.dataset.spec import Spec

if TYPE_CHECKING:
    from ingot.dataset.write.run import commit
    from ingot.dataset.write.writer import DatasetWriter

__all__ = ["Dataset", "DatasetWriter", "Spec", "commit"]

_LATER = {"DatasetWriter": "ingot.dataset.write.writer", "commit": "ingot.dataset.write.run"}
"""What is imported when it is first used, so that programs which only read start sooner."""


if not TYPE_CHECKING:  # With a `__getattr__`, checkers of types would accept any name.

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name not in _LATER:
            message = f"module 'ingot.dataset' has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=import_module("ingot.dataset"))
        return getattr(import_module(_LATER[name]), name)

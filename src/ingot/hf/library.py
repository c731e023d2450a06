"""The library `datasets`."""

from importlib import import_module
from typing import Any


def library(module: str = "datasets") -> Any:
    """Return the library `datasets`, or one of its modules.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in {"datasets", "pyarrow"}:
            raise
        message = "ingot.hf requires Hugging Face's datasets: pip install 'ingot[hf]'"
        raise ModuleNotFoundError(message, name=error.name) from error

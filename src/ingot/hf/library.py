"""The library `datasets`."""

from typing import Any

from ingot.extras import require


def library(module: str = "datasets") -> Any:
    """Return the library `datasets`, or one of its modules.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    return require(module, "ingot.hf")

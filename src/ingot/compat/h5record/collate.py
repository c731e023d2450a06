"""Collation of rows in PyTorch's loader."""

from importlib import import_module
from typing import Any

from ingot.compat.h5record.runs import Runs


def torch_dataset() -> type:
    """Return PyTorch's `Dataset` class, and register sequences with its loader.

    Without PyTorch, return `object`.
    """
    try:
        data = import_module("torch.utils.data")
    except ModuleNotFoundError:
        return object
    known = import_module("torch.utils.data._utils.collate").default_collate_fn_map
    known[Runs] = _tensors
    found: type = data.Dataset
    return found


def _tensors(batch: list[Runs], *, collate_fn_map: object = None) -> list[Any]:
    """Return the numbers of each row as a tensor."""
    del collate_fn_map
    torch = import_module("torch")
    return [torch.as_tensor(row[0]) for row in batch]

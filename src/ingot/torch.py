"""Records and rows in PyTorch's data loader, one native read per batch."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, SupportsIndex, TypeVar, overload

from ingot.dataset import Dataset as Rows
from ingot.opening import open  # noqa: A004
from ingot.records import Reader, View
from ingot.records.expand import StrPath
from ingot.records.indices import Indices

try:
    import torch.utils.data
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    message = "ingot.torch requires PyTorch: pip install torch"
    raise ModuleNotFoundError(message, name="torch") from error

__all__ = ["Dataset"]

T_co = TypeVar("T_co", covariant=True)


class Dataset(torch.utils.data.Dataset[T_co], Generic[T_co]):
    """Records, or rows of a data set, as a map-style PyTorch data set.

    A `torch.utils.data.DataLoader` reads each batch with one native call. The data set pickles
    to a path and may be used before and after a fork, so it works with workers of every start
    method.

    Args:
        source: A reader, a view, an `ingot.Dataset`, or anything that `ingot.open` takes.
        transform: Called in the worker with each record (bytes) or row (a dict); returns the
            item. By default the item is the record or row itself.

    Attributes:
        source: The reader, view or data set.
        transform: As given.

    Example:
        >>> dataset = ingot.torch.Dataset("train.ingot", decode)  # doctest: +SKIP
        >>> loader = DataLoader(dataset, batch_size=64, shuffle=True)  # doctest: +SKIP
    """

    source: Reader | View | Rows
    transform: Callable[[Any], T_co] | None

    @overload
    def __init__(
        self: "Dataset[Any]",
        source: Reader | View | Rows | StrPath | Sequence[StrPath],
        transform: None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        source: Reader | View | Rows | StrPath | Sequence[StrPath],
        transform: Callable[[Any], T_co],
    ) -> None: ...
    def __init__(
        self,
        source: Reader | View | Rows | StrPath | Sequence[StrPath],
        transform: Callable[[Any], T_co] | None = None,
    ) -> None:
        self.source = source if isinstance(source, Reader | View | Rows) else open(source)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: SupportsIndex) -> T_co:
        (item,) = self.__getitems__([operator.index(index)])
        return item

    def __getitems__(self, indices: Indices) -> list[T_co]:
        """Return the items at `indices`; PyTorch's loader calls this per batch."""
        records: list[Any] = self.source.__getitems__(indices)
        return records if self.transform is None else [self.transform(one) for one in records]

    def __repr__(self) -> str:
        return f"<ingot.torch.Dataset of {self.source!r}>"

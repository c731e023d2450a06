"""Data sets that take a list of indices and return a list of items."""

import operator
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Sized
from typing import Any, SupportsIndex

import torch.utils.data

from ingot.compat.ffrecord.errors import MisuseError
from ingot.compat.ffrecord.fileio import FileReader, Sample, StrPath


class ReaderRegistry:
    """An object that finds the readers among its attributes.

    It needs no constructor: `ffreaders` looks at the attributes when it is called.
    """

    def ffreaders(self) -> list[FileReader]:
        """Return the readers among its attributes, then those of the registries among them.

        Readers inside lists and dicts are not found.
        """
        attributes = vars(self).values()
        own = [one for one in attributes if isinstance(one, FileReader)]
        nested = [one for one in attributes if isinstance(one, ReaderRegistry)]
        return own + [reader for one in nested for reader in one.ffreaders()]


class Dataset(torch.utils.data.Dataset[Any], ReaderRegistry):
    """A data set that returns a whole batch: `dataset[[5, 1, 9]]` is a list of three items.

    A subclass either calls this constructor and overrides `process`, or does not call it and
    overrides `__len__` and `__getitem__`, which takes a list of indices and returns a list of
    items. Both work in `ingot.compat.ffrecord.torch.DataLoader` and in PyTorch's own loader,
    which also accepts a `__getitem__` of one index.

    Args:
        fnames: A file, a directory (its `.ffr` files, sorted by name), or a list of files.
        check_data: Whether to verify the checksums of indices and samples.

    Attributes:
        fnames: As given.
        reader: The `FileReader` over them.
    """

    def __init__(self, fnames: StrPath | Sequence[StrPath], check_data: bool = True) -> None:
        self.fnames = fnames
        self.reader = FileReader(fnames, check_data)

    def __len__(self) -> int:
        return self.reader.n

    def __getitem__(self, indices: Sequence[int]) -> Any:  # noqa: ANN401
        indices = _checked(indices)
        return self.process(indices, self.reader.read(indices))

    def __getitems__(self, indices: Sequence[int]) -> Any:  # noqa: ANN401
        """Return the items of a batch for a loader.

        For FFRecord's loader, this is `self[indices]`. For PyTorch's own loader, it calls the
        `__getitem__` of a subclass with each index, or with all indices if it takes no single one.
        """
        if isinstance(indices, Batch) or type(self).__getitem__ in _OF_LISTS:
            return self._whole([*indices])
        try:
            return [self[index] for index in indices]  # type: ignore[index]
        except (TypeError, AttributeError, AssertionError):
            return self._whole(indices)

    def _whole(self, indices: Sequence[int]) -> Any:  # noqa: ANN401
        try:
            return self[indices]
        except TypeError as error:
            if "list" in str(error):
                name = f"{type(self).__name__}.__getitem__"
                error.add_note(f"{name} takes a list of indices and must return a list of items")
            raise

    def process(self, indices: Sequence[int], data: list[Sample]) -> Any:  # noqa: ANN401
        """Turn the samples at `indices` into a list of items; override it in a subclass.

        The result goes to `collate_fn` unchanged. Usually it is one item per index, but it may
        be more or fewer, or a complete batch.

        Args:
            indices: The argument of `__getitem__`.
            data: The bytes of each sample, as an array.
        """
        message = (
            f"{type(self).__name__} overrides neither process(indices, data) nor "
            "__getitem__(indices); implement one of them"
        )
        raise NotImplementedError(message)

    def __add__(self, other: torch.utils.data.Dataset[Any]) -> "ConcatDataset":  # type: ignore[override]
        return ConcatDataset([self, other])


class Subset(Dataset):
    """The items of a data set at some indices.

    Args:
        dataset: A data set that takes a list of indices.
        indices: Item `k` of the subset is item `indices[k]` of the data set.
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Sequence[int]) -> Any:  # noqa: ANN401
        return self.dataset[[self.indices[index] for index in _checked(indices)]]


class ConcatDataset(Dataset, torch.utils.data.ConcatDataset[Any]):
    """Concatenated data sets. A batch calls each of them once.

    Args:
        datasets: At least one, all instances of this module's `Dataset`.

    Attributes:
        datasets: As given.
        cumulative_sizes: Where each of them ends.
    """

    def __init__(self, datasets: Iterable[torch.utils.data.Dataset[Any]]) -> None:
        datasets = list(datasets)
        for dataset in datasets:
            if not isinstance(dataset, Dataset):
                message = (
                    "ConcatDataset takes data sets of ingot.compat.ffrecord.torch, not "
                    f"{type(dataset).__name__}; use torch.utils.data.ConcatDataset for others"
                )
                raise MisuseError(message)
        if not datasets:
            message = "datasets should not be an empty iterable; pass at least one data set"
            raise MisuseError(message)
        torch.utils.data.ConcatDataset.__init__(self, datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, indices: Sequence[int]) -> list[Any]:
        indices = _checked(indices)
        items: list[Any] = [None] * len(indices)
        wanted: dict[int, list[tuple[int, int]]] = {}
        for position, index in enumerate(indices):
            member, local = self._locate(index)
            wanted.setdefault(member, []).append((position, local))
        for member, places in wanted.items():
            found = self.datasets[member][[local for _, local in places]]
            _require(found, places, f"data set {member}: {type(self.datasets[member]).__name__}")
            for (position, _), item in zip(places, found, strict=True):
                items[position] = item
        return items

    def _locate(self, index: SupportsIndex) -> tuple[int, int]:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            message = f"index {index} is out of range for {len(self)} items"
            raise (ValueError if index < 0 else IndexError)(message)
        place = index + len(self) if index < 0 else index
        member = bisect_right(self.cumulative_sizes, place)
        return member, place - (self.cumulative_sizes[member - 1] if member else 0)


class Batch(list[int]):
    """Indices that FFRecord's loader requests at once."""


_OF_LISTS = {one.__getitem__ for one in (Dataset, Subset, ConcatDataset)}


def _require(items: Sized, indices: Sized, giver: str) -> None:
    if len(items) != len(indices):
        message = f"{giver} gave {len(items)} items for {len(indices)} indices, expected one each"
        raise ValueError(message)


def _checked(indices: Sequence[int]) -> Sequence[int]:
    if isinstance(indices, list | tuple):
        return indices
    message = (
        f"indices must be a list of index, not {type(indices).__name__}; "
        "dataset[[i]] is a list of one item"
    )
    raise TypeError(message)

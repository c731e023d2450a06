"""A data loader that can start in the middle of an epoch."""

import operator
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import islice
from multiprocessing.context import BaseContext
from typing import Any, SupportsIndex, cast

import torch
import torch.utils.data
from torch.utils.data import IterableDataset, Sampler, default_convert

from ingot.compat.ffrecord.errors import MisuseError
from ingot.compat.ffrecord.torch.dataset import Batch, Dataset


class DataLoader(torch.utils.data.DataLoader[Any]):
    """PyTorch's data loader, with `set_step` to resume within an epoch.

    For each batch of a `Dataset`, the worker calls `dataset[indices]` once and passes the result
    to `collate_fn`; with `batch_size=None`, lists of one index. Other data sets are loaded as
    PyTorch loads them.

    Arguments not listed are those of PyTorch.

    Args:
        dataset: A `Dataset`, or any PyTorch data set.
        skippable: Whether `set_step` may be called. PyTorch Lightning, which copies loaders
            from their attributes, requires False.
        multiprocessing_context: How to start workers; "fork" by default.

    Attributes:
        skippable: As given.

    Raises:
        AssertionError: Without batches there is nothing to skip: `batch_size=None` requires
            `skippable=False`.
    """

    def __init__(  # noqa: PLR0917
        self,
        dataset: torch.utils.data.Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = 2,
        persistent_workers: bool = False,
        skippable: bool = True,
        multiprocessing_context: str | BaseContext | None = None,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        if batch_size is None and batch_sampler is None and not iterable:
            if skippable:
                message = "batch_size=None has no batches to skip; pass skippable=False with it"
                raise MisuseError(message)
            if isinstance(dataset, Dataset):
                batch_size, collate_fn = 1, collate_fn or default_convert
        if num_workers == 0 and prefetch_factor == 2:  # noqa: PLR2004
            prefetch_factor = None
        if num_workers > 0 and multiprocessing_context is None:
            multiprocessing_context = "fork"
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
        )
        self.skippable = skippable
        if skippable and not iterable:
            # PyTorch refuses the assignment after this, as workers might be running.
            skipping = SkippingBatchSampler(cast("Iterable[list[Any]]", self.batch_sampler))
            object.__setattr__(self, "batch_sampler", skipping)

    @property
    def _index_sampler(self) -> Any:  # noqa: ANN401
        """The sampler that PyTorch's iterators use: whole batches for a `Dataset`."""
        sampler = super()._index_sampler
        return WholeBatches(sampler) if isinstance(self.dataset, Dataset) else sampler

    def set_step(self, step: SupportsIndex) -> None:
        """Skip the first `step` batches of every epoch that starts from now on.

        The sampler draws them but they are not loaded, so the remaining batches are those of a
        full epoch: with the same state of the generator, or the same `set_epoch`, an epoch
        resumes exactly where it stopped. Call `set_step(0)` before the next one. `len` counts
        the remaining batches.

        Random numbers that workers draw themselves differ from those of a full epoch.

        Raises:
            AssertionError: `step` is negative or more than an epoch has, or the loader is
                not skippable.
        """
        if not isinstance(self.batch_sampler, SkippingBatchSampler):
            message = (
                "This dataloader is not skippable: create it with skippable=True and a "
                "map-style data set"
            )
            raise MisuseError(message)
        self.batch_sampler.set_step(step)


class WholeBatches(Sampler[Batch]):
    """Batches of another sampler, each to be requested as a whole."""

    def __init__(self, batches: Iterable[list[Any]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        return map(Batch, self.batches)

    def __len__(self) -> int:
        return len(cast("Sized", self.batches))


class SkippingBatchSampler(Sampler[list[Any]]):
    """Batches of another sampler, without the first ones.

    Attributes:
        step: The number of batches to skip.
    """

    def __init__(self, batch_sampler: Iterable[list[Any]]) -> None:
        self.batch_sampler = batch_sampler
        self.step = 0

    @property
    def sampler(self) -> Any:  # noqa: ANN401
        """The sampler that the batches are made of."""
        return cast("Any", self.batch_sampler).sampler

    def set_step(self, step: SupportsIndex) -> None:
        """Skip the first `step` batches."""
        wanted, total = operator.index(step), self._total()
        if not 0 <= wanted <= total:
            message = f"step must be from 0 to {total}, the number of batches, got {wanted}"
            raise MisuseError(message)
        self.step = wanted

    def __iter__(self) -> Iterator[list[Any]]:
        return islice(self.batch_sampler, self.step, None)

    def __len__(self) -> int:
        return self._total() - self.step

    def _total(self) -> int:
        return len(cast("Sized", self.batch_sampler))

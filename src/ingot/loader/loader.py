"""Batches along an order, read ahead by threads, with a checkpointable position."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, SupportsIndex

from ingot.errors import ClosedError, counted
from ingot.loader.arguments import (
    INSTEAD,
    Shard,
    To,
    collate_of,
    converter_of,
    part_of,
    steps_over,
    threads_of,
    topology_of,
)
from ingot.loader.maker import Made, Maker, Replacement, Threads, converted
from ingot.loader.pipeline import Pipeline, Work
from ingot.loader.state import place_in, state_of, verify_resume
from ingot.loader.stats import LoaderStats, Meter
from ingot.loader.steps import Place
from ingot.options import names_options_besides
from ingot.order.arguments import Samples, count_of, one_of
from ingot.order.order import Order
from ingot.order.rows import Rows

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

_ERRORS_MAX = 10_000


class Loader:
    """Batches along an order, read ahead by threads.

    A step has `batch_size` samples on each rank, or `global_batch_size` on all ranks together:
    consecutive positions of the order, of which each rank reads its own part. With
    `global_batch_size`, the batches of all ranks together are the same for any number of ranks.
    A batch of a data set has the columns that `ds[[...]]` has. Other samples are collated: dicts
    to a dict of batches, arrays of one shape and numbers to an array, anything else to a list.

    `for batch in loader` is an epoch, which is one pass over a finite order; the next loop is the
    next epoch, in which shuffles and random numbers are others, even if a loop was left early.
    After `load_state_dict` or `seek`, the loop continues from there to the end of that epoch. An
    infinite order has no epochs and never ends: a loop continues where the loader is. Steps count
    on from epoch to epoch.

    All ranks have the same number of steps. In the last batch of an epoch, which may be shorter,
    their parts differ by at most one sample; if it has fewer samples than there are ranks, ranks
    beyond these get one of them again, so that none is without data.

    One thread at a time may use a loader; sources and functions are used by all of its threads.
    A loader that is closed, or to which no reference is left, has no threads.

    Args:
        order: An order, a data set, a reader, a view, or any other sequence of samples.
        batch_size: The number of samples of a step on each rank.
        global_batch_size: The number on all ranks together, in place of `batch_size`. If it is
            not a multiple of the number of ranks, their parts differ by one sample.
        workers: The number of threads; by default the number of cores that this process may use,
            but at most 8. With 0, the calling thread does the work.
        processes: The number of processes that make batches, in place of threads, for functions
            that hold the GIL. They are started as `multiprocessing` starts processes; if these
            are not forked, the order and the functions must be picklable. Batches come back
            through anonymous shared memory. If a process dies, another one makes the same batch.
        mp_context: A context of `multiprocessing`, or the name of a start method, to start the
            processes with; None for the default.
        prefetch: The number of batches that are read ahead; by default two for each worker.
        to: "numpy" for arrays, "torch" for tensors, "jax" for arrays of JAX; or a function that
            is called with each batch of numpy arrays, in a thread of this process, and returns
            the batch.
        shard: Rank and number of ranks, or a PyTorch device mesh of one dimension, such as
            `mesh["data"]`. "auto" asks `torch.distributed`, then `jax.distributed`, then the
            environment variables RANK and WORLD_SIZE; without these there is one rank, as with
            None.
        drop_last: Whether to leave out samples after the last whole batch of an epoch.
        on_error: "raise", or "substitute" to replace a sample that is damaged, or for which a
            function of `map` fails, by another one of the order. Which one depends on the
            position alone, and every rank keeps its number of steps.
        collate: Called with the list of samples of a batch, in a worker; returns the batch.
        pin_memory: Whether tensors are in pinned memory, if there is a GPU.
        progress: Whether loops show a line on standard error: step, samples per second, and the
            share of the time in which the loop waited for data.

    Raises:
        TypeError: The order is not made of samples, or not exactly one of `batch_size` and
            `global_batch_size` is given.
        ValueError: The order has too few samples for a batch, or a batch too few for the ranks.

    Attributes:
        order: The order.
        batch_size: The number of samples of a whole step on this rank.
        global_batch_size: The number on all ranks together.
        rank: The rank of this process.
        world: The number of ranks.
        collate: As given.
        errors: The samples that were replaced in batches that were handed out: the last 10,000.

    Example:
        >>> loader = ingot.Loader(ds.shuffle(seed=0), batch_size=64)  # doctest: +SKIP
        >>> for batch in loader:  # doctest: +SKIP
        ...     train(batch["image"], batch["label"])
    """

    __module__ = "ingot"

    @names_options_besides(INSTEAD)
    def __init__(
        self,
        order: Samples | Order,
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        workers: int | None = None,
        processes: int = 0,
        mp_context: "BaseContext | str | None" = None,
        prefetch: int | None = None,
        to: To = "numpy",
        shard: Shard = "auto",
        drop_last: bool = False,
        on_error: Literal["raise", "substitute"] = "raise",
        collate: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        progress: bool = False,
    ) -> None:
        self.order = Order.of(order)
        self._topology = topology_of(shard)
        self.rank, self.world, _ = self._topology
        sizes = batch_size, global_batch_size
        steps = steps_over(self.order, *sizes, self.world, drop_last=drop_last)
        self.global_batch_size = steps.batch_size
        self.batch_size = part_of(steps.batch_size, self.rank, self.world)
        self.collate = collate = collate_of(collate)
        self.errors: list[Replacement] = []
        self._options: dict[str, Any] = {
            "to": to,
            "shard": (self.rank, self.world),
            "drop_last": bool(drop_last),
            "on_error": one_of("on_error", on_error, ("raise", "substitute")),
            "collate": collate,
            "pin_memory": bool(pin_memory),
        }
        self._convert = converter_of(to, pin_memory=pin_memory)
        self._epochs = self.order if self.order.is_infinite else self.order.repeat()
        topology = self.rank, self.world
        replaces = on_error == "substitute"
        self._maker = Maker(self._epochs, steps, topology, collate, replaces=replaces)
        self._place = Place(steps)
        self._stats = LoaderStats()
        self._meter = Meter(steps) if progress else None
        self._began: float | None = None
        self._is_closed = False
        self._taking = threading.Lock()
        num_processes = count_of(processes, "processes")
        num_workers, ahead = threads_of(workers, num_processes, prefetch)
        work = self._work(num_processes, mp_context)
        after = self._place.skipped.after
        self._pipeline: Pipeline[Made] = Pipeline(work, after, num_workers, ahead)
        weakref.finalize(self, self._pipeline.stop).atexit = False

    def _work(self, num_processes: int, context: "BaseContext | str | None") -> Work[Made]:
        if not num_processes:
            return Threads(self._maker, self._convert)
        from ingot.loader.processes import Processes  # noqa: PLC0415 -- few need multiprocessing

        return Processes(self._maker, self._convert, num_processes, context)

    @property
    def step(self) -> int:
        """The step that is handed out next."""
        return self._place.step

    @property
    def epoch(self) -> int:
        """The epoch of that step; 0 for an infinite order."""
        return self._place.epoch

    def __len__(self) -> int:
        """Return the number of steps of an epoch, with those that `skip` leaves out."""
        return self._place.steps.num_per_epoch()

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a loader has threads and cannot be pickled: pickle its order and its state_dict()"
        )

    def __iter__(self) -> Iterator[Any]:
        """Begin an epoch, or continue where `load_state_dict` or `seek` has put the loader."""
        self._check_open()
        return _Batches(self)

    def _take(self, loop: object) -> Any:
        """Return the next batch of a loop."""
        self._check_open()
        if not self._taking.acquire(blocking=False):
            message = "another thread takes a batch from this loader; make one for each thread"
            raise RuntimeError(message)
        try:
            return self._next(loop)
        finally:
            self._taking.release()

    def _next(self, loop: object) -> Any:
        step, stop = self._place.following(loop)
        if stop is not None and step >= stop:
            if self._meter is not None:
                self._meter.finish(stop - 1, self._stats)
            raise StopIteration
        start = time.perf_counter()
        self._began = start if self._began is None else self._began
        made = self._pipeline.take(step, stop)
        self._place.advance(step)
        self.errors += made.replaced
        del self.errors[:-_ERRORS_MAX]
        self._count(made, start)
        if self._meter is not None:
            self._meter.update(step, self._stats)
        return made.batch

    def _count(self, made: Made, start: float) -> None:
        now = time.perf_counter()
        old = self._stats
        self._stats = replace(
            old,
            batches=old.batches + 1,
            samples=old.samples + made.num_samples,
            replaced=old.replaced + len(made.replaced),
            elapsed_s=now - (self._began or start),
            wait_s=old.wait_s + now - start,
            **{name: getattr(old, name) + more for name, more in made.seconds.items()},
        )

    def start(self) -> None:
        """Begin to read ahead, before the first batch is asked for."""
        self._check_open()
        self._pipeline.start(*self._place.upcoming)

    def seek(self, step: SupportsIndex) -> None:
        """Go to a step, which is handed out next: by the running loop, or by a new one.

        `loader.seek(loader.step)` lets a new loop continue where one was left. A loader that has
        resumed within an epoch cuts it from there on; if it goes to a step before that, the
        epoch is cut from its beginning on again.

        Raises:
            ValueError: There is no such step.
        """
        steps = self._place.steps
        self._place.put(step)
        if self._place.steps is not steps:
            self._cut_anew()

    def _cut_anew(self) -> None:
        """Throw away what was made of other positions, or of steps that are left out."""
        self._maker.cut = self._place.steps
        self._pipeline.restart()

    def skip(self, first: SupportsIndex, stop: SupportsIndex) -> None:
        """Leave out the steps from `first` to before `stop` from now on, and in states.

        Other steps keep their numbers and batches.
        """
        start, end = self._checked(first), count_of(stop, "stop")
        if end < start:
            raise ValueError(f"expected first <= stop, got {start} and {end}")
        self._place.skipped.set([*self._place.skipped.ranges, range(start, end)])
        self._pipeline.restart()

    def indices(self, step: SupportsIndex) -> Rows:
        """Return which rows make a step, on all ranks together, without reading them.

        `Rows.source` has numbers into `loader.order.sources`, and `Rows.row` counts in these;
        `loader.order.origins(rows)` tells where they are stored. Substitutes for samples that
        fail are not among them: `errors` lists these.
        """
        return self._epochs.rows(*self._place.steps.span(self._checked(step)))

    def batch(self, step: SupportsIndex) -> Any:
        """Read the batch of any step now; the loader stays where it is.

        Raises:
            WorkerError: A sample could not be read, transformed or collated.
        """
        self._check_open()
        number = self._checked(step)
        return converted(number, self._maker.make(number), self._convert).batch

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is: a small dict that can be stored as JSON.

        It counts the samples that were handed out on all ranks, not those that were read ahead,
        and is the same on every rank.
        """
        place = self._place
        return state_of(self.order, place.steps, place.next, place.skipped.ranges)

    def load_state_dict(self, state: Mapping[str, Any], *, allow_other_data: bool = False) -> None:
        """Continue where a loader was, on any number of ranks and workers, with any batch size.

        The rest of that epoch is cut into batches from there on, and later epochs from their
        beginning on. A running loop continues there, too.

        Args:
            state: What `state_dict` of a loader has returned.
            allow_other_data: Whether to take a state that was saved on other data, as far as ids
                of files, sizes and samples tell. Only the numbers of rows and the composition of
                the order must then be the same, as for a data set and its conversion.

        Raises:
            TypeError: It is not a state.
            ValueError: It is the state of another order, or of other data; the message names the
                difference. Or it leaves out steps, and the batch size is another one.
        """
        found = place_in(state, self.order, self._place.steps, allow_other_data=allow_other_data)
        self._place.resume(*found)
        self._cut_anew()

    def verify_resume(self, steps: int = 16, resumes: int = 4, seed: int = 0) -> int:
        """Check that this pipeline resumes exactly: the next batches are read, and read again.

        They are read in order, and then from some random steps on by other loaders that have
        loaded a state. The loader itself stays where it is.

        Args:
            steps: How many steps to compare.
            resumes: How many times to resume.
            seed: Seed of the random steps.

        Returns:
            The number of batches that were compared.

        Raises:
            ValueError: A batch differs; the message says which and where.
        """
        return verify_resume(self, steps, resumes, seed)

    def _again(self, workers: int) -> "Loader":
        """Return another loader of the same batches, in the same place."""
        size = self.global_batch_size
        again = Loader(self.order, global_batch_size=size, workers=workers, **self._options)
        again.load_state_dict(self.state_dict())
        return again

    def stats(self) -> LoaderStats:
        """Return how the time was spent since the loader was made."""
        return self._stats

    def close(self) -> None:
        """End the threads and wait for them. A second call does nothing."""
        self._is_closed = True
        self._pipeline.stop()
        self._pipeline.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        count, length = self._place.steps.per_epoch, self._place.steps.length
        steps = "steps without end" if count is None else f"{count:,} steps"
        is_cut = length is not None and self._options["drop_last"]
        rest = (length or 0) % self.global_batch_size if is_cut else 0
        left = f", {counted(rest, 'sample')} of an epoch left out" if rest else ""
        return (
            f"<ingot.Loader at step {self.step}, {steps} of {self.batch_size} samples on this rank "
            f"and {self.global_batch_size} on all ranks{left}, {self._topology}, of {self.order!r}>"
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the loader is closed; create a new one and call load_state_dict()")

    def _checked(self, step: SupportsIndex) -> int:
        return self._place.steps.checked(step)


class _Batches(Iterator[Any]):
    """The batches of a loader in one loop, which holds the loader, but not the other way round."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._loop = loader._place.begin()  # noqa: SLF001 -- this is a part of the loader
        self._has_ended = False

    def __next__(self) -> Any:
        if self._has_ended:
            raise StopIteration
        try:
            return self._loader._take(self._loop)  # noqa: SLF001
        except StopIteration:
            self._has_ended = True
            raise

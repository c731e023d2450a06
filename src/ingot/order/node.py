"""The steps that orders are composed of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ingot._core import Order as Native
from ingot.dataset import Dataset
from ingot.dataset.read.source import digest_of
from ingot.locks import cached_property
from ingot.order.arguments import Samples
from ingot.order.description import (
    ALGORITHM,
    Description,
    data_of,
    describe_source,
    name_of,
    text_of,
)
from ingot.order.pictures import Pictures

Condition = str | Callable[..., Any] | npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """A step, with the steps below it. It never changes, and orders share it.

    The engine's part of it is made when it is needed, and is not pickled.
    """

    @property
    @abstractmethod
    def parts(self) -> tuple["Node", ...]:
        """The steps below."""

    @cached_property
    def native(self) -> Native:
        """The function from positions to rows."""
        return self._make()

    @cached_property
    def repeats(self) -> bool:
        """Whether positions count on from epoch to epoch."""
        return any(part.repeats for part in self.parts)

    @cached_property
    def sources(self) -> tuple[Samples, ...]:
        """The sources, as they are numbered."""
        return tuple(one for part in self.parts for one in part.sources)

    @cached_property
    def data(self) -> tuple[Description, ...]:
        """For each source what tells its data from others."""
        return tuple(one for part in self.parts for one in part.data)

    @cached_property
    def maps(self) -> "tuple[Map, ...]":
        """The maps, as they are numbered."""
        return tuple(one for part in self.parts for one in part.maps)

    @cached_property
    def cut_fields(self) -> tuple[tuple[str, ...], ...]:
        """For each source the fields that windows and packs cut."""
        return tuple(one for part in self.parts for one in part.cut_fields)

    @property
    def seed(self) -> int:
        """The seed of the nearest shuffle; 0 without a shuffle, or with several parts."""
        return self.parts[0].seed if len(self.parts) == 1 else 0

    @abstractmethod
    def _make(self) -> Native: ...

    @abstractmethod
    def describe(self) -> Description:
        """Return what can be put into JSON, and what it has in common with its like."""

    @abstractmethod
    def filtered(self, condition: Condition, names: Sequence[str]) -> "Node":
        """Return the same step over data sets of the rows that meet a condition."""

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    """Rows of a source: all of them, or those in a table."""

    source: Samples
    num_rows: int
    table: npt.NDArray[np.int64] | None = None

    @property
    def parts(self) -> tuple[Node, ...]:
        """None."""
        return ()

    def _make(self) -> Native:
        return Native(self.num_rows, self.table)

    @cached_property
    def sources(self) -> tuple[Samples, ...]:
        """The source."""
        return (self.source,)

    @cached_property
    def data(self) -> tuple[Description, ...]:
        """What tells the data of the source from others."""
        return (data_of(self.source),)

    @cached_property
    def cut_fields(self) -> tuple[tuple[str, ...], ...]:
        """None."""
        return ((),)

    @property
    def seed(self) -> int:
        """There is no shuffle."""
        return 0

    def describe(self) -> Description:
        """Describe the source."""
        return dict(self._description)

    @cached_property
    def _description(self) -> Description:
        return describe_source(self.source, self.num_rows, self.table)

    def filtered(self, condition: Condition, names: Sequence[str]) -> "Leaf":
        """Return the rows of a data set that meet a condition."""
        if not isinstance(self.source, Dataset):
            raise TypeError(
                "filter requires data sets, whose fields it can look at; "
                f"{text_of(self.describe())} is not a data set"
            )
        rows = self.source if self.table is None else self.source.take(self.table)
        kept = rows.where(condition, *names)
        return Leaf(kept, len(kept))


@dataclass(frozen=True, eq=False)
class Step(Node):
    """A step on top of one other."""

    of: Node
    takes_filter: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Node, ...]:
        """The step below."""
        return (self.of,)

    @abstractmethod
    def _options(self) -> Description: ...

    def describe(self) -> Description:
        """Describe this step and all below."""
        kind = {"kind": type(self).__name__.lower()}
        return {**kind, **self._options(), "of": self.of.describe()}

    def filtered(self, condition: Condition, names: Sequence[str]) -> Self:
        """Return this step over what is left of the rows."""
        if not self.takes_filter:
            raise TypeError(
                f"filter goes before {text_of(self.describe())}: it would change which samples "
                "that step has"
            )
        return replace(self, of=self.of.filtered(condition, names))


@dataclass(frozen=True, eq=False)
class Shuffle(Step):
    """A random order, another one in each epoch."""

    number: int

    @property
    def seed(self) -> int:
        """The seed of this shuffle."""
        return self.number

    def _make(self) -> Native:
        return self.of.native.shuffle(self.number)

    def _options(self) -> Description:
        return {"seed": self.number}


@dataclass(frozen=True, eq=False)
class Repeat(Step):
    """Several epochs, or epochs without end."""

    times: int | None
    repeats: ClassVar[bool] = True

    def _make(self) -> Native:
        return self.of.native.repeat(self.times)

    def _options(self) -> Description:
        return {"times": self.times}


@dataclass(frozen=True, eq=False)
class Slice(Step):
    """Some positions at equal distances, and the words that the user had for them."""

    start: int
    step: int
    length: int | None
    words: Description
    takes_filter: ClassVar[bool] = False

    def _make(self) -> Native:
        return self.of.native.slice(self.start, self.step, self.length)

    def _options(self) -> Description:
        return self.words


@dataclass(frozen=True, eq=False)
class Map(Step):
    """A function of each sample."""

    function: Callable[..., Any]
    number: int
    takes_rng: bool

    @cached_property
    def maps(self) -> "tuple[Map, ...]":
        """The maps below, and this one."""
        return (*self.of.maps, self)

    @property
    def is_random(self) -> bool:
        """Whether the function makes random choices, which a seed decides."""
        if isinstance(self.function, Pictures):
            return self.function.is_random
        return self.takes_rng

    def apply(self, sample: Any, seed: int) -> Any:
        """Return what the function makes of a sample."""
        if isinstance(self.function, Pictures):
            return self.function(sample, seed)
        if self.takes_rng:
            return self.function(sample, rng=np.random.default_rng(seed))
        return self.function(sample)

    def _make(self) -> Native:
        return self.of.native.map(self.number)

    def _options(self) -> Description:
        return {"function": name_of(self.function), "seed": self.number}


@dataclass(frozen=True, eq=False)
class Batch(Step):
    """Lists of samples."""

    size: int
    drop_last: bool
    takes_filter: ClassVar[bool] = False

    def _make(self) -> Native:
        return self.of.native.batch(self.size, self.drop_last)

    def _options(self) -> Description:
        return {"size": self.size} | ({"drop_last": True} if self.drop_last else {})


@dataclass(frozen=True, eq=False)
class Cutting(Step):
    """A step that depends on how long rows are: a field of theirs, or an array per source."""

    lengths: str | tuple[npt.NDArray[np.int64], ...]
    fields: tuple[str, ...]
    takes_filter: ClassVar[bool] = False

    @cached_property
    def cut_fields(self) -> tuple[tuple[str, ...], ...]:
        """The same for all sources."""
        return (self.fields,) * len(self.of.sources)

    def _arrays(self) -> list[npt.NDArray[np.int64]]:
        if not isinstance(self.lengths, str):
            return list(self.lengths)
        return [_field_lengths(source, self.lengths) for source in self.of.sources]

    @cached_property
    def _told_lengths(self) -> Any:
        is_name = isinstance(self.lengths, str)
        return self.lengths if is_name else [digest_of(one) for one in self._arrays()]


def _field_lengths(source: Samples, name: str) -> npt.NDArray[np.int64]:
    if not isinstance(source, Dataset):
        raise TypeError(
            f"expected an array of lengths: {type(source).__name__} has no field {name!r}, "
            "only data sets have fields"
        )
    return np.ascontiguousarray(source.lengths(name), np.int64)


@dataclass(frozen=True, eq=False)
class Window(Cutting):
    """Windows of sequences."""

    length: int
    stride: int
    partial: bool

    def _make(self) -> Native:
        return self.of.native.window(self._arrays(), self.length, self.stride, self.partial)

    def _options(self) -> Description:
        options = {"lengths": self._told_lengths, "length": self.length, "stride": self.stride}
        return options | ({"partial": True} if self.partial else {})


@dataclass(frozen=True, eq=False)
class Pack(Cutting):
    """Lists of samples that fit into a length together."""

    max_length: int
    long: str

    def _make(self) -> Native:
        return self.of.native.pack(self._arrays(), self.max_length, self.long)

    def _options(self) -> Description:
        options = {"lengths": self._told_lengths, "max_length": self.max_length}
        return options | ({} if self.long == "error" else {"long": self.long})


@dataclass(frozen=True, eq=False)
class Parts(Node):
    """A step on top of several others."""

    members: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """The steps below."""
        return self.members

    def _options(self) -> Description:
        return {}

    def describe(self) -> Description:
        """Describe this step and all below."""
        kind = {"kind": type(self).__name__.lower(), "algorithm": ALGORITHM}
        return {**kind, **self._options(), "parts": [one.describe() for one in self.parts]}

    def filtered(self, condition: Condition, names: Sequence[str]) -> Self:
        """Return this step over what is left of the rows."""
        return replace(self, members=tuple(one.filtered(condition, names) for one in self.parts))


@dataclass(frozen=True, eq=False)
class Concat(Parts):
    """One after the other."""

    def _make(self) -> Native:
        return Native.concat([one.native for one in self.parts])


@dataclass(frozen=True, eq=False)
class Interleave(Parts):
    """In turns."""

    def _make(self) -> Native:
        return Native.interleave([one.native for one in self.parts])


@dataclass(frozen=True, eq=False)
class Mix(Parts):
    """By weights, which may change at some positions."""

    names: tuple[str, ...]
    schedule: tuple[tuple[int, list[int]], ...]

    def _make(self) -> Native:
        return Native.mix([one.native for one in self.parts], list(self.schedule))

    def _options(self) -> Description:
        schedule = [[start, weights] for start, weights in self.schedule]
        return {"names": list(self.names), "schedule": schedule}

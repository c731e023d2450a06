"""The base class of sources, which hold the rows of a data set."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs import codec_of
from ingot.codecs.limit import check_decoded
from ingot.dataset.read.plan import Plan, read
from ingot.dataset.read.values import rows_of
from ingot.dataset.spec import Spec
from ingot.errors import FormatError
from ingot.records import Damage, Stats, Verification
from ingot.records.indices import Rows

Row: TypeAlias = dict[str, Any]
Numbers: TypeAlias = npt.NDArray[np.int64]
Elements: TypeAlias = tuple[int | None, int | None, int | None]
"""Start, stop and step in a sequence, as in a slice."""

ALL: Elements = (None, None, None)

Picks: TypeAlias = Sequence[Elements] | None
"""The elements of a sequence to read in each of several rows; None for all."""

Stored: TypeAlias = tuple[Any, bytes, bytes | None]
"""The values of a field in rows as an Ingot file stores them: concatenated, the offset of each
and the end of the last, and for a sequence how many each row has."""

Progress: TypeAlias = Callable[[int, int], object] | None

_FACTOR = 256
_ROWS = 1 << 14
_VERIFIED_ROWS = 1024


class Source(ABC):
    """Rows by number, from 0. Several threads may use a source at the same time.

    Rows and batches are flat dicts with the full names of fields. A source has fields, `spec`, a
    length, `plan` and `packed`; everything else rests on these, and is overridden where a format
    has a faster way.

    Attributes:
        raw_names: The fields that are read as bytes.
        damages: The errors of rows that are damaged.
    """

    raw_names: frozenset[str] = frozenset()
    damages: tuple[type[Exception], ...] = (FormatError,)

    if TYPE_CHECKING:  # Attributes or properties.

        @property
        def spec(self) -> Spec:
            """The fields and their types."""

        @property
        def path(self) -> str:
            """The name of the source in errors: what was opened."""

        @property
        def paths(self) -> Sequence[str]:
            """The files that contain the rows."""

        @property
        def format(self) -> str:
            """The name of its format in the table of formats."""

        @property
        def others(self) -> Sequence[str]:
            """The names of other contents of the files."""

        @property
        def closed(self) -> bool:
            """Whether the files are closed."""

        @property
        def is_recoded(self) -> bool:
            """Whether `packed` decodes the values and encodes them again."""

    else:
        others, closed, is_recoded = (), False, False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows, as stacked arrays where possible."""

    @abstractmethod
    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file stores them; `NAME?` is which rows have an optional one.

        Raises:
            FormatError: A value is not of the type of its field.
        """

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """The metadata of the rows."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The size of the files."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells the content of the files from others; copies of them have the same.

        It is computed when it is first asked for.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the files. A second call does nothing."""

    def again(self) -> tuple[Callable[..., "Source"], tuple[Any, ...]]:
        """Return what opens the same files in another process, and its arguments."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (*self.again(), self.raw_names)

    @property
    def counts(self) -> Sequence[int]:
        """The number of rows in each of `paths`; empty if that is unknown."""
        return [len(self)] if len(self.paths) == 1 else []

    def runs(self, numbers: Numbers) -> list[tuple["Source", Numbers]]:
        """Return runs of rows in the same files: the source of these, and the numbers there."""
        return [(self, numbers)]

    def stats(self) -> Stats:
        """Return figures about the files."""
        return Stats(len(self), self.nbytes)

    def field_bytes(self, rows: Numbers) -> Mapping[str, int]:
        """Return the size of fields before compression, as far as known, from a sample of rows."""
        del rows
        return {}

    def raw(self, names: Collection[str] | None = None) -> Self:
        """Return the same rows with fields that are not numbers as bytes.

        Args:
            names: The fields; None for all.

        Raises:
            TypeError: The format does not store the values of these fields as bytes.
        """
        chosen = self.raw_names | frozenset(self.spec if names is None else names)
        plain = codec_of("bytes")
        fields = {
            name: one
            if one.kind == "column" or name not in chosen
            else replace(one, codec=plain, is_sequence=one.kind == "sequence")
            for name, one in self.spec.fields.items()
        }
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__ | {"spec": Spec(fields), "raw_names": chosen})
        return found

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row; elements apply only to sequences."""
        picks = {name: None if one == ALL else [one] for name, one in wanted.items()}
        batch = read(self.plan(np.array([number], np.int64), picks))
        return rows_of(batch, self.spec.fields, 1, copy=False)[0]

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has; for a sequence, the range of its elements."""
        row = np.array([number], np.int64)
        found: dict[str, bool | range] = {}
        for name in names:
            found[name] = bool(self.present(name, row)[0])
            if found[name] and self.spec.fields[name].is_sequence:
                found[name] = range(int(self.lengths(name, row)[0]))
        return found

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field; 0 where one is missing.

        Raises:
            TypeError: The values of the field are not single numbers.
        """
        field = self.spec.fields[name]
        own = replace(field, codec=field.codec.own)
        if own.kind != "column":
            message = (
                f"{self.path}: field {name!r} is {field.type}, expected numbers, text or arrays; "
                f"ds[[0, 1], [{name!r}]] reads values of any type"
            )
            raise TypeError(message)
        return self._numbers(name, numbers, np.dtype(own.codec.dtype))

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows; 0 where it is missing."""
        dtype = self.spec.fields[name].codec.own.dtype

        def of(one: Stored) -> npt.NDArray[Any]:
            if one[2] is not None:
                return np.frombuffer(one[2], np.uint64)
            return np.diff(np.frombuffer(one[1], np.int64)) // (dtype.itemsize if dtype else 1)

        return self._gathered(name, numbers, np.dtype(np.int64), of)

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for a field."""
        if not self.spec.fields[name].is_optional:
            return np.ones(len(numbers), np.bool_)
        return self._numbers(f"{name}?", numbers, np.dtype(np.bool_))

    def _numbers(self, name: str, numbers: Rows, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return the numbers that are stored in a column."""
        return self._gathered(name, numbers, dtype, lambda one: np.frombuffer(one[0], dtype))

    def _gathered(
        self,
        name: str,
        numbers: Rows,
        dtype: np.dtype[Any],
        of: Callable[[Stored], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        """Return an array of numbers for many rows, reading a limited number at a time."""
        self.check_size(len(numbers) * dtype.itemsize)
        found = np.empty(len(numbers), dtype)
        for start in range(0, len(numbers), _ROWS):
            some = np.asarray(numbers[start : start + _ROWS], np.int64)
            (values,) = self.packed([name], some)
            found[start : start + len(some)] = of(values)
        return found

    def check_size(self, nbytes: int) -> None:
        """Refuse values that are much larger than the files they come from, by a FormatError."""
        try:
            check_decoded(nbytes)
        except ValueError as error:
            if nbytes > _FACTOR * self.nbytes:
                raise FormatError(f"{self.path}: {error}", self.path) from error

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together in a scan: at first, and at most."""
        del names
        return 1, 256

    def verify(self, progress: Progress) -> Verification:
        """Read everything, and verify what has checksums."""
        damaged = self.damaged([range(len(self))], progress)
        return Verification(len(self), damaged, tuple(self.spec))

    def damaged(self, ranges: Iterable[range], progress: Progress) -> list[Damage]:
        """Read rows; return what is damaged in them."""
        found: list[Damage] = []
        for rows in ranges:
            for start in range(rows.start, rows.stop, _VERIFIED_ROWS):
                stop = min(start + _VERIFIED_ROWS, rows.stop)
                found += self.damage(np.arange(start, stop))
                if progress is not None:
                    progress(stop, len(self))
        return found

    def damage(self, numbers: Numbers) -> list[Damage]:
        """Return what is damaged in consecutive rows: the rows that cannot be read alone."""
        try:
            self.check(numbers)
        except self.damages as error:
            if len(numbers) > 1:
                return [one for number in numbers for one in self.damage(number.reshape(1))]
            return [Damage(int(numbers[0]), 1, getattr(error, "offset", None) or 0, str(error))]
        return []

    def check(self, numbers: Numbers) -> None:
        """Read rows whole.

        Raises:
            FormatError: One is damaged.
        """
        self.packed([name for name, *_ in self.spec.stored()], numbers)


def _reopened(
    opener: Callable[..., Source], given: tuple[Any, ...], raw_names: frozenset[str]
) -> Source:
    try:
        opened = opener(*given)
    except FileNotFoundError as error:
        error.add_note(
            "the data set was compacted, replaced or moved since it was pickled: open it again"
        )
        raise
    return opened.raw(raw_names) if raw_names else opened


def identity_of(parts: Iterable[str]) -> str:
    """Return a hash of what tells the parts of a source from others, in their order."""
    return hashlib.sha256(" ".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def subset_of(rows: Rows) -> str:
    """Return which rows these are: a range, or a hash of their numbers."""
    if isinstance(rows, range):
        return f"{rows.start}:{rows.stop}:{rows.step}"
    return digest_of(rows)


def digest_of(array: Numbers) -> str:
    """Return a short hash of numbers."""
    return hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()[:16]

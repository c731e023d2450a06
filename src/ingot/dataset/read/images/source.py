"""Rows of a directory of images."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.cached import cached_property
from ingot.codecs import codec_of
from ingot.codecs.codec import offsets_of
from ingot.codecs.signature import is_file_type, name_of
from ingot.dataset.read.arrow import ArrowRows
from ingot.dataset.read.decoding import undecodable
from ingot.dataset.read.identity import identity_of
from ingot.dataset.read.images.classes import Classes
from ingot.dataset.read.images.listing import type_of
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.iteration import ROWS
from ingot.dataset.read.media import MEDIA, AnyFile
from ingot.dataset.read.plan import Packed, Plan, Request, read
from ingot.dataset.read.source import ALL, Elements, Picks, Row
from ingot.dataset.read.stacking import stacked
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.records import Damage, Verification
from ingot.records.indices import Rows

IMAGE, LABEL, NAME = "image", "label", "file_name"
_THREADS = 16
_STEP = 256


class ImageRows:
    """Images, their names, and what else is known of each: a class, or a row of metadata.

    Args:
        folder: The directory.
        classes: The image of each row, and its class.
        about: The metadata of each row, with the names of the images; None if there are none.
        again: The function that opens the directory again in another process, and its arguments;
            identity and raw fields come behind these.
        kind: The type of the images; None for the one that their names tell.
    """

    others: Sequence[str] = ()

    def __init__(
        self,
        folder: Path,
        classes: Classes,
        about: IngotSource | ArrowRows | None,
        again: tuple[Any, ...],
        *,
        kind: str | None = None,
    ) -> None:
        self.path = str(folder)
        self._names = np.array(classes.images, np.dtypes.StringDType())
        self._classes, self._labels = classes.names, classes.labels
        self._about = about
        self._again = again
        self._raw: frozenset[str] = frozenset()
        self._is_closed = False
        kind = kind or type_of(classes.images)
        codec = AnyFile(kind, "Image") if kind in MEDIA["Image"] else codec_of(kind)
        fields = {IMAGE: Field(IMAGE, codec)}
        if self._classes is not None:
            fields[LABEL] = Field(LABEL, codec_of("int"))
        if about is None:
            fields[NAME] = Field(NAME, codec_of("utf8"))
        self._own = frozenset(fields)
        self.spec = Spec(fields if about is None else fields | about.spec.fields)

    def __reduce__(self) -> tuple[Any, ...]:
        reopen, *arguments = self._again
        return reopen, (*arguments, self.identity, self._raw)

    def raw(self, names: Collection[str] | None = None) -> "ImageRows":
        """Return the same rows with fields that are not numbers as bytes.

        Args:
            names: The fields; None for all.
        """
        chosen = frozenset(self.spec if names is None else names)
        fields, about = dict(self.spec.fields), self._about
        if about is not None:
            about = about.raw(chosen & set(about.spec))
            fields |= about.spec.fields
        for name in chosen & self._own - {LABEL}:
            fields[name] = replace(fields[name], codec=codec_of("bytes"))
        found: ImageRows = object.__new__(ImageRows)
        changed = {"_raw": chosen, "_about": about, "spec": Spec(fields)}
        found.__dict__.update(self.__dict__ | changed)
        return found

    @cached_property
    def identity(self) -> str:
        """What tells these images from others: names and sizes; this asks the system for each."""
        about = [] if self._about is None else [self._about.identity]
        about += self._classes or ()
        names: list[str] = self._names.tolist()
        each = ((name, os.stat(f"{self.path}/{name}").st_size) for name in names)  # noqa: PTH116
        return identity_of([*about, *(f"{name}\0{size}" for name, size in each)])

    @property
    def paths(self) -> Sequence[str]:
        """The images, in order."""
        return self._paths(slice(None))

    @property
    def metadata(self) -> dict[str, Any]:
        """The names of the classes."""
        return {} if self._classes is None else {"classes": list(self._classes)}

    @property
    def nbytes(self) -> int:
        """The size of the images; this asks the system for each."""
        return sum(Path(path).stat().st_size for path in self.paths)

    def __len__(self) -> int:
        return len(self._names)

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        picks: dict[str, Picks] = {
            name: None if one == ALL else [one] for name, one in wanted.items()
        }
        found = read(self.plan(np.array([number]), picks))
        return {name: _plain(values[0]) for name, values in found.items()}

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        return _Plan(self, numbers, wanted)

    def about_plan(
        self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]
    ) -> Plan | None:
        """Plan to read what the metadata have of the wanted fields."""
        asked = {name: picks for name, picks in wanted.items() if name not in self._own}
        return self._about.plan(numbers, asked) if self._about is not None and asked else None

    def read_packed(
        self, names: Sequence[str], numbers: npt.NDArray[np.int64]
    ) -> list[tuple[Any, bytes, bytes | None]]:
        """Return values as an Ingot file would store them: images as the files they are.

        Raises:
            FormatError: An image is of another type than its name tells.
        """
        others = [name for name in names if name not in self._own]
        found: dict[str, tuple[Any, bytes, bytes | None]] = {}
        if self._about is not None and others:
            found |= zip(others, self._about.read_packed(others, numbers), strict=True)
        if IMAGE in names:
            found[IMAGE] = self._packed_images(numbers)
        if LABEL in names and LABEL not in found:
            ends = 8 * np.arange(len(numbers) + 1, dtype=np.int64)
            found[LABEL] = (self.labels(numbers).tobytes(), ends.tobytes(), None)
        if NAME in names and NAME not in found:
            cells = [name.encode() for name in self._names[numbers].tolist()]
            found[NAME] = (b"".join(cells), offsets_of(map(len, cells)), None)
        return [found[name] for name in names]

    def _packed_images(self, numbers: npt.NDArray[np.int64]) -> tuple[bytes, bytes, None]:
        cells = self._files(numbers)
        kind = self.spec[IMAGE]
        for number, cell in zip(numbers.tolist(), cells, strict=True):
            if is_file_type(kind) and name_of(cell) != kind:
                path = f"{self.path}/{self._names[number]}"
                message = (
                    f"{path}: this is not a {kind} file, which its row needs; open the images "
                    'with spec={"image": "bytes", ...}, which stores files of any type'
                )
                raise FormatError(message, path)
        return b"".join(cells), offsets_of(map(len, cells)), None

    def _paths(self, numbers: npt.NDArray[np.int64] | slice) -> list[str]:
        return [f"{self.path}/{name}" for name in self._names[numbers].tolist()]

    def _files(self, numbers: npt.NDArray[np.int64]) -> list[bytes]:
        paths = self._paths(numbers)
        with ThreadPoolExecutor(min(_THREADS, max(1, len(paths)))) as pool:
            return list(pool.map(_content, paths))

    def read_images(self, numbers: npt.NDArray[np.int64]) -> Any:
        """Read and decode images, many at a time."""
        paths, cells = self._paths(numbers), self._files(numbers)
        field = self.spec.fields[IMAGE]
        try:
            values = field.codec.decode_many(
                memoryview(b"".join(cells)), offsets_of(map(len, cells))
            )
        except ValueError:
            values = None
        if values is not None:
            return stacked(values)
        found = []
        for path, number, cell in zip(paths, numbers.tolist(), cells, strict=True):
            try:
                found.append(field.codec.decode(cell))
            except (ValueError, OSError) as error:
                raise undecodable(field, path, number, error) from error
        return stacked(found)

    def labels(self, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the classes of rows."""
        if self._classes is None:
            message = f"{self.path}: the images have no classes"
            raise TypeError(message)
        found: npt.NDArray[np.int64] = self._labels[np.asarray(numbers, np.int64)]
        return found

    def names(self, numbers: npt.NDArray[np.int64]) -> list[Any]:
        """Return the names of images, relative to the directory."""
        found: list[str] = self._names[numbers].tolist()
        return [one.encode() for one in found] if NAME in self._raw else list(found)

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has."""
        asked = [name for name in names if name not in self._own]
        found = {} if self._about is None else self._about.available(number, asked)
        return {name: found.get(name, True) for name in names}

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        if name == LABEL and self._classes is not None:
            return self.labels(numbers)
        if self._about is None or name in self._own:
            kind = self.spec[name]
            message = f"{self.path}: field {name!r} is {kind}, expected one number per row"
            raise TypeError(message)
        return self._about.column(name, numbers)

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for an optional field."""
        if self._about is None:
            return np.ones(len(numbers), np.bool_)
        return self._about.present(name, numbers)

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        if self._about is None:
            message = f"{self.path}: field {name!r} is no sequence"
            raise TypeError(message)
        return self._about.lengths(name, numbers)

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        del names
        return ROWS

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Check that every image can be read and decoded; the files have no checksums."""
        damaged = []
        for start in range(0, len(self), _STEP):
            rows = range(start, min(start + _STEP, len(self)))
            for number in rows:
                try:
                    self.read_images(np.array([number]))
                except (FormatError, OSError) as error:
                    damaged.append(Damage(number, 1, 0, str(error)))
            if progress is not None:
                progress(rows.stop, len(self))
        return Verification(len(self), damaged, (IMAGE,))

    @property
    def closed(self) -> bool:
        """Whether the rows are closed."""
        return self._is_closed

    def close(self) -> None:
        """Close the metadata."""
        self._is_closed = True
        if self._about is not None:
            self._about.close()


class _Plan:
    """The plan of rows of images."""

    def __init__(
        self, rows: ImageRows, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]
    ) -> None:
        self._rows = rows
        self._numbers = numbers
        self._wanted = wanted
        self._about = rows.about_plan(numbers, wanted)
        self.requests: Sequence[Request] = () if self._about is None else self._about.requests

    def decode(self, packed: Sequence[Sequence[Packed]]) -> dict[str, Any]:
        """Return the values of each field."""
        found = {} if self._about is None else self._about.decode(packed)
        if IMAGE in self._wanted:
            found[IMAGE] = self._rows.read_images(self._numbers)
        if LABEL in self._wanted and LABEL not in found:
            found[LABEL] = self._rows.labels(self._numbers)
        if NAME in self._wanted and NAME not in found:
            found[NAME] = self._rows.names(self._numbers)
        return {name: found[name] for name in self._wanted}


def _content(path: str) -> bytes:
    return Path(path).read_bytes()


def _plain(value: Any) -> Any:
    """Return a number of a batch as it is in a row."""
    return value.item() if isinstance(value, np.int64 | np.float64 | np.bool_) else value

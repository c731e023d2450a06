"""Rows of a directory of images."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ingot.cached import cached_property
from ingot.codecs import codec_of
from ingot.codecs.codec import cells_of, joined
from ingot.codecs.signature import is_file_type, name_of
from ingot.dataset.read.plan import Plan, Request, answers
from ingot.dataset.read.source import Numbers, Picks, Progress, Source, Stored, identity_of
from ingot.dataset.read.values import stacked, undecodable
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.formats.images.classes import Classes
from ingot.formats.images.listing import type_of
from ingot.formats.media import MEDIA, AnyFile
from ingot.records import Verification
from ingot.threads import READS

IMAGE, LABEL, NAME = "image", "label", "file_name"


class ImageRows(Source):
    """Images, their names, and what else is known of each: a class, or a row of metadata.

    Args:
        folder: The directory.
        classes: The image of each row, and its class.
        about: The metadata of each row, with the names of the images; None if there are none.
        again: The function that opens the directory again in another process, and its arguments;
            the identity comes behind these.
        kind: The type of the images; None for the one that their names tell.
    """

    spec: Spec
    path: str
    format = "images"
    closed = False
    damages = (FormatError, OSError)

    def __init__(
        self,
        folder: Path,
        classes: Classes,
        about: Source | None,
        again: tuple[Any, ...],
        *,
        kind: str | None = None,
    ) -> None:
        self.path = str(folder)
        self._names = np.array(classes.images, np.dtypes.StringDType())
        self._classes, self._labels = classes.names, classes.labels
        self._about = about
        self._again = again
        kind = kind or type_of(classes.images)
        codec = AnyFile(kind, "Image") if kind in MEDIA["Image"] else codec_of(kind)
        fields = {IMAGE: Field(IMAGE, codec)}
        if self._classes is not None:
            fields[LABEL] = Field(LABEL, codec_of("int"))
        if about is None:
            fields[NAME] = Field(NAME, codec_of("utf8"))
        self._own = frozenset(fields)
        self.spec = Spec(fields if about is None else fields | about.spec.fields)

    def again(self) -> tuple[Callable[..., Source], tuple[Any, ...]]:
        """Return what opens the same images in another process."""
        reopen, *arguments = self._again
        return reopen, (*arguments, self.identity)

    def raw(self, names: Collection[str] | None = None) -> Self:
        """Return the same rows with fields that are not numbers as bytes."""
        found = super().raw(names)
        if self._about is not None:
            found._about = self._about.raw(names)  # noqa: SLF001 -- of the same class
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

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        return _Plan(self, numbers, wanted)

    def about_plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan | None:
        """Plan to read what the metadata have of the wanted fields."""
        asked = {name: picks for name, picks in wanted.items() if name not in self._own}
        return self._about.plan(numbers, asked) if self._about is not None and asked else None

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file would store them: images as the files they are.

        Raises:
            FormatError: An image is of another type than its name tells.
        """
        others = [name for name in names if name not in self._own]
        found: dict[str, Stored] = {}
        if self._about is not None and others:
            found |= zip(others, self._about.packed(others, numbers), strict=True)
        if IMAGE in names:
            found[IMAGE] = self._packed_images(numbers)
        if LABEL in names and LABEL not in found:
            found[LABEL] = (*cells_of(self.labels(numbers)), None)
        if NAME in names and NAME not in found:
            found[NAME] = (*joined([name.encode() for name in self._names[numbers].tolist()]), None)
        return [found[name] for name in names]

    def _packed_images(self, numbers: Numbers) -> Stored:
        requests = self.files(numbers)
        cells = cells_in(answers(requests))
        kind = self.spec[IMAGE]
        for number, cell in zip(numbers.tolist(), cells, strict=True):
            if is_file_type(kind) and name_of(cell) != kind:
                path = f"{self.path}/{self._names[number]}"
                message = (
                    f"{path}: this is not a {kind} file, which its row needs; open the images "
                    'with spec={"image": "bytes", ...}, which stores files of any type'
                )
                raise FormatError(message, path)
        return (*joined(cells), None)

    def _paths(self, numbers: Numbers | slice) -> list[str]:
        return [f"{self.path}/{name}" for name in self._names[numbers].tolist()]

    def files(self, numbers: Numbers) -> list[Request]:
        """Return requests for the files of rows, which read many at a time."""
        paths = self._paths(numbers)
        count = min(READS, len(paths))
        return [partial(_contents, paths[k::count]) for k in range(count)]

    def decoded(self, numbers: Numbers, cells: Sequence[bytes]) -> Any:
        """Return the images in files."""
        field = self.spec.fields[IMAGE]
        data, offsets = joined(cells)
        try:
            values = field.codec.decode_many(memoryview(data), offsets)
        except ValueError:
            values = None
        if values is not None:
            return stacked(values)
        found = []
        for path, number, cell in zip(self._paths(numbers), numbers.tolist(), cells, strict=True):
            try:
                found.append(field.codec.decode(cell))
            except (ValueError, OSError) as error:
                raise undecodable(field, path, number, error) from error
        return stacked(found)

    def labels(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Return the classes of rows."""
        if self._classes is None:
            message = f"{self.path}: the images have no classes"
            raise TypeError(message)
        found: npt.NDArray[np.int64] = self._labels[numbers]
        return found

    def names(self, numbers: Numbers) -> list[Any]:
        """Return the names of images, relative to the directory."""
        found: list[str] = self._names[numbers].tolist()
        return [one.encode() for one in found] if NAME in self.raw_names else list(found)

    def verify(self, progress: Progress) -> Verification:
        """Check that every image can be read and decoded; the files have no checksums."""
        damaged = self.damaged([range(len(self))], progress)
        return Verification(len(self), damaged, (IMAGE,))

    def check(self, numbers: Numbers) -> None:
        """Read and decode images, one at a time."""
        for number in numbers:
            self.decoded(number.reshape(1), cells_in(answers(self.files(number.reshape(1)))))

    def close(self) -> None:
        """Close the metadata."""
        self.closed = True
        if self._about is not None:
            self._about.close()


class _Plan:
    """The plan of rows of images."""

    def __init__(self, rows: ImageRows, numbers: Numbers, wanted: Mapping[str, Picks]) -> None:
        self._rows = rows
        self._numbers = numbers
        self._wanted = wanted
        self._about = rows.about_plan(numbers, wanted)
        self._files = rows.files(numbers) if IMAGE in wanted else []
        about: Sequence[Request] = () if self._about is None else self._about.requests
        self.requests: Sequence[Request] = [*self._files, *about]

    def decode(self, found: Sequence[Any]) -> dict[str, Any]:
        """Return the values of each field."""
        files, about = found[: len(self._files)], found[len(self._files) :]
        values = {} if self._about is None else self._about.decode(about)
        if IMAGE in self._wanted:
            values[IMAGE] = self._rows.decoded(self._numbers, cells_in(files))
        if LABEL in self._wanted and LABEL not in values:
            values[LABEL] = self._rows.labels(self._numbers)
        if NAME in self._wanted and NAME not in values:
            values[NAME] = self._rows.names(self._numbers)
        return {name: values[name] for name in self._wanted}


def _contents(paths: Sequence[str]) -> list[bytes]:
    return [Path(path).read_bytes() for path in paths]


def cells_in(found: Sequence[list[bytes]]) -> list[bytes]:
    """Return the files that the requests of `ImageRows.files` have read, in order."""
    cells = [b""] * sum(map(len, found))
    for k, some in enumerate(found):
        cells[k :: len(found)] = some
    return cells

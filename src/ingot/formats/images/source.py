"""Rows of a directory of images, and of a table of metadata beside them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ingot.codecs import codec_of
from ingot.codecs.codec import cells_of, joined
from ingot.codecs.signature import is_file_type, name_of
from ingot.dataset.read.compound import Zipped
from ingot.dataset.read.plan import Joint, OwnPlan, Plan, answers, read
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Numbers, Picks, Progress, Source, Stored, identity_of
from ingot.dataset.read.values import stacked, undecodable
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.formats.base.media import MEDIA, AnyFile
from ingot.formats.base.options import Options
from ingot.formats.images.folder import (
    METADATA,
    Classes,
    classes_of,
    is_images,
    listing_of,
    type_of,
)
from ingot.formats.table import format_of, load
from ingot.locks import cached_property
from ingot.records import Verification
from ingot.threads import READS

IMAGE, LABEL, NAME = "image", "label", "file_name"


def open_directory(folder: Path, options: Options) -> Source | None:
    """Open a directory of images; return None for any other."""
    return _open(folder, options) if is_images(folder) else None


def _open(folder: Path, options: Options) -> Source:
    """Open a directory of images: with its metadata, or else with their classes."""
    again = (_reopen, str(folder), options)
    wanted = {} if options.spec is None else dict(Spec.of(options.spec))
    about = next((folder / name for name in METADATA if (folder / name).is_file()), None)
    found: Source
    if about is not None:
        if options.labels.is_given and options.labels.by != "none":
            message = (
                f"{about}: with metadata, images have no classes by directory; leave out labels= "
                "and classes="
            )
            raise ValueError(message)
        metadata = _metadata(about, options)
        names = _names(metadata, folder, about)
        classes = Classes(names, None, np.empty(0, np.int64))
        images = ImageRows(folder, classes, again, kind=wanted.get(IMAGE), has_names=False)
        parts = [Selection(one, tuple(one.spec), range(len(one))) for one in (images, metadata)]
        found = Zipped(parts)
    else:
        listing = listing_of(folder)
        if not listing.images:
            message = f"{folder}: there are no images"
            raise FormatError(message, str(folder))
        classes = classes_of(folder, listing, options.labels)
        found = ImageRows(folder, classes, again, kind=wanted.get(IMAGE))
    for name, kind in wanted.items():
        if found.spec.get(name) != kind:
            there = ", ".join(f"{one!r}: {type_name}" for one, type_name in found.spec.items())
            message = f"{found.path}: there is no field {name!r} of type {kind}, only {there}"
            raise FormatError(message, found.path)
    return found


def _metadata(path: Path, options: Options) -> Source:
    plain = Options(allow_pickle=options.allow_pickle, index_dir=options.index_dir)
    found = format_of(path)
    opened: Source | None = None
    if found is not None and found.files is not None:
        opened = load(found.files)([str(path)], str(path), plain)
    if opened is None or opened.spec.get(NAME) != "utf8":
        message = f"{path}: every row needs a {NAME!r} of text"
        raise FormatError(message, str(path))
    if IMAGE in opened.spec:
        message = f"{path}: {IMAGE!r} is the name of the field of images; rename it"
        raise FormatError(message, str(path))
    return opened


def _names(source: Source, folder: Path, about: Path) -> list[str]:
    """Return the names of the images, which exist, and none of which leads out of the directory."""
    found: list[str] = read(source.plan(np.arange(len(source)), {NAME: None}))[NAME]
    for name in found:
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            message = f"{about}: {name!r} leads out of the directory"
            raise FormatError(message, str(about))
    _check_links(folder, found, about)
    missing = next((name for name in found if not os.path.isfile(folder / name)), None)  # noqa: PTH113 -- a name that is too long does not exist
    if missing is not None:
        message = f"{about}: it names {folder / missing}, which does not exist"
        raise FormatError(message, str(about))
    return found


def _check_links(folder: Path, names: Iterable[str], about: Path) -> None:
    """Refuse names that lead out of the directory by a link: metadata would choose what is read.

    In a snapshot of the Hugging Face hub every file is a link into the `blobs` of its cache.
    """
    root = os.path.realpath(folder)
    above = next((one for one in Path(root).parents if one.name == "snapshots"), None)
    roots = [root] if above is None else [root, str(above.with_name("blobs"))]
    real = {"": root}  # Of each directory and link on the way.
    for name in names:
        here = ""
        for part in Path(name).parts:
            parent, here = real[here], os.path.join(here, part)  # noqa: PTH118
            if here in real:
                continue
            place = os.path.join(parent, part)  # noqa: PTH118
            target = os.path.realpath(place) if os.path.islink(place) else place  # noqa: PTH114
            if all(os.path.commonpath([one, target]) != one for one in roots):
                message = f"{about}: {name!r} leads out of the directory: {place} links to {target}"
                raise FormatError(message, str(about))
            real[here] = target


def _reopen(folder: str, options: Options, identity: str) -> Source:
    """Open the images of the directory that was pickled."""
    opened = _open(Path(folder), options)
    images = opened.parts[0].source if isinstance(opened, Zipped) else opened
    if images.identity != identity:
        message = f"{folder}: the images were replaced since the data set was pickled"
        raise FormatError(message, folder)
    return images


class ImageRows(Source):
    """Images, and the class and the name of each, unless metadata say more.

    Args:
        folder: The directory.
        classes: The image of each row, and its class.
        again: The function that opens the directory again in another process, and its arguments;
            the identity follows these.
        kind: The type of the images; None for the one that their names tell.
        has_names: Whether the names are a field.
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
        again: tuple[Any, ...],
        *,
        kind: str | None = None,
        has_names: bool = True,
    ) -> None:
        self.path = str(folder)
        self._names = np.array(classes.images, np.dtypes.StringDType())
        self._classes, self._labels = classes.names, classes.labels
        self._again = again
        kind = kind or type_of(classes.images)
        codec = AnyFile(kind, "Image") if kind in MEDIA["Image"] else codec_of(kind)
        fields = {IMAGE: Field(IMAGE, codec)}
        if self._classes is not None:
            fields[LABEL] = Field(LABEL, codec_of("int"))
        if has_names:
            fields[NAME] = Field(NAME, codec_of("utf8"))
        self.spec = Spec(fields)

    def again(self) -> tuple[Callable[..., Source], tuple[Any, ...]]:
        """Return what opens the same images in another process."""
        reopen, *arguments = self._again
        return reopen, (*arguments, self.identity)

    @cached_property
    def identity(self) -> str:
        """What tells these images from others: names and sizes; this asks the system for each."""
        names: list[str] = self._names.tolist()
        each = ((name, os.stat(f"{self.path}/{name}").st_size) for name in names)  # noqa: PTH116
        return identity_of([*(self._classes or ()), *(f"{name}\0{size}" for name, size in each)])

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
        files = self._files(numbers) if IMAGE in wanted else []

        def decode(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
            return {
                name: self._decoded(numbers, _cells_in([one[name] for one in found]))
                if name == IMAGE
                else self._about(name, numbers)
                for name in wanted
            }

        return Joint([OwnPlan(one, lambda cells: {IMAGE: cells}) for one in files], decode)

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file would store them: images as the files they are.

        Raises:
            FormatError: An image is of another type than its name tells.
        """
        found: dict[str, Stored] = {}
        if IMAGE in names:
            found[IMAGE] = self._packed_images(numbers)
        if LABEL in names:
            found[LABEL] = (*cells_of(self._labels[numbers]), None)
        if NAME in names:
            found[NAME] = (*joined([name.encode() for name in self._names[numbers].tolist()]), None)
        return [found[name] for name in names]

    def _packed_images(self, numbers: Numbers) -> Stored:
        cells = _cells_in(answers(self._files(numbers)))
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

    def _files(self, numbers: Numbers) -> list[Callable[[], list[bytes]]]:
        """Return requests for the files of rows, which read many at a time."""
        paths = self._paths(numbers)
        count = min(READS, len(paths))
        return [partial(_contents, paths[k::count]) for k in range(count)]

    def _decoded(self, numbers: Numbers, cells: Sequence[bytes]) -> Any:
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

    def _about(self, name: str, numbers: Numbers) -> Any:
        """Return the classes of rows, or the names of their images."""
        if name == LABEL:
            return self._labels[numbers]
        found: list[str] = self._names[numbers].tolist()
        return [one.encode() for one in found] if NAME in self.raw_names else list(found)

    def verify(self, progress: Progress) -> Verification:
        """Check that every image can be read and decoded; the files have no checksums."""
        damaged = self.damaged([range(len(self))], progress)
        return Verification(len(self), damaged, (IMAGE,))

    def check(self, numbers: Numbers) -> None:
        """Read and decode images, one at a time."""
        for number in numbers:
            self._decoded(number.reshape(1), _cells_in(answers(self._files(number.reshape(1)))))

    def close(self) -> None:
        """Mark the images as closed: no file stays open."""
        self.closed = True


def _contents(paths: Sequence[str]) -> list[bytes]:
    return [Path(path).read_bytes() for path in paths]


def _cells_in(found: Sequence[list[bytes]]) -> list[bytes]:
    """Return the files that the requests of `ImageRows._files` have read, in order."""
    cells = [b""] * sum(map(len, found))
    for k, some in enumerate(found):
        cells[k :: len(found)] = some
    return cells

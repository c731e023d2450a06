"""The columns of a data set."""

from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.compat.h5record.values import Runs, exact, runs_of
from ingot.formats.hdf5 import NewColumn

StrPath = str | PathLike[str]
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def _varying(kind: Any) -> np.dtype[Any]:
    """Return h5py's dtype of values that vary in length."""
    return np.dtype("O", metadata={"vlen": kind})


class Attribute:
    """A column: a name, a dtype, and the conversion of a value to its stored form.

    Derive your own from one of the classes here, with another `dtype` or `transform`.

    Attributes:
        name: The key of its values in a row.
        dtype: The dtype of the elements.
        shape: The shape that `transform` returns; None for unknown dimensions.
        max_shape: The shape that the column can grow to.
    """

    dtype: Any = None
    name: str
    shape: tuple[int | None, ...] | None = (None,)
    max_shape: tuple[int | None, ...] = (None,)

    def transform(self, data: Any) -> Any:
        """Return a value in its stored form, with a leading axis.

        Raises:
            TypeError: It has the wrong type.
            ValueError: It does not fit.
        """
        raise NotImplementedError

    def column(self, value: Any = None) -> NewColumn:
        """Return the column; `value` is a first value from `transform`, if there is one."""
        dtype = np.dtype(self.dtype)
        shape = self.max_shape if value is None or dtype.hasobject else np.shape(value)
        return NewColumn(self.name, dtype, tuple(n or 0 for n in shape[1:]))

    def result(self, value: Any) -> Any:
        """Convert what was read of the column for one row."""
        return value

    def results(self, values: Any) -> Any:
        """Convert what was read of the column for several rows."""
        return values

    def options(self) -> dict[str, Any]:
        """Return the constructor arguments of the attribute."""
        return {"name": self.name}

    def init_attributes(
        self, fout: Any, value: Any, compression: str | None, data_length: int | None
    ) -> None:
        """Create the column in an open `h5py.File`, with its first value."""
        value = self.transform(value)
        column = self.column(value)
        fout.create_dataset(
            self.name,
            shape=(0, *column.shape),
            maxshape=(data_length, *column.shape),
            dtype=column.dtype,
            compression=None if column.varies else compression,
        )
        self.append(fout, value)

    def append(self, h5: Any, data: Any) -> Any:
        """Append a value from `transform` to the column in an open `h5py.File`."""
        dataset = h5[self.name]
        dataset.resize(dataset.shape[0] + len(data), axis=0)
        for k, value in enumerate(data):
            dataset[dataset.shape[0] - len(data) + k] = value
        return h5

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"{type(self).__name__}({options})"


class Integer(Attribute):
    """A 64-bit integer."""

    dtype = "int64"

    def __init__(self, name: str = "label") -> None:
        self.name = name

    def transform(self, data: Any) -> npt.NDArray[Any]:
        """Return a number as an array."""
        found = exact(data, np.dtype(self.dtype))
        if found.size != 1:
            message = f"expected one number, got an array of shape {found.shape}"
            raise ValueError(message)
        return found.reshape(1)


class Float(Integer):
    """A 32-bit floating-point number."""

    dtype = "float32"


class Float16(Float):
    """A 16-bit floating-point number."""

    dtype = "float16"


class String(Attribute):
    """Text of any length."""

    encoding = "utf-8"
    dtype = _varying(str)
    shape = None
    max_shape = (None, 1)

    def __init__(self, name: str = "string") -> None:
        self.name = name

    def transform(self, data: Any) -> list[str]:
        """Return text in a list."""
        if not isinstance(data, str):
            message = f"expected a str, got {type(data).__name__}"
            raise TypeError(message)
        if "\0" in data:
            message = "HDF5 cannot store text that contains NUL"
            raise ValueError(message)
        data.encode(self.encoding)
        return [data]


class _Sized(Attribute):
    """Images of one size."""

    def __init__(self, h: int, w: int, c: int, name: str) -> None:
        self.c = c
        self.h = h
        self.w = w
        self.name = name

    def options(self) -> dict[str, Any]:
        """Return the constructor arguments of the attribute."""
        return {"h": self.h, "w": self.w, "c": self.c, "name": self.name}


class Image(_Sized):
    """An image of shape (channels, height, width); all images of a column have the same size.

    Args:
        h: The height.
        w: The width.
        c: The number of channels.
        name: The key in a row.
    """

    dtype = "uint8"

    def __init__(self, h: int, w: int, c: int = 3, name: str = "image") -> None:
        super().__init__(h, w, c, name)
        self.shape = self.max_shape = (None, c, h, w)

    def read_image(self, filename: StrPath, resize: bool = True) -> npt.NDArray[np.uint8]:
        """Read an image file with this number of channels; with `resize`, also of this size."""
        with _pillow().open(filename) as picture:
            return _pixels(picture, self.c, (self.w, self.h) if resize else None)

    def transform(self, data: Any) -> npt.NDArray[Any]:
        """Return an image with a leading axis."""
        found = exact(data, np.dtype(self.dtype))
        found = found[np.newaxis] if found.ndim == 3 else found  # noqa: PLR2004
        limits = (1, self.c, self.h, self.w)
        fits = all(a <= b for a, b in zip(found.shape, limits, strict=False))
        if found.ndim != len(limits) or found.shape[0] != 1 or not fits:
            message = (
                f"expected an image of channels, height and width, {limits[1:]}, got shape "
                f"{np.shape(data)}"
            )
            raise ValueError(message)
        return found


class ImageSequence(_Sized):
    """Any number of images of the same size: an array of shape (c, h, w, number).

    Args:
        h: The height.
        w: The width.
        c: The number of channels.
        name: The key in a row.
    """

    dtype = _varying(np.dtype("uint8"))
    img_channel = 3
    shape = (1, 1)
    max_shape = (None, 1)

    def __init__(self, h: int, w: int, c: int = 3, name: str = "img_seq") -> None:
        super().__init__(h, w, c, name)

    def read_gif(self, filename: StrPath, resize: bool = True) -> npt.NDArray[np.uint8]:
        """Read the images in a file, concatenated in a flat array."""
        size = (self.w, self.h) if resize else None
        frames = import_module("PIL.ImageSequence")
        with _pillow().open(filename) as file:
            each = [_pixels(frame, self.c, size) for frame in frames.Iterator(file)]
        return np.stack(each, axis=-1).reshape(-1)

    def column(self, value: Any = None) -> NewColumn:
        """Return the column, with the shape of its images."""
        return super().column(value)._replace(values=(self.c, self.h, self.w, -1))

    def transform(self, data: Any) -> npt.NDArray[Any]:
        """Return the pixels of all images, flat, in an array of objects."""
        array = np.asarray(data)
        found = exact(array.tolist() if array.dtype.kind == "O" else array, np.dtype("uint8"))
        pixels = self.c * self.h * self.w
        is_flat = found.ndim == 1 and pixels and found.size % pixels == 0
        if not is_flat and found.shape[:-1] != (self.c, self.h, self.w):
            message = (
                f"expected images of shape ({self.c}, {self.h}, {self.w}, number), or flat, "
                f"got shape {found.shape}"
            )
            raise ValueError(message)
        return runs_of([found.reshape(-1)])

    def result(self, value: Any) -> npt.NDArray[Any]:
        """Return the images with shape (c, h, w, number)."""
        return np.asarray(value).reshape(self.c, self.h, self.w, -1)

    def results(self, values: Any) -> list[npt.NDArray[Any]]:
        """Return the images of each row."""
        return [self.result(value) for value in values]


class Sequence(Attribute):
    """Any number of 32-bit integers."""

    dtype = _varying(np.dtype("int32"))
    shape = (1, 1)
    max_shape = (None, 1)

    def __init__(
        self, name: str = "sequence", sub_attributes: Mapping[str, Any] | None = None
    ) -> None:
        if sub_attributes is not None:
            message = "sub_attributes is not supported: use one Sequence for each of them"
            raise NotImplementedError(message)
        self.name = name
        self.sub_attributes = sub_attributes

    def transform(self, data: Any) -> npt.NDArray[Any]:
        """Return the numbers in an array of objects."""
        if isinstance(data, str | bytes | Mapping):
            message = f"expected an array of numbers, got {type(data).__name__}"
            raise TypeError(message)
        element = self.column().element
        found = exact(data if len(data) else np.empty(0, element), element)
        if found.ndim != 1:
            message = f"expected numbers along one axis, got an array of shape {found.shape}"
            raise ValueError(message)
        return runs_of([found])

    def result(self, value: Any) -> Runs:
        """Return the numbers in an array of one object, as in HDF5."""
        return runs_of([value])

    def results(self, values: Any) -> npt.NDArray[Any]:
        """Return the numbers of each row in an array of objects."""
        return np.asarray(runs_of(values)).reshape(-1, 1)


class FloatSequence(Sequence):
    """Any number of 32-bit floating-point numbers."""

    dtype = _varying(np.dtype("float32"))


class Float16Sequence(Sequence):
    """Any number of 16-bit floating-point numbers."""

    dtype = _varying(np.dtype("float16"))


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ModuleNotFoundError as error:
        message = (
            "images require Pillow: "
            "pip install 'ingot-data[image]' (in a checkout: pip install '.[image]')"
        )
        raise ModuleNotFoundError(message, name=error.name) from error


def _pixels(picture: Any, colours: int, size: tuple[int, int] | None) -> npt.NDArray[np.uint8]:
    """Return a Pillow image as an array of shape (channels, height, width)."""
    found = picture.convert(_MODES[colours])
    array = np.asarray(found if size is None else found.resize(size), np.uint8)
    array = array[:, :, np.newaxis] if array.ndim == 2 else array  # noqa: PLR2004
    return array.transpose(2, 0, 1)


CLASSES: dict[str, type[Attribute]] = {
    one.__name__: one
    for one in (
        Integer,
        Float,
        Float16,
        String,
        Image,
        ImageSequence,
        Sequence,
        FloatSequence,
        Float16Sequence,
    )
}

"""Pictures of one size: cropped, resized, mirrored and normalized by the engine."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ingot._core import Pictures as Native
from ingot.codecs import Codec, Image, codec_of
from ingot.codecs.signature import name_of
from ingot.codecs.text import Bytes
from ingot.dataset.nested import DOT, at
from ingot.dataset.spec import Field
from ingot.locks import cached_property
from ingot.options import names_options
from ingot.order.arguments import (
    Range,
    field_name_of,
    number_of,
    one_of,
    per_colour,
    range_of,
    side_of,
    size_of,
)

Size = int | tuple[int, int]
Numbers = float | Sequence[float]

_FILES = ("jpg", "png", "webp")
_COLOURS_MAX = 4
_HIGH_BYTE = 8
_NATIVE = {"jpg", "png"}
_CROPS = (None, "center", "random", "resized")
_LAYOUTS = ("hwc", "chw")
_DTYPES = ("uint8", "float16", "float32")
_COLOURS = (1, 3)
_SCALE: Range = (0.08, 1.0)
_RATIO: Range = (3 / 4, 4 / 3)


class Pictures:
    """A function for `Order.map` that makes the pictures of a field alike.

    It takes a part of each picture, resizes it, mirrors it, and normalizes it. If nothing but
    such functions are mapped, a loader has the engine do all of that, from the stored file to the
    place in the batch, on all cores and without the GIL. Otherwise, and for `order[i]`, the
    engine does it one picture at a time. The values are the same.

    **Crops.** None takes the whole picture, and changes its aspect ratio to that of `size`.
    "center" and "random" take a part of `size` pixels, from the middle or from a random place;
    if `resize` is given, the shorter side is resized to that many pixels first, and the longer
    one in proportion, rounded down. A picture that is smaller than `size` is refused. "resized"
    takes a random part of the area in a random aspect ratio, and resizes it to `size`. Sizes,
    places and distributions are those of torchvision's `Resize`, `CenterCrop`, `RandomCrop` and
    `RandomResizedCrop`.

    **Pixels.** Interpolation is bilinear, with antialiasing where a picture shrinks, and gives the
    bytes that Pillow up to 12 gives for `crop(...).resize(..., BILINEAR)`. Those of Pillow 13
    differ by at most 1, where it resizes columns before rows. Colours become RGB first: gray is
    repeated, opacity is left out, and of 16 bits the upper 8 count. With `colours=1` they become
    gray as Pillow's mode "L" has it.

    **Values.** Without `mean` and `dtype`, they are bytes. Otherwise they are computed in float32:
    `pixel / 255`, minus `mean`, divided by `std`, as torchvision does, and then rounded to
    `dtype`.

    **Random choices** are a function of the seed of the map, the epoch and the position, as
    `rng` is for other functions. They never change from one version of Ingot to the next.

    Args:
        field: The name of the field, of type `jpg`, `png` or `webp`, of arrays of uint8, or of
            `bytes` that are image files of any of these types.
        size: Height and width of the results; an integer for both.
        crop: None, "center", "random" or "resized".
        resize: The length of the shorter side before a "center" or "random" crop.
        scale: The least and the largest share of the area that a "resized" crop takes.
        ratio: The least and the largest ratio of width to height that it takes.
        flip: How likely left and right are exchanged.
        mean: What is subtracted from pixel / 255, such as (0.485, 0.456, 0.406): a number, or one
            for each colour.
        std: What each colour is divided by after that.
        dtype: "uint8", "float16" or "float32"; by default "uint8", with `mean` "float32".
        layout: "hwc" for height, width, colours; "chw" for colours, height, width.
        colours: 3 for RGB, 1 for gray.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or two do not go together.

    Example:
        >>> crops = ingot.Pictures("image", 224, crop="resized", flip=0.5)  # doctest: +SKIP
        >>> loader = ingot.Loader(ds.shuffle(0).map(crops), batch_size=64)  # doctest: +SKIP
    """

    __module__ = "ingot"

    @names_options
    def __init__(
        self,
        field: str,
        size: Size,
        *,
        crop: Literal["center", "random", "resized"] | None = None,
        resize: int | None = None,
        scale: Range = _SCALE,
        ratio: Range = _RATIO,
        flip: float = 0.0,
        mean: Numbers | None = None,
        std: Numbers | None = None,
        dtype: npt.DTypeLike | None = None,
        layout: Literal["hwc", "chw"] = "hwc",
        colours: Literal[1, 3] = 3,
    ) -> None:
        self.field = field_name_of(field)
        self.size = size_of(size)
        self.crop = one_of("crop", crop, _CROPS)
        self.resize = None if resize is None else side_of("resize", resize)
        self.scale = range_of("scale", scale, most=1.0)
        self.ratio = range_of("ratio", ratio)
        self.flip = number_of("flip", flip)
        self.colours: int = one_of("colours", colours, _COLOURS)
        self.layout = one_of("layout", layout, _LAYOUTS)
        self.mean = per_colour("mean", mean, self.colours)
        self.std = per_colour("std", std, self.colours)
        kind = (
            np.dtype("uint8" if mean is None else "float32") if dtype is None else np.dtype(dtype)
        )
        self.dtype = np.dtype(one_of("dtype", kind.name, _DTYPES))
        self._check_together()

    def _check_together(self) -> None:
        if self.resize is not None and self.crop not in {"center", "random"}:
            message = f'resize goes with crop="center" or "random", not with crop={self.crop!r}'
            raise ValueError(message)
        if self.resize is not None and self.resize < min(self.size):
            raise ValueError(f"resize={self.resize} leaves no part of size {self.size}")
        if self.crop != "resized" and (self.scale, self.ratio) != (_SCALE, _RATIO):
            raise ValueError(f'scale and ratio go with crop="resized", not with crop={self.crop!r}')
        if not 0 <= self.flip <= 1:
            raise ValueError(f"flip is a probability, from 0 to 1, got {self.flip}")
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std go together: give both, or none of them")
        if self.mean is not None and max(self.mean) > 1:
            raise ValueError(
                f"mean and std are those of pixel / 255, got the mean {list(self.mean)}: divide "
                "both by 255"
            )
        if self.std is not None and min(self.std) <= 0:
            raise ValueError(f"std is above 0, got {list(self.std)}")
        if self.mean is not None and self.dtype == np.uint8:
            raise ValueError("with mean and std, values are float32 or float16, not uint8")

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of each result."""
        height, width = self.size
        is_planar = self.layout == "chw"
        return (self.colours, height, width) if is_planar else (height, width, self.colours)

    @property
    def table(self) -> npt.NDArray[Any]:
        """The value of each byte: one line per colour."""
        numbers = np.tile(np.arange(256, dtype=np.uint8), (self.colours, 1))
        if self.dtype == np.uint8:
            return numbers
        values = numbers.astype(np.float32) / np.float32(255)
        if self.mean is not None and self.std is not None:
            values -= np.array(self.mean, np.float32)[:, None]
            values /= np.array(self.std, np.float32)[:, None]
        return values.astype(self.dtype)

    @cached_property
    def _native(self) -> Native:
        table = self.table
        return Native(
            self.size,
            self.crop or "whole",
            self.resize,
            self.scale,
            self.ratio,
            self.flip,
            self.colours,
            self.layout == "chw",
            table.tobytes(),
            table.itemsize,
        )

    @property
    def is_random(self) -> bool:
        """Whether what becomes of a picture depends on a key."""
        return self.crop in {"random", "resized"} or 0 < self.flip < 1

    def __call__(
        self, sample: Mapping[str, Any], key: "int | np.random.Generator | None" = None
    ) -> dict[str, Any]:
        """Return a sample with its picture changed; one without a picture as it is.

        Args:
            sample: The sample.
            key: Decides the random choices: 64 bits, or a generator to draw them from. An order
                gives each of its positions a key.

        Raises:
            KeyError: The sample has no such field.
            TypeError: The field is not a picture, or there is no key for random choices.
            ValueError: The picture is smaller than the crop.
        """
        if key is None and self.is_random:
            raise TypeError(
                "random crops and flips need a key, another one for each sample: "
                "pictures(sample, key), or ds.map(pictures), which has keys of its own"
            )
        if isinstance(key, np.random.Generator):
            key = int(key.integers(1 << 64, dtype=np.uint64, endpoint=False))
        try:
            value = at(sample, self.field)
        except (KeyError, TypeError):
            found = list(sample) if isinstance(sample, Mapping) else type(sample).__name__
            raise KeyError(f"no field {self.field!r} in a sample of {found}") from None
        if value is None:
            return dict(sample)
        return _with(sample, self.field.split(DOT), self.of_array(value, key or 0))

    def of_array(self, value: Any, key: int) -> npt.NDArray[Any]:
        """Return what becomes of the pixels of a picture.

        Raises:
            TypeError: They are not those of a picture.
            ValueError: The picture is smaller than the crop.
        """
        pixels = _pixels_of(self.field, value)
        height, width, *colours = pixels.shape
        shape = (height, width, colours[0] if colours else 1)
        try:
            made = self._native.make_of_pixels(pixels.data, shape, key)
        except ValueError as error:
            raise ValueError(f"field {self.field!r}: {error}") from None
        return np.frombuffer(made, self.dtype).reshape(self.shape)

    def reads(self, field: Field) -> bool:
        """Return whether `of_files` takes the stored values of a field."""
        is_one = not field.is_sequence and not field.is_optional
        is_file = type(field.codec) is Image and field.codec.name in _NATIVE
        return is_one and (is_file or type(field.codec) is Bytes)

    def of_files(
        self, codec: Codec, files: Sequence[bytes], keys: npt.NDArray[np.uint64]
    ) -> npt.NDArray[Any]:
        """Return what becomes of the files of pictures, in one native call for each type of file.

        Files that the engine does not decode are decoded by the codec.
        """
        if codec.name in _NATIVE:
            return self._of_type(codec.name, codec, files, keys)
        names = np.array([name_of(one) for one in files], object)
        batch = np.empty((len(files), *self.shape), self.dtype)
        for name in dict.fromkeys(names.tolist()):
            (places,) = np.nonzero(names == name)
            some = [files[k] for k in places.tolist()]
            batch[places] = self._of_type(name, codec, some, keys[places])
        return batch

    def _of_type(
        self,
        name: str | None,
        codec: Codec,
        files: Sequence[bytes],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[Any]:
        if name not in _NATIVE:
            each = zip(files, keys.tolist(), strict=True)
            return np.stack([self.of_array(codec.decode(one), key) for one, key in each])
        made, refused = self._native.make(name, files, keys.tolist())
        batch = np.frombuffer(made, self.dtype).reshape(len(files), *self.shape)
        for k, _ in refused:
            batch[k] = self.of_array(codec.decode(files[k]), int(keys[k]))
        return batch

    @property
    def _options(self) -> dict[str, Any]:
        """What was given, without what is as usual."""
        usual: dict[str, Any] = {
            "crop": None,
            "resize": None,
            "scale": _SCALE,
            "ratio": _RATIO,
            "flip": 0.0,
        }
        usual |= {"mean": None, "std": None, "layout": "hwc", "colours": 3}
        given = {name: getattr(self, name) for name in usual}
        options = {name: value for name, value in given.items() if value != usual[name]}
        own = {} if self.dtype == ("uint8" if self.mean is None else "float32") else {"dtype": 0}
        return {"size": self.size} | options | dict.fromkeys(own, self.dtype.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.field, self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pictures) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"Pictures({self.field!r}, {options})"


def _again(field: str, options: dict[str, Any]) -> Pictures:
    return Pictures(field, **options)


def _with(sample: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**sample, first: _with(sample[first], rest, value) if rest else value}


def _pixels_of(field: str, value: Any) -> npt.NDArray[np.uint8]:
    """Return pixels in one piece.

    Raises:
        TypeError: It is not a picture.
    """
    value = _decoded(field, value) if isinstance(value, bytes) else value
    array = value if isinstance(value, np.ndarray) else None
    if array is not None and array.dtype == np.uint16:
        array = (array >> _HIGH_BYTE).astype(np.uint8)
    dimensions = (2, 3)
    if array is None or array.dtype != np.uint8 or array.ndim not in dimensions:
        found = type(value).__name__
        if isinstance(value, np.ndarray):
            found = f"an array of {value.dtype} of shape {value.shape}"
        raise TypeError(
            f"field {field!r} is {found}, expected a picture: uint8 or uint16 in height and "
            "width, or in height, width and colours"
        )
    if 0 in array.shape or (array.ndim > dimensions[0] and array.shape[2] > _COLOURS_MAX):
        raise TypeError(
            f"field {field!r} has shape {array.shape}, expected 1 to 4 colours, which are last"
        )
    return np.ascontiguousarray(array)


def _decoded(field: str, data: bytes) -> Any:
    """Return the pixels of a file, by its first bytes.

    Raises:
        TypeError: It is not the file of a picture.
        ValueError: It cannot be decoded.
    """
    name = name_of(data)
    if name not in _FILES:
        message = f"field {field!r} is bytes that are not a JPEG, PNG or WebP file: {data[:12]!r}"
        raise TypeError(message)
    return codec_of(name).decode(data)

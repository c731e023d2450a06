"""What columns take, what they refuse, and pictures on their way into them."""

import re

import h5py
import h5record as real
import numpy as np
import pytest
import torch
from PIL import Image as Picture

from ingot.compat.h5record import (
    Attribute,
    Float,
    Float16,
    Float16Sequence,
    FloatSequence,
    H5Dataset,
    Image,
    ImageSequence,
    Integer,
    Sequence,
    String,
)
from tests.compat.h5record.rows import expected, rows, same, schema

FILM = np.arange(1, 4, dtype=np.uint8).reshape(3, 1, 1, 1)
PICTURE = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)


@pytest.fixture(params=["x.h5", "x.ingot"])
def path(request, tmp_path):
    return tmp_path / request.param


REFUSED = [
    (Integer("a"), 1, 2.9),
    (Integer("a"), 1, 2**63),
    (Integer("a"), 1, -(2**63) - 1),
    (Integer("a"), 1, 2**70),
    (Integer("a"), 1, 2.0**63),
    (Integer("a"), 1, float("nan")),
    (Integer("a"), 1, "7"),
    (Integer("a"), 1, b"7"),
    (Integer("a"), 1, None),
    (Integer("a"), 1, 1j),
    (Integer("a"), 1, [1, 2]),
    (Integer("a"), 1, torch.tensor(2.5)),
    (Float("a"), 1.5, 1e300),
    (Float("a"), 1.5, -1e39),
    (Float("a"), 1.5, 2**24 + 1),
    (Float("a"), 1.5, "1.5"),
    (Float("a"), 1.5, None),
    (Float16("a"), 1.5, 70000),
    (Float16("a"), 1.5, 2049),
    (String("a"), "text", b"text"),
    (String("a"), "text", None),
    (String("a"), "text", 5),
    (String("a"), "text", "a\0b"),
    (String("a"), "text", "a\ud800b"),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE / 255),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE.astype(int) + 250),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE.astype(int) - 1),
    (Image(4, 5, 3, "a"), PICTURE, np.full((3, 4, 5), np.nan)),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE.transpose(1, 2, 0)),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE[0]),
    (Image(4, 5, 3, "a"), PICTURE, np.stack([PICTURE] * 2)),
    (Image(4, 5, 3, "a"), PICTURE, np.zeros((3, 5, 4), np.uint8)),
    (Image(4, 5, 3, "a"), PICTURE, "x.png"),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE.tobytes()),
    (Image(4, 5, 3, "a"), PICTURE, None),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), np.zeros(7, np.uint8)),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), np.full(6, 300)),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), np.full(6, 0.5)),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), np.full(6, 2.9, object)),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), np.full(6, "7", object)),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), np.zeros((1, 3, 2, 1), np.uint8)),
    (ImageSequence(2, 3, 1, "a"), np.zeros(6, np.uint8), None),
    (Sequence("a"), [1, 2], [1, 2.5]),
    (Sequence("a"), [1, 2], np.array([2**31])),
    (Sequence("a"), [1, 2], [[1, 2], [3, 4]]),
    (Sequence("a"), [1, 2], [[1], [2, 3]]),
    (Sequence("a"), [1, 2], np.array(5)),
    (Sequence("a"), [1, 2], 5),
    (Sequence("a"), [1, 2], "12"),
    (Sequence("a"), [1, 2], b"12"),
    (Sequence("a"), [1, 2], None),
    (Sequence("a"), [1, 2], [None]),
    (Sequence("a"), [1, 2], {"x": np.arange(2)}),
    (FloatSequence("a"), [1.5], [1e300]),
    (FloatSequence("a"), [1.5], np.array([2**24 + 1])),
    (FloatSequence("a"), [1.5], ["1.5"]),
    (Float16Sequence("a"), [1.5], [70000.0]),
]
LATER = [
    (Image(4, 5, 3, "a"), PICTURE, PICTURE[:, :1, :1]),
    (Image(4, 5, 3, "a"), PICTURE, PICTURE[:1]),
]


def named(value):
    return re.sub(r"\s+", " ", repr(value))[:40]


@pytest.mark.parametrize(("column", "good", "bad"), [*REFUSED, *LATER], ids=named)
def test_values_that_would_change_are_rejected_with_row_and_column(path, column, good, bad):
    with pytest.raises((TypeError, ValueError), match=r"^row 2: 'a': .") as caught:
        H5Dataset(
            [Integer("i"), column], path, [{"i": k, "a": (good, good, bad)[k]} for k in range(3)]
        )
    assert "2 rows" in caught.value.__notes__[0]
    later = H5Dataset([Integer("i"), column], path, [{"i": 2, "a": good}], append_mode=True)
    assert [one["i"] for one in later] == [0, 1, 2]
    assert same(later[0]["a"], later[2]["a"])


@pytest.mark.parametrize(("column", "bad"), [(one, bad) for one, _, bad in REFUSED], ids=named)
def test_such_a_value_in_the_first_row_makes_no_file(path, column, bad):
    with pytest.raises((TypeError, ValueError), match=r"^row 0: 'a': .") as caught:
        H5Dataset([column], path, [{"a": bad}])
    assert caught.value.__notes__ == [f"{path} was not made"]
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"a": 1}, "row 1: 'b' is missing"),
        ({"a": 1, "b": 2, "c": 3}, "row 1: 'c' is unknown"),
        ({}, "row 1: 'a' is missing"),
        ([1, 2], "row 1: a row must be a dict, got list"),
        (None, "row 1: a row must be a dict, got NoneType"),
    ],
    ids=str,
)
def test_rows_of_other_keys_are_rejected(path, bad, said):
    columns = [Integer("a"), Integer("b")]
    with pytest.raises((TypeError, ValueError), match=said):
        H5Dataset(columns, path, [{"b": 1, "a": 2}, bad])
    later = H5Dataset(columns, path, [{"a": 3, "b": 4}], append_mode=True)
    assert list(later) == [{"a": 2, "b": 1}, {"a": 3, "b": 4}]


@pytest.mark.parametrize(
    ("column", "given", "read"),
    [
        (Integer("a"), 2.0, np.int64(2)),
        (Integer("a"), True, np.int64(1)),
        (Integer("a"), np.bool_(0), np.int64(0)),
        (Integer("a"), np.uint8(200), np.int64(200)),
        (Integer("a"), 2**63 - 1, np.int64(2**63 - 1)),
        (Integer("a"), -(2**63), np.int64(-(2**63))),
        (Integer("a"), torch.tensor(7), np.int64(7)),
        (Integer("a"), torch.tensor(7.0, requires_grad=True), np.int64(7)),
        (Float("a"), 1, np.float32(1)),
        (Float("a"), 0.1, np.float32(0.1)),
        (Float("a"), -0.0, np.float32(-0.0)),
        (Float("a"), float("inf"), np.float32("inf")),
        (Float("a"), float("nan"), np.float32("nan")),
        (Float("a"), torch.tensor(0.1, dtype=torch.float64, requires_grad=True), np.float32(0.1)),
        (Float16("a"), 0.1, np.float16(0.1)),
        (Float16("a"), 65504, np.float16(65504)),
        (String("a"), "", ""),
        (String("a"), np.str_("Zeile\n🙂 小明"), "Zeile\n🙂 小明"),
        (String("a"), "x" * 100_000, "x" * 100_000),
        (Image(4, 5, 3, "a"), PICTURE[np.newaxis], PICTURE),
        (Image(4, 5, 3, "a"), PICTURE.astype(np.float64), PICTURE),
        (Image(4, 5, 3, "a"), PICTURE.tolist(), PICTURE),
        (Image(4, 5, 3, "a"), torch.from_numpy(PICTURE.copy()), PICTURE),
        (Image(4, 5, 3, "a"), PICTURE[:1, ::2, 1:4], PICTURE[:1, ::2, 1:4]),
        (Image(4, 5, 3, "a"), PICTURE % 2 == 0, (PICTURE % 2 == 0).astype(np.uint8)),
        (ImageSequence(3, 4, 5, "a"), PICTURE.reshape(5, 3, 4, 1), PICTURE.reshape(5, 3, 4, 1)),
        (ImageSequence(4, 1, 3, "a"), PICTURE.reshape(-1), PICTURE.reshape(3, 4, 1, 5)),
        (
            ImageSequence(4, 1, 3, "a"),
            PICTURE.reshape(-1).astype(object),
            PICTURE.reshape(3, 4, 1, 5),
        ),
        (ImageSequence(4, 1, 3, "a"), [], np.zeros((3, 4, 1, 0), np.uint8)),
    ],
    ids=named,
)
def test_values_that_stay_the_same_are_taken(path, column, given, read):
    dataset = H5Dataset([column], path, [{"a": given}] * 2)
    assert same(read, dataset[0]["a"])
    assert same(read, dataset[1]["a"])


@pytest.mark.parametrize(
    "given",
    [[1, 2], (1, 2), np.array([1, 2]), torch.tensor([1, 2]), [1.0, 2.0], range(1, 3)],
    ids=named,
)
@pytest.mark.parametrize("kind", [Sequence, FloatSequence, Float16Sequence])
def test_sequences_are_lists_arrays_and_tensors(path, kind, given):
    found = H5Dataset([kind("a")], path, [{"a": []}, {"a": given}])
    dtype = h5py.check_vlen_dtype(kind.dtype)
    assert same(found[1]["a"][0], np.array([1, 2], dtype))
    assert same(found[0]["a"][0], np.array([], dtype))
    assert found[1]["a"].shape == (1,)


def test_sub_attributes_of_a_sequence_are_rejected():
    with pytest.raises(NotImplementedError, match="one Sequence for each"):
        Sequence("a", sub_attributes={"x": Integer("x")})


def test_pixels_from_0_to_1_come_with_advice(path):
    with pytest.raises(ValueError, match=r"from 0 to 1 with \(image \* 255\)"):
        H5Dataset([Image(4, 5, 3, "a")], path, [{"a": PICTURE / 255}])


class TestOwnClasses:
    class Small(Integer):
        dtype = "int8"

    class Long(Sequence):
        dtype = h5py.special_dtype(vlen=np.dtype("int64"))

    class Lower(String):
        def transform(self, data):
            return super().transform(data.lower())

    class Vector(Attribute):
        dtype = "float64"

        def __init__(self, length, name):
            self.name = name
            self.length = length
            self.shape = self.max_shape = (None, length)

        def transform(self, data):
            return np.asarray(data, np.float64).reshape(1, self.length)

    def test_they_have_their_own_types_and_transforms(self, path):
        columns = [
            self.Small("small"),
            self.Long("long"),
            self.Lower("lower"),
            self.Vector(3, "v"),
        ]
        data = [{"small": k, "long": [2**40 + k], "lower": "ABC", "v": [k, 0, 1]} for k in range(3)]
        dataset = H5Dataset(columns, path, data)
        assert same(dataset[2]["small"], np.int8(2))
        assert dataset[2]["lower"] == "abc"
        assert same(dataset[2]["v"], np.array([2.0, 0, 1]))
        assert same(dataset[2]["long"][0], np.array([2**40 + 2]))
        with pytest.raises(ValueError, match="row 3: 'small': 128 cannot be stored as int8"):
            H5Dataset(columns, path, [{**data[0], "small": 128}], append_mode=True)

    def test_the_real_package_reads_them(self, tmp_path):
        class Small(real.Integer):
            dtype = "int8"

        H5Dataset(
            [self.Small("small"), self.Vector(3, "v")],
            tmp_path / "x.h5",
            [{"small": 7, "v": [1, 2, 3]}],
        )
        theirs = real.H5Dataset([Small("small"), real.Float("v")], tmp_path / "x.h5")[0]
        assert same(theirs, {"small": np.int8(7), "v": np.array([1.0, 2, 3])})

    @pytest.mark.parametrize("column", schema(), ids=named)
    def test_a_column_can_be_made_and_grown_by_itself(self, tmp_path, column):
        data = [{column.name: one[column.name]} for one in rows(3)]
        with h5py.File(tmp_path / "x.h5", "w") as file:
            column.init_attributes(file, data[0][column.name], None, None)
            for one in data[1:]:
                assert column.append(file, column.transform(one[column.name])) is file
        assert same(expected([column], data), list(H5Dataset([column], tmp_path / "x.h5")))
        twin = next(one for one in schema(real) if one.name == column.name)
        theirs = real.H5Dataset([twin], tmp_path / "x.h5")
        assert same(expected([column], data), [theirs[k] for k in range(3)])


@pytest.fixture
def pictures(tmp_path):
    """Return files of one colour: RGB, grey, RGBA, of a palette, and grey with opacity."""
    colours = {"RGB": (10, 20, 30), "L": 40, "RGBA": (50, 60, 70, 51), "LA": (90, 51)}
    for mode, colour in colours.items():
        Picture.new(mode, (6, 4), colour).save(tmp_path / f"{mode}.png")
    Picture.new("RGB", (6, 4), (11, 22, 33)).quantize(4).save(tmp_path / "P.png")
    return tmp_path


class TestPictures:
    @pytest.mark.parametrize(
        ("mode", "c", "colour"),
        [
            ("RGB", 3, [10, 20, 30]),
            ("RGB", 4, [10, 20, 30, 255]),
            ("RGB", 1, [18]),
            ("L", 1, [40]),
            ("L", 3, [40, 40, 40]),
            ("L", 4, [40, 40, 40, 255]),
            ("RGBA", 3, [50, 60, 70]),
            ("RGBA", 4, [50, 60, 70, 51]),
            ("LA", 3, [90, 90, 90]),
            ("LA", 4, [90, 90, 90, 51]),
            ("P", 3, [11, 22, 33]),
            ("P", 4, [11, 22, 33, 255]),
        ],
    )
    def test_a_picture_has_the_requested_number_of_colours(self, pictures, path, mode, c, colour):
        file = pictures / f"{mode}.png"
        column = Image(3, 2, c)
        read = column.read_image(file)
        assert (read.dtype, read.shape) == (np.uint8, (c, 3, 2))
        assert read.reshape(c, 6).T.tolist() == [colour] * 6
        whole = column.read_image(str(file), resize=False)
        assert (whole.shape, whole.reshape(c, 24).T.tolist()) == ((c, 4, 6), [colour] * 24)
        folder = path.parent / "data"
        folder.mkdir()
        assert same(H5Dataset([column], folder / path.name, [{"image": read}])[0]["image"], read)
        with pytest.raises(ValueError, match=r"row 0: 'image'.*\(\d, 4, 6\)"):
            H5Dataset([column], folder / f"whole{path.suffix}", [{"image": whole}])

    @pytest.mark.parametrize("resize", [False, True])
    def test_colour_pictures_are_read_as_by_the_real_package(self, pictures, resize):
        noise = np.random.default_rng(1).integers(0, 256, (9, 7, 3), np.uint8)
        Picture.fromarray(noise).save(pictures / "noise.png")
        for name in ("noise.png", "L.png"):
            theirs = real.Image(5, 4).read_image(pictures / name, resize)
            assert same(theirs, Image(5, 4).read_image(pictures / name, resize))

    @pytest.mark.parametrize("c", [1, 3, 4])
    def test_all_frames_of_a_film_have_their_colours(self, pictures, path, c):
        colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (9, 9, 9)]
        frames = [Picture.new("RGB", (6, 4), colour) for colour in colours]
        file = pictures / "film.gif"
        frames[0].save(file, save_all=True, append_images=frames[1:])
        column = ImageSequence(2, 3, c, "film")
        flat = column.read_gif(file)
        assert (flat.ndim, flat.size) == (1, c * 2 * 3 * 4)
        (pictures / "data").mkdir()
        found = H5Dataset([column], pictures / "data" / path.name, [{"film": flat}] * 2)[1]["film"]
        assert found.shape == (c, 2, 3, 4)
        each = {1: [[76], [150], [29], [9]], 3: [[*one] for one in colours]}
        wanted = each.get(c, [[*one, 255] for one in colours])
        assert [found[:, y, x].T.tolist() for y in range(2) for x in range(3)] == [wanted] * 6
        assert column.read_gif(file, resize=False).size == c * 4 * 6 * 4

    def test_a_missing_picture_is_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Image(2, 2).read_image(tmp_path / "none.png")

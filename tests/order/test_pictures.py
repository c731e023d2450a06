import hashlib
import io
import json
import math
import pickle
import struct
import zlib

import numpy as np
import PIL
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import ingot
from ingot.codecs import codec_of

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RATIO = (3 / 4, 4 / 3)
MASK = (1 << 64) - 1


class Numbers:
    """SplitMix64."""

    def __init__(self, key):
        self.state = key

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def unit(self):
        return (self.next() >> 11) / (1 << 53)

    def below(self, bound):
        while True:
            product = self.next() * bound
            if product & MASK >= ((1 << 64) - bound) % bound:
                return product >> 64

    def aspect(self, least, most):
        bits, root, aspect = self.next() >> 32, most / least, least
        for k in range(32):
            root = math.sqrt(root)
            if bits >> (31 - k) & 1:
                aspect *= root
        return aspect


def resized_window(height, width, numbers, scale, ratio):
    for _ in range(10):
        target = height * width * (scale[0] + (scale[1] - scale[0]) * numbers.unit())
        aspect = numbers.aspect(*ratio)
        wide, high = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < wide <= width and 0 < high <= height:
            return numbers.below(height - high + 1), numbers.below(width - wide + 1), high, wide
    high, wide = height, width
    if width / height < ratio[0]:
        high = min(max(round(width / ratio[0]), 1), height)
    elif width / height > ratio[1]:
        wide = min(max(round(height * ratio[1]), 1), width)
    return (height - high) // 2, (width - wide) // 2, high, wide


def weights(length, count):
    scale = length / count
    support = max(scale, 1.0)
    for k in range(count):
        center = (k + 0.5) * scale
        start = int(max(center - support + 0.5, 0.0))
        stop = min(int(center + support + 0.5), length)
        own = [max(1 - abs((at - center + 0.5) * (1 / support)), 0.0) for at in range(start, stop)]
        total = 0.0
        for one in own:
            total += one
        yield start, [int(0.5 + one / total * (1 << 22)) for one in own]


def stretched(pixels, count, axis):
    lines = np.moveaxis(pixels, axis, 0).astype(np.int64)
    found = []
    for start, own in weights(len(lines), count):
        products = [lines[start + k] * weight for k, weight in enumerate(own)]
        found.append(((1 << 21) + sum(products)) >> 22)
    return np.moveaxis(np.array(found).clip(0, 255).astype(np.uint8), 0, axis)


def coloured(pixels, colours):
    if pixels.dtype != np.uint8:
        pixels = (pixels >> 8).astype(np.uint8)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.shape[2] <= 2:
        return np.repeat(pixels[:, :, :1], colours, axis=2)
    if colours == 3:
        return pixels[:, :, :3]
    sums = pixels[:, :, :3].astype(np.int64) @ [19595, 38470, 7471]
    return ((sums + 0x8000) >> 16).astype(np.uint8)[:, :, None]


def middle(spare):
    return round(spare / 2)


def oracle(pixels, key, size, *, crop=None, resize=None, **options):
    """What `Pictures` is documented to do, in plain numpy."""
    high, wide = size if isinstance(size, tuple) else (size, size)
    found = coloured(pixels, options.get("colours", 3))
    height, width = found.shape[:2]
    numbers = Numbers(key)
    is_mirrored = numbers.unit() < options.get("flip", 0.0)
    if crop == "resized":
        spread = options.get("scale", (0.08, 1.0)), options.get("ratio", RATIO)
        top, left, h, w = resized_window(height, width, numbers, *spread)
        found = found[top : top + h, left : left + w]
    if crop in {"center", "random"}:
        if resize is not None:
            short = min(height, width)
            height, width = resize * height // short, resize * width // short
            found = stretched(stretched(found, width, 1), height, 0)
        place = middle if crop == "center" else lambda spare: numbers.below(spare + 1)
        top, left = place(height - high), place(width - wide)
        found = found[top : top + high, left : left + wide]
    found = stretched(stretched(found, wide, 1), high, 0)
    found = found[:, ::-1] if is_mirrored else found
    mean, std = options.get("mean"), options.get("std")
    dtype = np.dtype(options.get("dtype", "uint8" if mean is None else "float32"))
    if dtype != np.uint8:
        found = found.astype(np.float32) / np.float32(255)
        if mean is not None:
            found = (found - np.array(mean, np.float32)) / np.array(std, np.float32)
        found = found.astype(dtype)
    return found.transpose(2, 0, 1) if options.get("layout") == "chw" else found


def noise(height, width, colours=3, seed=0):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 8 + 2, width // 8 + 2, colours))
    found = np.kron(coarse, np.ones((8, 8, 1)))[:height, :width]
    found = (found + rng.integers(-20, 21, found.shape)).clip(0, 255).astype(np.uint8)
    return found[:, :, 0] if colours == 1 else found


def encoded(pixels, kind="JPEG", mode=None, **options):
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(stream, kind, **options)
    return stream.getvalue()


def same(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


USUAL = {
    "random": {"size": 24, "crop": "random", "flip": 0.5, "mean": MEAN, "std": STD},
    "resized": {"size": (20, 31), "crop": "resized", "flip": 0.5, "layout": "chw"},
    "center": {"size": 24, "crop": "center", "resize": 29, "dtype": "float16"},
    "whole": {"size": (17, 50), "colours": 1},
}


@pytest.fixture
def jpegs(tmp_path):
    sizes = [(32 + k % 7, 30 + k % 11) for k in range(40)]
    with ingot.DatasetWriter(tmp_path / "jpegs", {"image": "jpg", "label": "int"}) as writer:
        for k, size in enumerate(sizes):
            writer.append({"image": encoded(noise(*size, seed=k)), "label": k})
    with ingot.open(tmp_path / "jpegs") as ds:
        yield ds


@st.composite
def recipes(draw):
    size = (draw(st.integers(1, 40)), draw(st.integers(1, 40)))
    crop = draw(st.sampled_from([None, "center", "random", "resized"]))
    options = {"crop": crop, "flip": draw(st.sampled_from([0.0, 0.5, 1.0]))}
    if crop in {"center", "random"}:
        options["resize"] = draw(st.integers(max(size), 60))
    if crop == "resized":
        options["scale"] = draw(st.sampled_from([(0.08, 1.0), (0.5, 0.5), (0.001, 0.1)]))
        options["ratio"] = draw(st.sampled_from([RATIO, (1.0, 1.0), (0.1, 9.0)]))
    options["colours"] = draw(st.sampled_from([1, 3]))
    options["layout"] = draw(st.sampled_from(["hwc", "chw"]))
    values = draw(st.sampled_from([{}, {"dtype": "float16"}, {"dtype": "float32"}, "mean"]))
    if values == "mean":
        values = {"mean": MEAN[: options["colours"]], "std": STD[: options["colours"]]}
    return size, options | values


@settings(max_examples=150, deadline=None)
@given(
    recipes(),
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(1, 4),
    st.integers(0, MASK),
)
def test_any_picture_becomes_what_the_oracle_says(recipe, height, width, colours, key):
    size, options = recipe
    pixels = noise(height, width, colours, seed=key % 1000)
    found = ingot.Pictures("image", size, **options)({"image": pixels}, key)["image"]
    assert same(found, oracle(pixels, key, size, **options))


@pytest.mark.parametrize("size", [(40, 60), (7, 5), (40, 57), (300, 11), (1, 1)])
def test_resizing_gives_the_bytes_of_pillow(size):
    (high, wide), pixels = size, noise(47, 61)
    picture, bilinear = Image.fromarray(pixels), Image.Resampling.BILINEAR
    expected = picture.resize((wide, 47), bilinear).resize((wide, high), bilinear)
    found = ingot.Pictures("image", size)({"image": pixels})["image"]
    assert same(found, np.asarray(expected))
    # Pillow 13 turns the passes around if the height shrinks by more than twice the pixels.
    at_once = np.asarray(picture.resize((wide, high), bilinear)).astype(int)
    most = 1 if int(PIL.__version__.split(".")[0]) > 12 and 47 - high > 2 * (61 - wide) else 0
    assert np.abs(at_once - found).max() <= most


def test_gray_of_colours_is_that_of_pillow():
    pixels = noise(30, 30)
    found = ingot.Pictures("image", 30, colours=1)({"image": pixels})["image"]
    assert same(found[:, :, 0], np.asarray(Image.fromarray(pixels).convert("L")))


GOLDEN = {
    "random": "4e67915e07af9712",
    "resized": "8fa2fcf74d10a250",
    "center": "3bbde5bc957af018",
    "whole": "e24377953bfc9ca5",
}


@pytest.mark.parametrize("name", USUAL)
def test_values_of_a_key_never_change(name):
    pixels = np.add.outer(np.arange(37) * 5, np.arange(45) * 3)[:, :, None] + np.arange(3) * 40
    crops = ingot.Pictures("image", **USUAL[name])
    digest = hashlib.sha256()
    for key in (0, 1, 0x0123456789ABCDEF, MASK):
        digest.update(crops({"image": pixels.astype(np.uint8)}, key)["image"].tobytes())
    assert digest.hexdigest()[:16] == GOLDEN[name]


@pytest.mark.parametrize("options", USUAL.values(), ids=USUAL)
def test_loader_and_order_and_oracle_agree(jpegs, options):
    order = jpegs.shuffle(seed=3).map(ingot.Pictures("image", **options))
    keys = order.rows(0, len(order)).key[:, 0].tolist()
    rows = order.rows(0, len(order)).row.tolist()
    with ingot.Loader(order, batch_size=8) as loader:
        batches = list(loader)
    for step, batch in enumerate(batches):
        for place in range(8):
            k = step * 8 + place
            expected = oracle(jpegs[rows[k]]["image"], keys[k], **options)
            assert same(batch["image"][place], expected)
            assert same(order[k]["image"], expected)
            assert batch["label"][place] == rows[k] == order[k]["label"]


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_batches_do_not_depend_on_ranks_and_workers(jpegs, world, workers):
    order = jpegs.shuffle(seed=3).map(ingot.Pictures("image", 24, crop="random", flip=0.5))
    with ingot.Loader(order, batch_size=8, workers=0, shard=None) as one:
        expected = [one.batch(step)["image"] for step in range(8)]
    loaders = [
        ingot.Loader(order, global_batch_size=8, workers=workers, shard=(rank, world))
        for rank in range(world)
    ]
    for step in range(8):
        parts = [loader.batch(step)["image"] for loader in loaders]
        assert same(np.concatenate(parts), expected[step])
    for loader in loaders:
        loader.close()


def test_epochs_have_other_crops_and_resumes_the_same(jpegs):
    order = jpegs.shuffle(seed=0).map(ingot.Pictures("image", 24, crop="random", flip=0.5))
    with ingot.Loader(order, batch_size=8) as loader:
        first = {int(k): one for b in loader for k, one in zip(b["label"], b["image"], strict=True)}
        again = {int(k): one for b in loader for k, one in zip(b["label"], b["image"], strict=True)}
        assert first.keys() == again.keys()
        assert sum(same(first[k], again[k]) for k in first) < 10
        assert loader.verify_resume(steps=6) > 0


def test_a_map_before_or_behind_gives_the_same_pixels(jpegs):
    crops = ingot.Pictures("image", **USUAL["random"])
    order = jpegs.shuffle(seed=1)
    plain = order.map(crops)
    behind = plain.map(lambda row: {"picture": row["image"], "label": row["label"]})
    with ingot.Loader(plain, batch_size=10) as one, ingot.Loader(behind, batch_size=10) as other:
        assert same(one.batch(1)["image"], other.batch(1)["picture"])
    before = order.map(lambda row: {"image": row["image"]}, seed=5).map(crops)
    keys = before.rows(0, 4).key[:, 1].tolist()
    for k, key in enumerate(keys):
        expected = oracle(order[k]["image"], key, **USUAL["random"])
        assert same(before[k]["image"], expected)


def test_collate_gets_the_same_samples(jpegs):
    order = jpegs.shuffle(seed=1).map(ingot.Pictures("image", **USUAL["resized"]))
    with (
        ingot.Loader(order, batch_size=10) as plain,
        ingot.Loader(order, batch_size=10, collate=lambda rows: [r["image"] for r in rows]) as own,
    ):
        assert same(np.stack(own.batch(2)), plain.batch(2)["image"])


def test_mixed_data_sets_take_the_same_way(jpegs, tmp_path):
    with ingot.DatasetWriter(tmp_path / "more", {"image": "jpg", "label": "int"}) as writer:
        for k in range(20):
            writer.append({"image": encoded(noise(40, 33, seed=100 + k)), "label": 100 + k})
    crops = ingot.Pictures("image", 24, crop="random", flip=0.5)
    other = ingot.Pictures("image", 24, crop="random", flip=0.5)
    with ingot.open(tmp_path / "more") as more:
        parts = {
            "a": jpegs.shuffle(1).map(crops).repeat(),
            "b": more.shuffle(2).map(other).repeat(),
        }
        order = ingot.mix(parts, {"a": 2, "b": 1})
        with ingot.Loader(order, batch_size=12) as loader:
            batch = loader.batch(3)
        assert same(batch["image"], np.stack([order[36 + k]["image"] for k in range(12)]))
        both = ingot.concat(jpegs, more).shuffle(0).map(crops)
        with ingot.Loader(both, batch_size=12) as loader:
            batch = loader.batch(3)
        assert same(batch["image"], np.stack([both[36 + k]["image"] for k in range(12)]))


def test_several_fields_have_crops_of_their_own(tmp_path):
    spec = {"one": {"image": "jpg"}, "mask": "png", "text": "utf8"}
    with ingot.DatasetWriter(tmp_path / "pairs", spec) as writer:
        for k in range(16):
            one, mask = encoded(noise(30, 32, seed=k)), encoded(noise(20, 40, 1, seed=k), "PNG")
            writer.append({"one": {"image": one}, "mask": mask, "text": str(k)})
    with ingot.open(tmp_path / "pairs") as ds:
        first = ingot.Pictures("one.image", 16, crop="resized")
        second = ingot.Pictures("mask", 12, crop="random", colours=1)
        order = ds.shuffle(0).map(first).map(second)
        with ingot.Loader(order, batch_size=8) as loader:
            batch = loader.batch(1)
        for k in range(8):
            sample = order[8 + k]
            assert same(batch["one"]["image"][k], sample["one"]["image"])
            assert same(batch["mask"][k], sample["mask"])
            assert batch["text"][k] == sample["text"]
            assert sample["mask"].shape == (12, 12, 1)


def odd_pictures():
    rgb = noise(40, 44, seed=8)
    palette = Image.fromarray(rgb).quantize(16)
    stream = io.BytesIO()
    palette.save(stream, "PNG")
    deep = (noise(40, 40, 1).astype(np.uint16) * 257).clip(0, 65535)
    return {
        "png": [
            encoded(rgb, "PNG"),
            encoded(noise(40, 41, 4), "PNG"),
            encoded(noise(40, 41, 1), "PNG"),
            stream.getvalue(),
            encoded(deep, "PNG"),
        ],
        "jpg": [
            encoded(rgb),
            encoded(rgb, mode="CMYK"),
            encoded(rgb, mode="L"),
            encoded(rgb, progressive=True),
            encoded(noise(64, 5, seed=1)),
        ],
    }


@pytest.mark.parametrize("kind", ["jpg", "png"])
@pytest.mark.parametrize("colours", [1, 3])
def test_pictures_that_pillow_decodes_go_the_same_way(tmp_path, kind, colours):
    files = odd_pictures()[kind]
    with ingot.DatasetWriter(tmp_path / "odd", {"image": kind}) as writer:
        writer.extend({"image": one} for one in files)
    options = {"size": 33, "crop": "resized", "flip": 0.5, "colours": colours}
    with ingot.open(tmp_path / "odd") as ds:
        order = ingot.Order.of(ds).map(ingot.Pictures("image", **options))
        with ingot.Loader(order, batch_size=len(files)) as loader:
            batch = loader.batch(0)
        keys = order.rows(0, len(files)).key[:, 0].tolist()
        for k, key in enumerate(keys):
            expected = oracle(codec_of(kind).decode(files[k]), key, **options)
            assert same(batch["image"][k], expected)
            assert same(order[k]["image"], expected)


def test_missing_pictures_stay_missing_and_webp_works(tmp_path):
    spec = {"image": "webp", "other": "jpg?"}
    with ingot.DatasetWriter(tmp_path / "gaps", spec) as writer:
        for k in range(8):
            other = encoded(noise(20, 20, seed=k)) if k % 2 else None
            writer.append({"image": encoded(noise(20, 20, seed=k), "WEBP"), "other": other})
    with ingot.open(tmp_path / "gaps") as ds:
        order = ingot.Order.of(ds).map(ingot.Pictures("image", 10)).map(ingot.Pictures("other", 9))
        with ingot.Loader(order, batch_size=8) as loader:
            batch = loader.batch(0)
        assert batch["image"].shape == (8, 10, 10, 3)
        assert [one is None for one in batch["other"]] == [True, False] * 4
        assert batch["other"][1].shape == (9, 9, 3)


def hostile_png(width, height):
    def chunk(name, content):
        crc = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    return start + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def hostile_jpeg():
    file = bytearray(encoded(noise(32, 32)))
    at = file.index(b"\xff\xc0")
    file[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    return bytes(file)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("png", hostile_png(1 << 30, 1 << 30)),
        ("png", hostile_png(1, 1 << 30)),
        ("png", hostile_png(64, 64)),
        ("jpg", hostile_jpeg()),
    ],
    ids=["huge", "tall", "short", "huge-jpg"],
)
def test_hostile_pictures_name_file_row_and_field_or_are_replaced(tmp_path, kind, bad):
    good = [encoded(noise(32, 32, seed=k), "PNG" if kind == "png" else "JPEG") for k in range(12)]
    with ingot.DatasetWriter(tmp_path / "hostile", {"image": kind, "label": "int"}) as writer:
        for k, one in enumerate([*good[:5], bad, *good[5:]]):
            writer.append({"image": one, "label": k})
    crops = ingot.Pictures("image", 16, crop="random")
    with ingot.open(tmp_path / "hostile") as ds:
        order = ingot.Order.of(ds).map(crops)
        with (
            ingot.Loader(order, batch_size=13) as loader,
            pytest.raises(ingot.WorkerError, match=r"row 5 of hostile.*row 5: field 'image'"),
        ):
            loader.batch(0)
        with ingot.Loader(order, batch_size=13, on_error="substitute") as loader:
            batch = next(iter(loader))
            (replaced,) = loader.errors
        assert replaced.position == 5
        assert same(batch["image"][5], order[replaced.substitute]["image"])
        assert batch["label"][5] == replaced.substitute


def test_a_picture_smaller_than_its_crop_is_rejected_by_name(jpegs):
    order = jpegs.shuffle(0).map(ingot.Pictures("image", 36, crop="random"))
    with (
        ingot.Loader(order, batch_size=40) as loader,
        pytest.raises(ingot.WorkerError, match=r"row \d+ of jpegs.*'image'.*36 x 36: resize="),
    ):
        loader.batch(0)
    resized = jpegs.shuffle(0).map(ingot.Pictures("image", 36, crop="random", resize=36))
    with ingot.Loader(resized, batch_size=40) as loader:
        assert loader.batch(0)["image"].shape == (40, 36, 36, 3)


def test_fields_that_are_not_images_are_rejected_at_first_use(jpegs):
    with pytest.raises(KeyError, match="no field 'picture' in a sample of"):
        jpegs.shuffle(0).map(ingot.Pictures("picture", 8))[0]
    with pytest.raises(TypeError, match="field 'label' is int, expected a picture"):
        jpegs.shuffle(0).map(ingot.Pictures("label", 8))[0]
    with (
        ingot.Loader(jpegs.shuffle(0).map(ingot.Pictures("picture", 8)), batch_size=4) as loader,
        pytest.raises(ingot.WorkerError, match="no field 'picture'"),
    ):
        loader.batch(0)
    crops = ingot.Pictures("image", 8)
    with pytest.raises(TypeError, match=r"float64 of shape \(4, 4\)"):
        crops({"image": np.zeros((4, 4))})
    with pytest.raises(TypeError, match="1 to 4 colours"):
        crops({"image": np.zeros((3, 224, 224), np.uint8)})
    with pytest.raises(TypeError, match="1 to 4 colours"):
        crops({"image": np.zeros((0, 4, 3), np.uint8)})
    with pytest.raises(KeyError, match="in a sample of list"):
        crops([1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is from 1 to 65535"),
        ({"size": (8, 70_000)}, "size is from 1 to 65535"),
        ({"size": (8, 8, 3)}, r"size is a number of pixels, or \(height, width\)"),
        ({"size": 2.5}, "size is a number of pixels"),
        ({"size": 8, "crop": "centre"}, 'crop is None or "center"'),
        ({"size": 8, "resize": 9}, "resize goes with crop"),
        ({"size": 8, "crop": "center", "resize": 7}, "leaves no part of size"),
        ({"size": 8, "scale": (0.1, 1)}, "scale and ratio go with"),
        ({"size": 8, "crop": "resized", "scale": (0.0, 1)}, "scale is"),
        ({"size": 8, "crop": "resized", "scale": (0.5, 1.5)}, "scale is"),
        ({"size": 8, "crop": "resized", "ratio": (2, 1)}, "ratio is"),
        ({"size": 8, "crop": "resized", "ratio": 1}, "ratio is the least and the largest"),
        ({"size": 8, "flip": 1.5}, "flip is a probability"),
        ({"size": 8, "flip": float("nan")}, "flip is finite"),
        ({"size": 8, "flip": "yes"}, "flip is a number"),
        ({"size": 8, "flip": True}, "flip is a number, such as 0.5, not True"),
        ({"size": 8, "mean": 0.5}, "mean and std go together"),
        ({"size": 8, "mean": (0.5, 0.5), "std": (1, 1)}, "each of 3 colours, got 2"),
        ({"size": 8, "mean": (123, 117, 0.4), "std": 58}, "divide both by 255"),
        ({"size": 8, "mean": 0.5, "std": 0}, "std is above 0"),
        ({"size": 8, "mean": 0.5, "std": 1, "dtype": "uint8"}, "not uint8"),
        ({"size": 8, "dtype": "float64"}, 'dtype is "uint8"'),
        ({"size": 8, "layout": "nchw"}, 'layout is "hwc" or "chw"'),
        ({"size": 8, "colours": 4}, "colours is 1 or 3"),
    ],
)
def test_parameters_that_make_no_sense_are_rejected(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ingot.Pictures("image", **options)
    with pytest.raises(TypeError, match="name of a field"):
        ingot.Pictures(3, 8)


def test_a_state_of_other_parameters_is_rejected_with_the_difference(jpegs):
    one = ingot.Pictures("image", 24, crop="random", flip=0.5)
    other = ingot.Pictures("image", 24, crop="random", flip=0.25)
    with ingot.Loader(jpegs.shuffle(0).map(one), batch_size=8) as loader:
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    with ingot.Loader(jpegs.shuffle(0).map(one), batch_size=8) as loader:
        loader.load_state_dict(state)
        assert loader.step == 1
    with (
        ingot.Loader(jpegs.shuffle(0).map(other), batch_size=8) as loader,
        pytest.raises(ValueError, match=r"flip=0\.5\).*flip=0\.25\)"),
    ):
        loader.load_state_dict(state)


@pytest.mark.parametrize("options", USUAL.values(), ids=USUAL)
def test_recipes_pickle_and_compare(options):
    one = ingot.Pictures("image", **options)
    again = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert again == one
    assert hash(again) == hash(one)
    assert repr(again) == repr(one)
    assert one != ingot.Pictures("image", 25)
    pixels = noise(40, 40)
    assert same(one({"image": pixels}, 7)["image"], again({"image": pixels}, 7)["image"])


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint32"])
def test_integers_that_are_not_pixels_are_rejected(dtype):
    with pytest.raises(TypeError, match=f"an array of {dtype}.*expected a picture"):
        ingot.Pictures("image", 2)({"image": np.full((4, 4, 3), 200, dtype)})


@pytest.fixture
def mixed(tmp_path):
    """JPEG, PNG and WebP files as bytes, some of which the engine leaves to Pillow."""
    rng = np.random.default_rng(0)
    with ingot.DatasetWriter(tmp_path / "mixed", {"image": "bytes", "n": "int"}) as writer:
        for k in range(24):
            stream = io.BytesIO()
            picture = Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8))
            kind = ["JPEG", "PNG", "WEBP", "PNG"][k % 4]
            (picture.quantize(16) if k % 8 == 1 else picture).save(stream, kind)
            writer.append({"image": stream.getvalue(), "n": k})
    return ingot.open(tmp_path / "mixed")


def test_files_of_several_types_are_recognised_by_their_content(mixed):
    crops = ingot.Pictures("image", 32, crop="random", flip=0.5)
    order = mixed.shuffle(1).map(crops)
    found = ingot.Loader(order, 24).batch(0)
    assert found["n"].tolist() == [one["n"] for one in order]
    for k, sample in enumerate(order):
        assert np.array_equal(found["image"][k], sample["image"])
        stored = mixed[int(sample["n"])]["image"]
        with Image.open(io.BytesIO(stored)) as picture:
            pixels = np.array(picture.convert("RGB"))
        codec = codec_of({b"\xff": "jpg", b"\x89": "png", b"R": "webp"}[stored[:1]])
        assert codec.decode(stored).shape == pixels.shape


def test_bytes_that_are_not_an_image_are_named(mixed, tmp_path):
    with ingot.DatasetWriter(tmp_path / "other", {"image": "bytes", "n": "int"}) as writer:
        writer.append({"image": mixed[0]["image"], "n": 0})
        writer.append({"image": b"not a picture", "n": 1})
    loader = ingot.Loader(ingot.open(tmp_path / "other").map(ingot.Pictures("image", 8)), 2)
    with pytest.raises(ingot.WorkerError, match=r"row 1 of other.*bytes that are not a JPEG, PNG"):
        loader.batch(0)


def test_unknown_options_name_the_nearest_one():
    with pytest.raises(TypeError, match=r"unknown option 'colors'; did you mean 'colours'\?"):
        ingot.Pictures("image", 8, colors=1)

"""Pictures: the native decoders beside Pillow, and what is left to it."""

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

import ingot
from ingot._core import Writer as NativeWriter
from ingot.codecs import codec_of
from tests.support import ROOT

SAMPLES = ROOT / "crates" / "ingot" / "fuzz" / "corpus" / "picture"


def photograph(seed, height=120, width=161):
    """Return a picture of gradients, edges and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    picture = np.stack([120 + 90 * np.sin(x / (20 + 9 * c) + y / 31 + seed) for c in range(3)], -1)
    for _ in range(12):
        top, left = rng.integers(0, height), rng.integers(0, width)
        picture[top : top + 25, left : left + 40] = rng.integers(0, 256, 3)
    return (picture + rng.normal(0, 4, picture.shape)).clip(0, 255).astype(np.uint8)


def saved(picture, kind="JPEG", mode=None, **options):
    stream = io.BytesIO()
    image = Image.fromarray(picture)
    (image if mode is None else image.convert(mode)).save(stream, kind, **options)
    return stream.getvalue()


def by_pillow(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def write(path, kind, values):
    with ingot.DatasetWriter(path, {"p": kind}, sync=False) as writer:
        writer.extend({"p": value} for value in values)
    return ingot.open(path)


@pytest.mark.parametrize("quality", [75, 95])
@pytest.mark.parametrize(
    ("options", "most", "mean"),
    [
        ({"subsampling": 0}, 4, 0.1),
        ({"subsampling": 1}, 25, 0.4),
        ({"subsampling": 2}, 25, 0.6),
        ({"subsampling": 2, "progressive": True}, 25, 0.6),
        ({"subsampling": 2, "restart_marker_blocks": 3}, 25, 0.6),
        ({"mode": "L"}, 2, 0.1),
        ({"mode": "L", "progressive": True}, 2, 0.1),
    ],
)
def test_jpegs_are_decoded_as_libjpeg_does_but_for_rounding(quality, options, most, mean):
    for seed in range(3):
        data = saved(photograph(seed), quality=quality, **options)
        found, expected = codec_of("jpg").decode(data), by_pillow(data)
        assert (found.shape, found.dtype) == (expected.shape, np.uint8)
        off = np.abs(found.astype(int) - expected)
        assert off.max() <= most
        assert off.mean() <= mean


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (7, 8), (16, 17), (33, 15)])
def test_small_pictures_of_any_size(size):
    for options in ({"subsampling": 0}, {"subsampling": 2}, {"mode": "L"}):
        data = saved(photograph(1, *size), quality=95, **options)
        off = codec_of("jpg").decode(data).astype(int) - by_pillow(data)
        assert np.abs(off).max() <= 60
    for mode in ("RGB", "L", "RGBA", "LA"):
        data = saved(photograph(1, *size), "PNG", mode)
        assert np.array_equal(codec_of("png").decode(data), by_pillow(data))


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA"])
def test_pngs_are_exact(mode):
    data = saved(photograph(2), "PNG", mode)
    assert np.array_equal(codec_of("png").decode(data), by_pillow(data))


def test_pictures_of_one_shape_are_stacked_and_others_are_a_list(tmp_path):
    alike = [saved(photograph(k)) for k in range(6)]
    ds = write(tmp_path / "alike.ingot", "jpg", alike)
    batch = ds[[4, 0, 5]]["p"]
    assert (batch.shape, batch.dtype) == ((3, 120, 161, 3), np.uint8)
    for found, k in zip(batch, [4, 0, 5], strict=True):
        assert np.array_equal(found, ds[k]["p"])
        assert np.array_equal(found, codec_of("jpg").decode(alike[k]))
    others = [*alike[:2], saved(photograph(9, 40, 50)), saved(photograph(3), mode="L")]
    ds = write(tmp_path / "others.ingot", "jpg", others)
    batch = ds[[0, 2, 3, 1]]["p"]
    assert [one.shape for one in batch] == [(120, 161, 3), (40, 50, 3), (120, 161), (120, 161, 3)]
    for found, k in zip(batch, [0, 2, 3, 1], strict=True):
        assert np.array_equal(found, ds[k]["p"])


def test_arrays_that_were_read_are_writable(tmp_path):
    data = [saved(photograph(k, 20, 20), "PNG") for k in range(3)]
    ds = write(tmp_path / "x.ingot", "png", data)
    batch = ds[[0, 1, 2]]["p"]
    before = batch[1].copy()
    batch[0] = 7
    ds[0]["p"][:] = 9
    assert np.array_equal(batch[1], before)
    assert np.array_equal(ds[0]["p"], by_pillow(data[0]))
    again = ds[[1, 1]]["p"]
    assert np.array_equal(again[0], before)
    assert np.array_equal(batch[1], before)


def test_a_batch_outlives_the_next_ones(tmp_path):
    pictures = [saved(photograph(k, 64, 64), "PNG") for k in range(8)]
    ds = write(tmp_path / "x.ingot", "png", pictures)
    batches = [ds[[k, (k + 1) % 8]]["p"] for k in range(8)]
    for k, batch in enumerate(batches):
        assert np.array_equal(batch[0], by_pillow(pictures[k]))


def test_pictures_may_be_missing_and_come_in_sequences(tmp_path):
    pictures = [photograph(k, 16, 24) for k in range(4)]
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"p": "png?", "all": "png[]"}) as writer:
        for k, picture in enumerate(pictures):
            writer.append({"all": pictures[:k]} | ({"p": picture} if k % 2 else {}))
    ds = ingot.open(tmp_path / "x.ingot")
    batch = ds[[0, 1, 2, 3]]
    assert [one is None for one in batch["p"]] == [True, False, True, False]
    assert np.array_equal(batch["p"][3], pictures[3])
    assert [len(one) for one in batch["all"]] == [0, 1, 2, 3]
    for found, expected in zip(batch["all"][3], pictures, strict=False):
        assert np.array_equal(found, expected)
    part = ds[3, {"all": range(1, 3)}]["all"]
    assert [np.array_equal(a, b) for a, b in zip(part, pictures[1:3], strict=True)] == [True] * 2


def test_odd_pictures_are_left_to_pillow(tmp_path):
    rgb = photograph(5, 20, 30)
    odd = {
        "cmyk.jpg": ((20, 30, 3), saved(rgb, mode="CMYK")),
        "rgb.jpg": ((20, 30, 3), saved(rgb, keep_rgb=True)),
        "palette.png": ((20, 30, 3), saved(rgb, "PNG", "P")),
        "truths.png": ((20, 30), saved(rgb, "PNG", "1")),
        "deep.png": ((20, 30), saved(rgb[:, :, 0].astype(np.uint16) * 257, "PNG")),
    }
    for name, (shape, data) in odd.items():
        kind = name[-3:]
        ds = write(tmp_path / f"{name}.ingot", kind, [data, data])
        assert ds[0]["p"].shape == shape, name
        assert ds[[0, 1]]["p"].shape == (2, *shape), name
    assert ingot.open(tmp_path / "deep.png.ingot")[0]["p"].dtype == np.uint16
    off = np.abs(ingot.open(tmp_path / "rgb.jpg.ingot")[0]["p"].astype(int) - rgb)
    assert off.mean() < 5


def test_one_odd_picture_does_not_hide_the_others(tmp_path):
    values = [saved(photograph(k, 20, 30), mode="CMYK" if k == 1 else None) for k in range(3)]
    batch = write(tmp_path / "x.ingot", "jpg", values)[[0, 1, 2]]["p"]
    assert batch.shape == (3, 20, 30, 3)


def forged(path, kind, files):
    """Write files that a `DatasetWriter` would refuse."""
    fields = [("p", "cell", None, kind)]
    writer = NativeWriter(str(path), "create", "{}", None, 3, sync=False, fields=fields)
    for data in files:
        writer.append_row([data])
    writer.close()
    return ingot.open(path)


def test_damaged_pictures_are_named(tmp_path):
    for kind, name in (("jpg", "420.jpg"), ("png", "rgb.png")):
        data = (SAMPLES / f"seed-{name}").read_bytes()
        ds = forged(tmp_path / f"{kind}.ingot", kind, [data, data[: len(data) // 2], data])
        for read in (lambda ds=ds: ds[1], lambda ds=ds: ds[[0, 1]]):
            with pytest.raises(ingot.FormatError, match=rf"{kind}\.ingot: row 1: field 'p' is no"):
                read()
        assert ds[[0, 2]]["p"].shape == (2, 21, 34, 3)


def test_a_picture_that_claims_to_be_huge_is_rejected(tmp_path):
    png = bytearray((SAMPLES / "seed-gray.png").read_bytes())
    png[16:24] = (60_000).to_bytes(4, "big") * 2
    jpg = bytearray((SAMPLES / "seed-420.jpg").read_bytes())
    at = jpg.index(b"\xff\xc0") + 5
    jpg[at : at + 4] = b"\xff\xff\xff\xff"
    for kind, data in (("png", png), ("jpg", jpg)):
        ds = write(tmp_path / f"{kind}.ingot", kind, [bytes(data)])
        with pytest.raises(ingot.FormatError, match="row 0: field 'p'"):
            ds[[0]]


@pytest.mark.parametrize(
    ("kind", "shape", "words"),
    [
        ("jpg", (4, 4, 4), r"row 0: field 'p': jpg has 1 or 3 channels, got \(4, 4, 4\)$"),
        ("jpg", (3, 40, 40), r"jpg has 1 or 3 channels, got \(3, 40, 40\); channels come last"),
        ("png", (40, 40, 5), "png has 1 or 2 or 3 or 4 channels"),
        ("png", (0, 4, 3), "at least one pixel"),
        ("jpg", (4, 4, 3, 1), "an image of height, width and channels"),
    ],
)
def test_arrays_that_are_not_images_are_rejected(tmp_path, kind, shape, words):
    writer = ingot.DatasetWriter(tmp_path / "x.ingot", {"p": kind})
    with pytest.raises((ValueError, TypeError), match=words):
        writer.append({"p": np.zeros(shape, np.uint8)})
    writer.abandon()


def test_gray_pictures_come_back_without_a_dimension_for_colours(tmp_path):
    gray = photograph(1, 10, 12)[:, :, :1]
    ds = write(tmp_path / "x.ingot", "png", [gray, gray[:, :, 0]])
    assert np.array_equal(ds[[0, 1]]["p"], np.stack([gray[:, :, 0]] * 2))


def test_batches_are_decoded_in_many_threads_at_once(tmp_path):
    data = [saved(photograph(k, 60, 60)) for k in range(16)]
    ds = write(tmp_path / "x.ingot", "jpg", data)
    expected = ds[list(range(16))]["p"]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: ds[list(range(16))]["p"], range(12)):
            assert np.array_equal(found, expected)


def test_usual_pictures_are_read_without_pillow(tmp_path):
    write(tmp_path / "x.ingot", "jpg", [saved(photograph(0, 20, 20))])
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "import ingot; ds = ingot.open('x.ingot')\n"
        "assert ds[0]['p'].shape == ds[[0]]['p'][0].shape == (20, 20, 3)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def _file(kind, **options):
    stream = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


FILES = {
    "jpg": [
        _file("JPEG"),
        _file("JPEG", progressive=True),
        _file("JPEG", exif=b"Exif\0\0" + _file("JPEG")),
        _file("JPEG") + b"\0" * 20,
    ],
    "png": [_file("PNG"), _file("PNG") + b"more"],
    "webp": [_file("WEBP"), _file("WEBP", lossless=True)],
}


@pytest.mark.parametrize("kind", FILES)
def test_a_picture_that_was_cut_is_rejected_when_it_is_appended(tmp_path, kind):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"p": kind}) as writer:
        for data in FILES[kind]:
            writer.append({"p": data})
            end = len(data) - 25
            for length in (*range(20, end, 97), end):
                with pytest.raises(ValueError, match=rf"field 'p': .*{kind} file .*truncated"):
                    writer.append({"p": data[:length]})
    assert len(ingot.open(tmp_path / "x.ingot")) == len(FILES[kind])


def test_values_are_decoded_on_request_when_they_are_appended(tmp_path):
    whole = _file("JPEG")
    middle = len(whole) // 2
    spec = {"p": "jpg", "n": "utf8?", "more": "png[]"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec, check="decode") as writer:
        writer.append({"p": whole, "more": [_file("PNG")]})
        broken = _file("PNG")
        broken = broken[:middle] + bytes(100) + broken[middle + 100 :]
        with pytest.raises(ValueError, match="row 1: field 'more' cannot be decoded"):
            writer.append({"p": whole, "more": [broken]})
        writer.append({"p": whole, "n": "a", "more": []})
    assert len(ingot.open(tmp_path / "x.ingot")) == 2
    with pytest.raises(ValueError, match='check must be "structure" or "decode"'):
        ingot.DatasetWriter(tmp_path / "y", spec, check="all")


def test_a_damaged_picture_is_shown_as_damaged(tmp_path):
    whole = _file("JPEG")
    files = [whole, whole[: len(whole) // 2], whole]
    shown = forged(tmp_path / "x.ingot", "jpg", files)._repr_html_()
    assert shown.count("<img") == 2
    assert shown.count("<em>") == 1

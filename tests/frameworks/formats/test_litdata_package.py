"""LitData's chunks, as the package itself writes them."""

import io
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

import ingot

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from litdata import optimize
    from litdata.streaming.writer import BinaryWriter
    from litdata.types import Image as ImageFile
    from litdata.types import Jpeg

ROWS = 50
COMPRESSIONS = [
    {},
    {"compression": "zstd"},
    {"compression": "zstd", "compression_level": "chunk"},
    {"compression": "zstd", "compression_level": "sample"},
    {"compression": "zstd", "compression_level": "batch", "compression_batch_size": 3},
]


def saved(image, kind):
    """Return the file that Pillow makes of an image."""
    stream = io.BytesIO()
    image.save(stream, format=kind)
    return stream.getvalue()


def picture(rng):
    height, width = rng.integers(2, 30, 2)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8))


def numbers(k):
    """Return plain values beside an array, which keeps them out of Arrow."""
    rng = np.random.default_rng(k)
    return {
        "array": rng.integers(0, 99, rng.integers(1, 5, 2)).astype(np.int32),
        "bytes": rng.bytes(rng.integers(1, 200)),
        "float": float(rng.standard_normal()),
        "int": int(rng.integers(-(2**63), 2**63 - 1)),
        "str": "\u00e9" * int(rng.integers(9)) + f" {k}",
        "yes": bool(rng.integers(2)),
    }


def plain(k):
    """Return plain values, which LitData stores as Arrow."""
    found = numbers(k)
    del found["array"]
    return found


def tensors(k):
    """Return tensors and arrays with and without a header, in a nested item."""
    rng = np.random.default_rng(k)
    return {
        "deep": {
            "list": [
                torch.from_numpy(rng.standard_normal((2, rng.integers(1, 5)))),
                torch.from_numpy(rng.integers(-9, 9, rng.integers(1, 9))),
            ]
        },
        "half": rng.standard_normal((3, 2)).astype(np.float16),
        "run": rng.integers(0, 9, rng.integers(1, 9)).astype(np.uint16),
    }


def pictures(k):
    """Return a raw picture beside files of pictures."""
    rng = np.random.default_rng(k)
    return {
        "jpeg": Jpeg(bytes=saved(picture(rng), "JPEG")),
        "pil": picture(rng),
        "png": ImageFile(bytes=saved(picture(rng), "PNG"), format="png"),
    }


def alone(k):
    """Return an item that is one value."""
    return np.random.default_rng(k).standard_normal((2, 3, k % 4 + 1))


INSIDE = [one for one in COMPRESSIONS if one and one.get("compression_level") != "chunk"]
CASES = [
    *((make, options) for make in (numbers, plain, tensors, pictures) for options in COMPRESSIONS),
    # LitData does not compress items of one value inside of chunks, but says that it does.
    *((alone, options) for options in COMPRESSIONS if options not in INSIDE),
]
"""What makes the items of a data set, and how it is compressed."""


def write(folder, make, **options):
    """Write items with the package, ten in a chunk."""
    writer = BinaryWriter(str(folder), chunk_size=10, **options)
    for k in range(ROWS):
        writer[k] = make(k)
    writer.done()
    writer.merge()
    return folder


def leaves(item, above=""):
    """Yield the names and the values of an item, as Ingot names them."""
    if isinstance(item, dict | list):
        for key, one in item.items() if isinstance(item, dict) else enumerate(item):
            yield from leaves(one, f"{above}.{key}" if above else str(key))
    else:
        yield above or "value", item


def field(row, name):
    for part in name.split("."):
        row = row[part]
    return row


def compare(found, stored, known):
    """Compare a value and what is stored of it with the one that LitData was given."""
    match known:
        case ImageFile():
            assert stored == known.bytes
            np.testing.assert_array_equal(found, np.asarray(Image.open(io.BytesIO(stored))))
        case Jpeg():
            assert stored == known.bytes
            with Image.open(io.BytesIO(stored)) as image:
                assert found.shape == (image.height, image.width, 3)
        case Image.Image() | np.ndarray() | torch.Tensor():
            expected = np.asarray(known)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        case _:
            assert found == known
            assert type(found) is type(known)


@pytest.mark.parametrize(
    ("make", "options"),
    CASES,
    ids=lambda one: one.__name__ if callable(one) else "-".join(map(str, one.values())) or "plain",
)
def test_every_value_of_every_item_comes_out_as_it_went_in(tmp_path, make, options):
    folder = write(tmp_path / "chunks", make, **options)
    assert len(list(folder.glob("*.bin"))) == ROWS // 10
    ds = ingot.open(folder)
    for k, (row, stored) in enumerate(zip(ds, ds.stored(), strict=True)):
        for name, known in leaves(make(k)):
            compare(field(row, name), field(stored, name), known)
    asked = np.random.default_rng(0).permutation(ROWS)[:20]
    batch = ds[asked]
    for name, _ in leaves(make(0)):
        for k, found in zip(asked, field(batch, name), strict=True):
            np.testing.assert_array_equal(found, field(ds[int(k)], name))
    assert ds.verify().damaged == []


def test_a_spec_reads_pictures_that_litdata_takes_for_jpeg(tmp_path):
    def unnamed(k):
        return {"image": ImageFile(bytes=saved(picture(np.random.default_rng(k)), "PNG"))}

    ds = ingot.open(write(tmp_path / "chunks", unnamed), spec={"image": "png"})
    for k, row in enumerate(ds):
        np.testing.assert_array_equal(row["image"], picture(np.random.default_rng(k)))


def test_output_of_optimize_is_read(tmp_path):
    optimize(
        numbers,
        list(range(ROWS)),
        str(tmp_path / "optimized"),
        chunk_bytes="4KB",
        num_workers=1,
        start_method="fork",
        verbose=False,
    )
    ds = ingot.open(tmp_path / "optimized")
    assert len(ds) == ROWS
    for k, row in enumerate(ds):
        for name, known in numbers(k).items():
            compare(row[name], None, known)

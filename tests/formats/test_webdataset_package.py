"""Archives that the package `webdataset` writes, and reads from Ingot, value by value."""

import io

import numpy as np
import pytest
import webdataset
from PIL import Image

import ingot
from tests.support import containers

ROWS = 70

# WebDataset leaves the files that it has read to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def sample(k):
    """Return a sample with a member of each type that both packages know."""
    rng = np.random.default_rng(k)
    height, width = rng.integers(2, 30, 2)
    return {
        "__key__": f"folder.x/{k:05}",
        "bin": rng.bytes(rng.integers(2000)),
        "cls": int(rng.integers(-5, 1000)),
        "jpg": containers.jpeg(k),
        "json": {"k": k, "list": [1, None, "\u00e9"], "x": float(rng.random())},
        "mp": {"k": k, "bytes": rng.bytes(9)},
        "npy": rng.standard_normal((height, 3)).astype(rng.choice(["f2", "f4", "f8"])),
        "png": rng.integers(0, 256, (height, width, 3), np.uint8),
        "txt": "\u4e2d" * int(rng.integers(9)) + f" {k}",
        "left.txt": f"left {k}",
    }


def written(k):
    """Return the sample as the package takes it: it saves pictures on its own."""
    png = io.BytesIO()
    Image.fromarray(sample(k)["png"]).save(png, "PNG")
    return sample(k) | {"png": png.getvalue()}


def compare(row, stored, known):
    assert row["left"]["txt"] == known["left.txt"]
    for name in ("__key__", "bin", "cls", "json", "mp", "txt"):
        assert row[name] == known[name], name
    assert stored["jpg"] == known["jpg"]
    np.testing.assert_array_equal(row["png"], known["png"])
    assert row["npy"].dtype == known["npy"].dtype
    np.testing.assert_array_equal(row["npy"], known["npy"])


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_every_value_of_a_tar_writer_comes_out_as_it_went_in(tmp_path, mode):
    with webdataset.TarWriter(str(tmp_path / "x.tar"), mode=mode) as writer:
        for k in range(ROWS):
            writer.write(written(k))
    ds = ingot.open(tmp_path / "x.tar")
    assert len(ds) == ROWS
    for k, (row, stored) in enumerate(zip(ds, ds.stored(), strict=True)):
        compare(row, stored, sample(k))


def test_the_shards_of_a_shard_writer_are_one_data_set(tmp_path):
    pattern = str(tmp_path / "x-%04d.tar")
    with webdataset.ShardWriter(pattern, maxcount=9, verbose=0) as writer:
        for k in range(ROWS):
            writer.write(written(k))
    assert len(list(tmp_path.glob("*.tar"))) == 8
    ds = ingot.open(tmp_path)
    asked = np.random.default_rng(0).permutation(ROWS).tolist()
    assert ds[asked]["cls"].tolist() == [sample(k)["cls"] for k in asked]
    for k in asked:
        compare(ds[k], ds.stored()[k], sample(k))


def test_the_package_reads_every_value_that_ingot_converted(tmp_path):
    names = {"bin": "bytes", "cls": "int", "jpg": "jpg", "json": "json", "mp": "msgpack"}
    spec = names | {"npy": "array", "png": "png", "txt": "utf8", "part": "utf8?"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        for k in range(ROWS):
            row = {name: sample(k)[name] for name in spec if name != "part"}
            writer.append(row | {"part": "here" if k % 2 else None})
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.tar")
    url = f"file:{tmp_path / 'x.tar'}"
    raw = list(webdataset.WebDataset(url, shardshuffle=False))
    found = list(webdataset.WebDataset(url, shardshuffle=False).decode("rgb8"))
    assert len(found) == ROWS
    for k, (one, stored) in enumerate(zip(found, raw, strict=True)):
        known = sample(k)
        assert one["__key__"] == f"{k:06}"
        assert one.get("part.txt") == ("here" if k % 2 else None)
        assert stored["jpg"] == known["jpg"]
        for name in ("bin", "cls", "json", "mp", "txt"):
            assert one[name] == known[name], name
        for name in ("npy", "png"):
            assert one[name].dtype == known[name].dtype
            np.testing.assert_array_equal(one[name], known[name])

"""Files that `ingot.convert` makes for Hugging Face's datasets, and of theirs."""

import io

import datasets
import numpy as np
import pytest
from PIL import Image

import ingot
from tests.conversion.test_parquet import compare, converted  # noqa: F401


def test_hugging_face_reads_every_value_that_ingot_converted(converted, tmp_path):
    found = datasets.Dataset.from_parquet(str(converted), cache_dir=str(tmp_path / "cache"))
    compare(list(found))


def test_images_of_several_types_can_be_read_as_bytes(tmp_path):
    pictures = [io.BytesIO(), io.BytesIO()]
    for stream, kind in zip(pictures, ("PNG", "JPEG"), strict=True):
        Image.fromarray(np.full((8, 8, 3), 7, np.uint8)).save(stream, kind)
    files = [one.getvalue() for one in pictures]
    rows = [{"image": {"bytes": one, "path": None}} for one in files]
    features = datasets.Features({"image": datasets.Image()})
    source, target = tmp_path / "x.parquet", tmp_path / "x.tar"
    datasets.Dataset.from_list(rows, features=features).to_parquet(str(source))
    with pytest.raises(ingot.FormatError, match=r"row 1: field 'image': .* a jpg file, not a png"):
        ingot.convert(source, target)
    assert not target.exists()
    for spec in (None, {"image": "png"}):
        assert [row["image"].shape for row in ingot.open(source, spec=spec)] == [(8, 8, 3)] * 2
    ingot.convert(source, tmp_path / "x.ingot", spec={"image": "bytes"})
    assert [row["image"] for row in ingot.open(tmp_path / "x.ingot")] == files

"""Directories of images, read as Hugging Face's `imagefolder` reads them."""

import datasets
import numpy as np

import ingot
from tests.formats.test_images import folder  # noqa: F401


def test_rows_match_hugging_face(folder, tmp_path):
    real = datasets.load_dataset(
        "imagefolder", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "hf")
    )
    ds = ingot.open(folder)
    assert real.features["label"].names == ds.metadata["classes"]
    mine = sorted((row["label"], row["image"].tobytes()) for row in ds)
    assert mine == sorted((row["label"], np.array(row["image"]).tobytes()) for row in real)

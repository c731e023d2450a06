"""Folders that Hugging Face's datasets save."""

import json

import datasets
import pytest

import ingot
from tests.formats.arrow.test_arrow import jpg


def pictures(path, files, **features):
    """Save a data set of pictures as Hugging Face does, and open it here."""
    told = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    rows = [{"image": file, "label": k} for k, file in enumerate(files)]
    made = datasets.Dataset.from_list(rows, features=datasets.Features({**told, **features}))
    made.save_to_disk(path)
    return ingot.open(path)


def test_splits_of_a_dataset_dict_are_listed_and_open(tmp_path):
    split = datasets.Dataset.from_dict({"x": [1, 2]})
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk(tmp_path / "both")
    with pytest.raises(ingot.FormatError, match=r"splits 'train', 'test'; open one .*both/train"):
        ingot.open(tmp_path / "both")
    assert len(ingot.open(tmp_path / "both" / "test")) == 2


def test_a_saved_folder_cannot_name_files_elsewhere(tmp_path):
    datasets.Dataset.from_dict({"x": [1]}).save_to_disk(tmp_path / "d")
    state = json.loads((tmp_path / "d" / "state.json").read_text())
    for name in ["../d/data-00000-of-00001.arrow", "/etc/passwd", "..", 3]:
        state["_data_files"] = [{"filename": name}]
        (tmp_path / "d" / "state.json").write_text(json.dumps(state))
        with pytest.raises(ingot.FormatError, match="expected the names of files in this folder"):
            ingot.open(tmp_path / "d")


def test_pictures_are_decoded_and_saved_without_decoding(tmp_path):
    files = [jpg(k) for k in range(5)]
    ds = pictures(tmp_path / "d", [{"bytes": one, "path": None} for one in files])
    assert ds.spec["image"] == "jpg"
    assert ds[[4, 0]]["image"].shape == (2, 8, 8, 3)
    assert [row["image"] for row in ds.stored()] == files
    ds.save(tmp_path / "saved")
    assert [row["image"] for row in ingot.open(tmp_path / "saved").stored()] == files


def test_pictures_of_several_types_in_one_column_are_decoded(tmp_path):
    files = [jpg(0), jpg(1, "PNG"), jpg(2, "WEBP"), None]
    ds = pictures(tmp_path / "d", [one and {"bytes": one, "path": None} for one in files])
    assert ds.spec["image"] == "jpg?"
    assert [row["image"] is None for row in ds] == [False, False, False, True]
    assert ds[[1]]["image"][0][0, 0].tolist() == [10, 10, 10]
    with pytest.raises(ValueError, match=r"row 1: field 'image' .*not a jpg file"):
        ds.save(tmp_path / "saved")


def test_a_spec_names_fields_of_a_saved_folder(tmp_path):
    pictures(tmp_path / "saved", [jpg(1), jpg(2)])
    ds = ingot.open(tmp_path / "saved", spec={"label": "int"})
    assert [dict(row) for row in ds] == [{"label": 0}, {"label": 1}]

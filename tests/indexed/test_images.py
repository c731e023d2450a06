"""Directories of images, as Hugging Face has them."""

import pickle

import datasets
import numpy as np
import pytest
from PIL import Image

import ingot


def picture(path, value, size=(4, 3)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, value, value)).save(path)


@pytest.fixture
def folder(tmp_path):
    for k, name in enumerate(["cat/a.png", "cat/b.png", "dog/c.png", "bird/d.png"]):
        picture(tmp_path / "set" / name, 10 * k)
    return tmp_path / "set"


def test_the_directory_is_the_class(folder):
    ds = ingot.open(folder)
    assert dict(ds.spec) == {"image": "png", "label": "int"}
    assert ds.metadata == {"classes": ["bird", "cat", "dog"]}
    assert ds.column("label").tolist() == [0, 1, 1, 2]
    row = ds[0]
    assert (row["image"].shape, row["image"][0, 0, 0], row["label"]) == ((3, 4, 3), 30, 0)
    batch = ds[[3, 1]]
    assert batch["image"][:, 0, 0, 0].tolist() == [20, 0]
    assert batch["label"].tolist() == [2, 1]
    assert ds.verify() == ingot.Verification(4, [], ("image",))


def test_rows_are_those_of_hugging_face(folder, tmp_path):
    real = datasets.load_dataset(
        "imagefolder", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "hf")
    )
    ds = ingot.open(folder)
    assert real.features["label"].names == ds.metadata["classes"]
    mine = sorted((row["label"], row["image"].tobytes()) for row in ds)
    assert mine == sorted((row["label"], np.array(row["image"]).tobytes()) for row in real)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_metadata_say_which_images_there_are(folder, kind):
    if kind == "jsonl":
        text = '{"file_name": "dog/c.png", "caption": "a dog"}\n'
        text += '{"file_name": "cat/a.png", "caption": "a cat"}\n'
    else:
        text = "file_name,caption\ndog/c.png,a dog\ncat/a.png,a cat\n"
    (folder / f"metadata.{kind}").write_text(text)
    ds = ingot.open(folder)
    assert dict(ds.spec) == {"image": "png", "caption": "utf8"}
    assert [(row["caption"], row["image"][0, 0, 0]) for row in ds] == [("a dog", 20), ("a cat", 0)]
    assert ds[[1, 0]]["caption"] == ["a cat", "a dog"]
    assert pickle.loads(pickle.dumps(ds))[0]["caption"] == "a dog"  # noqa: S301


@pytest.mark.parametrize("name", ["../x.png", "/x.png", "nothing.png"])
def test_metadata_cannot_lead_out_of_the_directory(folder, name):
    (folder / "metadata.csv").write_text(f"file_name,n\n{name},1\n")
    with pytest.raises(ingot.FormatError, match=r"leads out|not there"):
        ingot.open(folder)


def test_images_without_directories_have_no_class(tmp_path):
    picture(tmp_path / "a.jpg", 1)
    assert dict(ingot.open(tmp_path).spec) == {"image": "jpg"}


def test_images_of_several_types_are_bytes(folder):
    picture(folder / "cat" / "e.jpg", 1)
    ds = ingot.open(folder)
    assert ds.spec["image"] == "bytes"
    assert ds[1]["image"] == (folder / "cat" / "a.png").read_bytes()


def test_a_damaged_image_is_named(folder):
    (folder / "cat" / "b.png").write_bytes(b"no picture")
    ds = ingot.open(folder)
    with pytest.raises(ingot.FormatError, match=r"b\.png: row 2"):
        ds[[0, 2]]
    assert [one.record for one in ds.verify().damaged] == [2]


def test_a_pickled_directory_refuses_other_images(folder):
    pickled = pickle.dumps(ingot.open(folder))
    (folder / "cat" / "a.png").unlink()
    with pytest.raises(ingot.FormatError, match="replaced"):
        pickle.loads(pickled)  # noqa: S301


def test_images_go_through_a_loader_and_into_an_ingot_file(folder, tmp_path):
    ds = ingot.open(folder)
    loader = ingot.Loader(ds.shuffle(seed=0), batch_size=2)
    assert sorted(k for batch in loader for k in batch["label"].tolist()) == [0, 1, 1, 2]
    ds.save(tmp_path / "x.ingot")
    assert ingot.open(tmp_path / "x.ingot").column("label").tolist() == [0, 1, 1, 2]


def test_a_directory_of_splits_says_which_there_are(tmp_path):
    for split in ("train", "val"):
        picture(tmp_path / "set" / split / "cat" / "a.png", 1)
    with pytest.raises(ingot.FormatError, match=r"has the splits 'train', 'val'; open one of them"):
        ingot.open(tmp_path / "set")
    assert ingot.open(tmp_path / "set" / "val").metadata == {"classes": ["cat"]}


def test_an_image_is_decoded_by_its_content_not_by_its_name(tmp_path):
    picture(tmp_path / "set" / "a.jpg", 10)
    picture(tmp_path / "b.png", 20)
    (tmp_path / "b.png").rename(tmp_path / "set" / "b.jpg")
    ds = ingot.open(tmp_path / "set")
    assert dict(ds.spec) == {"image": "jpg"}
    assert [row["image"][0, 0, 0] for row in ds] == [10, 20]
    assert ds[[0, 1]]["image"].shape == (2, 3, 4, 3)


def test_a_spec_says_of_which_type_images_are(tmp_path):
    picture(tmp_path / "set" / "cat" / "a.jpg", 10)
    picture(tmp_path / "set" / "cat" / "b.png", 20)
    assert dict(ingot.open(tmp_path / "set").spec) == {"image": "bytes", "label": "int"}
    ds = ingot.open(tmp_path / "set", spec={"image": "png"})
    assert dict(ds.spec) == {"image": "png"}
    assert [row["image"][0, 0, 0] for row in ds] == [10, 20]
    again = pickle.loads(pickle.dumps(ds))  # noqa: S301
    assert dict(again.spec) == {"image": "png"}
    with pytest.raises(ingot.FormatError, match="no field 'nope' of type int, only 'image': "):
        ingot.open(tmp_path / "set", spec={"nope": "int"})


def test_images_are_never_encoded_again(tmp_path):
    picture(tmp_path / "set" / "cat" / "a.jpg", 10)
    picture(tmp_path / "set" / "dog" / "b.jpg", 20)
    files = [(tmp_path / "set" / name).read_bytes() for name in ("cat/a.jpg", "dog/b.jpg")]
    ds = ingot.open(tmp_path / "set")
    assert ds.to_arrow()["image"].to_pylist() == files
    ds.save(tmp_path / "saved")
    for name in ("x.ingot", "x.parquet", "x.tar", "x.tfrecord"):
        ingot.convert(tmp_path / "set", tmp_path / name)
    for name in ("saved", "x.ingot"):
        assert [row["image"] for row in ingot.open(tmp_path / name).stored()] == files
    assert [row["image"]["jpg"] for row in ingot.open(tmp_path / "x.tar").stored()] == files
    assert ingot.open(tmp_path / "saved").column("label").tolist() == [0, 1]


def test_an_image_of_another_type_is_not_stored_as_one(tmp_path):
    picture(tmp_path / "b.png", 20)
    (tmp_path / "set").mkdir()
    (tmp_path / "b.png").rename(tmp_path / "set" / "b.jpg")
    with pytest.raises(ingot.FormatError, match=r"b\.jpg: this is not a jpg file"):
        ingot.convert(tmp_path / "set", tmp_path / "x.ingot")

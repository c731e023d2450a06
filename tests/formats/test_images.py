"""Directories of images, as Hugging Face has them."""

import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
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
    assert dict(ds.spec) == {"image": "png", "label": "int", "file_name": "utf8"}
    assert ds.metadata == {"classes": ["bird", "cat", "dog"]}
    assert ds.column("label").tolist() == [0, 1, 1, 2]
    assert ds[1:3][0]["file_name"] == "cat/a.png"
    assert ds[[3, 0]]["file_name"] == ["dog/c.png", "bird/d.png"]
    row = ds[0]
    assert (row["image"].shape, row["image"][0, 0, 0], row["label"]) == ((3, 4, 3), 30, 0)
    batch = ds[[3, 1]]
    assert batch["image"][:, 0, 0, 0].tolist() == [20, 0]
    assert batch["label"].tolist() == [2, 1]
    assert ds.verify() == ingot.Verification(4, [], ("image",))


def test_the_class_is_the_first_directory_as_in_torchvision(tmp_path):
    # The order and the numbers are those of torchvision.datasets.ImageFolder 0.28.
    names = [
        "dogs/raw/a.png",
        "cats/z.png",
        "cats/raw/b.png",
        "cats/raw-2/a.png",
        "cats/raw/x/c.png",
    ]
    for k, name in enumerate(names):
        picture(tmp_path / "set" / name, k)
    (tmp_path / "other").mkdir()
    picture(tmp_path / "other" / "e.png", 9)
    (tmp_path / "set" / "eels").symlink_to(tmp_path / "other")
    (tmp_path / "set" / "dogs" / "up").symlink_to(tmp_path / "set")
    ds = ingot.open(tmp_path / "set")
    assert ds.metadata == {"classes": ["cats", "dogs", "eels"]}
    assert [(row["file_name"], row["label"], row["image"][0, 0, 0]) for row in ds] == [
        ("cats/z.png", 0, 1),
        ("cats/raw/b.png", 0, 2),
        ("cats/raw-2/a.png", 0, 3),
        ("cats/raw/x/c.png", 0, 4),
        ("dogs/raw/a.png", 1, 0),
        ("eels/e.png", 2, 9),
    ]


def test_a_class_without_images_is_rejected_unless_it_is_listed(folder):
    (folder / "ant" / "raw").mkdir(parents=True)
    with pytest.raises(
        ingot.FormatError,
        match=r"no images in \['ant'\].*pass classes=\['ant', 'bird', 'cat', 'dog'\] to have",
    ):
        ingot.open(folder)
    ds = ingot.open(folder, classes=["ant", "bird", "cat", "dog"])
    assert ds.column("label").tolist() == [1, 2, 2, 3]
    assert ds.metadata == {"classes": ["ant", "bird", "cat", "dog"]}


def test_parts_of_a_data_set_share_the_classes_that_are_listed(tmp_path):
    for name in ("train/cat/a.png", "train/dog/b.png", "val/dog/c.png"):
        picture(tmp_path / name, 1)
    train = ingot.open(tmp_path / "train")
    val = ingot.open(tmp_path / "val", classes=train.metadata["classes"])
    assert val.column("label").tolist() == [1]
    assert pickle.loads(pickle.dumps(val)).column("label").tolist() == [1]  # noqa: S301
    both = ingot.open([tmp_path / "train", tmp_path / "val"], classes=["dog", "cat"])
    assert both.column("label").tolist() == [1, 0, 0]
    with pytest.raises(ingot.FormatError, match=r"val: the classes are \['dog'\], but those of"):
        ingot.open([tmp_path / "train", tmp_path / "val"])
    with pytest.raises(ingot.FormatError, match=r"images in \['cat'\], which classes= does not"):
        ingot.open(tmp_path / "train", classes=["dog"])


def test_labels_say_what_the_class_of_an_image_is(tmp_path):
    for name in ("cats/raw/a.png", "cats/raw/b.png", "dogs/raw/c.png", "dogs/d.png"):
        picture(tmp_path / "set" / name, 1)

    def found(**options):
        ds = ingot.open(tmp_path / "set", **options)
        return ds.metadata["classes"], ds.column("label").tolist()

    assert found(labels="folder") == (["cats", "dogs"], [0, 0, 1, 1])
    assert found(labels="parent") == (["dogs", "raw"], [1, 1, 0, 1])
    assert found(labels="path") == (["cats/raw", "dogs", "dogs/raw"], [0, 0, 1, 2])
    assert found(labels="parent", classes=["raw", "x", "dogs"])[1] == [0, 0, 2, 0]
    for none in (None, "none"):
        ds = ingot.open(tmp_path / "set", labels=none)
        assert (dict(ds.spec), ds.metadata) == ({"image": "png", "file_name": "utf8"}, {})
        assert len(ds) == 4
    with pytest.raises(ValueError, match=r"^labels='x': .*, 'path', or None for no classes$"):
        ingot.open(tmp_path / "set", labels="x")


def test_images_beside_the_directories_of_classes_are_not_left_out_unasked(folder):
    picture(folder / "x.png", 1)
    with pytest.raises(ingot.FormatError, match=r"image 'x\.png' is in no directory, but others"):
        ingot.open(folder)
    assert len(ingot.open(folder, labels="folder")) == 4
    assert len(ingot.open(folder, labels=None)) == 5


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"labels": "class"}, ValueError),
        ({"classes": ["cat", "cat"]}, ValueError),
        ({"classes": []}, ValueError),
        ({"classes": ["cat"], "labels": None}, ValueError),
        ({"classes": "cat"}, TypeError),
        ({"classes": [1]}, TypeError),
    ],
)
def test_invalid_classes_raise_with_a_reason(folder, options, error):
    with pytest.raises(error, match=r"^(labels|classes)="):
        ingot.open(folder, **options)


def test_other_data_sets_have_no_classes_by_directory(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"x\.csv: labels= and classes=: only for a directory of"):
        ingot.open(tmp_path / "x.csv", labels="folder")
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"one")
    with pytest.raises(ValueError, match="are for directories of images"):
        ingot.open(tmp_path / "x.ingot", classes=["a"])


def test_a_name_that_is_not_text_is_rejected(folder):
    picture(folder / "cat" / "q.png", 1)
    (folder / "cat" / "q.png").rename(folder / "cat" / os.fsdecode(b"\xff.png"))
    with pytest.raises(ingot.FormatError, match="is not UTF-8; rename it"):
        ingot.open(folder)


def test_parquet_files_called_metadata_are_a_table_without_images(tmp_path):
    pq.write_table(pa.table({"file_name": ["x.png"]}), tmp_path / "metadata.parquet")
    assert ingot.open(tmp_path)[0] == {"file_name": "x.png"}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_metadata_say_which_images_there_are(folder, kind):
    if kind == "parquet":
        table = {"file_name": ["dog/c.png", "cat/a.png"], "caption": ["a dog", "a cat"]}
        pq.write_table(pa.table(table), folder / "metadata.parquet")
    elif kind == "jsonl":
        text = '{"file_name": "dog/c.png", "caption": "a dog"}\n'
        text += '{"file_name": "cat/a.png", "caption": "a cat"}\n'
    else:
        text = "file_name,caption\ndog/c.png,a dog\ncat/a.png,a cat\n"
    if kind != "parquet":
        (folder / f"metadata.{kind}").write_text(text)
    ds = ingot.open(folder)
    assert dict(ds.spec) == {"image": "png", "file_name": "utf8", "caption": "utf8"}
    assert ds.select("file_name")[0] == {"file_name": "dog/c.png"}
    assert [(row["caption"], row["image"][0, 0, 0]) for row in ds] == [("a dog", 20), ("a cat", 0)]
    assert ds[[1, 0]]["caption"] == ["a cat", "a dog"]
    assert pickle.loads(pickle.dumps(ds))[0]["caption"] == "a dog"  # noqa: S301
    ds.save(folder.parent / "saved.ingot")
    assert ingot.open(folder.parent / "saved.ingot").select("caption")[1] == {"caption": "a cat"}
    with pytest.raises(ValueError, match="leave out labels="):
        ingot.open(folder, labels="folder")


@pytest.mark.parametrize("name", ["../x.png", "/x.png", "nothing.png", "a" * 300 + ".png"])
def test_metadata_cannot_lead_out_of_the_directory(folder, name):
    (folder / "metadata.csv").write_text(f"file_name,n\n{name},1\n")
    with pytest.raises(ingot.FormatError, match=r"leads out|does not exist"):
        ingot.open(folder)


@pytest.mark.parametrize(
    ("link", "leads_to", "name"),
    [
        ("sub", "..", "sub/secret.png"),
        ("cat/one.png", "../../secret.png", "cat/one.png"),
        ("cat/up", "../dog/out", "cat/up/secret.png"),
    ],
)
def test_metadata_cannot_lead_out_of_the_directory_by_a_link(folder, link, leads_to, name):
    picture(folder.parent / "secret.png", 1)
    (folder / "dog" / "out").symlink_to(folder.parent)
    (folder / link).symlink_to(leads_to)
    (folder / "metadata.csv").write_text(f"file_name,n\ncat/a.png,1\n{name},1\n")
    with pytest.raises(ingot.FormatError, match=rf"leads out of the directory: .*{link} links to"):
        ingot.open(folder)


def test_metadata_may_name_links_within_the_directory(folder):
    (folder / "cat" / "again.png").symlink_to("../dog/c.png")
    (folder / "pets").symlink_to(folder / "cat")
    (folder.parent / "link").symlink_to(folder)
    text = "file_name\ncat/again.png\npets/b.png\npets/again.png\n"
    (folder / "metadata.csv").write_text(text)
    for path in (folder, folder.parent / "link"):
        assert [row["image"][0, 0, 0] for row in ingot.open(path)] == [20, 10, 20]


def test_metadata_may_name_links_to_the_blobs_of_a_hub_snapshot(tmp_path):
    snapshot, blobs = tmp_path / "hub" / "snapshots" / "abc", tmp_path / "hub" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    picture(tmp_path / "x.png", 7)
    (tmp_path / "x.png").rename(blobs / "5e1f")
    (snapshot / "x.png").symlink_to("../../blobs/5e1f")
    (snapshot / "metadata.csv").write_text("file_name,n\nx.png,1\n")
    assert ingot.open(snapshot)[0]["image"][0, 0, 0] == 7


def test_images_without_directories_have_no_class(tmp_path):
    picture(tmp_path / "a.jpg", 1)
    (tmp_path / "notes").mkdir()
    assert dict(ingot.open(tmp_path).spec) == {"image": "jpg", "file_name": "utf8"}


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


def test_a_pickled_directory_rejects_other_images(folder):
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
    assert ingot.open(tmp_path / "set", labels="folder").metadata == {"classes": ["train", "val"]}
    assert ingot.open(tmp_path / "set" / "val").metadata == {"classes": ["cat"]}


def test_an_image_is_decoded_by_its_content_not_by_its_name(tmp_path):
    picture(tmp_path / "set" / "a.jpg", 10)
    picture(tmp_path / "b.png", 20)
    (tmp_path / "b.png").rename(tmp_path / "set" / "b.jpg")
    ds = ingot.open(tmp_path / "set")
    assert ds.spec["image"] == "jpg"
    assert [row["image"][0, 0, 0] for row in ds] == [10, 20]
    assert ds[[0, 1]]["image"].shape == (2, 3, 4, 3)


def test_a_spec_says_of_which_type_images_are(tmp_path):
    picture(tmp_path / "set" / "cat" / "a.jpg", 10)
    picture(tmp_path / "set" / "cat" / "b.png", 20)
    assert ingot.open(tmp_path / "set").spec["image"] == "bytes"
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

"""Rows that are copied as they are stored."""

import io
import os
import pickle

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import ingot
from ingot.codecs import Pickle

SPEC = {
    "image": "jpg",
    "label": "int",
    "caption": "utf8",
    "score": "float?",
    "frames": "jpg[]",
    "ids": "int[]",
    "note": "utf8?",
    "words": "utf8[]?",
    "inner": {"vector": "array", "flag": "bool"},
}


def picture(k):
    stream = io.BytesIO()
    rng = np.random.default_rng(k)
    Image.fromarray(rng.integers(0, 256, (16, 24, 3), np.uint8)).save(stream, "JPEG", quality=60)
    return stream.getvalue()


PICTURES = [picture(k) for k in range(5)]


def row(k):
    return {
        "image": PICTURES[k % 5],
        "label": k,
        "caption": f"caption {k}",
        "score": None if k % 3 else k / 2,
        "frames": PICTURES[: k % 4],
        "ids": list(range(k % 5)),
        "note": None if k % 2 else "n" * k,
        "words": None if k % 4 == 1 else ["w"] * (k % 3),
        "inner": {"vector": np.arange(k % 7), "flag": k % 2 == 0},
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "x"
    with ingot.DatasetWriter(path, SPEC, shard_rows=17, metadata={"from": "here"}) as writer:
        writer.extend(row(k) for k in range(60))
    return path


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


def check(saved, rows):
    """Check that the stored bytes of a data set are those of other rows."""
    ours, theirs = ingot.open(saved).stored(), rows.stored()
    assert len(ours) == len(theirs)
    assert all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    assert ingot.open(saved).verify().ok


def test_stored_values_are_the_bytes_that_were_given(source):
    stored = ingot.open(source).stored()
    assert stored[7]["image"] == PICTURES[2]
    assert stored[7]["frames"] == PICTURES[:3]
    assert stored[7]["label"] == 7
    assert stored[7]["caption"] == b"caption 7"
    assert stored[[7, 8]]["image"] == [PICTURES[2], PICTURES[3]]
    assert stored[[7, 8]]["frames"] == [PICTURES[:3], []]
    assert stored[7, {"frames": range(1, 3)}] == {"frames": PICTURES[1:3]}
    assert stored[1]["words"] is None
    assert stored[7]["ids"] == np.arange(2).tobytes()
    assert stored.spec["image"] == "bytes"
    assert stored.spec["score"] == "float?"
    again = pickle.loads(pickle.dumps(stored))  # noqa: S301
    assert again[7]["image"] == PICTURES[2]


def test_rows_are_copied_without_being_encoded_again(source, tmp_path):
    ds = ingot.open(source)
    with ingot.DatasetWriter(tmp_path / "x.ingot", ds.spec) as writer:
        writer.append(row(99))
        writer.extend(ds[:20])
        assert len(writer) == 21
    copied = ingot.open(tmp_path / "x.ingot").stored()
    assert [one["image"] for one in copied[1:]] == [PICTURES[k % 5] for k in range(20)]
    assert same(copied[5], ds.stored()[4])


@pytest.mark.parametrize("name", ["y", "y.ingot"])
def test_any_view_is_saved_as_it_is(source, tmp_path, name):
    ds = ingot.open(source)
    train, test = ds.split(0.8)
    views = [
        ds,
        ds[10:50:3],
        ds[::-1],
        ds.take([5, 5, 1, 59]),
        ds.where(ds.column("label") % 7 == 3),
        train,
        test.concat(train),
        ds.select("label", "frames"),
        ds.select("image").zip(ds.select("label", "words")),
        ds[:0],
    ]
    for number, view in enumerate(views):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        view.save(path)
        check(path, view)
        assert ingot.open(path).metadata == {"from": "here"}
        assert dict(ingot.open(path).spec) == dict(view.spec)


def test_saved_rows_go_into_shards(source, tmp_path):
    ds = ingot.open(source)
    ds.save(tmp_path / "rows", shard_rows=7, metadata={"k": 1})
    assert len(list((tmp_path / "rows").glob("*.ingot"))) == 9
    assert ingot.open(tmp_path / "rows").metadata == {"k": 1}
    check(tmp_path / "rows", ds)
    ds.save(tmp_path / "bytes", shard_bytes=20_000)
    assert len(list((tmp_path / "bytes").glob("*.ingot"))) > 2
    check(tmp_path / "bytes", ds)


def test_damage_is_noticed_and_not_copied(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, {"a": "bytes"}, compression=None) as writer:
        writer.extend({"a": b"row %04d" % k} for k in range(100))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"row 0050", b"row 0051", 1))
    with pytest.raises(ingot.CorruptFileError, match="record 50"):
        ingot.open(path).save(tmp_path / "y")
    assert list((tmp_path / "y").glob("*")) == []


@pytest.mark.parametrize("name", ["x", "x.ingot"])
def test_a_part_takes_the_place_of_the_data_set_that_it_is_a_part_of(source, tmp_path, name):
    ingot.open(source).save(tmp_path / name)
    ds = ingot.open(tmp_path / name)
    keep = ds.column("label") % 3 != 0
    ds.where(keep).save(tmp_path / name, overwrite=True)
    check(tmp_path / name, ingot.open(source).where(keep))
    assert ingot.open(tmp_path / name).metadata == {"from": "here"}
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x", "x.ingot"])
def test_a_field_is_replaced_by_another_of_its_name(source, tmp_path, name):
    ingot.open(source).save(tmp_path / name)
    ds = ingot.open(tmp_path / name)
    with ingot.DatasetWriter(tmp_path / "labels.ingot", {"label": "int"}) as writer:
        writer.extend({"label": ds.column("label") + 1000})
    others = ds.select(*(one for one in ds.spec if one != "label"))
    fixed = others.zip(ingot.open(tmp_path / "labels.ingot")).select(*ds.spec)
    fixed.save(tmp_path / name, overwrite=True)
    found = ingot.open(tmp_path / name)
    assert list(found.spec) == list(ds.spec)
    assert found.column("label").tolist() == list(range(1000, 1060))
    assert found.stored()[7]["image"] == PICTURES[2]


@pytest.mark.parametrize("name", ["x", "x.ingot"])
def test_a_failed_save_leaves_the_data_set_that_it_would_replace(tmp_path, name):
    with ingot.DatasetWriter(tmp_path / name, {"a": "bytes"}, compression=None) as writer:
        writer.extend({"a": b"row %04d" % k} for k in range(100))
    file = tmp_path / name if name == "x.ingot" else next((tmp_path / "x").glob("*.ingot"))
    content = file.read_bytes()
    file.write_bytes(content.replace(b"row 0050", b"row 0051", 1))
    ds = ingot.open(tmp_path / name)
    with pytest.raises(ingot.CorruptFileError, match="record 50"):
        ds.take(60).save(tmp_path / name, overwrite=True)
    assert len(ingot.open(tmp_path / name)) == 100
    keep = np.arange(100) != 50
    ds.where(keep).save(tmp_path / name, overwrite=True)
    assert [row["a"] for row in ingot.open(tmp_path / name)] == [
        b"row %04d" % k for k in range(100) if k != 50
    ]


def test_pickles_are_copied_without_being_read(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": Pickle()}) as writer:
        writer.append({"a": Trap()})
    ingot.open(tmp_path / "x.ingot").save(tmp_path / "y.ingot")
    assert b"mkdir" in ingot.open(tmp_path / "y.ingot").stored()[0]["a"]
    assert not (tmp_path / "trap").exists()


class Trap:
    """Makes a directory when it is read."""

    def __reduce__(self):
        return os.mkdir, ("trap",)


def test_rows_of_other_containers_are_encoded(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"] = np.arange(6).reshape(3, 2), ["x", "y", "z"]
    ds = ingot.open(tmp_path / "x.h5")
    with pytest.raises(TypeError, match="requires rows that are stored as bytes"):
        ds.stored()
    ds.save(tmp_path / "y.ingot")
    copied = ingot.open(tmp_path / "y.ingot")
    assert copied[2]["a"].tolist() == [4, 5]
    assert copied[2]["b"] == "z"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(st.integers(0, 59), max_size=70), shard_rows=st.integers(1, 20))
def test_any_rows_come_out_as_they_went_in(source, tmp_path_factory, rows, shard_rows):
    path = tmp_path_factory.mktemp("any") / "x"
    view = ingot.open(source).take(rows)
    view.save(path, shard_rows=shard_rows, sync=False)
    check(path, view)

"""A state is of the data that it was saved on, wherever they are."""

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ingot
from ingot.order import difference
from tests.support import DATA

ROWS = 40


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def write(path, first):
    """Write rows or records; those of another `first` have the same sizes."""
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".bag", ".array_record", ".ffr"):
        records = path.with_name(f"{path.stem}.ingot")
        with ingot.Writer(records, overwrite=True, sync=False) as writer:
            writer.extend(b"%04d" % k for k in range(first, first + ROWS))
        ingot.convert(records, path, overwrite=True, sync=False)
        records.unlink()
    elif path.suffix == ".npy":
        np.save(path, np.arange(first, first + ROWS))
    elif path.suffix == ".jsonl":
        lines = (json.dumps({"label": 1000 + k}) for k in range(first, first + ROWS))
        path.write_text("\n".join(lines) + "\n")
    elif path.name == "images":
        for k in range(ROWS):
            path.mkdir(exist_ok=True)
            Image.new("RGB", (4 + 300 * (first % 2), 4)).save(path / f"{k:03}.png")
    else:
        rows = path.with_name("rows.ingot" if path.name != "rows.ingot" else "rows")
        with ingot.DatasetWriter(rows, {"label": "int"}, overwrite=True, sync=False) as writer:
            writer.extend({"label": k} for k in range(first, first + ROWS))
        kind = {"granular": "granular"}.get(path.name)
        ingot.convert(rows, path, overwrite=True, format=kind, sync=False)
        shutil.rmtree(rows) if rows.is_dir() else rows.unlink()
    return path


NAMES = [
    "rows",
    "rows.ingot",
    "rows.tar",
    "rows.tfrecord",
    "rows.parquet",
    "rows.h5",
    "granular",
    "rows.npy",
    "rows.jsonl",
    "images",
    "log.bag",
    "log.array_record",
    "log.ffr",
]


def loader_of(source):
    return ingot.Loader(ingot.open(source).shuffle(1).repeat(), 8, workers=0)


def state_after(source, step=2):
    loader = loader_of(source)
    loader.seek(step)
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_on_overwritten_data_is_rejected(tmp_path, name):
    state = state_after(write(tmp_path / name, 1000))
    loader = loader_of(write(tmp_path / name, 1001))
    with pytest.raises(ValueError, match=r"saved on other data: .*40 rows.* with id [0-9a-f]+"):
        loader.load_state_dict(state)
    assert loader.step == 0


@pytest.mark.parametrize("name", NAMES)
def test_data_that_was_copied_and_renamed_resumes(tmp_path, name):
    path = write(tmp_path / "here" / name, 1000)
    copied = tmp_path / f"elsewhere{path.suffix}"
    if path.is_dir():
        shutil.copytree(path, copied, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(path, copied)
    for one in [copied, *copied.rglob("*")]:
        os.utime(one, (1, 1))
    straight, resumed = loader_of(path), loader_of(copied)
    straight.seek(3)
    resumed.load_state_dict(state_after(path, 3))
    assert resumed.step == 3
    assert repr(next(iter(resumed))) == repr(next(iter(straight)))
    assert resumed.order.fingerprint == straight.order.fingerprint
    assert difference(resumed.order.describe(), straight.order.describe()) is None


def test_another_folder_of_that_name_is_rejected_with_the_way_out(tmp_path):
    state = state_after(write(tmp_path / "a" / "train", 1000))
    other = loader_of(write(tmp_path / "b" / "train", 2000))
    with pytest.raises(
        ValueError, match=r"allow_other_data=True to load_state_dict, or call seek\(2\)"
    ):
        other.load_state_dict(state)
    other.load_state_dict(state, allow_other_data=True)
    assert other.step == 2


def test_the_state_of_other_fields_is_rejected(tmp_path):
    spec = {"label": "int", "text": "utf8"}
    with ingot.DatasetWriter(tmp_path / "rows", spec, sync=False) as writer:
        writer.extend({"label": k, "text": str(k)} for k in range(ROWS))
    rows = ingot.open_dataset(tmp_path / "rows")
    state = ingot.Loader(rows, 8).state_dict()
    some = ingot.Loader(rows.select("label"), 8)
    words = "with the fields 'label: int, text: utf8', and this .* with the fields 'label: int'"
    with pytest.raises(ValueError, match=words):
        some.load_state_dict(state)
    some.load_state_dict(state, allow_other_data=True)


def test_appended_rows_are_named_by_their_number(tmp_path):
    state = state_after(write(tmp_path / "rows", 1000))
    with ingot.DatasetWriter(tmp_path / "rows", {"label": "int"}, append=True) as writer:
        writer.append({"label": 5})
    loader = loader_of(tmp_path / "rows")
    for allow_other_data in (False, True):
        words = r"another order: it has .*40 rows.* has .*41 rows.*; .* call seek\(\d+\)$"
        with pytest.raises(ValueError, match=words):
            loader.load_state_dict(state, allow_other_data=allow_other_data)


@pytest.mark.parametrize("name", ["mds", "mds_zstd", "webdataset"])
def test_a_state_of_foreign_files_resumes_on_their_conversion(tmp_path, name):
    golden = DATA / "foreign" / name
    source = shutil.copytree(golden, tmp_path / name)
    ingot.convert(source, tmp_path / "converted", sync=False)
    order = ingot.open_dataset(source).shuffle(3).repeat()
    loader = ingot.Loader(order, 2, workers=0, collate=list)
    loader.seek(3)
    copy = ingot.open_dataset(tmp_path / "converted").shuffle(3).repeat()
    resumed = ingot.Loader(copy, 2, workers=0, collate=list)
    with pytest.raises(ValueError, match="saved on other data"):
        resumed.load_state_dict(loader.state_dict())
    resumed.load_state_dict(loader.state_dict(), allow_other_data=True)
    for _ in range(4):
        assert repr(next(iter(resumed))) == repr(next(iter(loader)))


def test_concatenated_and_zipped_data_differ_from_others(tmp_path):
    one, other = (ingot.open_dataset(write(tmp_path / name, 0)) for name in ("a", "b"))
    same = ingot.open_dataset(tmp_path / "a")
    prints = [ds.shuffle(0).fingerprint for ds in (one.concat(other), other.concat(one))]
    assert prints[0] != prints[1]
    assert same.concat(other).shuffle(0).fingerprint == prints[0]
    assert pickle.loads(pickle.dumps(one.concat(other))).shuffle(0).fingerprint == prints[0]  # noqa: S301


def test_a_state_that_names_no_data_is_compared_by_name(tmp_path):
    path = write(tmp_path / "rows", 1000)
    rows = ingot.open_dataset(path)
    loader = ingot.Loader(rows, 8)
    rows.close()
    state = loader.state_dict()
    assert "data" not in state["order"]
    again = ingot.Loader(ingot.open_dataset(path), 8)
    again.load_state_dict(state)
    other = ingot.Loader(ingot.open_dataset(write(tmp_path / "other", 1000)), 8)
    with pytest.raises(ValueError, match=r"saved on other data: on .*'rows'.* has .*'other'"):
        other.load_state_dict(state)


def test_making_a_loader_does_not_look_at_the_data(tmp_path):
    path = write(tmp_path / "images", 0)
    loader = loader_of(path)
    next(iter(loader))
    assert "images" in repr(loader)
    Path(path / "000.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"000\.png"):
        loader.state_dict()


def test_a_state_of_many_files_is_small(tmp_path):
    with ingot.DatasetWriter(tmp_path / "rows", {"x": "int"}, shard_rows=1, sync=False) as writer:
        writer.extend({"x": k} for k in range(200))
    state = ingot.Loader(ingot.open_dataset(tmp_path / "rows").shuffle(0), 8).state_dict()
    assert len(json.dumps(state)) < 600

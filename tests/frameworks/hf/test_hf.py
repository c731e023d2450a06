"""Data sets of Hugging Face, in and out, with the real library."""

import io
import pickle
import subprocess
import sys

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch
from datasets import Array2D, Array3D, ClassLabel, Features, List, Value
from datasets.distributed import split_dataset_by_node
from hypothesis import HealthCheck, given, settings
from PIL import Image
from torch.utils.data import DataLoader

import ingot
import ingot.hf
from tests.support.arrow_tables import LISTS, NUMBERS, plain, tables


def picture(k, kind="JPEG"):
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), 10 * k, np.uint8)).save(stream, kind)
    return stream.getvalue()


FEATURES = Features(
    {
        "image": datasets.Image(),
        "label": ClassLabel(names=["cat", "dog"]),
        "matrix": Array2D((2, 3), "float32"),
        "film": Array3D((None, 2, 2), "uint8"),
        "tokens": List(Value("int32")),
        "pair": List(Value("float64"), length=2),
        "boxes": List(List(Value("float32"), length=4)),
        "objects": List({"id": Value("int64"), "kind": ClassLabel(names=["p", "q"])}),
        "info": {"name": Value("string"), "tags": List(Value("string"))},
        "when": Value("timestamp[us]"),
        "note": Value("large_string"),
        "small": Value("int8"),
    }
)


def row(k):
    return {
        "image": {"bytes": picture(k), "path": f"{k}.jpg" if k % 2 else None},
        "label": k % 2,
        "matrix": np.full((2, 3), k, np.float32),
        "film": np.full((k % 3 + 1, 2, 2), k, np.uint8),
        "tokens": list(range(k)),
        "pair": [k, k + 0.5],
        "boxes": [[1.0, 2.0, 3.0, 4.0]] * (k % 3),
        "objects": [{"id": j, "kind": j % 2} for j in range(k % 4)],
        "info": {"name": str(k), "tags": ["t"] * (k % 2)},
        "when": k,
        "note": None if k == 3 else f"note {k}",
        "small": k,
    }


@pytest.fixture(scope="module")
def given_set():
    return datasets.Dataset.from_list([row(k) for k in range(12)], features=FEATURES)


@pytest.fixture(scope="module")
def written(given_set, tmp_path_factory):
    return ingot.hf.from_dataset(given_set, tmp_path_factory.mktemp("hf") / "x")


def test_fields_have_the_types_of_their_features(written):
    assert dict(written.spec) == {
        "image": "jpg",
        "label": "int",
        "matrix": "array(float32,2,3)",
        "film": "array",
        "tokens": "array(int32)[]",
        "pair": "array(float64,2)",
        "boxes": "array(float32,4)[]",
        "objects": "tree[]",
        "info.name": "utf8",
        "info.tags": "utf8[]",
        "when": "int",
        "note": "utf8?",
        "small": "array(int8)",
        "image_path": "utf8?",
    }
    assert written.metadata["labels"] == {"label": ["cat", "dog"], "objects.kind": ["p", "q"]}
    assert written[5]["image"].shape == (8, 8, 3)
    assert written.stored()[5]["image"] == picture(5)


def test_the_way_back_is_exact(given_set, written):
    back = ingot.hf.to_dataset(written)
    assert back.features == given_set.features
    assert back.data.table.equals(given_set.data.table)
    assert back[3]["image"].size == (8, 8)


def test_the_way_back_through_a_file_is_exact(given_set, written, tmp_path):
    back = ingot.hf.to_dataset(written, tmp_path / "x.arrow")
    assert back.features == given_set.features
    assert back.data.table.equals(given_set.data.table)
    with pytest.raises(FileExistsError):
        ingot.hf.to_dataset(written, tmp_path / "x.arrow")


def test_parts_and_some_fields_come_back_with_their_features(given_set, written):
    part = ingot.hf.to_dataset(written[2:5].select("label", "info"))
    assert part.features == Features({name: FEATURES[name] for name in ["label", "info"]})
    assert (
        part.to_list() == given_set.select(range(2, 5)).select_columns(["label", "info"]).to_list()
    )


def test_a_saved_folder_comes_back_with_its_features(given_set, tmp_path):
    given_set.save_to_disk(tmp_path / "d")
    back = ingot.hf.to_dataset(ingot.open(tmp_path / "d"))
    assert back.features == given_set.features
    drop = ["image"]  # Paths are not among the fields of files that are read in place.
    assert back.remove_columns(drop).data.table.equals(given_set.remove_columns(drop).data.table)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables([*NUMBERS, *LISTS[:12]]))
def test_any_data_set_comes_back_equal(table, tmp_path_factory):
    one = datasets.Dataset(table)
    path = tmp_path_factory.mktemp("any") / "x.ingot"
    back = ingot.hf.to_dataset(ingot.hf.from_dataset(one, path, sync=False))
    assert back.features == one.features
    assert back.data.table.equals(one.data.table)


def test_chosen_and_shuffled_rows_are_written(given_set, tmp_path):
    chosen = given_set.shuffle(seed=1).select(range(5))
    ds = ingot.hf.from_dataset(chosen, tmp_path / "x")
    assert ds.column("label").tolist() == chosen["label"][:]
    assert plain(ds.column("small")) == list(chosen["small"])


def test_an_iterable_data_set_is_written_as_it_comes(given_set, tmp_path):
    ds = ingot.hf.from_dataset(given_set.to_iterable_dataset(num_shards=3), tmp_path / "x")
    back = ingot.hf.to_dataset(ds)
    assert back.features == given_set.features
    assert back.data.table.equals(given_set.data.table)


def numbers():
    for k in range(2500):
        yield {"k": k, "text": f"row {k}"}


def test_an_iterable_data_set_without_features_is_written(tmp_path):
    ds = ingot.hf.from_dataset(datasets.IterableDataset.from_generator(numbers), tmp_path / "x")
    assert dict(ds.spec) == {"k": "int", "text": "utf8"}
    assert ds.column("k").tolist() == list(range(2500))


def test_files_that_are_known_by_path_only_are_read(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.png").write_bytes(picture(k, "PNG"))
    paths = [str(tmp_path / f"{k}.png") for k in range(3)]
    given_set = datasets.Dataset.from_dict({"image": paths}).cast_column("image", datasets.Image())
    ds = ingot.hf.from_dataset(given_set, tmp_path / "x")
    assert ds.spec["image"] == "png"
    assert [one["image"] for one in ds.stored()] == [picture(k, "PNG") for k in range(3)]
    assert ds[2]["image_path"] == "2.png"


def test_files_of_several_types_are_bytes(tmp_path):
    files = [picture(0), picture(1, "PNG")]
    rows = [{"image": {"bytes": one, "path": None}} for one in files]
    one = datasets.Dataset.from_list(rows, features=Features({"image": datasets.Image()}))
    ds = ingot.hf.from_dataset(one, tmp_path / "x")
    assert ds.spec["image"] == "bytes"
    assert [row["image"] for row in ds] == files
    assert ingot.hf.to_dataset(ds).data.table.equals(one.data.table)


def test_sounds_are_kept_as_they_are(tmp_path):
    with ingot.DatasetWriter(tmp_path / "w.ingot", {"sound": "wav"}) as writer:
        writer.append({"sound": (np.arange(100, dtype=np.int16), 8000)})
    stored = ingot.open(tmp_path / "w.ingot").stored()[0]["sound"]
    features = Features({"sound": datasets.Audio(decode=False)})
    rows = [{"sound": {"bytes": stored, "path": None}}]
    one = datasets.Dataset(pa.Table.from_pylist(rows).cast(features.arrow_schema))
    ds = ingot.hf.from_dataset(one, tmp_path / "x")
    samples, rate = ds[0]["sound"]
    assert ds.spec["sound"] == "wav"
    assert rate == 8000
    assert samples[99] == 99
    assert ingot.hf.to_dataset(ds)[0] == rows[0]


def test_fields_of_ingot_have_features_by_their_types(tmp_path):
    spec = {
        "image": "png",
        "pixels": "array(uint8,2,2,3)",
        "vector": "array(float32,3)",
        "words": "utf8[]",
        "obs.arm": "array(int16)?",
        "json": "json",
        "tree": "tree",
    }
    row = {
        "image": np.zeros((2, 2, 3), np.uint8),
        "pixels": np.ones((2, 2, 3), np.uint8),
        "vector": np.ones(3),
        "words": ["a"],
        "obs": {"arm": None},
        "json": [1],
        "tree": {"x": [1.5]},
    }
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.append(row)
    found = ingot.hf.to_dataset(ingot.open(tmp_path / "x.ingot"))
    assert found.features == Features(
        {
            "image": datasets.Image(),
            "pixels": Array3D((2, 2, 3), "uint8"),
            "vector": List(Value("float32"), length=3),
            "words": List(Value("string")),
            "obs": {"arm": Value("int16")},
            "json": Value("string"),
            "tree": {"x": List(Value("float64"))},
        }
    )
    assert found[0]["image"].size == (2, 2)
    assert found[0]["tree"] == {"x": [1.5]}


@pytest.mark.parametrize("given", [datasets.DatasetDict(), [1], "train"])
def test_invalid_splits_are_rejected(given, tmp_path):
    with pytest.raises(TypeError):
        ingot.hf.from_dataset(given, tmp_path / "x")


def test_a_dict_of_splits_is_rejected_with_their_names(given_set, tmp_path):
    with pytest.raises(TypeError, match=r"splits 'train'; pass one of them: .*\['train'\]"):
        ingot.hf.from_dataset(datasets.DatasetDict(train=given_set), tmp_path / "x")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    table = [{"k": k, "text": f"row {k}", "run": list(range(k % 3))} for k in range(1000)]
    return ingot.from_generator(table, tmp_path_factory.mktemp("rows") / "x")


def make_plain(rows):
    return rows


def make_order(rows):
    return rows.shuffle(seed=4)


MAKES = pytest.mark.parametrize("make", [make_plain, make_order])


@MAKES
def test_an_iterable_has_every_row_once_in_order(make, rows):
    stream = ingot.hf.iterable(make(rows), shards=7)
    assert stream.num_shards == 7
    assert [int(one["k"]) for one in stream] == [int(one["k"]) for one in make(rows)]


@MAKES
@pytest.mark.parametrize("done", [0, 1, 142, 143, 500, 999, 1000])
def test_a_state_resumes_at_the_next_row(make, rows, done):
    stream = ingot.hf.iterable(make(rows), shards=7)
    running = iter(stream)
    first = [int(next(running)["k"]) for _ in range(done)]
    again = ingot.hf.iterable(make(rows), shards=7)
    again.load_state_dict(stream.state_dict())
    assert first + [int(one["k"]) for one in again] == [int(one["k"]) for one in make(rows)]


@pytest.mark.parametrize("done", [0, 3, 10, 33])
def test_a_state_of_formatted_batches_resumes_at_the_next_one(rows, done):
    expected = [one["k"].tolist() for one in _batches(rows)]
    stream = _batches(rows)
    running = iter(stream)
    for _ in range(done):
        next(running)
    again = _batches(rows)
    again.load_state_dict(stream.state_dict())
    assert [one["k"].tolist() for one in again] == expected[done:]


def _batches(rows):
    return ingot.hf.iterable(rows, shards=3).with_format("numpy").batch(30)


@MAKES
@pytest.mark.parametrize("world", [2, 4])
def test_nodes_share_the_rows(make, rows, world):
    stream = ingot.hf.iterable(make(rows), shards=8)
    found = [
        int(one["k"]) for rank in range(world) for one in split_dataset_by_node(stream, rank, world)
    ]
    assert sorted(found) == list(range(1000))


@MAKES
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_workers_of_a_loader_share_the_rows(make, rows):
    chosen = make(rows.select("k"))
    stream = ingot.hf.iterable(chosen, shards=4).with_format("torch")
    loader = DataLoader(stream, batch_size=50, num_workers=2)
    found = torch.cat([batch["k"] for batch in loader])
    assert sorted(found.tolist()) == list(range(1000))


def test_an_epoch_shuffles_the_shards(rows):
    stream = ingot.hf.iterable(rows, shards=10).shuffle(seed=2, buffer_size=1)
    first = [one["k"] for one in stream]
    stream.set_epoch(1)
    second = [one["k"] for one in stream]
    assert first != second
    assert sorted(first) == sorted(second) == list(range(1000))


def test_an_infinite_order_is_dealt_out(rows):
    order = rows.shuffle(seed=1).repeat()
    expected = [int(one["k"]) for one in order[:2400]]
    for shards in (1, 2, 64):
        running = iter(ingot.hf.iterable(order, shards=shards))
        assert [int(next(running)["k"]) for _ in range(1200)] == expected[:1200]


def test_readers_of_an_infinite_order_have_all_of_it_together(rows):
    order = rows.shuffle(seed=1).repeat()
    stream = ingot.hf.iterable(order, shards=6)
    found = []
    for rank in range(3):
        running = iter(split_dataset_by_node(stream, rank, 3))
        found += [int(next(running)["k"]) for _ in range(800)]
    assert sorted(found) == sorted(int(one["k"]) for one in order[:2400])


@pytest.mark.parametrize("stop", [0, 1, 7, 31, 32, 33, 100])
def test_a_stream_of_an_infinite_order_resumes(rows, stop):
    stream = ingot.hf.iterable(rows.shuffle(seed=1).repeat(), shards=5)
    running = iter(stream)
    for _ in range(stop):
        next(running)
    state = stream.state_dict()
    expected = [int(next(running)["k"]) for _ in range(50)]
    again = ingot.hf.iterable(rows.shuffle(seed=1).repeat(), shards=5)
    again.load_state_dict(state)
    running = iter(again)
    assert [int(next(running)["k"]) for _ in range(50)] == expected


def test_an_iterable_pickles_with_its_rows(rows):
    stream = ingot.hf.iterable(rows, shards=3)
    stored = pickle.dumps(stream)
    assert [one["k"] for one in pickle.loads(stored)] == list(range(1000))  # noqa: S301


def test_pictures_of_an_iterable_are_decoded_by_the_library(written):
    stream = ingot.hf.iterable(written, shards=2)
    assert stream.features == FEATURES
    assert next(iter(stream))["image"].size == (8, 8)
    assert next(iter(stream.decode(enable=False)))["image"]["bytes"] == picture(0)


@pytest.mark.parametrize("shards", [0, -1, True, 1.5])
def test_less_than_one_shard_is_rejected(rows, shards):
    with pytest.raises(ValueError, match="shards must be a positive number"):
        ingot.hf.iterable(rows, shards=shards)


def test_a_path_in_place_of_a_data_set_is_rejected(tmp_path):
    with pytest.raises(TypeError, match=r"expected an ingot.Dataset, got str; ingot.open opens"):
        ingot.hf.to_dataset(str(tmp_path))


def test_only_data_sets_and_orders_are_iterable():
    with pytest.raises(TypeError, match=r"expected an ingot.Dataset or an ingot.Order, got list"):
        ingot.hf.iterable([1])


def test_without_datasets_the_error_tells_how_to_install_it(tmp_path):
    script = (
        "import sys; sys.modules['datasets'] = None\n"
        f"import ingot.hf; ingot.hf.from_dataset(None, {str(tmp_path)!r})"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "pip install 'ingot-data[hf]'" in found.stderr

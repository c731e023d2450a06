"""Records in PyTorch's own data loader."""

import os
import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    random_split,
)

import ingot
import ingot.torch
from ingot.order import Order

RECORDS = [b"%d-" % k * (1 + k % 7) for k in range(300)]
METHODS = ["fork", "spawn", "forkserver"]


class Counted(ingot.Reader):
    """A reader that writes down what it is asked for."""

    asked = []  # noqa: RUF012

    def __getitem__(self, index):
        self.asked.append(index)
        return super().__getitem__(index)


def take_asked():
    asked = list(Counted.asked)
    Counted.asked.clear()
    return asked


def collate_with_asked(batch):
    return batch, len(take_asked()), os.getpid()


def number(record):
    return int(record.partition(b"-")[0])


def source_of(kind, path):
    """Return what stands for records 20 to 279 or for all, and the records."""
    reader = Counted(path)
    view = reader[20:280]
    take_asked()
    return {
        "reader": (reader, RECORDS),
        "view": (view, RECORDS[20:280]),
        "data set of a reader": (ingot.torch.Dataset(reader), RECORDS),
        "data set of a view": (ingot.torch.Dataset(view), RECORDS[20:280]),
    }[kind]


KINDS = ["reader", "view", "data set of a reader", "data set of a view"]


@pytest.fixture
def path(make):
    return make(RECORDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_one_read(path, kind):
    source, records = source_of(kind, path)
    loader = DataLoader(source, batch_size=64, shuffle=True, collate_fn=list)
    batches, reads = [], []
    for batch in loader:
        batches.append(batch)
        reads.append(len(take_asked()))
    assert [len(batch) for batch in batches] == [64] * (len(records) // 64) + [len(records) % 64]
    assert reads == [1] * len(batches)
    seen = [record for batch in batches for record in batch]
    assert seen != records
    assert sorted(seen) == sorted(records)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_one_read_in_a_worker(path, kind):
    source, records = source_of(kind, path)
    loader = DataLoader(
        source,
        batch_size=64,
        num_workers=2,
        collate_fn=collate_with_asked,
        multiprocessing_context="fork",
    )
    batches, reads, workers = zip(*loader, strict=True)
    assert [record for batch in batches for record in batch] == records
    assert set(reads) == {1}
    assert len(set(workers) - {os.getpid()}) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_items_are_records(path, kind):
    source, records = source_of(kind, path)
    assert len(source) == len(records)
    assert source[7] == records[7]
    assert source[-1] == records[-1]
    assert source.__getitems__([5, 1, 5, -1]) == [records[k] for k in (5, 1, 5, -1)]
    assert source.__getitems__([]) == []
    with pytest.raises(IndexError, match=r"index 300 is out of range"):
        source.__getitems__([0, 300])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "indices", [torch.tensor([5, 1, 5]), (5, 1, 5), np.array([5, 1, 5]), [torch.tensor(5), 1, 5]]
)
def test_a_batch_of_indices_may_be_a_tensor_or_any_sequence(path, kind, indices):
    source, records = source_of(kind, path)
    assert source.__getitems__(indices) == [records[5], records[1], records[5]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_is_not_a_batch_of_indices(path, kind):
    source, _ = source_of(kind, path)
    with pytest.raises(TypeError, match=r"a boolean mask is not an index array"):
        source.__getitems__(torch.tensor([True, False]))


def test_batches_may_be_rows_of_a_permutation(path):
    order = torch.randperm(300, generator=torch.Generator().manual_seed(5))
    loader = DataLoader(ingot.open(path), batch_sampler=order.split(64), collate_fn=list)
    assert [one for batch in loader for one in batch] == [RECORDS[k] for k in order]


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_every_start_method_read_the_same(path, method):
    reader = ingot.open(path)
    assert reader[[1, 2, 3]] == RECORDS[1:4]
    loader = DataLoader(
        ingot.torch.Dataset(reader[20:280], number),
        batch_size=32,
        num_workers=2,
        multiprocessing_context=method,
    )
    numbers = torch.cat(list(loader))
    assert numbers.tolist() == list(range(20, 280))


def test_pytorchs_own_collation_takes_bytes(path):
    loader = DataLoader(ingot.torch.Dataset(path), batch_size=3)
    assert next(iter(loader)) == RECORDS[:3]


def test_without_batches_items_come_one_by_one(path):
    loader = DataLoader(ingot.torch.Dataset(path, number), batch_size=None)
    assert list(loader) == list(range(300))


def test_the_parts_of_a_random_split_are_read_in_batches(path):
    reader = Counted(path)
    parts = random_split(ingot.torch.Dataset(reader), [200, 100], torch.Generator().manual_seed(1))
    take_asked()
    seen = [batch for part in parts for batch in DataLoader(part, batch_size=50)]
    assert sorted(record for batch in seen for record in batch) == sorted(RECORDS)
    assert len(take_asked()) == len(seen) == 6


def test_a_transform_is_called_once_for_each_record(path):
    called = []

    def transform(record):
        called.append(record)
        return len(record)

    dataset = ingot.torch.Dataset(path, transform)
    assert dataset[4] == len(RECORDS[4])
    assert dataset.__getitems__([9, 2]) == [len(RECORDS[9]), len(RECORDS[2])]
    assert called == [RECORDS[4], RECORDS[9], RECORDS[2]]


def test_a_data_set_opens_what_open_takes(make, tmp_path, monkeypatch):
    one = make(RECORDS[:100], name="a.ingot")
    make(RECORDS[100:], name="b.ingot")
    monkeypatch.chdir(tmp_path)
    for source in [".", ["a.ingot", "b.ingot"], "*.ingot", tmp_path]:
        assert list(ingot.torch.Dataset(source)) == RECORDS
    assert list(ingot.torch.Dataset(str(one))) == RECORDS[:100]
    with pytest.raises(FileNotFoundError):
        ingot.torch.Dataset("none.ingot")


def test_a_data_set_is_a_map_style_data_set_of_pytorch(path):
    dataset = ingot.torch.Dataset(path)
    assert isinstance(dataset, torch.utils.data.Dataset)
    assert list(dataset) == RECORDS
    assert list(dataset + dataset) == RECORDS * 2
    assert repr(dataset) == f"<ingot.torch.Dataset of <ingot.Reader {str(path)!r}, 300 records>>"


@pytest.mark.parametrize("index", [300, -301])
def test_an_index_out_of_range_is_an_index_error(path, index):
    with pytest.raises(IndexError, match=rf"index {index} is out of range"):
        ingot.torch.Dataset(path)[index]


@pytest.mark.parametrize("index", [slice(0, 3), 1.0, "1", [1, 2]])
def test_an_index_is_an_integer(path, index):
    with pytest.raises(TypeError, match="integer"):
        ingot.torch.Dataset(path)[index]


def test_a_data_set_pickles_to_a_path(make):
    path = make(b"%d" % k for k in range(50_000))
    for source in (ingot.open(path), ingot.open(path)[5:]):
        dataset = ingot.torch.Dataset(source, number)
        assert dataset[7] == number(source[7])
        pickled = pickle.dumps(dataset)
        assert len(pickled) < 1000
        again = pickle.loads(pickled)  # noqa: S301
        assert len(again) == len(source)
        assert again.__getitems__([3, -1]) == [number(source[3]), number(source[-1])]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_damage_reaches_the_training_loop_as_what_it_is(make, num_workers):
    path = make([b"a" * 5000, b"b" * 5000, b"c" * 5000], compression=None)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"b" * 5000, b"b" * 4999 + b"x"))
    batches = []
    try:
        batches.extend(DataLoader(ingot.torch.Dataset(path), num_workers=num_workers))
    except ingot.CorruptFileError as error:
        # The frames hold the iterator in a cycle, whose workers PyTorch stops only after
        # ten seconds.
        traceback.clear_frames(error.__traceback__)
        message = str(error)
    assert batches == [[b"a" * 5000]]
    assert re.search(r"x\.ingot: record 1: .*checksum", message)


def test_sampling_with_replacement_reads_repeated_records(path):
    dataset = ingot.torch.Dataset(path, number)
    generator = torch.Generator().manual_seed(3)
    sampler = torch.utils.data.RandomSampler(
        dataset, replacement=True, num_samples=1000, generator=generator
    )
    order = list(
        torch.utils.data.RandomSampler(
            range(300),
            replacement=True,
            num_samples=1000,
            generator=torch.Generator().manual_seed(3),
        )
    )
    loader = DataLoader(dataset, batch_sampler=BatchSampler(sampler, 64, drop_last=False))
    assert torch.cat(list(loader)).tolist() == order
    assert len(set(order)) < len(order)


def test_epochs_of_persistent_workers_are_whole(path):
    loader = DataLoader(
        ingot.torch.Dataset(path, number),
        batch_size=16,
        sampler=SequentialSampler(range(300)),
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    for _ in range(3):
        assert torch.cat(list(loader)).tolist() == list(range(300))


HIDE_PYTORCH = """
import sys

class Hidden:
    def find_spec(name, path, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Hidden)
"""


@pytest.mark.parametrize("module", ["ingot.torch", "ingot.compat.ffrecord.torch"])
def test_without_pytorch_the_import_says_how_to_install_it(module):
    outcome = subprocess.run(
        [sys.executable, "-c", f"{HIDE_PYTORCH}\nimport {module}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    hint = "pip install 'ingot-data[torch]' (in a checkout: pip install '.[torch]')"
    message = f"{module} requires PyTorch: {hint}"
    assert outcome.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"


def test_a_tensor_of_indices_is_one(make):
    reader = ingot.open(make([b"%d" % k for k in range(10)]))
    assert reader[torch.tensor([3, 1, -1])] == [b"3", b"1", b"9"]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_a_data_set_arrives_as_tensors(tmp_path, workers):
    spec = {"image": "array(uint8,4,4)", "label": "int", "text": "utf8"}
    with ingot.DatasetWriter(tmp_path / "images", spec, shard_rows=30) as w:
        for k in range(100):
            w.append({"image": np.full((4, 4), k, np.uint8), "label": k, "text": f"t{k}"})
    ds = ingot.open(tmp_path / "images")
    batches = BatchSampler(RandomSampler(ds), 32, drop_last=False)
    seen = []
    for batch in DataLoader(ds, sampler=batches, batch_size=None, num_workers=workers):
        assert torch.equal(batch["image"][:, 0, 0].long(), batch["label"])
        assert batch["text"] == [f"t{k}" for k in batch["label"].tolist()]
        seen += batch["label"].tolist()
    assert sorted(seen) == list(range(100))
    rows = DataLoader(ds.select("image", "label"), batch_size=10, num_workers=workers)
    assert [batch["label"].tolist() for batch in rows][3] == list(range(30, 40))


def count_threads(_record):
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    helpers = sum(name.strip().removeprefix("ingot-").isdigit() for name in names)
    return ingot._core.threads(), helpers


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_reads_with_one_thread(make, method):
    reader = ingot.open(make([bytes(4096)] * 256, compression=None))
    assert len(reader[range(64)]) == 64
    loader = DataLoader(
        ingot.torch.Dataset(reader, count_threads),
        batch_size=64,
        num_workers=2,
        collate_fn=set,
        multiprocessing_context=method,
    )
    assert set().union(*loader) == {(1, 0)}


def ask_for_three(_worker):
    ingot.set_threads(3)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("way", ["variable", "setting"])
def test_a_worker_reads_with_more_threads_if_it_is_asked_to(make, way, monkeypatch):
    if way == "variable":
        monkeypatch.setenv("INGOT_THREADS", "3")
    loader = DataLoader(
        ingot.torch.Dataset(make([bytes(4096)] * 64, compression=None), count_threads),
        batch_size=64,
        num_workers=1,
        collate_fn=set,
        worker_init_fn=ask_for_three if way == "setting" else None,
        multiprocessing_context="fork",
    )
    assert {threads for threads, _ in set().union(*loader)} == {3}


@pytest.mark.parametrize("method", METHODS)
def test_the_loader_takes_an_order_and_reads_each_batch_together(path, method):
    order = Order.of(ingot.open(path)).shuffle(3).repeat(2).map(number)
    loader = DataLoader(order, batch_size=64, num_workers=2, multiprocessing_context=method)
    rows = order.rows(0, 600).row.tolist()
    assert torch.cat(list(loader)).tolist() == rows
    assert sorted(rows) == sorted([*range(300)] * 2)

"""PyTorch's loader over `ingot.compat.h5record`, beside that over H5Record itself."""

import copy
import os

import h5record as real
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, random_split

from ingot.compat import h5record
from ingot.compat.h5record import FloatSequence, H5Dataset, Image, Integer, Sequence, String
from tests.compat.h5record.rows import expected, rows, same, schema
from tests.frameworks.compat.h5record.package import write_real

METHODS = ["fork", "spawn", "forkserver"]
COUNT = 40


def columns(module=h5record):
    return [
        one for one in schema(module) if one.name not in ("film", "sequence", "floats", "halves")
    ]


def data(count=COUNT):
    names = {one.name for one in columns()}
    return [{key: value for key, value in one.items() if key in names} for one in rows(count)]


@pytest.fixture(params=["h5", "ingot"])
def path(request, tmp_path):
    return tmp_path / f"x.{request.param}"


def seeded():
    return torch.Generator().manual_seed(3)


def same_batches(one, other):
    one, other = list(one), list(other)
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a.keys() != b.keys():
            return False
        for key in a:
            is_same = a[key] == b[key] if isinstance(a[key], list) else torch.equal(a[key], b[key])
            if type(a[key]) is not type(b[key]) or not is_same:
                return False
    return True


class Asked(H5Dataset):
    """Remembers what was asked for."""

    def __getitems__(self, indices):
        found = super().__getitems__(indices)
        return [{**row, "asked": len(indices), "pid": os.getpid()} for row in found]


class Own(H5Dataset):
    """Has rows of its own making."""

    def __getitem__(self, idx):
        row = super().__getitem__(idx)
        return row["integer"] * 10, row["string"].upper()


class Doubled(Integer):
    """A column of one's own."""

    def transform(self, data):
        return super().transform(2 * data)


def first_floats(row):
    return {"floats": torch.from_numpy(row["floats"][0]).sum(), "integer": int(row["integer"])}


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("options", [{}, {"to_memory": True}, {"multiprocess": True}])
def test_batches_match_the_real_package(path, tmp_path, num_workers, shuffle, options):
    theirs = write_real(columns(real), tmp_path / "real.h5", data())
    H5Dataset(columns(), path, data())
    ours = H5Dataset(columns(), path, **options)
    assert isinstance(ours, torch.utils.data.Dataset)
    wanted = DataLoader(theirs, 8, shuffle=shuffle, generator=seeded())
    found = DataLoader(ours, 8, shuffle=shuffle, generator=seeded(), num_workers=num_workers)
    assert len(found) == len(wanted) == 5
    assert same_batches(wanted, found)
    assert same_batches(wanted, found)


def test_batches_have_tensors_of_the_types_of_their_columns(path):
    batch = next(iter(DataLoader(H5Dataset(columns(), path, data()), 5)))
    kinds = {"integer": torch.int64, "float": torch.float32, "float16": torch.float16}
    assert {key: batch[key].dtype for key in kinds} == kinds
    assert (batch["image"].dtype, batch["image"].shape) == (torch.uint8, (5, 3, 5, 7))
    assert batch["string"] == [one["string"] for one in rows(5)]
    assert batch["integer"].tolist() == [-3, -2, -1, 0, 1]


def test_sequences_of_a_batch_are_a_list_of_tensors(path):
    dataset = H5Dataset(schema(), path, rows(COUNT))
    some = [one for one in schema() if one.name in ("sequence", "floats", "halves")]
    for chosen in (H5Dataset(some, path), H5Dataset(some, path, to_memory=True)):
        batches = list(DataLoader(chosen, 16))
        assert [len(batch["floats"]) for batch in batches] == [16, 16, 8]
        for one in some:
            found = [tensor for batch in batches for tensor in batch[one.name]]
            wanted = [torch.from_numpy(row[one.name][0]) for row in dataset]
            assert [tensor.dtype for tensor in found] == [tensor.dtype for tensor in wanted]
            assert all(map(torch.equal, found, wanted))
    padded = torch.nn.utils.rnn.pad_sequence(batches[0]["sequence"], batch_first=True)
    assert padded.shape == (16, 5)


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_every_start_method_load_every_row_once(path, method):
    dataset = H5Dataset(schema(), path, rows(COUNT), compression="lzf")
    assert same(dataset[7], dataset.__getitems__([7])[0])
    dataset.transform = first_floats
    loader = DataLoader(
        dataset,
        8,
        shuffle=True,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=True,
    )
    wanted = {k - 3: float(rows(COUNT)[k]["floats"].sum()) for k in range(COUNT)}
    for _ in range(2):
        found = {}
        for batch in loader:
            found |= dict(zip(batch["integer"].tolist(), batch["floats"].tolist(), strict=True))
        assert found == pytest.approx(wanted)


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_every_start_method_have_rows_in_memory(path, method):
    H5Dataset(columns(), path, data())
    dataset = H5Dataset(columns(), path, to_memory=True)
    loader = DataLoader(dataset, 8, num_workers=2, multiprocessing_context=method)
    assert same_batches(DataLoader(dataset, 8), loader)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_rows_come_back_from_workers_as_they_are(path, method):
    dataset = H5Dataset(schema(), path, rows(10))
    options = {"num_workers": 1, "multiprocessing_context": method, "timeout": 30}
    loader = DataLoader(dataset, 4, collate_fn=list, **options)
    assert same(expected(schema(), rows(10)), [row for batch in loader for row in batch])


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_batch_is_read_together(path, num_workers):
    dataset = Asked(columns(), path, data())
    batches = list(DataLoader(dataset, 16, num_workers=num_workers))
    assert [batch["asked"].tolist() for batch in batches] == [[16] * 16, [16] * 16, [8] * 8]
    pids = {int(batch["pid"][0]) for batch in batches}
    assert pids == {os.getpid()} if num_workers == 0 else os.getpid() not in pids


@pytest.mark.parametrize("method", [None, "fork", "spawn"])
def test_a_subclass_has_its_own_rows(path, method):
    dataset = Own(columns(), path, data())
    loader = DataLoader(dataset, 16, num_workers=2 if method else 0, multiprocessing_context=method)
    numbers, texts = zip(*loader, strict=True)
    assert torch.cat(numbers).tolist() == [one["integer"] * 10 for one in data()]
    assert [text for batch in texts for text in batch] == [one["string"].upper() for one in data()]


def test_a_column_of_ones_own_goes_to_workers(path):
    dataset = H5Dataset([Doubled("i")], path, [{"i": k} for k in range(10)])
    loader = DataLoader(dataset, 5, num_workers=1, multiprocessing_context="spawn")
    assert [batch["i"].tolist() for batch in loader] == [[0, 2, 4, 6, 8], [10, 12, 14, 16, 18]]


def test_a_data_set_that_was_read_before_the_fork_is_read_after_it(path):
    dataset = H5Dataset(schema(), path, rows(COUNT), compression="gzip")
    before = [dataset[k] for k in range(COUNT)]
    loader = DataLoader(dataset, 5, collate_fn=len, num_workers=2)
    assert list(loader) == [5] * 8
    assert same(before, [dataset[k] for k in range(COUNT)])


def test_parts_and_sums_of_data_sets_are_loaded(path):
    dataset = H5Dataset(columns(), path, data())
    part = Subset(dataset, [5, 1, 5, 39])
    assert next(iter(DataLoader(part, 4)))["integer"].tolist() == [2, -2, 2, 36]
    both = ConcatDataset([dataset, part])
    assert torch.cat([batch["integer"] for batch in DataLoader(both, 7)]).tolist() == [
        *range(-3, 37), 2, -2, 2, 36,
    ]  # fmt: skip
    halves = random_split(dataset, [0.5, 0.5], seeded())
    found = [
        n for half in halves for batch in DataLoader(half, 6) for n in batch["integer"].tolist()
    ]
    assert sorted(found) == list(range(-3, 37))


def test_rows_without_batches_and_batches_of_ones_own(path):
    dataset = H5Dataset(columns(), path, data())
    assert [int(row["integer"]) for row in DataLoader(dataset, batch_size=None)] == list(
        range(-3, 37)
    )
    batches = DataLoader(dataset, batch_sampler=[[3], [0, 39, 0]])
    assert [batch["integer"].tolist() for batch in batches] == [[0], [-3, 36, -3]]


def test_zero_rows_give_zero_batches(path):
    assert list(DataLoader(H5Dataset(columns(), path, []), 4)) == []


def test_a_copy_reads_the_same(path):
    dataset = H5Dataset(schema(), path, rows(5))
    for twin in (copy.deepcopy(dataset), copy.copy(dataset)):
        assert same(list(dataset), list(twin))
    in_memory = copy.deepcopy(H5Dataset(schema(), path, to_memory=True))
    assert same(list(dataset), list(in_memory))


def test_digits_of_one_colour_in_a_column_of_three(path):
    def digits():
        for k in range(100):
            yield {"image": np.full((1, 28, 28), k, np.uint8), "label": k % 10}

    pictures = [Image(28, 28), Integer("label")]
    dataset = H5Dataset(pictures, path, digits(), data_length=100, multiprocess=True)
    found = {}
    for batch in DataLoader(dataset, batch_size=32, num_workers=2, shuffle=True):
        assert batch["image"].shape[1:] == (1, 28, 28)
        found |= dict(
            zip(batch["image"][:, 0, 3, 4].tolist(), batch["label"].tolist(), strict=True)
        )
    assert found == {k: k % 10 for k in range(100)}


def test_tensors_of_a_batch_can_be_changed(path):
    some = [Image(2, 2, 1), Sequence("s"), FloatSequence("f"), String("t")]
    given = [{"image": np.zeros((1, 2, 2), np.uint8), "s": [0], "f": [0.0], "t": ""}] * 4
    dataset = H5Dataset(some, path, given)
    for _ in range(2):
        for batch in DataLoader(dataset, 2):
            assert not batch["image"].any()
            assert not any(tensor.any() for tensor in batch["s"] + batch["f"])
            batch["image"] += 1
            for tensor in batch["s"] + batch["f"]:
                tensor.add_(1)

"""Data sets given to PyTorch's loader as they are."""

import pytest
import torch
from torch.utils.data import DataLoader

import ingot
import ingot.torch
from tests.dataset.read.test_first_touch import counted, label_of, path  # noqa: F401


def test_the_loader_of_torch_reads_a_batch_at_once(path):
    ds, source = counted(path)
    loader = DataLoader(ds.select("image", "label"), batch_size=64, shuffle=True)
    labels = torch.cat([batch["label"] for batch in loader])
    assert sorted(labels.tolist()) == list(range(1000))
    assert source.single == 0
    assert source.many == [64] * 15 + [40]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_transform_is_given_rows(path, workers):
    dataset = ingot.torch.Dataset(path, label_of)
    loader = DataLoader(dataset, batch_size=100, num_workers=workers)
    assert torch.cat(list(loader)).tolist() == list(range(1000))
    assert ingot.torch.Dataset(ingot.open(path)[5:], label_of)[0] == 5
    assert ingot.torch.Dataset(path)[7]["text"] == "text 7"

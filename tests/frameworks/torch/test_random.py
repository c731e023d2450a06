"""Random crops and functions in PyTorch's own data loader: others for each sample and epoch."""

import subprocess
import sys

import grain
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import ingot
import ingot.torch

COUNT = 60
CROPS = ingot.Pictures("image", 8, crop="random", flip=0.5)


def noisy(row, rng):
    return {"noise": int(rng.integers(1 << 60)), "n": row["n"]}


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    """The same picture in all rows, of which no two parts are alike."""
    path = tmp_path_factory.mktemp("torch") / "x.ingot"
    picture = np.arange(32 * 32 * 3, dtype=np.uint16).astype(np.uint8).reshape(32, 32, 3)
    picture[..., 0], picture[..., 1] = np.mgrid[:32, :32]
    with ingot.DatasetWriter(path, {"image": "png", "n": "int"}) as writer:
        writer.extend({"image": picture, "n": k} for k in range(COUNT))
    return ingot.open(path)


def crops_of(loader):
    return [one.numpy().tobytes() for batch in loader for one in batch["image"]]


@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_of_each_epoch_has_a_crop_of_its_own(ds, workers):
    torch.manual_seed(0)
    loader = DataLoader(ingot.torch.Dataset(ds, CROPS), 10, num_workers=workers)
    first, second = crops_of(loader), crops_of(loader)
    assert len(first) == COUNT
    assert len(set(first)) > COUNT / 2
    assert first != second
    torch.manual_seed(0)
    assert crops_of(loader) == first


def test_functions_get_a_generator_of_their_own(ds):
    loader = DataLoader(ingot.torch.Dataset(ds, noisy), 10, num_workers=2)
    found = [n for _ in range(2) for batch in loader for n in batch["noise"].tolist()]
    assert len(set(found)) == 2 * COUNT


@pytest.mark.parametrize("function", [CROPS, noisy])
def test_with_a_sampler_positions_decide(ds, function):
    dataset = ingot.torch.Dataset(ds.shuffle(1), function)
    sampler = ingot.torch.Sampler(dataset, batch_size=10)
    batches = DataLoader(dataset, sampler=sampler, batch_size=None, num_workers=2)
    loader = ingot.Loader(ds.shuffle(1).map(function), 10, to="torch")
    for _ in range(2):
        for found, expected in zip(batches, loader, strict=True):
            assert found.keys() == expected.keys()
            assert all(torch.equal(found[name], expected[name]) for name in found)


def test_an_order_whose_choices_would_not_change_warns(ds):
    with pytest.warns(UserWarning, match="same random choices in every epoch"):
        list(DataLoader(ds.map(noisy), 10))


@pytest.mark.parametrize("make", [lambda ds: ds.map(noisy).repeat(2), lambda ds: ds.map(len)])
def test_other_orders_do_not_warn(ds, make):
    list(DataLoader(make(ds), 10))


def test_random_choices_need_a_key(ds):
    with pytest.raises(TypeError, match=r"need a key.*ds\.map\(pictures\)"):
        CROPS(ds[0])
    assert ingot.Pictures("image", 8, crop="center", flip=1)(ds[0])["image"].shape == (8, 8, 3)


def test_a_generator_is_a_key(ds):
    crops = grain.MapDataset.source(ingot.grain.Source(ds)).random_map(CROPS, seed=3)
    found = {crops[k]["image"].tobytes() for k in range(COUNT)}
    assert len(found) > COUNT / 2


@pytest.mark.parametrize("name", ["compat", "fsspec", "grain", "hf", "jax", "torch"])
def test_modules_of_frameworks_need_no_import(name):
    program = f"import ingot; print(ingot.{name}.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"ingot.{name}\n"

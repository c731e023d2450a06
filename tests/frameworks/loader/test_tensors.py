"""Batches of tensors of PyTorch."""

import numpy as np
import pytest
import torch

import ingot
from tests.loader.test_packs import check_packs


def test_tensors_share_their_memory_with_arrays(cats):
    batch = ingot.Loader(cats, 4, to="torch").batch(1)
    assert batch["image"].dtype == torch.uint8
    assert batch["label"].tolist() == [4, 5, 6, 7]
    assert batch["deep"]["x"].dtype == torch.float64
    assert batch["words"][1] == ["5/0", "5/1", "5/2", "5/3", "5/4"][:0]
    batch["image"][0] = 0  # PyTorch writes where it wants


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to pin memory for")
def test_without_a_gpu_no_memory_is_pinned(cats):
    batch = ingot.Loader(cats, 4, to="torch", pin_memory=True).batch(0)
    assert not batch["image"].is_pinned()


def test_memory_that_must_not_change_is_copied_for_tensors():
    fixed = np.arange(3)
    fixed.flags.writeable = False
    loader = ingot.Loader([0, 1], 2, collate=lambda _: [fixed, np.array(["a"])], to="torch")
    numbers, texts = loader.batch(0)
    numbers[0] = 9
    assert fixed.tolist() == [0, 1, 2]
    assert isinstance(texts, np.ndarray)


def test_tensors_are_made_of_arrays_that_pytorch_cannot_use_as_they_are():
    batch = {"turned": np.arange(6.0)[::-1], "foreign": np.arange(3, dtype=">i4")}
    loader = ingot.Loader([0, 1], 2, to="torch", collate=lambda _: batch)
    found = next(iter(loader))
    assert found["turned"].tolist() == [5, 4, 3, 2, 1, 0]
    assert found["foreign"].dtype == torch.int32
    assert found["foreign"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([torch.ones(2), torch.zeros(2)], torch.tensor([[1.0, 1], [0, 0]])),
        ([torch.ones(2), torch.zeros(3)], [torch.ones(2), torch.zeros(3)]),
    ],
)
def test_tensors_of_one_shape_are_stacked(samples, expected):
    found = ingot.Loader(samples, 2).batch(0)
    assert type(found) is type(expected)
    assert str(found) == str(expected)


def test_arrays_of_subclasses_are_stacked_and_masks_are_kept():
    masked = [np.ma.masked_array([k, 1], [True, False]) for k in range(4)]
    matrices = [np.array([[k, 1]]).view(np.matrix) for k in range(4)]
    samples = [
        {"masked": one, "matrix": other} for one, other in zip(masked, matrices, strict=True)
    ]
    batch = next(iter(ingot.Loader(samples, 4, to="torch")))
    assert [one.mask.tolist() for one in batch["masked"]] == [[True, False]] * 4
    assert batch["matrix"].tolist() == [[[k, 1]] for k in range(4)]


def test_batches_of_tensors_resume(cats):
    assert ingot.Loader(cats, 8, to="torch", drop_last=False).verify_resume() >= 16


@pytest.mark.parametrize("long", ["drop", "cut"])
def test_a_loader_gives_padded_packs_of_all_tokens(tmp_path, long):
    check_packs(tmp_path, long, to="torch")

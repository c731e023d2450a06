"""Batches of tensors that processes make."""

import numpy as np
import pytest
import torch

from tests.loader.test_processes import check_batches, check_memory, ds  # noqa: F401


def tensors(samples):
    images = torch.from_numpy(np.stack([one["image"] for one in samples]))
    return {
        "wide": images.to(torch.bfloat16),
        "turned": images.transpose(0, 1),
        "imaginary": torch.complex(images.float(), images.float()).conj(),
        "none": images[:0],
        "one": torch.tensor(3.5),
        "grown": torch.ones(3, requires_grad=True).detach_(),
    }


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize(
    "options", [{"to": "torch"}, {"collate": tensors}], ids=["torch", "tensors"]
)
def test_processes_make_the_batches_of_threads(ds, processes, options):
    check_batches(ds, processes, options)


def test_memory_is_reused_but_never_while_a_tensor_references_it(ds):
    check_memory(ds, torch.from_numpy)

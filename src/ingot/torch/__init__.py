"""Records, rows and orders in PyTorch's data loaders, one native read per batch."""

from ingot.extras import requirement

with requirement("torch", "ingot.torch"):
    import torch.utils.data  # noqa: F401

from ingot.torch.dataloader import DataLoader
from ingot.torch.dataset import Dataset, Positions
from ingot.torch.sampler import Sampler, shard_of

__all__ = ["DataLoader", "Dataset", "Positions", "Sampler", "shard_of"]

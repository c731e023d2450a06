"""Records, rows and orders in PyTorch's data loaders, one native read per batch."""

from ingot.extras import requirement

with requirement("torch", "ingot.torch"):
    import torch.utils.data  # noqa: F401

from ingot.torch.dataloader import DataLoader
from ingot.torch.dataset import Dataset, Positions
from ingot.torch.mesh import shard_of
from ingot.torch.sampler import Sampler

__all__ = ["DataLoader", "Dataset", "Positions", "Sampler", "shard_of"]

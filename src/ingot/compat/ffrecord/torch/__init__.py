"""`ffrecord.torch`: FFRecord's data sets and data loader, over PyTorch's own."""

from ingot.extras import requirement

with requirement("torch", "ingot.compat.ffrecord.torch"):
    import torch.utils.data  # noqa: F401

from ingot.compat.ffrecord.torch.dataloader import DataLoader
from ingot.compat.ffrecord.torch.dataset import ConcatDataset, Dataset, Subset
from ingot.compat.ffrecord.torch.registry import ReaderRegistry

__all__ = ["ConcatDataset", "DataLoader", "Dataset", "ReaderRegistry", "Subset"]

"""`ffrecord.torch`: FFRecord's data sets and data loader, over PyTorch's own."""

try:
    import torch.utils.data  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    message = "ingot.compat.ffrecord.torch requires PyTorch: pip install torch"
    raise ModuleNotFoundError(message, name="torch") from error

from ingot.compat.ffrecord.torch.dataloader import DataLoader
from ingot.compat.ffrecord.torch.dataset import ConcatDataset, Dataset, Subset
from ingot.compat.ffrecord.torch.registry import ReaderRegistry

__all__ = ["ConcatDataset", "DataLoader", "Dataset", "ReaderRegistry", "Subset"]

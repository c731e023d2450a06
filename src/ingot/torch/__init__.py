"""Records, rows and orders in PyTorch's data loaders, one native read per batch."""

try:
    import torch.utils.data  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    message = "ingot.torch requires PyTorch: pip install torch"
    raise ModuleNotFoundError(message, name="torch") from error

from ingot.torch.dataloader import DataLoader
from ingot.torch.dataset import Dataset, Positions
from ingot.torch.mesh import shard_of
from ingot.torch.sampler import Sampler

__all__ = ["DataLoader", "Dataset", "Positions", "Sampler", "shard_of"]

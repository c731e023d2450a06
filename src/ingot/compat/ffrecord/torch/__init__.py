"""`ffrecord.torch`: FFRecord's data sets and data loader, over PyTorch's own."""

try:
    import torch.utils.data  # noqa: F401
except ModuleNotFoundError as error:
    message = (
        "ingot.compat.ffrecord.torch requires PyTorch: "
        "pip install 'ingot-data[torch]' (in a checkout: pip install '.[torch]')"
    )
    raise ModuleNotFoundError(message, name=error.name) from error

from ingot.compat.ffrecord.torch.dataloader import DataLoader
from ingot.compat.ffrecord.torch.dataset import ConcatDataset, Dataset, ReaderRegistry, Subset

__all__ = ["ConcatDataset", "DataLoader", "Dataset", "ReaderRegistry", "Subset"]

for _name in __all__:
    globals()[_name].__module__ = __name__

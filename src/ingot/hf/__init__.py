"""Data sets of Hugging Face's library `datasets`, in and out."""

from ingot.hf.export import iterable, to_dataset
from ingot.hf.intake import from_dataset

__all__ = ["from_dataset", "iterable", "to_dataset"]

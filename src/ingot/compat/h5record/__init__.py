"""H5Record's API over Ingot: `from ingot.compat.h5record import H5Dataset, Integer, String`."""

from ingot.compat.h5record.attributes import (
    Attribute,
    Float,
    Float16,
    Float16Sequence,
    FloatSequence,
    Image,
    ImageSequence,
    Integer,
    Sequence,
    String,
)
from ingot.compat.h5record.dataset import AtomicFile, H5Dataset

__all__ = [
    "AtomicFile",
    "Attribute",
    "Float",
    "Float16",
    "Float16Sequence",
    "FloatSequence",
    "H5Dataset",
    "Image",
    "ImageSequence",
    "Integer",
    "Sequence",
    "String",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

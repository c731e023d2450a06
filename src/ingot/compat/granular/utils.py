"""`granular.utils`."""

from ingot.formats.granular import Closing

__all__ = ["Closing"]

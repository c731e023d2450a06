"""`bagz.beam` over Ingot: bags in Apache Beam."""

import ingot.beam as _  # noqa: F401 -- says what to install where Beam is missing
from ingot.compat.bagz.beam import bagzio

__all__ = ["bagzio"]

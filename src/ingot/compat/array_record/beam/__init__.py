"""`array_record.beam` over Ingot: ArrayRecord files in Apache Beam, without TensorFlow.

Paths are those of Beam's file systems: where the original requires a local disk you can use a
bucket, and the other way round.
"""

import ingot.beam as _  # noqa: F401 -- says what to install where Beam is missing
from ingot.compat.array_record.beam import (
    arrayrecordio,
    dofns,
    example,
    options,
    pipelines,
)

__all__ = ["arrayrecordio", "dofns", "example", "options", "pipelines"]

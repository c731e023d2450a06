"""The modules of `array_record.python`, under their original names."""

import sys

from ingot.compat.array_record import array_record_data_source, array_record_module

__all__ = ["array_record_data_source", "array_record_module"]

# For `from ....python.array_record_module import ArrayRecordWriter`.
for _module in (array_record_data_source, array_record_module):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

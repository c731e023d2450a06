"""The modules of `array_record.python`, where its users look for them."""

from ingot.compat.array_record import array_record_data_source, array_record_module

__all__ = ["array_record_data_source", "array_record_module"]

"""ArrayRecord's API over Ingot: `from ingot.compat.array_record import array_record_module`."""

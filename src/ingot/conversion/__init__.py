"""Conversion between formats, and the check of what is written against what was read."""

from ingot.conversion.convert import Conversion, convert

__all__ = ["Conversion", "convert"]

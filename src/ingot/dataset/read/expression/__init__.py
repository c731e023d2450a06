"""Conditions on the fields of rows, written as text: `label == 3 and len(frames) > 10`."""

from ingot.dataset.read.expression.expression import Expression

__all__ = ["Expression"]

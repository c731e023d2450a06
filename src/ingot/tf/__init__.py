"""Batches as a `tf.data.Dataset`."""

from ingot.extras import requirement

with requirement("tensorflow", "ingot.tf"):
    import tensorflow as tf  # noqa: F401

from ingot.tf.dataset import dataset

__all__ = ["dataset"]

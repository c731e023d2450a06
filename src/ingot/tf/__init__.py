"""Batches as a `tf.data.Dataset`."""

try:
    import tensorflow as tf  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    message = "ingot.tf requires TensorFlow: pip install tensorflow"
    raise ModuleNotFoundError(message, name="tensorflow") from error

from ingot.tf.dataset import dataset

__all__ = ["dataset"]

"""A `tf.data.Dataset` of the batches of a loader."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from ingot.loader import Loader
from ingot.order import Order
from ingot.order.arguments import Samples
from ingot.tf.signature import signature_of
from ingot.tf.tensors import tensors


def dataset(
    order: Samples | Order | Loader,
    batch_size: int | None = None,
    *,
    signature: Any = None,
    **options: Any,
) -> tf.data.Dataset:
    """Return the batches of a loader as a `tf.data.Dataset`, one element for each step.

    The loader reads ahead with its threads. The first loop over the data set continues from where
    the loader is to the end of the epoch; each further loop is the next epoch, with another
    shuffle, also if the loop before it was left early. One loop at a time may run.

    The number of elements is known: the steps of an epoch, or infinite for an infinite order. It
    is unknown if the loader is in the middle of an epoch or leaves out steps.

    The state of the loader counts the batches that TensorFlow has taken. Behind a `prefetch` of
    TensorFlow these are more than you got: count your steps, and resume with `loader.seek`.

    Rows of data sets have tensors by the types of their fields: text and bytes are `tf.string`;
    numbers and arrays have their own dtype, and None for dimensions that may differ; sequences are
    ragged. An optional field `x` has 0, an empty text or an empty sequence where it is missing,
    and a tensor `x?` that says where it is present. For what `map` or `collate` return, dtypes
    and shapes are those of the first batch. A batch that does not fit raises an error.

    Args:
        order: An order, a data set, a reader, a view, any other sequence of samples, or a loader
            of numpy arrays. If a loader has loaded a state, make the data set after that.
        batch_size: The number of samples of a step on each rank; None for a loader.
        signature: Nested dicts and tuples of `tf.TensorSpec` and `tf.RaggedTensorSpec` that
            batches have; fields that it does not name are left out.
        **options: Other options of `ingot.Loader`, such as `global_batch_size` in place of
            `batch_size`.

    Raises:
        TypeError: A field has values that are not tensors, such as `json`: leave it out with
            `select`, or `map` it. Or there are options for a loader that is made already.

    Example:
        >>> train = ingot.tf.dataset(ds.shuffle(seed=0), 64)  # doctest: +SKIP
        >>> model.fit(train, epochs=3)  # doctest: +SKIP
    """
    loader = _loader_of(order, batch_size, options)
    specs = signature_of(loader) if signature is None else signature
    made = tf.data.Dataset.from_generator(_Epochs(loader, specs), output_signature=specs)
    count = _num_elements(loader)
    if count is not None:
        made = made.apply(tf.data.experimental.assert_cardinality(count))
    exact = tf.data.Options()
    exact.experimental_optimization.inject_prefetch = False  # The state counts what users got.
    return made.with_options(exact)


def _loader_of(
    order: Samples | Order | Loader, batch_size: int | None, options: dict[str, Any]
) -> Loader:
    if not isinstance(order, Loader):
        if batch_size is None and options.get("global_batch_size") is None:
            raise TypeError("expected a loader, or an order and a batch_size")
        return Loader(order, batch_size, **options)
    if batch_size is not None or options:
        raise TypeError("batch_size and other options are those of the loader: pass them there")
    return order


def _num_elements(loader: Loader) -> int | None:
    """Return the number of elements of each loop; None if loops differ."""
    if loader.order.is_infinite:
        return int(tf.data.INFINITE_CARDINALITY)
    is_within = loader.step % len(loader) or "skipped" in loader.state_dict()
    return None if is_within else len(loader)


class _Epochs:
    """Starts a loop over a loader."""

    def __init__(self, loader: Loader, specs: Any) -> None:
        self._loader = loader
        self._specs = specs

    def __call__(self) -> Iterator[Any]:
        for batch in self._loader:
            yield tensors(batch, self._specs)

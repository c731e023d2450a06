"""Data sets of Ingot as data sets of Hugging Face."""

import os
from pathlib import Path
from typing import Any

from ingot.dataset import Dataset
from ingot.dataset.read.dataset import selection_of
from ingot.formats.arrow.file import pyarrow
from ingot.hf.features import features_of, metadata_with
from ingot.hf.library import library
from ingot.interchange.export import reader_of
from ingot.order import Order


def to_dataset(dataset: Dataset, path: str | os.PathLike[str] | None = None) -> Any:
    """Return a data set of Ingot as a `datasets.Dataset`, with features.

    What came from `from_dataset` has the features it had. Other fields have features by their
    types: `jpg`, `png` and `webp` are `Image`, `wav` and `flac` are `Audio`, `mp4` is `Video`,
    arrays of 2 to 5 dimensions are `Array2D` to `Array5D`. Files are not decoded.

    Args:
        dataset: The data set, or a part of one.
        path: An Arrow file to write and map into memory; it must not exist. Without it, the rows
            are in memory.

    Raises:
        TypeError: It is not a data set of Ingot, or a field has no feature.
        FileExistsError: The file exists.

    Example:
        >>> ingot.hf.to_dataset(ingot.open("mnist"))  # doctest: +SKIP
    """
    hf = library()
    given: object = dataset
    if not isinstance(given, Dataset):
        message = f"expected an ingot.Dataset, got {type(given).__name__}; ingot.open opens a path"
        raise TypeError(message)
    features, reader = features_and_reader(dataset)
    if path is None:
        return hf.Dataset(reader.read_all().cast(features.arrow_schema))
    target = Path(path)
    with target.open("xb") as file:
        schema = features.arrow_schema
        with pyarrow("pyarrow.ipc").new_stream(file, schema) as writer:
            for batch in reader:
                writer.write_table(pyarrow().Table.from_batches([batch]).cast(schema))
    return hf.Dataset.from_file(str(target))


def iterable(source: Dataset | Order, *, shards: int = 64) -> Any:
    """Return a data set or an order as a `datasets.IterableDataset` with shards.

    `split_dataset_by_node`, workers of PyTorch's loader, `state_dict` and `load_state_dict` work
    as for any iterable data set, and resuming reads no row again that comes before it. The rows
    of a data set have features, as with `to_dataset`. The samples of an order are whatever it
    returns, without features.

    Args:
        source: A data set, or an order such as `ds.shuffle(seed=0).map(augment)`.
        shards: The number of shards: consecutive parts of the rows. A multiple of the number of
            ranks times workers gives each the same number. An infinite order is dealt out, one
            sample to each shard in turn.

    Raises:
        ValueError: There is less than one shard.
        TypeError: It is neither a data set nor an order.

    Example:
        >>> for row in ingot.hf.iterable(ds, shards=8).with_format("torch"): ...
        ... # doctest: +SKIP
    """
    library()
    if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
        message = f"shards must be a positive number, got {shards!r:.50}"
        raise ValueError(message)
    from ingot.hf.stream import of_dataset, of_order  # noqa: PLC0415 -- it needs datasets

    if isinstance(source, Dataset):
        return of_dataset(source, shards)
    given: object = source
    if isinstance(given, Order):
        return of_order(given, shards)
    message = f"expected an ingot.Dataset or an ingot.Order, got {type(given).__name__}"
    raise TypeError(message)


def features_and_reader(dataset: Dataset) -> tuple[Any, Any]:
    """Return the features of a data set, and its rows as a reader of such columns."""
    hf = library()
    selection = selection_of(dataset)
    metadata = selection.source.metadata
    known = features_of(selection.spec, metadata, selection.path)
    reader = reader_of(selection, metadata_with(known, metadata))
    told = library("datasets.features.features").generate_from_arrow_type
    found = {one.name: known.get(one.name) or told(one.type) for one in reader.schema}
    return hf.Features(found), reader

"""Writing data sets of Hugging Face as data sets of Ingot."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ingot._core import ArrowArray
from ingot.dataset import Dataset
from ingot.formats.arrow.schema import Kind, leaves_of
from ingot.hf.library import library
from ingot.interchange.intake import Input, write_input

_ROWS = 1000
_INFO = ("description", "citation", "homepage", "license")


def from_dataset(
    dataset: Any,
    path: str | os.PathLike[str],
    *,
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Write a data set of Hugging Face as a data set of Ingot, and open it.

    The features are kept in the metadata, so that `to_dataset` returns the same rows with the
    same features. Images, audio and video are stored as the files they are, without decoding;
    files that a data set only refers to by path are read. A column of files becomes a field of
    their type, such as `jpg`, or `bytes` if there are several types or another one. Class labels
    are numbers; `metadata["labels"]` has their names.

    Args:
        dataset: A `datasets.Dataset` or a `datasets.IterableDataset`: one split.
        path: A directory, or a file that ends in `.ingot`.
        spec: Types of fields that should differ from the inferred ones, as for
            `ingot.from_arrow`. For an iterable data set, the first 1000 rows decide what is
            optional and which type of files a column has.
        metadata: Metadata to store besides the features.
        options: Options of `DatasetWriter`.

    Raises:
        TypeError: It is a dict of splits, or no data set of Hugging Face.
        FormatError: A value does not fit the type of its field.

    Example:
        >>> ingot.hf.from_dataset(datasets.load_dataset("mnist", split="train"), "mnist")
        ... # doctest: +SKIP
    """
    hf = library()
    if isinstance(dataset, dict):
        message = (
            f"this has the splits {', '.join(map(repr, dataset))}; pass one of them: "
            f"from_dataset(dataset[{next(iter(dataset), 'train')!r}], path)"
        )
        raise TypeError(message)
    if isinstance(dataset, hf.Dataset):
        given: Input = _Stored(dataset)
    elif isinstance(dataset, hf.IterableDataset):
        given = _Streamed(dataset)
    else:
        message = (
            "expected a datasets.Dataset or a datasets.IterableDataset, got "
            f"{type(dataset).__name__}"
        )
        raise TypeError(message)
    info = {name: text for name in _INFO if (text := getattr(dataset.info, name, None))}
    told = {"info": info} if info else {}
    return write_input(given, path, spec, told | dict(metadata or {}), options)


def _tables(dataset: Any) -> Iterator[Any]:
    """Yield the rows of a data set as tables, with the files that it only refers to."""
    embed = library("datasets.table").embed_table_storage
    schema = dataset.features.arrow_schema
    for table in dataset.with_format("arrow").iter(_ROWS):
        told = table.cast(schema) if table.schema.types != schema.types else table
        yield embed(told.replace_schema_metadata(schema.metadata))


def _batches(tables: Iterable[Any]) -> Iterator[ArrowArray]:
    return (ArrowArray(batch) for table in tables for batch in table.to_batches())


class _Streamed(Input):
    """The rows of an iterable data set."""

    def __init__(self, dataset: Any) -> None:
        if dataset.features is None:
            dataset = dataset._resolve_features()  # noqa: SLF001 -- there is no public name
        tables = _tables(dataset)
        known = list(_batches([one for one in [next(tables, None)] if one is not None]))
        schema = Kind.of(dataset.features.arrow_schema)
        self._set(schema, known, chain(known, _batches(tables)))


class _Stored(_Streamed):
    """The rows of a data set that is on disk or in memory; all of them are known."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        whole = dataset.data.table
        if dataset._indices is None and not _has_paths_only(whole, dataset.features):  # noqa: SLF001
            self.sample = list(_batches([whole]))


def _has_paths_only(table: Any, features: Any) -> bool:
    """Whether a table has files with a path, but without bytes."""
    for leaf in leaves_of(Kind.of(table.schema), features.to_dict(), "the data set"):
        if leaf.media is None:
            continue
        for batch in _batches([table]):
            data, paths = (np.frombuffer(batch.valid(one), np.bool_) for one in leaf.parts)
            if np.any(~data & paths):
                return True
    return False

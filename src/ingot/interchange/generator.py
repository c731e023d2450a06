"""Writing rows of a generator as a data set."""

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import Any

from ingot.dataset.read.dataset import Dataset
from ingot.dataset.spec import SpecLike
from ingot.dataset.write.writer import DatasetWriter
from ingot.interchange.inference import spec_of
from ingot.interchange.intake import opened

_ROWS = 1000
_BYTES = 64 << 20


def from_generator(
    rows: Callable[[], Iterable[Mapping[str, Any]]] | Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    spec: SpecLike | None = None,
    **options: Any,
) -> Dataset:
    """Write rows as a data set, and open it.

    Rows are taken one after another and never all in memory. Without `spec`, the first 1000 rows,
    or 64 MB of them, decide about names and types: a field that one of them lacks is optional, an
    array that always has the same shape is `array(TYPE,...)`. If anything fails, no data set is
    left behind, unless `atomic=False` is given.

    Args:
        rows: A function that returns rows, such as a generator function, or the rows. A row is a
            dict.
        path: A directory, or a file that ends in `.ingot`.
        spec: The fields, as for `DatasetWriter`.
        options: Options of `DatasetWriter`.

    Raises:
        TypeError: A value has no type here, or not that of its field.
        ValueError: There are no rows and no spec, or a value does not fit.

    Example:
        >>> ingot.from_generator(lambda: ({"x": k} for k in range(9)), "nine")  # doctest: +SKIP
    """
    stream = iter(rows() if callable(rows) else rows)
    if spec is not None:
        return _written(stream, path, spec, options)
    first: list[Mapping[str, Any]] = []
    nbytes = 0
    for row in islice(stream, _ROWS):
        first.append(row)
        nbytes += _size(row)
        if nbytes >= _BYTES:
            break
    found = spec_of(first)
    try:
        return _written(chain(first, stream), path, found, options)
    except (TypeError, ValueError) as error:
        error.add_note(f"the first {len(first)} rows gave {found}; pass spec= if others differ")
        raise


def _written(
    rows: Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    spec: SpecLike,
    options: Mapping[str, Any],
) -> Dataset:
    with DatasetWriter(path, spec, **{"atomic": True, **options}) as writer:
        writer.extend(rows)
    return opened(writer.path)


def _size(value: Any) -> int:
    """Return about how many bytes a value takes."""
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    if isinstance(value, bytes | str):
        return len(value)
    return int(getattr(value, "nbytes", 8))

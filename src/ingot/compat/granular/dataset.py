"""`granular.dataset`: rows of named, typed values."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, SupportsIndex

from ingot.cached import cached_property
from ingot.codecs.granular import Decoder, Encoder
from ingot.compat.granular.bag import BagReader, BagWriter
from ingot.compat.granular.files import open_folder, read_spec
from ingot.compat.granular.indices import rows_at, rows_of
from ingot.compat.granular.kinds import GivenCodec, Layout, function_of, layout_of
from ingot.compat.granular.paths import AnyPath, PathLike, local
from ingot.compat.granular.rows import PairedRows, ReferencedRows
from ingot.compat.granular.utils import Closing
from ingot.dataset.read.granular import GranularRows
from ingot.dataset.read.granular.layout import REFS, check_spec, element, is_sequence
from ingot.dataset.read.mask import Mask, elements_of
from ingot.dataset.read.source import ALL, Elements
from ingot.locks import ProcessLock
from ingot.records.indices import place_of

Row = dict[str, Any]


class DatasetWriter(Closing):
    """Writes a data set that Granular itself can read.

    In the layout of 0.22, rows can be read up to the last flush and appended to later: an
    incomplete row of a writer that died is cut off, and another writer of this process that has
    the data set open is closed with all its rows. The layout of 0.21 supports sequences; the
    data set appears when it is closed. A row that cannot be encoded is not written; you can
    continue with the next one.

    Args:
        directory: The folder. In the layout of 0.21 it must be new or empty.
        spec: The keys and their types; types that end in `[]` are sequences.
        encoders: Encoding functions by type; None if values are already bytes.
        layout: The Granular version that must read it: "0.22" for 0.22 and later, "0.21" for
            0.20 and 0.21. None means "0.21" if there are sequences, else "0.22".

    Attributes:
        encoders: The encoding function of each key.
        layout: "0.21" or "0.22".

    Raises:
        ValueError: The folder has other keys or types, or a key or type is invalid.
        FileExistsError: The folder has a data set that cannot be appended to.
    """

    def __init__(
        self,
        directory: AnyPath,
        spec: Mapping[str, str],
        encoders: Mapping[str, Encoder] | None,
        *,
        layout: Layout | None = None,
    ) -> None:
        super().__init__()
        self._spec = check_spec(dict(spec))
        self.encoders: dict[str, Encoder | None] = {
            key: None if encoders is None else function_of(encoders, key, kind, "encoders")
            for key, kind in self._spec.items()
        }
        self._lock = ProcessLock()
        self.layout = layout_of(self._spec, layout)
        kind = PairedRows if self.layout == "0.22" else ReferencedRows
        self.directory: Path | PathLike = local(directory)
        self._rows: PairedRows | ReferencedRows = kind(self.directory, self._spec)

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types, in the order of the keys."""
        return dict(self._spec)

    @property
    def writers(self) -> dict[str, BagWriter]:
        """The writer of each key's bag."""
        return dict(self._rows.bags)

    @property
    def size(self) -> int:
        """Bytes of all bags so far; see `BagWriter.size`."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, datapoint: Mapping[str, Any], flush: bool = True) -> int:
        """Append a row; return its number.

        Raises:
            ValueError: It does not have the keys of the data set.
            TypeError: A value does not have its type.
        """
        self._check_open()
        if not isinstance(datapoint, Mapping) or datapoint.keys() != self._spec.keys():
            found = sorted(datapoint) if isinstance(datapoint, Mapping) else type(datapoint)
            message = f"a datapoint must be a dict of {list(self._spec)}, got {found}"
            raise ValueError(message)
        stored = {key: self._encode_all(key, datapoint[key]) for key in self._spec}
        with self._lock.own:
            number = self._rows.append(stored)
            if flush:
                self._rows.flush()
        return number

    def _encode_all(self, key: str, value: Any) -> bytes | list[bytes]:
        if not is_sequence(self._spec[key]):
            return self._encode(key, value)
        if isinstance(value, str | bytes | Mapping):
            message = f"key {key!r} requires a sequence of values, got {type(value).__name__}"
            raise TypeError(message)
        return [self._encode(key, one) for one in value]

    def _encode(self, key: str, value: Any) -> bytes:
        encoder = self.encoders[key]
        try:
            encoded = value if encoder is None else encoder(value)
        except Exception as error:
            error.add_note(f"Error encoding key {key!r} of type {self._spec[key]!r}.")
            raise
        if not isinstance(encoded, bytes):
            message = f"key {key!r}: the encoder must return bytes, got {type(encoded).__name__}"
            raise TypeError(message)
        return encoded

    def flush(self) -> None:
        """Write all rows so far to the files."""
        self._check_open()
        with self._lock.own:
            self._rows.flush()

    def _close(self) -> None:
        with self._lock.own:
            self._rows.close()


class DatasetReader(Closing):
    """Reads a data set of any version of Granular.

    `reader[i]` is a row; a slice, a range or a list of numbers returns a dict of lists, in one
    native read per key. A second index is a mask: keys, or a dict that maps keys to True, False
    or, for a sequence, a range of its elements. With a dict, rows have the keys in the order of
    the specification, otherwise in the order of the mask. Several threads and forked processes
    may use it at the same time. Pickling stores the folder, and all attributes of a subclass.

    Args:
        directory: The folder.
        decoders: Decoding functions by type; None to return bytes.
        cache_index: Accepted and ignored: limits stay in memory once they were used.
        cache_keys: Keys to read completely now, for file systems other than the local one.
        parallel: Accepted and ignored: the engine has its own threads.
        pool_name: Accepted and ignored.

    Raises:
        FormatError: The folder is damaged.
        KeyError: There is no decoder for a type, or no such key to cache.
    """

    def __init__(
        self,
        directory: AnyPath,
        decoders: Mapping[str, Decoder] | None,
        cache_index: bool = True,
        cache_keys: Sequence[str] = (),
        parallel: bool = False,
        pool_name: str | None = None,
    ) -> None:
        super().__init__()
        del cache_index, parallel, pool_name
        self._folder = folder = local(directory)
        self._given = decoders
        self.cache_keys = cache_keys
        spec = read_spec(folder)
        if unknown := [key for key in cache_keys if key not in (*spec, REFS)]:
            message = f"{folder}: there is no key {unknown[0]!r} to cache in {spec}"
            raise KeyError(message)
        self._open()

    def _open(self) -> None:
        spec, given = read_spec(self._folder), self._given
        self._decoders = {
            key: None if given is None else function_of(given, key, kind, "decoders")
            for key, kind in spec.items()
        }
        codecs = {
            element(kind): GivenCodec(element(kind), self._decoders[key])
            for key, kind in spec.items()
        }
        self._rows = GranularRows(open_folder(self._folder, spec, tuple(self.cache_keys)), codecs)
        self._all = dict.fromkeys(spec, ALL)

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types."""
        return dict(self._rows.columns.spec)

    @property
    def decoders(self) -> Mapping[str, Decoder | None]:
        """The decoding function of each key; do not change it."""
        return MappingProxyType(self._decoders)

    @cached_property
    def readers(self) -> dict[str, BagReader]:
        """A reader for the bag of each key, and for the references if there are any.

        They are opened on first access.
        """
        is_old = self._rows.columns.version < 3  # noqa: PLR2004 -- with references
        keys = [REFS, *self.spec] if is_old else [*self.spec]
        return {key: BagReader(self._folder / f"{key}.bag", single_file=is_old) for key in keys}

    @property
    def size(self) -> int:
        """Bytes of all bags."""
        return self._rows.nbytes

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return which keys a row has, as a mask that reads all of them."""
        self._check_open()
        return self._rows.available(place_of(index, len(self)), tuple(self.spec))

    def __getitem__(self, index: Any) -> Row:
        """Return a row, or a dict with the values of several rows for each key.

        Raises:
            IndexError: There is no such row.
            KeyError: There is no such key.
        """
        self._check_open()
        which, mask = index if isinstance(index, tuple) else (index, None)
        return self.read(rows_of(which, len(self)), mask)

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Row]:
        """Return rows, in one native read per key."""
        return rows_at(self, DatasetReader, indices)

    def read(self, rows: int | Sequence[int], mask: Mask | None) -> Row:
        """Read some keys of existing rows; all keys if there is no mask."""
        wanted = self._all if mask is None else self._wanted(mask)
        if isinstance(rows, int):
            return self._rows.read_row(rows, wanted)
        if any(elements != ALL for elements in wanted.values()):
            message = "a range of elements requires a single row"
            raise TypeError(message)
        return self._rows.read_values(rows, list(wanted))

    def _wanted(self, mask: Mask) -> dict[str, Elements]:
        parts = mask if isinstance(mask, Mapping) else dict.fromkeys(mask, True)
        fields = self._rows.fields
        if unknown := [key for key in parts if key not in fields]:
            message = f"{self._rows.paths[0]}: there is no key {unknown[0]!r} in {self.spec}"
            raise KeyError(message)
        keys = self._all if isinstance(mask, Mapping) else parts
        return {
            key: ALL if parts[key] is True else elements_of(fields[key], parts[key])
            for key in keys
            if parts.get(key, False) is not False
        }

    def copy(self) -> Self:
        """Return another reader of the same data set."""
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        opened = ("_rows", "_decoders", "readers")
        return {name: value for name, value in vars(self).items() if name not in opened}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.closed = False
        self._open()

    def _close(self) -> None:
        self._rows.close()
        for reader in vars(self).get("readers", {}).values():
            reader.close()

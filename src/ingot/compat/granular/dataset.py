"""`granular.dataset`: rows of named, typed values."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, SupportsIndex

from ingot.compat.granular.bag import BagReader, BagWriter
from ingot.compat.granular.rows import Mask, Row, RowReader, place_of
from ingot.compat.handle import Reopening
from ingot.errors import FormatError
from ingot.formats.granular import (
    REFS,
    AnyPath,
    Closing,
    Layout,
    Stored,
    check_spec,
    element,
    is_sequence,
    layout_of,
    local,
    open_folder,
    open_writer,
)
from ingot.formats.granular.codecs import Decoder, Encoder
from ingot.locks import ProcessLock

_WHOLE = slice(None)


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
            key: None if encoders is None else _function_of(encoders, key, kind, "encoders")
            for key, kind in self._spec.items()
        }
        self._lock = ProcessLock()
        self.layout = layout_of(self._spec, layout)
        self.directory: Any = local(directory)
        self._rows = open_writer(self.directory, self._spec, layout=self.layout, make_bag=_make_bag)

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types, in the order of the keys."""
        return dict(self._spec)

    @property
    def writers(self) -> dict[str, Any]:
        """The `BagWriter` of each key."""
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

    def _encode_all(self, key: str, value: Any) -> Stored:
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


class DatasetReader(RowReader, Reopening):
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

    OPENED = ("_all", "_columns", "_decoders", "_readers", "_spec")

    def __init__(
        self,
        directory: AnyPath,
        decoders: Mapping[str, Decoder] | None,
        cache_index: bool = True,
        cache_keys: Sequence[str] = (),
        parallel: bool = False,
        pool_name: str | None = None,
    ) -> None:
        del cache_index, parallel, pool_name
        self._folder = local(directory)
        self._given = decoders
        self.cache_keys = cache_keys
        self._open()

    def _open(self) -> None:
        self.closed = False
        self._columns = open_folder(self._folder, tuple(self.cache_keys))
        self._spec, given = self._columns.spec, self._given
        if unknown := [key for key in self.cache_keys if key not in (*self._spec, REFS)]:
            message = f"{self._folder}: there is no key {unknown[0]!r} to cache in {self._spec}"
            raise KeyError(message)
        self._decoders = {
            key: None if given is None else _function_of(given, key, kind, "decoders")
            for key, kind in self._spec.items()
        }
        self._all = dict.fromkeys(self._spec, _WHOLE)
        self._readers: dict[str, BagReader] | None = None

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types."""
        return dict(self._spec)

    @property
    def decoders(self) -> Mapping[str, Decoder | None]:
        """The decoding function of each key; do not change it."""
        return MappingProxyType(self._decoders)

    @property
    def readers(self) -> dict[str, BagReader]:
        """A reader for the bag of each key, and for the references if there are any.

        They are opened on first access.
        """
        if self._readers is None:
            is_old = self._columns.version < 3  # noqa: PLR2004 -- with references
            keys = [REFS, *self._spec] if is_old else [*self._spec]
            self._readers = {
                key: BagReader(self._folder / f"{key}.bag", single_file=is_old) for key in keys
            }
        return self._readers

    @property
    def size(self) -> int:
        """Bytes of all bags."""
        return self._columns.nbytes

    def __len__(self) -> int:
        return len(self._columns)

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return which keys a row has, as a mask that reads all of them."""
        self._check_open()
        found = self._columns.find(place_of(index, len(self)))
        return {
            key: True if isinstance(ref, int) else range(len(ref)) for key, ref in found.items()
        }

    def read(self, rows: int | Sequence[int], mask: Mask | None) -> Row:
        """Read some keys of existing rows; all keys if there is no mask."""
        wanted = self._all if mask is None else self._wanted(mask)
        if isinstance(rows, int):
            stored = self._columns.read(rows, wanted)
            return {key: self._value(key, one, rows) for key, one in stored.items()}
        if any(part != _WHOLE for part in wanted.values()):
            message = "a range of elements requires a single row"
            raise TypeError(message)
        return {
            key: [self._value(key, *one) for one in zip(values, rows, strict=True)]
            for key, values in self._columns.read_many(rows, wanted).items()
        }

    def _value(self, key: str, stored: Stored, row: int) -> Any:
        decode = self._decoders[key]
        if decode is None:
            return stored
        try:
            return [decode(one) for one in stored] if isinstance(stored, list) else decode(stored)
        except (ValueError, OSError) as error:
            path = self._columns.path
            message = f"{path}: row {row}: field {key!r} is not valid {self._spec[key]}: {error}"
            raise FormatError(message, path) from error

    def _wanted(self, mask: Mask) -> dict[str, slice]:
        parts = mask if isinstance(mask, Mapping) else dict.fromkeys(mask, True)
        if unknown := [key for key in parts if key not in self._spec]:
            message = f"{self._columns.path}: there is no key {unknown[0]!r} in {self._spec}"
            raise KeyError(message)
        keys = self._spec if isinstance(mask, Mapping) else parts
        return {
            key: _WHOLE if parts[key] is True else _elements(key, self._spec[key], parts[key])
            for key in keys
            if parts.get(key, False) is not False
        }

    def _close(self) -> None:
        self._columns.close()
        for reader in (self._readers or {}).values():
            reader.close()


def _make_bag(path: Any, version: int) -> BagWriter:
    return BagWriter(path, version=version)


def _function_of(functions: Mapping[str, Any], key: str, kind: str, what: str) -> Any:
    """Return the function for the type of a key.

    Raises:
        KeyError: The type has no function.
    """
    if element(kind) not in functions:
        message = f"key {key!r} has type {element(kind)!r}, for which {what} has no function"
        raise KeyError(message)
    return functions[element(kind)]


def _elements(key: str, kind: str, part: object) -> slice:
    """Return the elements that a range of a mask selects.

    Raises:
        TypeError: It is not a range, or the key does not have sequences.
        ValueError: The range does not go up from 0 or more.
    """
    if not isinstance(part, range | slice):
        message = f"key {key!r}: a mask must be True, False or a range, got {part!r}"
        raise TypeError(message)
    if not is_sequence(kind):
        message = f"key {key!r} is {kind}, expected a sequence"
        raise TypeError(message)
    if (1 if part.step is None else part.step) < 1 or min(part.start or 0, part.stop or 0) < 0:
        message = f"key {key!r}: a range of elements must go up from 0 or more, got {part!r}"
        raise ValueError(message)
    return slice(part.start, part.stop, part.step)

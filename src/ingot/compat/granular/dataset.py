"""`granular.dataset`: rows of named, typed values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Self, SupportsIndex

from ingot.codecs import Codec
from ingot.codecs.granular import Decoder, Encoder
from ingot.compat.granular.files import open_folder, read_spec
from ingot.compat.granular.indices import row_of, rows_of
from ingot.compat.granular.paths import AnyPath, PathLike, local
from ingot.compat.granular.rows import PairedRows, ReferencedRows
from ingot.compat.granular.utils import Closing
from ingot.dataset.granular import GranularRows
from ingot.dataset.granular.layout import REFS, check_spec, element, is_sequence
from ingot.dataset.mask import Mask, elements_of
from ingot.dataset.source import ALL, Elements

Row = dict[str, Any]

_PAIRED, _REFERENCED = 3, 2


class DatasetWriter(Closing):
    """Writes a data set that Granular itself can read.

    Version 3 (Granular 0.22 and later) can be read up to the last flush and gone on with
    later: what a writer that died has left of a row is cut off. Version 2 (up to 0.21) has
    sequences; it is there when it is closed. A row that cannot be encoded is not written,
    and the next one can be.

    Args:
        directory: The folder. Of version 2 it must be new or empty.
        spec: The keys and their types; those that end in `[]` have sequences.
        encoders: Functions to bytes, by type; None if values are bytes already.
        version: 3 or 2; 2 if there are sequences, else 3, if that is None.

    Raises:
        ValueError: The folder has other keys or types, or a key or type cannot be.
        FileExistsError: The folder has a data set that cannot be gone on with.
    """

    def __init__(
        self,
        directory: AnyPath,
        spec: Mapping[str, str],
        encoders: Mapping[str, Encoder] | None,
        version: int | None = None,
    ) -> None:
        super().__init__()
        self._spec = check_spec(dict(spec))
        self._encoders = {
            key: None if encoders is None else _function(encoders, key, kind, "encoders")
            for key, kind in self._spec.items()
        }
        self._lock = RLock()
        self.version = _version(self._spec, version)
        kind = PairedRows if self.version == _PAIRED else ReferencedRows
        self.directory: Path | PathLike = local(directory)
        self._rows: PairedRows | ReferencedRows = kind(self.directory, self._spec)

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types, in the order of the keys."""
        return dict(self._spec)

    @property
    def size(self) -> int:
        """Bytes of all bags so far."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, datapoint: Mapping[str, Any], flush: bool = True) -> int:
        """Add a row; return its number.

        Raises:
            ValueError: It does not have the keys of the data set.
            TypeError: A value is not of its type.
        """
        self._check_open()
        if not isinstance(datapoint, Mapping) or datapoint.keys() != self._spec.keys():
            found = sorted(datapoint) if isinstance(datapoint, Mapping) else type(datapoint)
            message = f"a datapoint is a dict of {list(self._spec)}, not of {found}"
            raise ValueError(message)
        stored = {key: self._encode_all(key, datapoint[key]) for key in self._spec}
        with self._lock:
            number = self._rows.append(stored)
            if flush:
                self._rows.flush()
        return number

    def _encode_all(self, key: str, value: Any) -> bytes | list[bytes]:
        if not is_sequence(self._spec[key]):
            return self._encode(key, value)
        if isinstance(value, str | bytes | Mapping):
            message = f"key {key!r} has a sequence of values, not {type(value).__name__}"
            raise TypeError(message)
        return [self._encode(key, one) for one in value]

    def _encode(self, key: str, value: Any) -> bytes:
        encoder = self._encoders[key]
        try:
            encoded = value if encoder is None else encoder(value)
        except Exception as error:
            error.add_note(f"Error encoding key {key!r} of type {self._spec[key]!r}.")
            raise
        if not isinstance(encoded, bytes):
            message = f"key {key!r} is encoded as {type(encoded).__name__}, not as bytes"
            raise TypeError(message)
        return encoded

    def flush(self) -> None:
        """Bring all rows so far into the files."""
        self._check_open()
        with self._lock:
            self._rows.flush()

    def _close(self) -> None:
        with self._lock:
            self._rows.close()


def _function(functions: Mapping[str, Any], key: str, kind: str, what: str) -> Any:
    if element(kind) not in functions:
        message = f"key {key!r} is of type {element(kind)!r}, which {what} has no function for"
        raise KeyError(message)
    return functions[element(kind)]


def _version(spec: Mapping[str, str], version: int | None) -> int:
    has_sequences = any(is_sequence(kind) for kind in spec.values())
    if version is None:
        version = _REFERENCED if has_sequences else _PAIRED
    if version not in (_REFERENCED, _PAIRED):
        message = f"the version of a data set is 2 or 3, not {version}"
        raise ValueError(message)
    if has_sequences and version == _PAIRED:
        message = f"version 3 has no sequences: {spec}"
        raise ValueError(message)
    if version == _REFERENCED and REFS in spec:
        message = f"the key {REFS!r} is taken in version 2"
        raise ValueError(message)
    return version


class GivenCodec(Codec):
    """A type that the user has given a decoder for.

    Args:
        name: The type.
        decoder: Its decoder; None leaves bytes as they are.
    """

    def __init__(self, name: str, decoder: Decoder | None) -> None:
        self.name = name
        self._decoder = decoder

    def encode(self, value: Any) -> bytes:
        """Refuse: this only reads."""
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        """Return what the decoder makes of bytes."""
        return data if self._decoder is None else self._decoder(data)


class DatasetReader(Closing):
    """Reads a data set of any version of Granular.

    `reader[i]` is a row; a slice, a range or a list of numbers is a dict of lists, of each
    key in one native read. A second index is a mask: keys, or a dict of keys to True, False,
    or of a sequence a range of its elements. Safe from several threads and in forked
    processes.

    Args:
        directory: The folder.
        decoders: Functions from bytes, by type; None to have bytes.
        cache_index: Accepted and ignored: limits stay in memory once they were needed.
        cache_keys: Keys to read whole at once, of other file systems than this one's.
        parallel: Accepted and ignored: the engine has threads of its own.
        pool_name: Accepted and ignored.

    Raises:
        FormatError: The folder is damaged.
        KeyError: There is no decoder of a type, or no such key to cache.
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
        self._arguments = (directory, decoders, cache_index, cache_keys, parallel, pool_name)
        folder = local(directory)
        spec = read_spec(folder)
        if unknown := [key for key in cache_keys if key not in (*spec, REFS)]:
            message = f"{folder}: there is no key {unknown[0]!r} to cache in {spec}"
            raise KeyError(message)
        codecs = {
            element(kind): GivenCodec(
                element(kind),
                None if decoders is None else _function(decoders, key, kind, "decoders"),
            )
            for key, kind in spec.items()
        }
        self._rows = GranularRows(open_folder(folder, spec, tuple(cache_keys)), codecs)
        self._all = dict.fromkeys(spec, ALL)

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types."""
        return dict(self._rows.columns.spec)

    @property
    def size(self) -> int:
        """Bytes of all bags."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return len(self._rows)

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return what a row has of each key: a mask that reads all of it."""
        self._check_open()
        return self._rows.available(row_of(index, len(self)), tuple(self.spec))

    def __getitem__(self, index: Any) -> Row:
        """Return a row, or a dict of what many rows have of each key.

        Raises:
            IndexError: There is no such row.
            KeyError: There is no such key.
        """
        self._check_open()
        which, mask = index if isinstance(index, tuple) else (index, None)
        return self.read(rows_of(which, len(self)), mask)

    def read(self, rows: int | Sequence[int], mask: Mask | None) -> Row:
        """Return what rows that exist have of some keys, of all if there is no mask."""
        wanted = self._all if mask is None else self._wanted(mask)
        if isinstance(rows, int):
            return self._rows.read_row(rows, wanted)
        if any(elements != ALL for elements in wanted.values()):
            message = "a range of elements can be read of one row at a time"
            raise TypeError(message)
        return self._rows.read_values(rows, list(wanted))

    def _wanted(self, mask: Mask) -> dict[str, Elements]:
        parts = mask if isinstance(mask, Mapping) else dict.fromkeys(mask, True)
        fields = self._rows.fields
        if unknown := [key for key in parts if key not in fields]:
            message = f"{self._rows.paths[0]}: there is no key {unknown[0]!r} in {self.spec}"
            raise KeyError(message)
        return {
            key: ALL if part is True else elements_of(fields[key], part)
            for key, part in parts.items()
            if part is not False
        }

    def copy(self) -> Self:
        """Return another reader of the same data set."""
        return type(self)(*self._arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def _close(self) -> None:
        self._rows.close()

"""`granular.sharded`: concatenated data sets, each in its own folder."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Self, SupportsIndex

from ingot.compat.granular.dataset import DatasetReader, DatasetWriter
from ingot.compat.granular.rows import Mask, Row, RowReader, place_of
from ingot.compat.handle import Reopening
from ingot.errors import FormatError
from ingot.formats.granular import (
    REFS,
    SPEC,
    AnyPath,
    Closing,
    Layout,
    check_spec,
    layout_of,
    local,
    shard_name,
    shards,
)
from ingot.formats.granular.codecs import Decoder, Encoder
from ingot.locks import ProcessLock


class ShardedDatasetWriter(Closing, Reopening):
    """Writes a sequence of data sets of a given length.

    It appends to existing shards: to the last one, if that has the layout of 0.22 and is not
    full, else in a new one.

    Args:
        directory: The folder of the shards.
        spec: The keys and their types.
        encoders: Encoding functions by type; None if values are already bytes.
        shardlen: The number of rows in a shard; None for a single shard.
        shardstart: The first shard.
        shardstep: The distance from one shard to the next.
        layout: See `DatasetWriter`.

    Attributes:
        encoders: As given.
        writer: The writer of the last shard, if there is one.

    Raises:
        ValueError: `shardlen` is missing but the other two are given, or the keys differ.
    """

    OPENED = ("_lock",)

    def __init__(
        self,
        directory: AnyPath,
        spec: Mapping[str, str],
        encoders: Mapping[str, Encoder] | None,
        shardlen: int | None = None,
        shardstart: int = 0,
        shardstep: int = 1,
        *,
        layout: Layout | None = None,
    ) -> None:
        super().__init__()
        if shardstart < 0 or shardstep < 1 or (shardlen is not None and shardlen < 1):
            message = "shardstart must be 0 or more, shardlen and shardstep 1 or more"
            raise ValueError(message)
        if (shardstart > 0 or shardstep > 1) and shardlen is None:
            message = "shardstart and shardstep require shardlen"
            raise ValueError(message)
        self.directory: Any = local(directory)
        self._spec = check_spec(dict(spec))
        self.encoders = encoders
        self.layout = layout_of(self._spec, layout)
        self.shardlength = shardlen
        self.shardstart = shardstart
        self.shardstep = shardstep
        self.shardnum = shardstart
        self._lengths: list[int] = []
        self._sizes: list[int] = []
        self.writer: DatasetWriter | None = None
        self._open()
        if not self.directory.exists():
            self.directory.mkdir()
        self._find_end()

    def _find_end(self) -> None:
        while (self._folder(self.shardstep) / SPEC).exists():
            self._pass_by()
        if not (self._folder() / SPEC).exists():
            return
        if REFS not in self._spec and (self._folder() / f"{REFS}.bag").exists():
            self._pass_by()
            return
        self.writer = self._shard()
        self._end_full()

    def _pass_by(self) -> None:
        with DatasetReader(self._folder(), None) as reader:
            if reader.spec != self._spec:
                message = f"{self._folder()}: the existing keys and types are {reader.spec}"
                raise ValueError(message)
            self._next(len(reader), reader.size)

    def _next(self, length: int, size: int) -> None:
        self._lengths.append(length)
        self._sizes.append(size)
        self.shardnum += self.shardstep

    def _folder(self, ahead: int = 0) -> Any:
        return self.directory / shard_name(self.shardnum + ahead)

    def _shard(self) -> DatasetWriter:
        return DatasetWriter(self._folder(), self._spec, self.encoders, layout=self.layout)

    def _end_full(self) -> None:
        writer = self.writer
        if writer is not None and self.shardlength and len(writer) >= self.shardlength:
            self.writer = None
            writer.close()
            self._next(len(writer), writer.size)

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types, in the order of the keys."""
        return dict(self._spec)

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self._lengths) + (self.writer is not None)

    @property
    def size(self) -> int:
        """Bytes of all bags so far."""
        return sum(self._sizes) + (0 if self.writer is None else self.writer.size)

    def __len__(self) -> int:
        return sum(self._lengths) + (0 if self.writer is None else len(self.writer))

    def append(self, datapoint: Mapping[str, Any], flush: bool = True) -> int:
        """Append a row; return its number among the rows of this writer's shards."""
        self._check_open()
        with self._lock.own:
            if self.writer is None:
                self.writer = self._shard()
            self.writer.append(datapoint, flush=flush)
            self._end_full()
            return len(self) - 1

    def flush(self) -> None:
        """Write all rows so far to the files."""
        self._check_open()
        if self.writer is not None:
            self.writer.flush()

    def _close(self) -> None:
        if self.writer is not None:
            self.writer.close()

    def _open(self) -> None:
        self._lock = ProcessLock()


class ShardedDatasetReader(RowReader, Reopening):
    """Reads shards as one data set; see `DatasetReader`.

    Args:
        directory: The folder of the shards.
        decoders: Decoding functions by type; None to return bytes.
        cache_index: Accepted and ignored.
        cache_keys: See `DatasetReader`.
        parallel: Accepted and ignored.
        shardstart: The first shard.
        shardstep: The distance from one shard to the next.

    Raises:
        FormatError: A shard is missing or damaged.
    """

    OPENED = ()

    def __init__(
        self,
        directory: AnyPath,
        decoders: Mapping[str, Decoder] | None,
        cache_index: bool = True,
        cache_keys: Sequence[str] = (),
        parallel: bool = False,
        shardstart: int = 0,
        shardstep: int = 1,
    ) -> None:
        self._open()
        options = (cache_index, cache_keys, parallel)
        folder: Any = local(directory)
        names = shards([str(one.name) for one in folder.glob("*")], str(folder))
        if not names[shardstart::shardstep]:
            message = f"{folder}: there are {len(names)} shards, but none at or after {shardstart}"
            raise FormatError(message, str(folder))
        self.readers = [
            DatasetReader(folder / name, decoders, *options)
            for name in names[shardstart::shardstep]
        ]
        for reader in self.readers:
            if reader.spec != self.spec:
                message = f"{folder}: the keys and types of its shards differ"
                raise FormatError(message, str(folder))
        self.stops = list(accumulate(map(len, self.readers)))
        self.starts = [0, *self.stops[:-1]]

    @property
    def spec(self) -> dict[str, str]:
        """The keys and their types."""
        return self.readers[0].spec

    @property
    def size(self) -> int:
        """Bytes of all bags."""
        return sum(reader.size for reader in self.readers)

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self.readers)

    def __len__(self) -> int:
        return self.stops[-1]

    def _place(self, row: int) -> tuple[int, int]:
        shard = bisect_right(self.stops, row)
        return shard, row - self.starts[shard]

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return which keys a row has, as a mask that reads all of them."""
        self._check_open()
        shard, row = self._place(place_of(index, len(self)))
        return self.readers[shard].available(row)

    def read(self, rows: int | Sequence[int], mask: Mask | None) -> Row:
        """Read some keys of existing rows; all keys if there is no mask."""
        if isinstance(rows, int):
            shard, row = self._place(rows)
            return self.readers[shard].read(row, mask)
        parts: dict[int, list[int]] = {}
        places = [self._place(row) for row in rows]
        for shard, row in places:
            parts.setdefault(shard, []).append(row)
        found = {shard: self.readers[shard].read(own, mask) for shard, own in parts.items()}
        keys = next(iter(found.values())) if found else self.readers[0].read([], mask)
        values = {key: {shard: iter(one[key]) for shard, one in found.items()} for key in keys}
        return {key: [next(values[key][shard]) for shard, _ in places] for key in keys}

    def copy(self) -> Self:
        """Return another reader of the same shards."""
        other = super().copy()
        other.readers = [reader.copy() for reader in self.readers]
        return other

    def _open(self) -> None:
        self.closed = False

    def _close(self) -> None:
        for reader in self.readers:
            reader.close()

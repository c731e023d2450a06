"""Record files as a Beam sink, published when all of them are finished."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

from apache_beam.coders import Coder
from apache_beam.io.filebasedsink import FileBasedSink, FileBasedSinkWriter
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.iobase import Writer
from apache_beam.options.value_provider import ValueProvider

from ingot.beam.transfer import Shard, absolute
from ingot.records.expand import StrPath

Move: TypeAlias = tuple[str, str]
"""The temporary and the final name of a shard."""

DEFAULT_TEMPLATE = "-SSSSS-of-NNNNN"
MAX_THREADS = 64
REPLACING_SCHEMES = {None, "azfs", "gs", "s3"}
"""File systems on which a rename replaces an existing file; others refuse, as HDFS does."""

_logger = logging.getLogger(__name__)


class RecordCoder(Coder):
    """Passes bytes-like values through and encodes text as UTF-8; a writer refuses others."""

    def encode(self, value: Any) -> Any:
        """Encode a record as bytes."""
        return value.encode() if isinstance(value, str) else value

    def is_deterministic(self) -> bool:
        """Return True: equal values have equal bytes."""
        return True


class RecordSink(FileBasedSink):
    """Writes each bundle to a record file and publishes the files when all are finished.

    Nothing under the final names changes until every shard is finished and uploaded. Then each
    shard is renamed to its final name, replacing an existing file. Finally, the shards of
    earlier runs that this run has not replaced are removed, whatever their number. So readers
    see only complete files, and no file is missing while it is replaced. If publishing fails at
    any point it can be repeated: shards that already have their final name keep it.

    Args:
        make_writer: Opens a writer for a local path.
        options: Further arguments of `make_writer`.
        file_path_prefix: The prefix of the paths of the shards.
        file_name_suffix: Their suffix.
        num_shards: The number of shards; 0 leaves it to the runner.
        shard_name_template: The part between prefix and suffix: runs of `S` become the number
            of the shard, runs of `N` the number of shards. The default is `-SSSSS-of-NNNNN`.
        coder: Encodes an element as a record.
        compression_type: Compression of whole files; record files already compress records.
    """

    def __init__(
        self,
        make_writer: Callable[..., Any],
        options: Mapping[str, Any],
        file_path_prefix: StrPath | ValueProvider,
        file_name_suffix: str | ValueProvider = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Coder | None = None,
        compression_type: str = CompressionTypes.AUTO,
    ) -> None:
        template = DEFAULT_TEMPLATE if shard_name_template is None else shard_name_template
        if re.search("[UVW]", template):
            message = f"shard_name_template must consist of S and N, got {template!r}"
            raise ValueError(message)
        super().__init__(
            file_path_prefix
            if isinstance(file_path_prefix, ValueProvider)
            else absolute(file_path_prefix),
            coder=RecordCoder() if coder is None else coder,
            file_name_suffix=file_name_suffix,
            num_shards=num_shards,
            shard_name_template=template,
            compression_type=compression_type,
        )
        self._template = template
        self._make_writer = make_writer
        self._options = dict(options)

    def open_shard(self, init_result: str, uid: str) -> FileBasedSinkWriter:
        """Start a shard that is published in the order of `uid`."""
        return super().open_writer(init_result, uid)

    def open_writer(self, init_result: str, uid: str) -> Writer:
        """Return the writer of a shard."""
        return _ShardWriter(partial(self.open_shard, init_result), uid)

    def open(self, temp_path: str) -> Shard:
        """Start a shard under a temporary name."""
        return Shard(temp_path, self._make_writer, self._options)

    def write_encoded_record(self, file_handle: Shard, encoded_value: Any) -> None:
        """Append a record to a shard."""
        file_handle.append(encoded_value)

    def pre_finalize(self, init_result: str, writer_results: Iterable[str]) -> None:
        """Keep the shards of earlier runs for now."""

    def finalize_write(
        self,
        init_result: str,  # noqa: ARG002
        writer_results: Iterable[str],
        unused_pre_finalize_results: object,  # noqa: ARG002
    ) -> list[str]:
        """Rename the shards to their final names, then remove those of earlier runs."""
        sources = sorted(writer_results)
        names = [self._final_name(number, len(sources)) for number in range(len(sources))]
        folders = {FileSystems.split(source)[0] for source in sources}
        moves = _pending(zip(sources, names, strict=True), folders)
        size = FileSystems.get_chunk_size(self.file_path_prefix.get())
        with ThreadPoolExecutor(MAX_THREADS) as pool:
            batches = [moves[first : first + size] for first in range(0, len(moves), size)]
            done = [pool.submit(_move, batch) for batch in batches]
        for batch in done:
            batch.result()
        if stale := sorted(self._published() - set(names)):
            FileSystems.delete(stale)
        for folder in folders:
            _remove(folder)
        return names

    def _final_name(self, number: int, count: int) -> str:
        middle = self.shard_name_format % {"shard_num": number, "num_shards": count}
        return f"{self.file_path_prefix.get()}{middle}{self.file_name_suffix.get()}"

    def _published(self) -> set[str]:
        """Return the files that are shards by name, whatever the number of shards."""
        prefix, suffix = self.file_path_prefix.get(), self.file_name_suffix.get()
        runs = re.compile("S+|N+")
        name = re.compile(
            re.escape(prefix)
            + "".join(
                f"[0-9]{{{len(part)},}}" if runs.fullmatch(part) else re.escape(part)
                for part in re.split("(S+|N+)", self._template)
            )
            + re.escape(suffix)
        )
        found = _files(prefix + runs.sub("*", self._template) + suffix)
        return {path for path in found if name.fullmatch(path)}


class _ShardWriter(Writer):
    """Starts its shard when it knows whether the shard has records.

    Beam adds empty shards for missing ones, again each time it publishes. They come after all
    others, which therefore keep their numbers when publishing is repeated.
    """

    def __init__(self, open_shard: Callable[[str], FileBasedSinkWriter], uid: str) -> None:
        self._open_shard = open_shard
        self._uid = uid
        self._shard: FileBasedSinkWriter | None = None

    def write(self, value: Any) -> None:
        if self._shard is None:
            self._shard = self._open_shard(self._uid)
        self._shard.write(value)

    def close(self) -> str:
        if self._shard is None:
            self._shard = self._open_shard(f"~{self._uid}")
        return self._shard.close()


def _files(pattern: str) -> set[str]:
    (match,) = FileSystems.match([pattern])
    return {file.path for file in match.metadata_list}


def _pending(moves: Iterable[Move], folders: Iterable[str]) -> list[Move]:
    """Return the moves that an earlier attempt to publish has not made."""
    there = {path for folder in folders for path in _files(FileSystems.join(folder, "*"))}
    pending = []
    for source, name in moves:
        if source in there or FileSystems.exists(source):
            pending.append((source, name))
        elif not FileSystems.exists(name):
            message = f"{name}: the shard {source} to publish is missing"
            raise BeamIOError(message)
    return pending


def _move(batch: Sequence[Move]) -> None:
    sources, names = map(list, zip(*batch, strict=True))
    if FileSystems.get_scheme(names[0]) not in REPLACING_SCHEMES:
        FileSystems.delete([name for name in names if FileSystems.exists(name)])
    FileSystems.rename(sources, names)


def _remove(folder: str) -> None:
    """Remove a folder of temporary files, which now holds only those of failed bundles.

    An object store has no folder to remove, only objects whose names begin with it.
    """
    try:
        FileSystems.delete(sorted(_files(FileSystems.join(folder, "*"))))
        if FileSystems.exists(folder):
            FileSystems.delete([folder])
    except BeamIOError as error:
        _logger.warning("%s: cannot remove temporary files: %s", folder, error)

"""`array_record.beam.arrayrecordio`: the sink and the transform that writes to it."""

import os
from typing import TypeAlias

from apache_beam.coders.coders import Coder, ToBytesCoder
from apache_beam.io.filesystem import CompressionTypes

from ingot.beam import RecordSink, Write
from ingot.formats.arrayrecord import ArrayRecordWriter

StrPath: TypeAlias = str | os.PathLike[str]


class _ArrayRecordSink(RecordSink):
    """Writes ArrayRecord files with one record in each group; see `WriteToArrayRecord`."""

    def __init__(
        self,
        file_path_prefix: StrPath,
        file_name_suffix: str | None = None,
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Coder | None = None,
        compression_type: str = CompressionTypes.AUTO,
    ) -> None:
        super().__init__(
            ArrayRecordWriter,
            {},
            file_path_prefix,
            file_name_suffix or "",
            num_shards,
            shard_name_template,
            ToBytesCoder() if coder is None else coder,
            compression_type,
        )


class WriteToArrayRecord(Write):
    """Writes a collection to ArrayRecord files and returns their paths.

    Args:
        file_path_prefix: The prefix of the paths of the files.
        file_name_suffix: Their suffix.
        num_shards: The number of files; 0 leaves it to the runner.
        shard_name_template: The part between prefix and suffix, `-SSSSS-of-NNNNN` by default.
        coder: Encodes an element as a record; by default, values other than bytes become text.
        compression_type: Checked and ignored: the records are compressed, not the file.
    """

    def __init__(
        self,
        file_path_prefix: StrPath,
        file_name_suffix: str = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Coder | None = None,
        compression_type: str = CompressionTypes.AUTO,
    ) -> None:
        super().__init__(
            _ArrayRecordSink(
                file_path_prefix,
                file_name_suffix,
                num_shards,
                shard_name_template,
                coder,
                compression_type,
            )
        )
        self._sink = self.sink

"""`bagz.beam.bagzio`: the transforms that read and write bags."""

import os
import re
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.coders.coders import BytesCoder, Coder
from apache_beam.io.concat_source import ConcatSource
from apache_beam.io.filesystem import CompressionTypes

from ingot.beam import RecordSink, RecordSource, Write
from ingot.compat.bagz.options import CompressionAutoDetect
from ingot.compat.bagz.spec import level_of, local, paths_of
from ingot.formats.bag import BagWriter

_SHARDED = re.compile(r"(.*)@([0-9]+|\*)((?:[._][^/]+)?\.bagz?)", re.DOTALL)
_SINGLE = re.compile(r"(.+)(\.bagz?)@0", re.DOTALL)


class WriteToBagz(Write):
    """Writes a bounded collection to bags and returns their paths.

    Bags are published as by `ingot.beam.RecordSink`.

    Args:
        file_path: `x@8.bagz` for eight bags, `x@*.bagz` to leave the number to the runner,
            `x@0.bagz` or `x.bagz@0` for one; a `.bag` is not compressed.
        coder: Encodes an element as a record.
        compression_type: Checked and ignored: the records are compressed, not the file.

    Raises:
        ValueError: The path has another form.
    """

    def __init__(
        self,
        file_path: str | os.PathLike[str],
        coder: Coder | None = None,
        compression_type: str = CompressionTypes.AUTO,
    ) -> None:
        path = local(file_path)
        single, sharded = _SINGLE.fullmatch(path), _SHARDED.fullmatch(path)
        if single is not None:
            prefix, count, suffix = single[1], "0", single[2]
        elif sharded is not None:
            prefix, count, suffix = sharded.groups()
        else:
            message = (
                f'File path "{path}" must be in the form: x@8.bagz, x@*.bagz or x.bagz@0, where '
                "the number is the number of files, and the suffix is .bag or .bagz"
            )
            raise ValueError(message)
        is_one = count != "*" and int(count) == 0
        super().__init__(
            RecordSink(
                BagWriter,
                {"level": level_of(suffix, CompressionAutoDetect())},
                prefix,
                suffix,
                1 if is_one else int(count.replace("*", "0")),
                "" if is_one else None,
                BytesCoder() if coder is None else coder,
                compression_type,
            )
        )


class ReadFromBagz(beam.PTransform):
    """Reads the records of bags.

    Args:
        file_pattern: As for `bagz.Reader`.
        coder: Decodes a record to an element.
        compression_type: Ignored: the records are compressed, not the file.

    Raises:
        FileNotFoundError: There is no such file.
    """

    def __init__(
        self,
        file_pattern: str | os.PathLike[str],
        coder: Coder | None = None,
        compression_type: str = CompressionTypes.AUTO,
    ) -> None:
        super().__init__()
        del compression_type
        paths = paths_of(file_pattern)
        files = [RecordSource(path, Path(path).stat().st_size) for path in paths]
        self._source = ConcatSource(files)
        self._coder = coder

    def expand(self, start: Any) -> Any:
        """Apply the transform."""
        records = start.pipeline | beam.io.Read(self._source)
        return records if self._coder is None else records | beam.Map(self._coder.decode)

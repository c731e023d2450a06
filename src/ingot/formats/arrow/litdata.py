"""Chunks of LitData that hold Arrow: a table of empty items, an Arrow file, and its length."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ingot.errors import CorruptFileError, FormatError
from ingot.formats.arrow.choice import Choice
from ingot.formats.arrow.ipc import ArrowFile
from ingot.formats.arrow.origin import Opened
from ingot.formats.arrow.source import ArrowRows
from ingot.formats.arrow.widening import widened
from ingot.formats.base.listed import Shard, check_rows, listed_in, stored_file
from ingot.formats.base.options import Options
from ingot.formats.litdata import arrow_span, parse


def open_chunks(folder: Path, options: Options) -> ArrowRows:
    """Open a directory of LitData whose chunks hold Arrow."""
    return ArrowRows(Chunks(str(folder)), Choice(options.spec, options.allow_pickle))


@dataclass(frozen=True, slots=True)
class Chunks:
    """A directory of LitData whose chunks hold Arrow.

    Attributes:
        folder: The directory.
    """

    folder: str
    format: ClassVar[str] = "litdata"

    def open(self) -> Opened:
        """Open the chunks; what LitData took for null or a whole number in one may be more."""
        folder = Path(self.folder)
        listed = listed_in(folder, parse)
        if listed is None:
            message = f"{folder}: this is not a LitData data set"
            raise FormatError(message, self.folder)
        files = [_opened(folder, shard) for shard in listed.shards]
        return Opened(self.folder, widened(files), {})


def _opened(folder: Path, shard: Shard) -> "Chunk":
    found = Chunk(str(stored_file(folder, shard)))
    check_rows(folder, shard, sum(found.counts))
    return found


class Chunk(ArrowFile):
    """The Arrow file in a chunk."""

    def _shown(self, whole: Any) -> Any:
        span = arrow_span(Path(self.path))
        if span is None:
            message = (
                f"{self.path}: the chunk does not hold one Arrow file behind its offsets, as the "
                "first chunk does"
            )
            raise CorruptFileError(message, self.path)
        self.start = span.start
        return whole.slice(span.start, len(span))

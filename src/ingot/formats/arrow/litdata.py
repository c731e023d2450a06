"""Chunks of LitData that hold Arrow: a table of empty items, an Arrow file, and its length."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, ClassVar

from ingot.errors import CorruptFileError, FormatError
from ingot.formats.arrow.blocks import CACHE
from ingot.formats.arrow.file import ColumnFile, Path, batch_of, pyarrow, storage, translated
from ingot.formats.arrow.ipc import ArrowFile
from ingot.formats.arrow.origin import Opened
from ingot.formats.arrow.source import ArrowRows, Choice
from ingot.formats.base.listed import Shard, check_rows, listed_in, stored_file
from ingot.formats.base.options import Options
from ingot.formats.litdata import arrow_span, parse


def open_chunks(folder: FilePath, options: Options) -> ArrowRows:
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
        folder = FilePath(self.folder)
        listed = listed_in(folder, parse)
        if listed is None:
            message = f"{folder}: this is not a LitData data set"
            raise FormatError(message, self.folder)
        files = [_opened(folder, shard) for shard in listed.shards]
        return Opened(self.folder, widened(files), {})


def _opened(folder: FilePath, shard: Shard) -> "Chunk":
    found = Chunk(str(stored_file(folder, shard)))
    check_rows(folder, shard, sum(found.counts))
    return found


class Chunk(ArrowFile):
    """The Arrow file in a chunk."""

    def _shown(self, whole: Any) -> Any:
        span = arrow_span(FilePath(self.path))
        if span is None:
            message = (
                f"{self.path}: the chunk does not hold one Arrow file after its offsets, as the "
                "first chunk does"
            )
            raise CorruptFileError(message, self.path)
        self.start = span.start
        return whole.slice(span.start, len(span))


def widened(files: Sequence[ColumnFile]) -> list[ColumnFile]:
    """Return files with one schema: a column that some lack, or have only nulls in, is null there.

    Raises:
        FormatError: A column has types that no type holds together.
    """
    wide = files[0].schema
    for file in files[1:]:
        if file.schema != wide:
            with translated(file.path):
                wide = pyarrow().unify_schemas([wide, file.schema], promote_options="permissive")
    return [one if one.schema == wide else WidenedFile(one, wide) for one in files]


class WidenedFile(ColumnFile):
    """A file whose columns are read as those of a wider schema.

    Args:
        file: The file.
        schema: The schema, of type pyarrow.Schema.
    """

    def __init__(self, file: ColumnFile, schema: Any) -> None:
        super().__init__(file.path)
        self._file = file
        self.identity, self.counts, self.is_mapped = file.identity, file.counts, file.is_mapped
        self.schema = schema

    def has_nulls(self, path: Path) -> bool:
        """Return whether the file lacks the values, or may have nulls among them."""
        return _type_at(self._file.schema, path) is None or self._file.has_nulls(path)

    def read(self, block: int, paths: tuple[Path, ...]) -> Any:
        """Return values of a block, cast to the types of the schema."""
        return batch_of([self._cast(block, path) for path in paths])

    def _cast(self, block: int, path: Path) -> Any:
        key = (self.token, block, path)
        array = CACHE.get(key)
        if array is None:
            wanted = _type_at(self.schema, path)
            with translated(self.path):
                if _type_at(self._file.schema, path) is None:
                    array = pyarrow().nulls(self.counts[block], wanted)
                else:
                    array = self._file.read(block, (path,)).column(0).cast(wanted)
            CACHE.put(key, array, array.get_total_buffer_size())
        return array

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        CACHE.drop(self.token)


def _type_at(schema: Any, path: Path) -> Any:
    """Return the type of the values at a path; None if a schema has no such path."""
    kind = pyarrow().struct(list(schema))
    for name in path:
        kind = storage(kind)
        if not pyarrow().types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind

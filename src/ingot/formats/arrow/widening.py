"""Files whose columns are read as those of a schema that holds the rows of all of them."""

from collections.abc import Sequence
from typing import Any

from ingot.formats.arrow.cache import CACHE
from ingot.formats.arrow.file import ColumnFile, Path, batch_of
from ingot.formats.arrow.library import pyarrow, translated
from ingot.formats.arrow.types import storage


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

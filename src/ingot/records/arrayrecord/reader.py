"""ArrayRecord files, open for reading."""

from ingot.records.reader import Reader


class ArrayRecordReader(Reader):
    """ArrayRecord files, open for reading, with a look at how they were written."""

    def writer_options(self, file: int) -> str | None:
        """Return the options that a file was written with; None if it does not say."""
        return self._arrayrecord_options(file)[0]

    def group_size(self, file: int) -> int | None:
        """Return how many records each chunk of a file has; None if they differ."""
        return self._arrayrecord_options(file)[1]

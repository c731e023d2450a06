"""What was found out about a file: its figures, its damage, and what a recovery did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures about files, read from their directories alone.

    What only Ingot files have is None for data sets in files of other formats.

    Attributes:
        rows: Number of records or rows.
        file_bytes: Size of the files.
        index_bytes: Size of their index pages.
        pages: Number of their index pages.
        dictionaries: Number of compression dictionaries.
        dictionary_bytes: Size of the compression dictionaries.
        closed: Whether the files are finished; False only with `partial=True`.
    """

    __module__ = "ingot"

    rows: int
    file_bytes: int
    index_bytes: int | None = None
    pages: int | None = None
    dictionaries: int | None = None
    dictionary_bytes: int | None = None
    closed: bool | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """A place in a file that differs from what was written.

    Attributes:
        record: The first record that it makes unreadable; None if it affects no record.
        records: The number of records that it makes unreadable.
        offset: Its position in the file.
        reason: What is wrong.
    """

    __module__ = "ingot"

    record: int | None
    records: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `Reader.verify`.

    Attributes:
        rows: The number of records checked.
        damaged: All damage, in file order.
        unchecked: What has no checksums of its own: fields of tar, JSON lines, CSV, `.npy`, MDS,
            LitData, HDF5 and Granular files, bags by their paths. `verify` checked that it can
            read them and that they are what they were when they were indexed, not that they are
            what was written.
    """

    __module__ = "ingot"

    rows: int
    damaged: list[Damage]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything can be read, and every checksum matches."""
        return not self.damaged


@dataclass(frozen=True, slots=True)
class Recovery:
    """What `recover` found in a file, and what it did.

    Attributes:
        rows: The number of records that the file holds now.
        was_whole: Whether the file was already finished.
        cut_bytes: The number of bytes after the last commit that were cut off.
        damaged: Damage that `recover` came across. This is not a full verification.
    """

    __module__ = "ingot"

    rows: int
    was_whole: bool
    cut_bytes: int
    damaged: list[Damage]

"""The damage in a file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """A place in a file that differs from what was written.

    Attributes:
        record: The first record that it makes unreadable; None if there is none.
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
        unchecked: What has no checksums: fields of HDF5 and Granular files, bags by their
            paths. `verify` checked that it can read them, not that they are what was written.
    """

    __module__ = "ingot"

    rows: int
    damaged: list[Damage]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything can be read, and every checksum matches."""
        return not self.damaged

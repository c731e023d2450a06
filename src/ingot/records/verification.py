"""What is wrong with a file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a file that is not as it was written.

    Attributes:
        record: The first record it makes unreadable, or None if it makes none.
        records: How many records it makes unreadable.
        offset: Where in the file it is.
        reason: What is wrong.
    """

    __module__ = "ingot"

    record: int | None
    records: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What `Reader.verify` found.

    Attributes:
        rows: How many records were checked.
        damaged: Everything that is wrong, in file order.
        unchecked: The fields that have no checksums, as in HDF5 files and those of Granular:
            that they can be read was checked, not that they are what was written.
    """

    __module__ = "ingot"

    rows: int
    damaged: list[Damage]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every byte that has a checksum is as it was written, and all can be read."""
        return not self.damaged

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
    """

    __module__ = "ingot"

    rows: int
    damaged: list[Damage]

    @property
    def ok(self) -> bool:
        """Whether every byte of the file is as it was written."""
        return not self.damaged

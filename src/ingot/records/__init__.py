"""Record files: bytes in, bytes out, in any order."""

from ingot.records.batch import Batch
from ingot.records.expand import list_files
from ingot.records.reader import Reader, open  # noqa: A004
from ingot.records.verification import Damage, Recovery, Stats, Verification
from ingot.records.view import View
from ingot.records.writer import Writer

__all__ = [
    "Batch",
    "Damage",
    "Reader",
    "Recovery",
    "Stats",
    "Verification",
    "View",
    "Writer",
    "list_files",
    "open",
]

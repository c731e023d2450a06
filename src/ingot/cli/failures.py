"""What a command says when it fails, and its exit code."""

import sys
from collections.abc import Iterable

from ingot.cli.text import safe
from ingot.errors import CorruptFileError, FormatError, IngotError, StorageError, WorkerError

DAMAGED = 1
USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

FAILURES = (
    IngotError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ImportError,
    MemoryError,
    NotImplementedError,
)
"""Errors that are told in one line; any other one is a bug, and has a traceback."""

_MISTAKES = (
    FormatError,
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


_OPTIONS = (
    ("ingot.open(path, partial=True)", "--partial"),
    ("open it with partial=True", "pass --partial"),
    ("overwrite=True", "--overwrite"),
    ("resume=False", "--restart"),
    ("names=", "--field"),
    ("give ingot.open a spec that", "give each field of it a type, --spec FIELD=TYPE, that"),
    ("spec=", "--spec"),
    ("format=", "--format"),
    ("pass force=True to recover", "pass --force"),
    ("call ingot.recover", "run ingot recover"),
    ("ingot.pack one file", "ingot pack one file"),
)
"""What arguments and functions of the API are called here."""


def code_of(error: BaseException) -> int:
    """Return the exit code: 1 for damage and failures of the system, 2 for a wrong usage."""
    if isinstance(error, CorruptFileError | StorageError | WorkerError | MemoryError):
        return DAMAGED
    if isinstance(error, _MISTAKES):
        return USAGE
    return DAMAGED if isinstance(error, OSError) else USAGE


def message_of(error: BaseException) -> str:
    """Return what went wrong, with the file first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error) or type(error).__name__


def tell(message: str, notes: Iterable[str] = ()) -> None:
    """Write a message to standard error."""
    for argument, option in _OPTIONS:
        message = message.replace(argument, option)
    lines = [f"ingot: {safe(message)}", *(f"  {safe(note)}" for note in notes)]
    sys.stderr.write("\n".join(lines) + "\n")

"""`ingot verify`: every checksum of a file or a data set."""

import sys
from dataclasses import asdict
from pathlib import Path

import typer

from ingot.cli.failures import DAMAGED, message_of, tell
from ingot.cli.options import AsJson, Partial, Quiet, Source, progress, write_json
from ingot.cli.text import line, safe
from ingot.dataset.manifest import NAME
from ingot.errors import CorruptFileError, FormatError, UnsupportedVersionError, counted
from ingot.formats.table import format_of, plain_name
from ingot.opening import open as open_any
from ingot.records import Damage, Verification

_LISTED = 100


def verify(
    path: Source,
    partial: Partial = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read everything and verify every checksum.

    The exit code is 1 if something is damaged. The damaged records are listed on standard output.
    """
    try:
        with open_any(path, partial=partial) as found:
            result = found.verify(progress(quiet=quiet))
            where = found.path
    except FormatError as error:
        if not _is_damage(error):
            raise
        if as_json:
            record, offset = getattr(error, "record", None), getattr(error, "offset", None)
            damage = Damage(record, 0, offset or 0, str(error))
            _write(error.path or path, Verification(0, [damage]))
        else:
            tell(message_of(error))
        raise typer.Exit(DAMAGED) from None
    if as_json:
        _write(where, result)
    else:
        for one in result.damaged[:_LISTED]:
            sys.stdout.write(f"{_place(one.record, one.records)}: {safe(one.reason)}\n")
        if len(result.damaged) > _LISTED:
            sys.stdout.write(f"and {len(result.damaged) - _LISTED:,} more; --json lists all\n")
        if not quiet:
            _summary(path, result.rows, len(result.damaged), result.unchecked)
    if not result.ok:
        raise typer.Exit(DAMAGED)


def _is_damage(error: FormatError) -> bool:
    """Return whether a file that Ingot can read is not as it should be."""
    if isinstance(error, CorruptFileError):
        return True
    if isinstance(error, UnsupportedVersionError) or error.path is None:
        return False
    path = Path(error.path)
    is_known = path.name == NAME or format_of(plain_name(error.path)) is not None
    return is_known and path.is_file()


def _write(path: str, result: Verification) -> None:
    write_json(
        {
            "path": path,
            "ok": result.ok,
            "rows": result.rows,
            "damaged": [asdict(one) for one in result.damaged],
            "unchecked": list(result.unchecked),
        }
    )


def _place(record: int | None, count: int) -> str:
    if record is None:
        return "no record"
    return f"record {record}" if count == 1 else f"records {record} to {record + count - 1}"


def _summary(path: str, rows: int, damaged: int, unchecked: tuple[str, ...]) -> None:
    state = f"damaged in {counted(damaged, 'place')}" if damaged else "whole"
    line(f"{path}: {counted(rows, 'row')}, {state}", "red" if damaged else "green")
    if unchecked:
        line(f"without checksums, so only read: {', '.join(unchecked)}")

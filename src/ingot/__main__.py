"""The command `ingot`, also as `python -m ingot`."""

import sys


def main() -> None:
    """Run the command line, or say how to install what it requires."""
    try:
        from ingot.cli.app import run  # noqa: PLC0415 -- it requires an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"rich", "typer"}:
            raise
        sys.stderr.write("ingot: the command line requires typer: pip install 'ingot[cli]'\n")
        sys.exit(2)
    sys.exit(run())


if __name__ == "__main__":
    main()

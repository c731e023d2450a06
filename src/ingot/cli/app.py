"""The table of commands, and how they start and end."""

import functools
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from ingot.cli.failures import FAILURES, INTERRUPTED, PIPE_CLOSED, USAGE, code_of, message_of, tell

_COMMANDS = (
    "info",
    "head",
    "cat",
    "get",
    "ls",
    "convert",
    "merge",
    "split",
    "pack",
    "unpack",
    "extract",
    "index",
    "verify",
    "recover",
    "bench",
    "doctor",
    "version",
)
"""The commands, in the order of the help: each is a function in a module of its name."""

_SETTINGS = {"get": {"ignore_unknown_options": True}}
"""How arguments are taken: `ingot get x -1` is the last row, not an option."""

_STYLE: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class _Commands(MutableMapping[str, Any]):
    """The commands by name. The module of a command is loaded when the command is."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in _COMMANDS:
            raise KeyError(name)
        if name not in self._loaded:
            app = typer.Typer(add_completion=False, **_STYLE)
            function = getattr(import_module(f"ingot.cli.{name}"), name)
            app.command(name, context_settings=_SETTINGS.get(name))(_shielded(function))
            self._loaded[name] = typer.main.get_command(app)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(TyperGroup):
    """All commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()


def _shielded(command: Callable[..., object]) -> Callable[..., object]:
    """Return a command that tells a failure in one line and ends with its exit code."""

    @functools.wraps(command)
    def shielded(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of the output has closed it. Nothing may be written when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from None
        except FAILURES as error:
            tell(message_of(error), getattr(error, "__notes__", ()))
            raise typer.Exit(code_of(error)) from None

    return shielded


def _tell_version(asked: bool) -> None:
    if asked:
        from ingot.cli.version import version  # noqa: PLC0415 -- loaded as a command is

        version()
        raise typer.Exit


def _all(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Same as ingot version."
        ),
    ] = False,
) -> None:
    """Take the options of no command."""


def command() -> TyperGroup:
    """Return the command `ingot`, with its commands."""
    app = typer.Typer(
        cls=_Group,
        name="ingot",
        help="Read, write, convert and check training data.",
        epilog="Exit codes: 0 done, 1 damage or a failure, 2 wrong usage, 130 interrupted.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        **_STYLE,
    )
    app.callback()(_all)
    return cast("TyperGroup", typer.main.get_command(app))


def run() -> int:
    """Run the command that the arguments name; return the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # The caller has closed it.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        code = command().main(prog_name="ingot", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except _ClickException as error:
        return _misused(error)
    return code if isinstance(code, int) else 0


def _misused(error: Any) -> int:
    """Say what is wrong with the arguments, without the control characters in them."""
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(f"{error.format_message()}\n")
        return USAGE
    context = getattr(error, "ctx", None)
    path = "ingot" if context is None else context.command_path
    tell(error.format_message(), [f"see {path} --help"])
    return USAGE

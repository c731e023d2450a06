"""The pages of the commands show what the commands take and print."""

import re
import shlex
import subprocess
import sys

import pytest

from ingot.cli.app import command
from tests.support.pages import ROOT, blocks_of, script_of

GUIDE = ROOT / "docs" / "guide" / "cli.md"
PAGES = ROOT / "docs" / "cli"
COMMANDS = command().commands
FIGURE = re.compile(r"[\d,.]+(?: [kMGT]?B)?")
ADVICE = ("read batches of ", "ingot.Loader(", "cold data ", "data in memory ", "the files do ")


def text_of(name):
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def examples(name):
    """Yield the commands of a page, what it shows of each, and the exit code that it tells."""
    for block in blocks_of(PAGES / f"{name}.md"):
        if block.tag == "console":
            lines = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
            steps = [one.partition("\n")[::2] for one in lines[1:]]
            for (line, shown), (following, code) in zip(steps, [*steps[1:], ("", "")], strict=True):
                if line != "echo $?":
                    yield line, shown, int(code) if following == "echo $?" else 0


def pattern_of(shown):
    """Return an expression for a text in which `...` stands for anything."""
    return ".*".join(re.escape(part) for part in shown.split("..."))


def figures_left_out(text):
    """Return lines without what differs from one machine and one moment to another."""
    lines = [line for line in text.splitlines() if not line.startswith(ADVICE)]
    return [FIGURE.sub("#", " ".join(line.split())) for line in lines]


def is_shown(line, shown, found):
    """Return whether a page shows what a command prints."""
    name = line.split()[1]
    if name == "doctor":
        names = [one.split()[:2] for one in shown.splitlines() if one != "..."]
        return all(one in [x.split()[:2] for x in found.splitlines()] for one in names)
    if name in {"bench", "version"}:
        return figures_left_out(found) == figures_left_out(shown)
    return re.fullmatch(pattern_of(shown), found, re.DOTALL) is not None


def table_of(name):
    """Return the rows of the first table of a page, without its head."""
    lines = text_of(name).partition("\n| ")[2].partition("\n\n")[0].splitlines()
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def names_of(parameter):
    """Return what a user writes for an argument or an option."""
    if parameter.param_type_name == "argument":
        return [parameter.metavar]
    return [*parameter.opts, *parameter.secondary_opts]


def default_of(parameter):
    """Return the default as a page has it; None if a page says in words what happens."""
    if parameter.required:
        return "required"
    if isinstance(parameter.default, bool):
        return f"`{parameter.opts[0]}`" if parameter.default else "off"
    return None if parameter.default in {None, ""} else f"`{parameter.default}`"


def usage_of(name):
    words = [f"ingot {name} [OPTIONS]"]
    for one in COMMANDS[name].params:
        if one.param_type_name == "argument":
            word = one.metavar if one.required else f"[{one.metavar}]"
            words.append(f"{word}..." if one.nargs == -1 else word)
    return " ".join(words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    subprocess.run([sys.executable, "-c", script_of(GUIDE)], cwd=folder, check=True)
    return folder


def test_the_commands_print_what_the_pages_show(folder, ingot_cli):
    for name in COMMANDS:
        for line, shown, code in examples(name):
            program, *arguments = shlex.split(line)
            assert program == "ingot", line
            ran = ingot_cli(*arguments, cwd=folder)
            assert is_shown(line, shown, ran.out + ran.err), (line, ran)
            assert ran.code == code, (line, ran)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_shows_an_example_of_its_command(name):
    assert text_of(name).startswith(f"# ingot {name}\n\n`ingot {name}` ")
    assert any(line.split()[1] == name for line, _, _ in examples(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_the_usage_of_its_command(name):
    (usage,) = (block.text for block in blocks_of(PAGES / f"{name}.md") if block.tag == "text")
    assert usage == f"{usage_of(name)}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_argument_and_option_with_its_help_and_default(name):
    rows, parameters = table_of(name), COMMANDS[name].params
    assert [row[0] for row in rows] == [
        ", ".join(f"`{one}`" for one in names_of(parameter)) for parameter in parameters
    ]
    for (_, meaning, default), parameter in zip(rows, parameters, strict=True):
        assert meaning.startswith(parameter.help)
        assert default == (default_of(parameter) or default)
        assert default


def test_the_pages_the_guide_and_the_navigation_list_the_commands_in_the_order_of_the_help(
    ingot_cli,
):
    listed = re.findall(r"^  ([a-z]+) ", ingot_cli("--help").out, re.MULTILINE)
    assert sorted(listed) == sorted(page.stem for page in PAGES.glob("*.md"))
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = re.findall(r"^ +- (ingot \w+: cli/\w+\.md)$", navigation, re.MULTILINE)
    assert pages == [f"ingot {name}: cli/{name}.md" for name in listed]
    table = re.findall(r"^\| \[.*$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert table == [
        f"| [`ingot {name}`](../cli/{name}.md) | {COMMANDS[name].help.splitlines()[0]} |"
        for name in listed
    ]

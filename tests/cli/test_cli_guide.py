"""The guide of the command line shows what the commands print."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guide" / "cli.md"
TEXT = GUIDE.read_text(encoding="utf-8")
FIGURE = re.compile(r"[\d,.]+(?: [kMGT]?B)?")


def examples():
    """Yield the commands of the guide and what it shows of each, in order."""
    for block in re.findall(r"^```console\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE):
        for example in re.split(r"^\$ ingot ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = example.partition("\n")
            yield command, shown


def pattern_of(shown):
    """Return an expression for a text in which `...` stands for anything."""
    return ".*".join(re.escape(part) for part in shown.split("..."))


def figures_left_out(text):
    return [FIGURE.sub("#", " ".join(line.split())) for line in text.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    code = re.search(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)[1]
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    return folder


def test_the_commands_print_what_the_guide_shows(folder, ingot_cli):
    for command, shown in examples():
        ran = ingot_cli(*shlex.split(command), cwd=folder)
        found = ran.out + ran.err
        if command.startswith("bench"):
            lines = len(shown.splitlines()) - 3  # The advice depends on the machine.
            assert figures_left_out(found)[:lines] == figures_left_out(shown)[:lines]
        elif command.startswith(("doctor", "version")):
            names = [line.split()[:2] for line in shown.splitlines() if line != "..."]
            assert [
                one for one in names if one not in [x.split()[:2] for x in found.splitlines()]
            ] == []
        else:
            assert re.fullmatch(pattern_of(shown), found, re.DOTALL), (command, found)


def test_every_command_has_its_place_in_the_guide(ingot_cli):
    listed = re.findall(r"^  ([a-z]+) ", ingot_cli("--help").out, re.MULTILINE)
    heads = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert sorted(listed) == sorted(name for head in heads[1:] for name in head.split(", "))

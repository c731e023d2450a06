"""The pages of the documentation, and the examples in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# `make tensorflow` runs the examples of this page, where TensorFlow is installed.
TENSORFLOW = ROOT / "docs" / "guide" / "tensorflow.md"


class Block(NamedTuple):
    """A fenced block of a page, with the line that its content begins on."""

    tag: str
    line: int
    text: str


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield Block(found[1], text.count("\n", 0, found.start(2)), found[2])


def script_of(page):
    """Return the examples of a page as one script, on the lines that they have in the page."""
    script = ""
    for block in blocks_of(page):
        if block.tag == "python":
            script += "\n" * (block.line - script.count("\n")) + block.text
    return script


def names_in_reference():
    """Return the names that the pages of the reference list."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))

"""The pages of the documentation, and the examples in them."""

import re
from typing import NamedTuple

from tests.support import ROOT

INDEX = ROOT / "docs" / "index.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# TensorFlow has an environment of its own.
TENSORFLOW = ROOT / "docs" / "guide" / "tensorflow.md"
FRAMEWORKS = re.compile(r"\b(beam|datasets|grain|h5record|hf|jax|tensorflow|tf|torch)\b")


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


WITH_EXAMPLES = [page for page in PAGES if script_of(page)]


def name_of(page):
    return str(page.relative_to(ROOT))


def needs_framework(page):
    """Return whether the code of the examples of a page, without comments, names a framework."""
    return FRAMEWORKS.search(re.sub(r"#.*", "", script_of(page))) is not None


def run_examples(page):
    exec(compile(script_of(page), str(page), "exec"), {"__name__": "__main__"})  # noqa: S102


def guides_in(page):
    """Return the guides that a page links or lists, each once, in order."""
    text = page.read_text(encoding="utf-8")
    return list(dict.fromkeys(re.findall(r"(?:guide|from)/\w+\.md", text)))

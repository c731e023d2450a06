import re
from pathlib import Path
from typing import NamedTuple

import pytest

import ingot
import reference

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FORMAT = ROOT / "docs" / "format.md"


class Block(NamedTuple):
    """A fenced block of a page, with the line that its content begins on."""

    tag: str
    line: int
    text: str


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield Block(found[1], text.count("\n", 0, found.start(2)), found[2])


def parse_dump(text):
    """Return the bytes of lines `offset  bytes  comment`, whose offsets must be right."""
    content = bytearray()
    for line in text.splitlines():
        offset, numbers = re.match(r"([0-9a-f]+)  ((?:[0-9a-f]{2} ?)+)(?=  |$| )", line).groups()
        assert int(offset, 16) == len(content), line
        content += bytes.fromhex(numbers)
    return bytes(content)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.tag == "python":
            code = compile("\n" * block.line + block.text, str(page), "exec")
            exec(code, names)  # noqa: S102


def test_the_readme_has_an_example():
    assert any(block.tag == "python" for block in blocks_of(ROOT / "README.md"))


def test_the_file_in_hex_is_what_the_format_says(path):
    (dump,) = (parse_dump(block.text) for block in blocks_of(FORMAT) if block.tag == "hex")
    assert dump == reference.write(
        [{"record": b"hello"}, {"record": b""}], metadata={"k": 1}, file_id=bytes(range(16))
    )
    path.write_bytes(dump)
    with ingot.open(path) as reader:
        assert list(reader) == [b"hello", b""]
        assert reader.metadata == {"k": 1}
        assert reader.verify().ok


def test_the_file_in_hex_is_what_the_writer_writes(path):
    (dump,) = (parse_dump(block.text) for block in blocks_of(FORMAT) if block.tag == "hex")
    with ingot.Writer(path, compression=None, metadata={"k": 1}) as writer:
        writer.extend([b"hello", b""])
    content = path.read_bytes()
    assert len(content) == len(dump)
    again = reference.write(
        [{"record": b"hello"}, {"record": b""}], metadata={"k": 1}, file_id=content[16:32]
    )
    assert content == again

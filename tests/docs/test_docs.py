import re
from importlib import import_module

import pytest

import ingot
from tests.support import reference
from tests.support.pages import (
    INDEX,
    ROOT,
    WITH_EXAMPLES,
    blocks_of,
    guides_in,
    name_of,
    names_in_reference,
    needs_framework,
    run_examples,
)

FORMAT = ROOT / "docs" / "format.md"
NAVIGATION = ROOT / "mkdocs.yml"
# Public modules whose `__all__` has no modules.
PUBLIC = [
    "ingot",
    "ingot.codecs",
    "ingot.compat.bagz",
    "ingot.compat.h5record",
    "ingot.formats.arrayrecord",
    "ingot.formats.bag",
    "ingot.formats.ffrecord",
    "ingot.formats.granular",
    "ingot.formats.granular.codecs",
    "ingot.formats.hdf5",
    "ingot.fsspec",
    "ingot.loader",
    "ingot.locks",
    "ingot.order",
]


def parse_dump(text):
    """Return the bytes of lines `offset  bytes  comment`, whose offsets must be right."""
    content = bytearray()
    for line in text.splitlines():
        offset, numbers = re.match(r"([0-9a-f]+)  ((?:[0-9a-f]{2} ?)+)(?=  |$| )", line).groups()
        assert int(offset, 16) == len(content), line
        content += bytes.fromhex(numbers)
    return bytes(content)


@pytest.mark.parametrize(
    "page", [page for page in WITH_EXAMPLES if not needs_framework(page)], ids=name_of
)
def test_the_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(page)


def test_the_index_and_the_navigation_list_all_guides_in_one_order():
    guides = guides_in(INDEX)
    pages = [page for door in ("guide", "from") for page in (ROOT / "docs" / door).glob("*.md")]
    assert sorted(guides) == sorted(f"{page.parent.name}/{page.name}" for page in pages)
    assert guides_in(NAVIGATION) == guides
    assert set(guides_in(ROOT / "README.md")) <= set(guides)


@pytest.mark.parametrize("guide", guides_in(INDEX))
def test_a_guide_begins_with_a_title_a_paragraph_and_code(guide):
    text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
    assert re.match(r"# [^\n]+\n\n(?!```|[#|<-])[^\n]+\n\n```\w+\n", text)


def test_the_reference_has_every_public_name():
    public = {f"{name}.{one}" for name in PUBLIC for one in import_module(name).__all__}
    assert public - names_in_reference() == set()


def test_the_readme_has_an_example():
    assert ROOT / "README.md" in WITH_EXAMPLES


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

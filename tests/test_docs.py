import re
import subprocess
import sys
from importlib import import_module

import pytest

import ingot
import reference
from pages import PAGES, ROOT, TENSORFLOW, blocks_of, names_in_reference, script_of

FORMAT = ROOT / "docs" / "format.md"
NAVIGATION = ROOT / "mkdocs.yml"
# Public modules whose `__all__` has classes and functions only.
PUBLIC = [
    "ingot",
    "ingot.beam",
    "ingot.codecs",
    "ingot.compat.bagz",
    "ingot.compat.ffrecord.torch",
    "ingot.compat.h5record",
    "ingot.fsspec",
    "ingot.grain",
    "ingot.hf",
    "ingot.jax",
    "ingot.loader",
    "ingot.order",
    "ingot.torch",
]


def guides_in(page):
    """Return the names of the guides that a page links or lists, each once, in order."""
    text = page.read_text(encoding="utf-8").split("## Documentation")[-1]
    return list(dict.fromkeys(re.findall(r"guide/(\w+)\.md", text)))


def parse_dump(text):
    """Return the bytes of lines `offset  bytes  comment`, whose offsets must be right."""
    content = bytearray()
    for line in text.splitlines():
        offset, numbers = re.match(r"([0-9a-f]+)  ((?:[0-9a-f]{2} ?)+)(?=  |$| )", line).groups()
        assert int(offset, 16) == len(content), line
        content += bytes.fromhex(numbers)
    return bytes(content)


PAGES_WITH_EXAMPLES = [page for page in PAGES if script_of(page) and page != TENSORFLOW]


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(script_of(page), str(page), "exec"), {"__name__": "__main__"})  # noqa: S102


# Their examples are of the interfaces of other libraries, which have no types.
UNTYPED = {"ffrecord", "h5record"}
# To read the types of large libraries takes longer than all the rest.
CONFIG = """
[mypy]
ignore_missing_imports = true
[mypy-torch.*,jax.*,grain.*,apache_beam.*,datasets.*,pandas.*,h5py.*,PIL.*,pytest.*]
follow_imports = skip
"""


def test_the_examples_of_all_pages_pass_mypy(tmp_path):
    pages = [page for page in PAGES_WITH_EXAMPLES if page.stem not in UNTYPED]
    scripts = {}
    for page in pages:
        # The examples of a guide may use a name once more; those of the README may not.
        first = "# mypy: allow-redefinition\n" if page.stem != "README" else "\n"
        assert script_of(page).startswith("\n"), page
        name = f"page_{len(scripts)}.py"
        (tmp_path / name).write_text(first + script_of(page)[1:], encoding="utf-8")
        scripts[name] = page
    (tmp_path / "mypy.ini").write_text(CONFIG, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", ROOT / ".mypy_cache", *scripts],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = re.sub(r"page_\d+\.py", lambda name: str(scripts[name[0]]), ran.stdout)
    assert ran.returncode == 0, told + ran.stderr


def test_the_guides_can_be_followed_in_one_directory(tmp_path):
    guides = [ROOT / "docs" / "guide" / f"{name}.md" for name in guides_in(ROOT / "README.md")]
    directory = tmp_path / "here"
    directory.mkdir()
    guides.remove(TENSORFLOW)
    for page in [ROOT / "README.md", *guides]:
        script = tmp_path / f"{page.stem}.py"
        script.write_text(script_of(page), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-P", script],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{page}\n{ran.stderr}"


def test_the_readme_the_index_and_the_navigation_list_all_guides_in_one_order():
    guides = guides_in(ROOT / "README.md")
    assert sorted(guides) == sorted(page.stem for page in (ROOT / "docs" / "guide").glob("*.md"))
    assert guides_in(ROOT / "docs" / "index.md") == guides
    assert guides_in(NAVIGATION) == guides


def test_the_reference_has_every_public_name():
    public = {f"{name}.{one}" for name in PUBLIC for one in import_module(name).__all__}
    assert public - names_in_reference() == set()


def test_the_readme_has_an_example():
    assert ROOT / "README.md" in PAGES_WITH_EXAMPLES


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

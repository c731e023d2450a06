"""The examples of pages that need a framework, and those of all pages together."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from tests.package.test_signatures import check_signatures
from tests.support.pages import (
    INDEX,
    ROOT,
    TENSORFLOW,
    WITH_EXAMPLES,
    guides_in,
    name_of,
    names_in_reference,
    needs_framework,
    run_examples,
    script_of,
)

PUBLIC = [
    "ingot.beam",
    "ingot.compat.ffrecord.torch",
    "ingot.grain",
    "ingot.hf",
    "ingot.jax",
    "ingot.torch",
]
# Their examples are of the interfaces of other libraries, which have no types.
UNTYPED = {"ffrecord", "h5record"}
# To read the types of large libraries takes longer than all the rest.
CONFIG = """
[mypy]
ignore_missing_imports = true
[mypy-torch.*,tensorflow.*,jax.*,grain.*,apache_beam.*,datasets.*,pandas.*,h5py.*,PIL.*,pytest.*]
follow_imports = skip
"""


@pytest.mark.parametrize(
    "page",
    [page for page in WITH_EXAMPLES if needs_framework(page) and page != TENSORFLOW],
    ids=name_of,
)
def test_the_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(page)


def test_the_examples_of_all_pages_pass_mypy(tmp_path):
    pages = [page for page in WITH_EXAMPLES if page.stem not in UNTYPED]
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
    guides = [ROOT / "docs" / name for name in guides_in(INDEX)]
    directory = tmp_path / "here"
    directory.mkdir()
    guides.remove(TENSORFLOW)
    for page in [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *guides]:
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


def test_the_reference_has_every_public_name():
    public = {f"{name}.{one}" for name in PUBLIC for one in import_module(name).__all__}
    assert public - names_in_reference() == set()


@pytest.mark.parametrize("module", PUBLIC)
def test_public_callables_have_real_signatures(module):
    check_signatures(module)

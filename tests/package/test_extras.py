"""Packages that only parts of Ingot require, and what is said about installing them."""

import re
import subprocess
import sys
import tomllib

import pytest

from ingot.extras import _EXTRAS, require, requirement
from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("package", _EXTRAS)
def test_a_missing_package_is_answered_with_an_extra_that_exists(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError) as found:
        require(package, "this")
    called, extra = _EXTRAS[package]
    assert str(found.value) == (
        f"this requires {called}: "
        f"pip install '{PROJECT['name']}[{extra}]' (in a checkout: pip install '.[{extra}]')"
    )
    assert found.value.name == package
    assert PROJECT["optional-dependencies"][extra]


def test_converting_to_parquet_without_pyarrow_says_what_to_install(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    script = (
        "import sys; sys.modules['pyarrow'] = None; import ingot; "
        "ingot.convert('x.csv', 'x.parquet')"
    )
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: Parquet or Arrow requires pyarrow: pip install" in ran.stderr


def test_a_module_that_no_extra_has_is_reported_as_it_is():
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'missing'"),
        requirement("torch", "this"),
    ):
        import missing  # noqa: F401, PLC0415


def test_install_lines_name_this_distribution():
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/ingot/**/*.py")]
    named = set()
    for page in pages:
        named.update(re.findall(r"([\w.-]+)\[(\w+)\]['`]", page.read_text()))
    extras = {name for name, extra in named if extra in PROJECT["optional-dependencies"]}
    assert "ingot-data" in extras
    assert extras <= {"ingot-data", "."}

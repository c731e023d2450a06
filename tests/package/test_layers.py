"""The layers of the engine, what `ingot.compat` may use, and the check of both."""

import shutil
import subprocess
import sys

import pytest

from tests.support import ROOT

IGNORED = shutil.ignore_patterns("*.so", "__pycache__")


def check(root):
    command = [sys.executable, str(ROOT / "tests" / "package" / "check_layers.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_engine(root, files, dependencies=""):
    source = root / "crates" / "ingot" / "src"
    for name, code in {"lib.rs": "pub mod error;\npub use error::Error;\n", **files}.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    manifest = '[package]\nname = "ingot"\n[dependencies]\n' + dependencies
    (root / "crates" / "ingot" / "Cargo.toml").write_text(manifest)


def test_engine_keeps_its_layers():
    result = check(ROOT)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


def test_imports_that_point_down_are_accepted(tmp_path):
    files = {
        "error.rs": "pub enum Error {}\n",
        "storage/mod.rs": "mod local;\nuse crate::{error::Error, pool::{self, Pool}};\n",
        "storage/local.rs": "use super::Read;\nuse crate::process;\n",
        "format/mod.rs": "use crate::Error;\n// use crate::records::Reader;\n"
        'const TEXT: &str = "crate::storage";\n'
        "#[cfg(test)]\nmod tests {\n    use crate::storage::Memory;\n    fn f() {}\n}\n",
        "records/mod.rs": "use crate::{compression, format::Page, storage::ReadAt};\n",
    }
    write_engine(tmp_path, files)
    result = check(tmp_path)
    assert (result.stdout, result.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("name", "code", "found"),
    [
        (
            "storage/local.rs",
            "use crate::records::Reader;\n",
            ":1: `storage` may not use `records`",
        ),
        (
            "storage/mod.rs",
            "\nuse crate::{error, format::Page};\n",
            ":2: `storage` may not use `format`",
        ),
        ("pool.rs", "fn f() { super::storage::open() }\n", ":1: `pool` may not use `storage`"),
        ("format/page.rs", "use super::super::pool;\n", ":1: `format` may not use `pool`"),
        ("process.rs", "use crate::Error;\n", ":1: `process` may not use `error`"),
        ("format/page.rs", "use std::io::{self, Read};\n", ":1: `format` may do no I/O"),
        ("compression.rs", "use std::fs::File;\n", ":1: `compression` may do no I/O"),
        ("helpers.rs", "", ": module `helpers` has no place among the layers"),
    ],
)
def test_imports_that_point_up_are_reported_with_their_line(tmp_path, name, code, found):
    write_engine(tmp_path, {name: code})
    result = check(tmp_path)
    expected = f"{tmp_path}/crates/ingot/src/{name}{found}\n"
    assert (result.stdout, result.returncode) == (expected, 1)


@pytest.mark.parametrize("dependency", ["pyo3", "pyo3-ffi", "numpy"])
def test_python_in_the_engine_is_reported(tmp_path, dependency):
    write_engine(tmp_path, {}, f'{dependency} = "1"\n')
    result = check(tmp_path)
    assert f"the engine may not depend on {dependency}" in result.stdout
    assert result.returncode == 1


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import ingot\nfrom ingot.errors import FormatError\ningot.open('x')\n", ""),
        ("from ingot.compat.mine import other\nfrom ingot.formats import bag\nbag.Stream\n", ""),
        ("import torch\nfrom importlib import import_module\nimport_module('h5py')\n", ""),
        ("from ingot.records.expand import absolute\n", ":1: `ingot.records.expand.absolute`"),
        ("from ingot._core import Reader\n", ":1: `ingot._core.Reader`"),
        ("import ingot.dataset.spec\n", ":1: `ingot.dataset.spec`"),
        ("from ingot.errors import counted\n", ":1: `ingot.errors.counted`"),
        ("import ingot\n\ningot.records\n", ":3: `ingot.records`"),
        ("from ingot.formats import bag\nbag.absolute\n", ":2: `ingot.formats.bag.absolute`"),
        ("def f():\n    from ingot import packed\n", ":2: `ingot.packed`"),
        ("from ..errors import counted\n", ":1: `ingot..errors.counted`"),
        ("importlib.import_module('ingot.packed')\n", ":1: `ingot.packed.?`"),
    ],
)
def test_what_is_not_public_is_reported_in_compat(tmp_path, code, found):
    write_engine(tmp_path, {})
    shutil.copytree(ROOT / "src" / "ingot", tmp_path / "src" / "ingot", ignore=IGNORED)
    path = tmp_path / "src" / "ingot" / "compat" / "mine.py"
    path.write_text(code)
    expected = f"{path}{found} is not public\n" if found else ""
    result = check(tmp_path)
    assert (result.stdout, result.returncode) == (expected, 1 if found else 0)

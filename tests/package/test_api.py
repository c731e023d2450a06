import importlib.util
import inspect
import pickle
import pydoc
import re
import subprocess
import sys

import pytest

import ingot
import ingot.errors

ERRORS = {
    "IngotError": {"path": "p"},
    "FormatError": {"path": "p"},
    "CorruptFileError": {"path": "p", "record": 3, "offset": 40},
    "UnfinishedFileError": {"path": "p", "rows": 3, "offset": 40},
    "UnsupportedVersionError": {"path": "p", "found": 9, "supported": 1},
    "StorageError": {"path": "p", "record": 3, "offset": 40, "errno": 28},
    "ClosedError": {"path": "p"},
    "WorkerError": {"path": "p", "step": 3},
}


def public_members(one):
    return {name for name in dir(one) if not name.startswith("_")}


def test_all_is_sorted_and_lists_what_is_public():
    assert ingot.__all__ == sorted(ingot.__all__)
    found = {name: getattr(ingot, name) for name in [*ingot.__all__, *vars(ingot)]}
    public = {name for name, one in found.items() if name[0] != "_" and not inspect.ismodule(one)}
    assert public - {"TYPE_CHECKING", "import_module"} == set(ingot.__all__)


def test_dir_names_the_modules_that_are_imported_when_they_are_first_used():
    packages = {"codecs": "numpy", "compat": "numpy", "beam": "apache_beam", "hf": "datasets"}
    packages |= {name: name for name in ("fsspec", "grain", "jax", "torch")} | {"tf": "tensorflow"}
    there = {name for name, package in packages.items() if importlib.util.find_spec(package)}
    assert dir(ingot) == sorted(there.union(ingot.__all__))
    for name in packages:
        assert importlib.util.find_spec(f"ingot.{name}"), name
    assert ingot.compat.__name__ == "ingot.compat"


def test_help_shows_the_package_whatever_is_installed():
    text = pydoc.plain(pydoc.render_doc(ingot))
    assert "class DatasetWriter" in text
    assert "class Loader" in text


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'ingot' has no attribute 'opne'"):
        _ = ingot.opne


def test_import_loads_what_reads_and_nothing_more():
    code = "import sys, ingot\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    above = {"conversion", "dataset.build", "dataset.write", "loader", "order", "packed"}
    assert not {f"ingot.{name}" for name in above} & set(loaded)
    assert "ingot.dataset.read.dataset" in loaded


def test_a_star_import_gives_what_all_lists():
    names = {}
    exec("from ingot import *", names)  # noqa: S102
    assert set(names) - {"__builtins__"} == set(ingot.__all__)


def test_public_names_say_where_they_are_imported_from():
    for name in ingot.__all__:
        one = getattr(ingot, name)
        if inspect.isclass(one):
            assert one.__module__ in {"ingot", "ingot.errors"}, name


@pytest.mark.parametrize("name", ingot.__all__)
def test_everything_public_has_a_docstring(name):
    one = getattr(ingot, name)
    assert inspect.getdoc(one)
    if not inspect.isclass(one) or issubclass(one, Exception):
        return
    fields = set(getattr(one, "__dataclass_fields__", ())) | set(getattr(one, "__slots__", ()))
    for member in public_members(one) - fields:
        assert inspect.getdoc(getattr(one, member)), f"{name}.{member}"
    for field in filter(lambda name: name[0] != "_", fields):
        assert f"    {field}: " in one.__doc__, f"{name}.{field}"


def test_import_loads_no_package_but_numpy():
    code = "import sys, ingot\nprint(*{name.partition('.')[0] for name in sys.modules})"
    outcome = subprocess.run(
        [sys.executable, "-S", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    loaded = set(outcome.stdout.split())
    assert {name for name in loaded - sys.stdlib_module_names if name[0] != "_"} == {
        "ingot",
        "numpy",
    }
    assert not loaded & {"asyncio", "multiprocessing", "unittest", "tkinter", "http"}


def test_the_tree_of_exceptions_is_as_drawn():
    drawn, above = {"IngotError": (Exception,)}, ["IngotError"]
    for line in ingot.errors.__doc__.split("\n"):
        if found := re.match(r"((?:\|   |    )*)\+-- (\w+)(?:\((\w+)\))?", line):
            depth = len(found[1]) // 4 + 1
            del above[depth:]
            bases = [getattr(ingot, above[-1])]
            if found[3]:
                bases.append(getattr(__import__("builtins"), found[3]))
            drawn[found[2]] = tuple(bases)
            above.append(found[2])
    real = {
        name: one.__bases__
        for name, one in vars(ingot.errors).items()
        if inspect.isclass(one) and issubclass(one, Exception)
    }
    assert drawn == real
    assert set(real) == set(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_exceptions_pickle_with_their_attributes(name, protocol):
    error = getattr(ingot, name)("p: what went wrong", **ERRORS[name])
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
    assert type(again) is type(error)
    assert str(again) == "p: what went wrong"
    assert again.__notes__ == ["a note"]
    for attribute, value in ERRORS[name].items():
        assert getattr(again, attribute) == value
        assert getattr(error, attribute) == value


def test_exceptions_are_what_their_builtin_bases_promise(make):
    path = make([b"x"])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="not finished"):
        ingot.open(path)
    with pytest.raises(OSError, match="another writer") as caught, ingot.Writer(path, append=True):
        ingot.recover(path)
    assert caught.value.errno == 11


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ingot.open("x", partail=True), r"'partail'; did you mean 'partial'\? \(open has "),
        (lambda: ingot.open("x.csv", sep=";"), r"'sep'; did you mean 'separator'\?"),
        (lambda: ingot.open("x.csv", delimiter=";"), r"'delimiter'; did you mean 'separator'\?"),
        (lambda: ingot.Loader(range(9), 2, shufle=True), r"'shufle'; instead: .*ds\.shuffle\(seed"),
        (lambda: ingot.open_dataset("x", specs={}), r"did you mean 'spec'\? \(open_dataset has "),
        (lambda: ingot.open_records("x", partly=1), r"\(open_records has partial\)"),
        (
            lambda: ingot.Writer("x.ingot", compresion=None),
            r"did you mean 'compression'\? \(Writer ",
        ),
        (lambda: ingot.DatasetWriter("x", {}, shard_row=1), r"did you mean 'shard_rows'\?"),
        (lambda: ingot.Loader(range(9), 2, worker=1), r"did you mean 'workers'\? \(Loader has "),
        (lambda: ingot.convert("x", "y", chek=False), r"did you mean 'check'\? \(convert has "),
        (lambda: ingot.build("x", str, [], spec={}, zzz=1), r"unknown option 'zzz' \(build has "),
    ],
)
def test_a_misspelt_option_is_rejected_with_the_one_that_was_meant(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_one_row_is_named_in_the_singular(tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"x")
        assert "1 record>" in repr(writer).replace(",", "")
    with ingot.DatasetWriter(tmp_path / "rows", {"x": "int"}) as rows:
        rows.append({"x": 1})
    reader, ds = ingot.open(tmp_path / "x.ingot"), ingot.open(tmp_path / "rows")
    assert ", 1 record>" in repr(reader)
    assert "of 1 record of" in repr(reader[:])
    assert "of 1 record, 1 byte>" in repr(reader.read())
    assert "of 1 row of" in repr(ds)
    assert repr(ds.shuffle(0)).startswith("Dataset('rows', 1 row)")
    assert "1 row," in ds._repr_html_()
    for one in (reader, ds):
        with pytest.raises(IndexError, match=r"index 1 is out of range for 1 row$"):
            one[1]
        with pytest.raises(IndexError, match=r"index 2 is out of range for 1 row$"):
            one[[0, 2]]

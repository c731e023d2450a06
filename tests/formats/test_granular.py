"""Granular's folders and bags by `ingot.formats.granular`: what is stored, and writing it."""

import subprocess
import sys

import pytest

import ingot
from ingot.formats import granular
from ingot.formats.granular.codecs import ENCODERS


def test_stored_values_are_written_and_read_without_functions_for_their_types(tmp_path):
    with granular.open_writer(tmp_path / "x", {"b": "mine", "a": "utf8"}) as writer:
        assert writer.append({"a": b"0", "b": b"\xff"}) == 0
        assert writer.append({"a": b"1", "b": b""}) == 1
        assert (len(writer), list(writer.bags)) == (2, ["a", "b"])
    columns = granular.open_folder(tmp_path / "x")
    assert (columns.spec, columns.version) == ({"a": "utf8", "b": "mine"}, 3)
    assert columns.read(0, {"b": slice(None)}) == {"b": b"\xff"}
    assert columns.read_many([1, 0], ["a"]) == {"a": [b"1", b"0"]}
    with pytest.raises(ingot.FormatError, match="open_folder reads values of any type as bytes"):
        ingot.open(tmp_path / "x")


def test_rows_are_appended_to_and_sequences_take_the_layout_of_0_21(tmp_path):
    for k in range(2):
        with granular.open_writer(tmp_path / "x", {"a": "int"}) as writer:
            assert writer.append({"a": ENCODERS["int"](k)}) == k
    assert [row["a"] for row in ingot.open(tmp_path / "x")] == [0, 1]
    with granular.open_writer(tmp_path / "y", {"a": "int[]"}) as writer:
        writer.append({"a": [b"\1", b"\2"]})
        assert not (tmp_path / "y" / granular.SPEC).exists()
    assert ingot.open(tmp_path / "y")[0] == {"a": [1, 2]}
    with pytest.raises(ValueError, match="does not support sequences"):
        granular.open_writer(tmp_path / "z", {"a": "int[]"}, layout="0.22")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_bags_of_each_version_are_written_and_read(tmp_path, version):
    with granular.BagWriter(tmp_path / "x.bag", version=version) as writer:
        assert [writer.append(one) for one in (b"a", b"bc")] == [0, 1]
    assert (tmp_path / "x.idx").exists() == (version == 3)
    bag = granular.open_bag(tmp_path / "x.bag")
    assert (len(bag), bag[1], bag[[1, 0]]) == (2, b"bc", [b"bc", b"a"])
    files = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    assert granular.open_bag(*files)[[0, 1]] == [b"a", b"bc"]


def test_conversion_to_granular_loads_no_api_of_other_libraries(tmp_path):
    code = (
        "import sys, ingot\n"
        "with ingot.DatasetWriter('x', {'a': 'int'}) as w: w.append({'a': 1})\n"
        "ingot.convert('x', 'y', format='granular')\n"
        "print(ingot.open('y')[0], any(name.startswith('ingot.compat') for name in sys.modules))"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "{'a': 1} False\n"


def test_fields_in_any_order_become_sequences_of_a_folder(tmp_path):
    rows = [{"text": "", "run": [1, 2], "array": 3}, {"text": "a", "run": [], "array": 4}]
    with ingot.DatasetWriter(
        tmp_path / "x", {"text": "utf8", "run": "int[]", "array": "int"}
    ) as writer:
        writer.extend(rows)
    ingot.convert(tmp_path / "x", tmp_path / "y", format="granular")
    assert list(ingot.open(tmp_path / "y")) == rows

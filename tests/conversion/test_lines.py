import csv
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot

SLOW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

SPEC = {
    "whole": "int",
    "real": "float",
    "flag": "bool",
    "text": "utf8",
    "note": "utf8?",
    "rank": "int?",
    "meta": "json",
    "ids": "int[]",
    "means": "float[]?",
    "flags": "bool[]",
    "tags": "utf8[]",
    "parts": "json[]",
    "vector": "array(float32,3)",
    "grid": "array(uint8,2,2)",
    "half": "array(float16,2)",
    "big": "array(uint64)",
    "any": "array",
    "boxes": "array(float32,2)[]",
    "pose.x": "int",
    "pose.name.first": "utf8",
}
FIRST = {
    "whole": -(2**63),
    "real": 0.1,
    "flag": True,
    "text": 'a "cat",\n\u00e9\u2028\\ \x01',
    "note": None,
    "rank": 7,
    "meta": {"a": [1, 2.5, None], "b": {}},
    "ids": [2**62 + 1, -1],
    "means": None,
    "flags": [True, False],
    "tags": ["x", "", '"'],
    "parts": [{"k": 1}, None],
    "vector": [0.10000000149011612, 1.0, -2.0],
    "grid": [[1, 2], [3, 255]],
    "half": [0.0999755859375, 65504.0],
    "big": 2**64 - 1,
    "any": [[1, 2, 3]],
    "boxes": [[0.5, 1.0], [2.0, 3.0]],
    "pose": {"x": 3, "name": {"first": "Ada"}},
}
SECOND = FIRST | {
    "whole": 2**63 - 1,
    "real": 5e-324,
    "flag": False,
    "text": "",
    "note": "",
    "rank": None,
    "meta": None,
    "ids": [],
    "means": [1e16, -0.0],
    "flags": [],
    "tags": [],
    "parts": [],
    "any": [0.25],
    "boxes": [],
}


def write(path, spec, rows):
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        writer.extend(rows)
    return path


def plain(value):
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def given_row(row):
    vector = {name: np.array(row[name], np.float32) for name in ("vector",)}
    return row | vector | {"any": np.array(row["any"])}


@pytest.fixture
def rows(tmp_path):
    return write(tmp_path / "rows.ingot", SPEC, [given_row(FIRST), given_row(SECOND)])


def test_a_row_is_an_object_with_its_values_exactly(rows, tmp_path):
    done = ingot.convert(rows, tmp_path / "x.jsonl")
    assert (done.rows, done.checked, done.format) == (2, True, "jsonlines")
    first, second, end = (tmp_path / "x.jsonl").read_bytes().split(b"\n")
    assert end == b""
    assert json.loads(first) == FIRST
    assert json.loads(second) == SECOND
    assert math.copysign(1, json.loads(second)["means"][1]) == -1


def test_json_lines_open_as_the_rows_that_were_converted(rows, tmp_path):
    ingot.convert(rows, tmp_path / "x.ndjson")
    found = ingot.open(tmp_path / "x.ndjson")
    assert [plain(one) for one in found] == [FIRST, SECOND]
    again = {"whole": "int", "note": "utf8?", "vector": "array(float32,3)", "pose.x": "int"}
    typed = ingot.open(tmp_path / "x.ndjson", spec=again)[0]
    assert typed["vector"].dtype == np.float32
    assert plain(typed["vector"]) == FIRST["vector"]


SCALARS = {name: SPEC[name] for name in ("whole", "real", "text", "flag", "note", "rank")}
scalars = st.fixed_dictionaries(
    {
        "whole": st.integers(-(2**63), 2**63 - 1),
        "real": st.floats(allow_nan=False, allow_infinity=False),
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        "flag": st.booleans(),
        "note": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
        "rank": st.none() | st.integers(-(2**63), 2**63 - 1),
    }
).map(lambda row: {name: row[name] for name in SCALARS})


@SLOW
@given(st.lists(scalars, max_size=20))
def test_any_scalars_come_back_from_json_lines(rows):
    with tempfile.TemporaryDirectory() as name:
        target = Path(name) / "x.jsonl"
        ingot.convert(write(Path(name) / "x.ingot", SCALARS, rows), target, sync=False)
        lines = target.read_bytes().split(b"\n")[:-1]
        assert repr([json.loads(line) for line in lines]) == repr(rows)
        assert repr(list(ingot.open(target, spec=SCALARS))) == repr(rows)


def parsed(row):
    """Return the fields of a CSV row, as Python's reader has them, with their types."""
    return {
        "whole": int(row["whole"]),
        "real": float(row["real"]),
        "text": row["text"],
        "flag": {"true": True, "false": False}[row["flag"]],
        "note": row["note"] or None,
        "rank": int(row["rank"]) if row["rank"] else None,
    }


@SLOW
@given(st.lists(scalars, max_size=20))
def test_any_scalars_come_back_from_csv(rows):
    with tempfile.TemporaryDirectory() as name:
        target = Path(name) / "x.csv"
        ingot.convert(write(Path(name) / "x.ingot", SCALARS, rows), target, sync=False)
        assert repr(list(ingot.open(target, spec=SCALARS))) == repr(rows)
        with target.open(newline="", encoding="utf-8") as file:
            found = [parsed(row) for row in csv.DictReader(file)]
        assert repr(found) == repr([row | {"note": row["note"] or None} for row in rows])


CELLS = [
    {"n": 17, "x": 0.1, "t": "0017", "o": None, "e": "", "b": True},
    {"n": -(2**63), "x": 1e300, "t": 'a, "b"\r\nc', "o": 5, "e": None, "b": False},
    {"n": 0, "x": math.inf, "t": " true ", "o": -1, "e": "\u00e9", "b": False},
]
CELL_SPEC = {"n": "int", "x": "float", "t": "utf8", "o": "int?", "e": "utf8?", "b": "bool"}


def test_a_csv_file_has_text_in_quotes_and_all_else_without(tmp_path):
    write(tmp_path / "x.ingot", CELL_SPEC, CELLS)
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_bytes().decode() == (
        'n,x,t,o,e,b\n17,0.1,"0017",,"",true\n'
        '-9223372036854775808,1e300,"a, ""b""\r\nc",5,,false\n0,inf," true ",-1,"\u00e9",false\n'
    )


def test_a_csv_file_opens_as_the_rows_that_were_converted(tmp_path):
    write(tmp_path / "x.ingot", CELL_SPEC, CELLS)
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv")
    found = ingot.open(tmp_path / "x.csv")
    assert dict(found.spec) == CELL_SPEC
    assert list(found) == CELLS


def test_pandas_reads_the_rows_of_a_csv_file(tmp_path):
    write(tmp_path / "x.ingot", CELL_SPEC, CELLS)
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv")
    frame = pd.read_csv(tmp_path / "x.csv", dtype={"t": str, "o": "Int64"})
    assert frame["n"].tolist() == [row["n"] for row in CELLS]
    assert frame["x"].tolist() == [row["x"] for row in CELLS]
    assert frame["t"].tolist() == [row["t"] for row in CELLS]
    assert frame["b"].tolist() == [row["b"] for row in CELLS]
    assert frame["o"].isna().tolist() == [True, False, False]
    assert frame["o"].tolist()[1:] == [5, -1]


def test_nan_is_not_missing_in_a_csv_file(tmp_path):
    write(tmp_path / "x.ingot", {"x": "float?", "k": "int"}, [{"x": math.nan, "k": 0}, {"k": 1}])
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv").checked
    first, second = ingot.open(tmp_path / "x.csv")
    assert math.isnan(first["x"])
    assert second["x"] is None


def test_names_with_commas_and_quotes_come_back_from_a_csv_file(tmp_path):
    write(tmp_path / "x.ingot", {'a,"b"': "int", "c d": "int"}, [{'a,"b"': 1, "c d": 2}])
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv")
    assert list(ingot.open(tmp_path / "x.csv")) == [{'a,"b"': 1, "c d": 2}]
    write(tmp_path / "y.ingot", {" a": "int"}, [{" a": 1}])
    with pytest.raises(ValueError, match="field ' a' is int: a CSV file has no names that begin"):
        ingot.convert(tmp_path / "y.ingot", tmp_path / "y.csv")


@pytest.mark.parametrize("target", ["y.jsonl", "y.csv"])
def test_values_that_first_miss_late_are_converted(tmp_path, target):
    rows = [{"k": k, "late": k if k < 1500 else None} for k in range(3000)]
    write(tmp_path / "x.ingot", {"k": "int", "late": "int?"}, rows)
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / target).checked
    found = ingot.open(tmp_path / target, spec={"k": "int", "late": "int?"})
    assert list(found) == rows


@pytest.mark.parametrize("target", ["y.jsonl", "y.csv"])
def test_the_row_that_a_line_cannot_hold_is_named(tmp_path, target):
    kind, bad = ("float", math.nan) if target == "y.jsonl" else ("utf8?", None)
    good = 1.0 if target == "y.jsonl" else "x"
    rows = [{"v": bad if k == 2345 else good} for k in range(3000)]
    write(tmp_path / "x.ingot", {"v": kind}, rows)
    with pytest.raises(ValueError, match=r"x\.ingot: row 2345: field 'v': .*; convert other rows"):
        ingot.convert(tmp_path / "x.ingot", tmp_path / target)
    assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]


@pytest.mark.parametrize("target", ["y.jsonl", "y.csv"])
@pytest.mark.parametrize("source", ["x.parquet", "x.h5", "x.tfrecord"])
def test_rows_of_other_formats_become_lines(tmp_path, source, target):
    rows = [{"label": k, "text": f"row {k}"} for k in range(50)]
    write(tmp_path / "x.ingot", {"label": "int", "text": "utf8"}, rows)
    ingot.convert(tmp_path / "x.ingot", tmp_path / source)
    spec = {"label": "int", "text": "utf8"} if source == "x.tfrecord" else None
    ingot.convert(tmp_path / source, tmp_path / target, spec=spec)
    assert list(ingot.open(tmp_path / target)) == rows


def test_lines_become_rows_again(tmp_path):
    write(tmp_path / "x.ingot", CELL_SPEC, CELLS)
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv")
    ingot.convert(tmp_path / "x.csv", tmp_path / "y.ingot")
    assert list(ingot.open(tmp_path / "y.ingot")) == CELLS


def test_no_rows_are_an_empty_file_or_a_row_of_names(tmp_path):
    write(tmp_path / "x.ingot", {"a": "int", "b": "utf8"}, [])
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / "x.jsonl").rows == 0
    assert (tmp_path / "x.jsonl").read_bytes() == b""
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / "x.csv").rows == 0
    assert (tmp_path / "x.csv").read_bytes() == b"a,b\n"


@pytest.mark.parametrize("target", ["y.jsonl", "y.csv"])
def test_the_check_finds_a_changed_byte_in_lines(tmp_path, target):
    rows = [{"text": f"{k:06} {'x' * 200}"} for k in range(20_000)]
    write(tmp_path / "x.ingot", {"text": "utf8"}, rows)
    draft = tmp_path / f".{target}.converting" / target
    written = []

    def damage(done, total):
        if done < total or written:
            return
        written.append(done)
        with draft.open("r+b") as file:
            file.seek(draft.stat().st_size - 50)
            file.write(b"y")

    with pytest.raises(ingot.CorruptFileError, match="row 19999: field 'text': what was written"):
        ingot.convert(tmp_path / "x.ingot", tmp_path / target, progress=damage, workers=1)
    assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]


def test_save_says_what_writes_lines(tmp_path):
    write(tmp_path / "x.ingot", CELL_SPEC, CELLS)
    for name in ("x.jsonl", "x.csv"):
        with pytest.raises(ingot.FormatError, match=r"with ingot\.convert"):
            ingot.open(tmp_path / "x.ingot").save(tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == ["x.ingot"]

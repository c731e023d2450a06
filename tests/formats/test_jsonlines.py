"""JSON lines, read in place, against Python's own parser."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from tests.support.foreign_files import write


def lines(path, rows, **options):
    return write(path, "".join(json.dumps(row, **options) + "\n" for row in rows).encode())


def plain(value):
    """Return a row with lists in place of arrays."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_types_follow_the_values(tmp_path):
    rows = [
        {"i": 1, "f": 1.5, "b": True, "t": "x", "n": [1, 2], "x": [1, 2.5], "s": ["a"], "any": 1},
        {"i": 2, "f": 2, "b": False, "t": "y", "n": [], "x": [3], "s": [], "any": "z"},
    ]
    ds = ingot.open(lines(tmp_path / "x.jsonl", rows))
    types = ["int", "float", "bool", "utf8", "int[]", "float[]", "utf8[]", "json"]
    assert list(ds.spec.values()) == types
    assert [plain(row) for row in ds] == rows
    assert ds.column("i").tolist() == [1, 2]


def test_objects_with_the_same_members_are_nested_fields(tmp_path):
    rows = [
        {"o": {"p": {"q": 1}, "r": None}, "d": {"k": 1}},
        {"o": {"p": {"q": 2}, "r": "x"}, "d": {"l": 2}},
    ]
    ds = ingot.open(lines(tmp_path / "x.ndjson", rows))
    assert dict(ds.spec) == {"d": "json", "o.r": "utf8?", "o.p.q": "int"}
    assert list(ds) == rows
    assert ds.column("o.p.q").tolist() == [1, 2]


@pytest.mark.parametrize(
    "odd", [{"a.b": 1}, {"a?": 1}, {"": 1}, {"x[]": 1}, {}, {"a": {"a": {"b.c": 1}}}]
)
def test_objects_with_names_that_no_field_can_have_are_json(tmp_path, odd):
    ds = ingot.open(lines(tmp_path / "x.jsonl", [{"o": odd, "n": 1}]))
    assert list(ds) == [{"o": odd, "n": 1}]


def test_missing_and_null_members_are_none(tmp_path):
    rows = [{"a": 1}, {"b": "x"}, {"a": None, "b": None}]
    ds = ingot.open(lines(tmp_path / "x.jsonl", rows))
    assert dict(ds.spec) == {"a": "int?", "b": "utf8?"}
    assert [row["a"] for row in ds] == [1, None, None]
    assert ds[[0, 1, 2]]["b"] == [None, "x", None]


def test_blank_lines_a_byte_order_mark_and_windows_line_ends_are_not_rows(tmp_path):
    path = write(tmp_path / "x.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n\r\n  {"a": 2}  \n\n{"a": 3}')
    assert ingot.open(path).column("a").tolist() == [1, 2, 3]
    assert list(ingot.open_records(path)) == [b'{"a": 1}', b'{"a": 2}', b'{"a": 3}']


def test_a_spec_chooses_fields_and_types(tmp_path):
    path = lines(tmp_path / "x.jsonl", [{"a": [1, 2], "b": 3, "c": {"d": "x"}}])
    spec = {"a": "array(uint8,2)", "b": "array(float32)", "c": "json"}
    row = ingot.open(path, spec=spec)[0]
    assert (row["a"].dtype, row["a"].tolist()) == (np.uint8, [1, 2])
    assert (row["b"], row["c"]) == (3.0, {"d": "x"})
    assert ingot.open(path, spec={"c": {"d": "utf8"}})[0] == {"c": {"d": "x"}}


@pytest.mark.parametrize(
    ("late", "why"),
    [
        ('{"a": "x"}', "line 1002: field .a. is int, but the line has"),
        ('{"a": 1.5}', "line 1002: field .a. is int, but 1.5 is not a valid int64"),
        ("{}", "line 1002: field .a. is int, but it has no value"),
        ('{"a": 1, "b": 2}', "line 1002, offset .*: .b. appears here for the first time"),
        ('{"a": 1', "line 1002, offset .*: not a JSON object"),
        ('{"a": NaN}', "line 1002, offset .*: not a JSON object"),
        ("[1]", "line 1002, offset .*: not a JSON object"),
    ],
)
def test_a_later_line_that_does_not_fit_is_named(tmp_path, late, why):
    text = "\n" + '{"a": 1}\n' * 1000 + late
    path = write(tmp_path / "x.jsonl", text.encode())
    with pytest.raises(ingot.FormatError, match=rf"x\.jsonl: {why}"):
        ingot.open(path)


def test_a_first_line_that_is_not_json_is_rejected(tmp_path):
    for text in ('{"a": 1}\nplain text\n', "[" * 100_000, '{"a": "\xff"}'):
        path = write(tmp_path / "x.jsonl", text.encode("latin-1"))
        with pytest.raises(ingot.FormatError, match=r"x\.jsonl: line [12]: not a JSON object"):
            ingot.open(path)


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_a_data_set_of_an_empty_file_requires_a_spec(tmp_path, content):
    path = write(tmp_path / "x.jsonl", content)
    assert len(ingot.open(path)) == 0
    with pytest.raises(ingot.FormatError, match=r"the file is empty, .*: pass spec=\{...\}"):
        ingot.open_dataset(path)
    assert len(ingot.open_dataset(path, spec={"a": "int"})) == 0


def test_lines_without_members_are_records(tmp_path):
    path = write(tmp_path / "x.jsonl", b"{}\n{}\n")
    assert list(ingot.open(path)) == [b"{}", b"{}"]
    with pytest.raises(ingot.FormatError, match="these are records without fields"):
        ingot.open_dataset(path)


def test_records_of_ingot_open_under_a_name_of_json_lines(tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"one")
    path = (tmp_path / "x.ingot").rename(tmp_path / "x.jsonl")
    assert list(ingot.open(path)) == [b"one"]


def test_a_line_of_many_megabytes_is_one_row(tmp_path):
    text = os.urandom(6 << 20).hex()
    path = lines(tmp_path / "x.jsonl", [{"t": "a"}, {"t": text}, {"t": "b"}])
    ds = ingot.open(path)
    assert ds[1]["t"] == text
    assert ds[2]["t"] == "b"


def test_a_damaged_line_is_found_although_json_has_no_checksums(tmp_path):
    path = lines(tmp_path / "x.jsonl", [{"t": "hello"}, {"t": "world"}])
    ds = ingot.open(path)
    data = path.read_bytes().replace(b"world", b"w0rld")
    with path.open("r+b") as file:
        file.write(data)
    with pytest.raises(ingot.CorruptFileError, match="record 1"):
        ds[1]


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.text(max_size=8)
) | st.floats(allow_nan=False, allow_infinity=False)
names = st.text('abc.?[] \n"\u00e9', max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("uvw"), values), min_size=1, max_size=4),
    st.booleans(),
)
def test_any_rows_come_out_as_pythons_parser_has_them(tmp_path_factory, rows, escape):
    path = tmp_path_factory.mktemp("x") / "x.jsonl"
    lines(path, rows, ensure_ascii=escape)
    if not any(rows):
        return
    for row, expected in zip(ingot.open(path), rows, strict=True):
        found = plain(row)
        assert found == {name: expected.get(name) for name in found}


BIG = [1 << 63, -(1 << 63) - 1, 12345678901234567891, 10**60]


@pytest.mark.parametrize("big", BIG)
def test_whole_numbers_beyond_int64_stay_exact(tmp_path, big):
    rows = [{"h": big, "l": [big, 1], "f": 1.5}, {"h": 1, "l": [2], "f": 2.5}]
    ds = ingot.open(lines(tmp_path / "x.jsonl", rows))
    assert ds.spec == {"h": "json", "l": "json", "f": "float"}
    assert list(ds) == rows


def test_a_spec_reads_unsigned_numbers(tmp_path):
    path = lines(tmp_path / "x.jsonl", [{"h": (1 << 64) - 1, "l": [1 << 63]}])
    ds = ingot.open(path, spec={"h": "array(uint64)", "l": "array(uint64)[]"})
    assert (int(ds[0]["h"]), ds[0]["l"].tolist()) == ((1 << 64) - 1, [1 << 63])
    with pytest.raises(ingot.FormatError, match=r"line 1: field .h. is int, .* not a valid int64"):
        ingot.open(path, spec={"h": "int"})


@pytest.mark.parametrize("big", [BIG[3], (1 << 63) + 1, (1 << 53) + 1])
@pytest.mark.parametrize("name", ["h", "l"])
def test_a_later_whole_number_is_not_rounded(tmp_path, big, name):
    late = {"h": big, "l": [1.5]} if name == "h" else {"h": 1.5, "l": [1.5, big]}
    path = lines(tmp_path / "x.jsonl", [{"h": 1.5, "l": [1.5]}] * 1000 + [late])
    with pytest.raises(ingot.FormatError, match=r"line 1001: .* a float would round a whole"):
        ingot.open(path)
    assert ingot.open(path, spec={"h": "float", "l": "float[]"})[1000][name] is not None


def test_whole_numbers_beside_floats_stay_exact(tmp_path):
    wide = (1 << 53) + 1
    rows = [{"h": wide, "l": [wide], "k": [1 << 53]}, {"h": 0.5, "l": [0.5], "k": [0.5]}]
    ds = ingot.open(lines(tmp_path / "x.jsonl", rows))
    assert ds.spec == {"h": "json", "l": "json", "k": "float[]"}
    assert [row["h"] for row in ds] == [wide, 0.5]
    assert [row["l"] for row in ds] == [[wide], [0.5]]
    alone = ingot.open(lines(tmp_path / "y.jsonl", [{"h": wide, "l": [wide, 1]}]))
    assert alone.spec == {"h": "int", "l": "int[]"}


@pytest.mark.parametrize(
    "line", ['{"a.b": 1, "a": {"b": 2}}', '{"a.b": 1, "a.b": 2}', '{"a.b": null, "a.b": 2}']
)
def test_two_members_with_one_name_are_an_error(tmp_path, line):
    path = write(tmp_path / "x.jsonl", f'{{"a.b": 0}}\n\n{line}\n'.encode())
    with pytest.raises(ingot.FormatError, match=r"x\.jsonl: line 3.* two members"):
        ingot.open(path)
    path = write(tmp_path / "y.jsonl", f"{line}\n".encode())
    with pytest.raises(ingot.FormatError, match=r'line 1.* two members are named "a.b"'):
        ingot.open(path)


def test_an_empty_name_is_an_error_that_says_what_to_do(tmp_path):
    path = lines(tmp_path / "x.jsonl", [{"a": 1}, {"a": 2, "": 1}])
    with pytest.raises(ingot.FormatError, match="line 2: a member has an empty name: rename it"):
        ingot.open(path)
    assert ingot.open(path, spec={"a": "int"})[1] == {"a": 2}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("line", ['{{"a": {}}}', '{{"a": 1, "b": {{"c": [1, {}]}}}}'])
def test_numbers_that_json_does_not_have_are_named(tmp_path, line, value):
    path = write(tmp_path / "x.jsonl", b'{"a": 1}\n' + line.format(value).encode())
    with pytest.raises(ingot.FormatError, match=rf"line 2: .*: {value} at column .*write null"):
        ingot.open(path)

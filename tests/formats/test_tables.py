"""CSV files and arrays in `.npy` and `.npz` files, read in place."""

import contextlib
import csv
import gzip
import io
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from tests.support.foreign_files import write, write_all


def test_types_of_a_csv_file_follow_its_values(tmp_path):
    text = 'i,f,b,t,code,o\r\n1,1.5,true,x,007,\r\n-2,2,false,"a,""b""\nc",010,3\r\n'
    ds = ingot.open(write(tmp_path / "x.csv", text.encode()))
    types = ["int", "float", "bool", "utf8", "utf8", "int?"]
    assert list(ds.spec.values()) == types
    assert ds[1] == {"i": -2, "f": 2.0, "b": False, "t": 'a,"b"\nc', "code": "010", "o": 3}
    assert ds[0]["o"] is None
    assert ds.column("i").tolist() == [1, -2]


def test_tabs_separate_a_tsv_file(tmp_path):
    ds = ingot.open(write(tmp_path / "x.tsv", b"a\tb\n1\tx,y\n"))
    assert ds[0] == {"a": 1, "b": "x,y"}


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("my.tsv.parts/train.csv", ","),
        ("x.tsv.csv", ","),
        ("x.csv.tsv", "\t"),
        ("x.TSV", "\t"),
        ("x.tsv-00000-of-00001", "\t"),
        ("x.tsv.gz", "\t"),
        ("x.csv", ";"),
        ("x.csv", "|"),
        ("x.csv", "\t"),
        ("x.csv.gz", ";"),
    ],
)
def test_the_separator_is_that_of_the_suffix_or_of_the_first_row(tmp_path, name, separator):
    text = separator.join(["a", '"b,;|"', "c"]) + "\n" + separator.join(["1", "2", '"x;y"'])
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    write(path, gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert ingot.open(path)[0] == {"a": 1, "b,;|": 2, "c": "x;y"}


def test_a_separator_that_the_first_row_does_not_tell_is_asked_for(tmp_path):
    path = write(tmp_path / "x.csv", b"a;b|c\n1;2|3\n")
    with pytest.raises(
        ingot.FormatError, match=r"""x\.csv: line 1: no comma, but ';' and '\|': pass separator="""
    ):
        ingot.open(path)
    assert ingot.open(path, separator="|")[0] == {"a;b": "1;2", "c": 3}
    assert ingot.open(path, separator=";")[0] == {"a": 1, "b|c": "2|3"}
    assert ingot.open(path, separator=",")[0] == {"a;b|c": "1;2|3"}
    assert pickle.loads(pickle.dumps(ingot.open(path, separator="|")))[0]["c"] == 3  # noqa: S301
    for wrong in ("", ";;", '"', "\n", "\u00e9"):
        with pytest.raises(ValueError, match="expected one ASCII character"):
            ingot.open(path, separator=wrong)
    lines = write(tmp_path / "x.jsonl", b'{"a": 1}\n')
    with pytest.raises(ValueError, match=r"x\.jsonl: separator=: only for a CSV file"):
        ingot.open(lines, separator=";")


def test_quoted_nothing_is_an_empty_text_and_no_number(tmp_path):
    text = 't,o,n,f,e\n"a",,1,"",""\n"","","",1.5,""\n"b",,3,2.5,""\n'
    ds = ingot.open(write(tmp_path / "x.csv", text.encode()))
    assert dict(ds.spec) == {"t": "utf8", "o": "utf8?", "n": "int?", "f": "float?", "e": "utf8"}
    assert list(ds) == [
        {"t": "a", "o": None, "n": 1, "f": None, "e": ""},
        {"t": "", "o": "", "n": None, "f": 1.5, "e": ""},
        {"t": "b", "o": None, "n": 3, "f": 2.5, "e": ""},
    ]


def test_missing_values_that_python_quotes_are_missing_numbers(tmp_path):
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([["t", "n"], ["", 1], ["a", None], ["b", 2.5]])
    ds = ingot.open(tmp_path / "x.csv")
    assert dict(ds.spec) == {"t": "utf8", "n": "float?"}
    assert [tuple(row.values()) for row in ds] == [("", 1.0), ("a", None), ("b", 2.5)]


@pytest.mark.parametrize("late", [0, 1000])
def test_errors_count_blank_lines_and_lines_in_quotes(tmp_path, late):
    text = '"a\n",b\n\n1,"x\n\ny"\n\n' + "1,2\n" * late + "3\n"
    path = write(tmp_path / "x.csv", text.encode())
    with pytest.raises(ingot.FormatError, match=rf"line {8 + late}\b.*expected 2 fields, found 1"):
        ingot.open(path)
    path = write(tmp_path / "y.csv", (text.removesuffix("3\n") + "z,2\n").encode())
    with pytest.raises(ingot.FormatError, match=rf"y\.csv: line {8 + late}: field .a. is int"):
        ingot.open(path, spec={"a": "int"})


def test_more_columns_than_an_index_has_are_rejected_with_their_number(tmp_path):
    def table(columns, *rows):
        lines = [",".join(f"c{k}" for k in range(columns)), *rows]
        return write(tmp_path / "x.csv", "\n".join(lines).encode())

    numbers = ",".join(map(str, range(4096)))
    path = table(4096, numbers)
    with pytest.raises(ingot.FormatError, match=r"4096 columns, at most 4095: name those to read"):
        ingot.open(path)
    assert ingot.open(path, spec={"c4095": "int"})[0] == {"c4095": 4095}
    path = table(3000, "," * 2999, ",".join("1" * 3000))
    with pytest.raises(ingot.FormatError, match=r"3000 columns, of which 3000 have missing values"):
        ingot.open(path)
    assert len(ingot.open(table(4095, numbers.removesuffix(",4095"))).spec) == 4095
    path = table(200_000, ",".join("1" * 200_000))
    with pytest.raises(ingot.FormatError, match="200000 columns, at most 4095"):
        ingot.open(path)


def test_a_spec_chooses_columns_and_types(tmp_path):
    path = write(tmp_path / "x.csv", b"a,b,c\n1,2,3\n")
    assert ingot.open(path, spec={"c": "utf8", "a": "array(float32)"})[0] == {"c": "3", "a": 1.0}


@pytest.mark.parametrize(
    ("late", "why"),
    [
        ("x,1", "line 1002: field .a. is int, but .*x.* is not a valid int64"),
        (",1", "line 1002: field .a. is int, but it has no value"),
        ("1", "line 1002, offset .*: expected 2 fields, found 1"),
        ('"1"x,1', "line 1002, offset .*: text follows a quoted field"),
        ('1,"open', "offset .*: a quoted field does not end"),
    ],
)
def test_a_later_row_that_does_not_fit_is_named(tmp_path, late, why):
    path = write(tmp_path / "x.csv", ("a,b\n" + "1,2\n" * 1000 + late).encode())
    with pytest.raises(ingot.FormatError, match=rf"x\.csv: {why}"):
        ingot.open(path)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.text('ab,"\n\r \u00e9', max_size=5), st.integers(-(1 << 63), (1 << 63) - 1)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_any_rows_come_out_as_pythons_writer_wrote_them(tmp_path_factory, rows, quoting):
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting)
    writer.writerows([["t", "n"], *rows])
    path = write(tmp_path_factory.mktemp("x") / "x.csv", text.getvalue().encode())
    found = ingot.open(path, spec={"t": "utf8?", "n": "int"})
    expected = [(one or None if quoting == csv.QUOTE_MINIMAL else one, k) for one, k in rows]
    assert [(row["t"], row["n"]) for row in found] == expected


def test_rows_of_an_array_are_along_its_first_axis(tmp_path):
    array = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    np.save(tmp_path / "x.npy", array)
    ds = ingot.open(tmp_path / "x.npy")
    assert dict(ds.spec) == {"array": "array(float32,3,4)"}
    np.testing.assert_array_equal(ds[[4, 0]]["array"], array[[4, 0]])
    np.testing.assert_array_equal(ds[3]["array"], array[3])
    np.testing.assert_array_equal(ds.column("array"), array)
    assert [one.name for one in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_numbers_are_a_column(tmp_path, dtype):
    array = (np.arange(1000) % 100).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    ds = ingot.open(tmp_path / "x.npy")
    np.testing.assert_array_equal(ds.column("array"), array)
    np.testing.assert_array_equal(ds[[999, 5]]["array"], array[[999, 5]])


def test_arrays_of_an_npz_file_are_columns(tmp_path):
    x, y = np.random.default_rng(0).random((7, 2)), np.arange(7)
    np.savez(tmp_path / "x.npz", x=x, y=y)
    ds = ingot.open(tmp_path / "x.npz")
    assert dict(ds.spec) == {"x": "array(float64,2)", "y": "array(int64)"}
    batch = ds[[6, 2]]
    np.testing.assert_array_equal(batch["x"], x[[6, 2]])
    np.testing.assert_array_equal(batch["y"], [6, 2])
    assert pickle.loads(pickle.dumps(ds))[1]["y"] == 1  # noqa: S301
    np.savez(tmp_path / "x.npz", x=x + 1, y=y)
    with pytest.raises(ingot.FormatError, match="replaced"):
        pickle.loads(pickle.dumps(ds))  # noqa: S301


def test_files_that_cannot_be_read_in_place_are_rejected(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros(3))
    with pytest.raises(ingot.FormatError, match="compressed"):
        ingot.open(path)
    np.savez(path, x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(ingot.FormatError, match="4 rows, but x has 3") as caught:
        ingot.open(path)
    assert not isinstance(caught.value, ingot.CorruptFileError)
    for array, why in (
        (np.asfortranarray(np.zeros((2, 3))), "C order"),
        (np.zeros(3, ">f8"), "little-endian"),
        (np.array(["a", "b"]), "not numbers"),
        (np.array([None]), "not numbers"),
        (np.zeros(2, complex), "not numbers"),
        (np.zeros(2, "i4,f4"), "structures, not numbers"),
        (np.zeros(()), "no rows"),
    ):
        np.save(tmp_path / "y.npy", array)
        with pytest.raises(ingot.FormatError, match=why) as caught:
            ingot.open(tmp_path / "y.npy")
        assert not isinstance(caught.value, ingot.CorruptFileError)


def test_damaged_arrays_give_errors_but_never_crash(tmp_path):
    stream = io.BytesIO()
    np.savez(stream, x=np.arange(6, dtype=np.int16), y=np.zeros((6, 2)))
    whole = stream.getvalue()
    damaged = (
        whole[:at] + bytes([whole[at] ^ 0x13]) + whole[at + 1 :] for at in range(0, len(whole), 2)
    )
    for path in write_all(tmp_path / "damaged", ".npz", damaged):
        with contextlib.suppress(ingot.IngotError, ValueError):
            ingot.open(path).read()
    truncated = (whole[:cut] for cut in range(len(whole)))
    for path in write_all(tmp_path / "truncated", ".npz", truncated):
        with pytest.raises(ingot.IngotError):
            ingot.open(path)


def test_damage_of_an_npz_file_never_changes_a_value(tmp_path):
    arrays = {"x": np.arange(90, dtype=np.int16), "y": np.random.default_rng(0).random((90, 2))}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    whole = stream.getvalue()
    damaged = (whole[:at] + bytes([whole[at] ^ 0x04]) + whole[at + 1 :] for at in range(len(whole)))
    refused = 0
    for path in write_all(tmp_path / "damaged", ".npz", damaged):
        try:
            found = ingot.open(path).read()
        except ingot.IngotError:
            refused += 1
            continue
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
    assert refused > len(whole) * 0.9


def test_verify_names_the_array_of_an_npz_file_that_is_damaged(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(300_000), y=np.arange(300_000))
    ds = ingot.open(path)
    assert ds.verify().ok
    with path.open("r+b") as file:
        file.seek(3_333_333)
        file.write(b"damage")
    (damage,) = ds.verify().damaged
    assert f"{path}: " in damage.reason
    assert "y: its checksum is" in damage.reason
    for _ in range(2):
        with pytest.raises(ingot.CorruptFileError, match="y: its checksum is"):
            ingot.open(path)


def test_a_large_npz_file_is_read_whole_when_it_is_first_opened_alone(tmp_path, cache):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(300_000))
    ingot.open(path)
    (note,) = cache.rglob("*.sum")
    before = note.stat().st_ino
    assert ingot.open(path)[299_999]["x"] == 299_999
    assert note.stat().st_ino == before


def test_counting_rows_without_bytes_ends(tmp_path):
    np.save(tmp_path / "x.npy", np.empty((5, 0), np.float32))
    assert len(ingot.open(tmp_path / "x.npy")) == 5
    data = (tmp_path / "x.npy").read_bytes()
    head = data.replace(b"(5, 0), }" + b" " * 16, b"(10000000000000000, 0), }", 1)
    assert head != data
    (tmp_path / "x.npy").write_bytes(head)
    with pytest.raises(ingot.CorruptFileError, match="10000000000000000 rows have no bytes"):
        ingot.open(tmp_path / "x.npy")


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "1" * 60])
@pytest.mark.parametrize("other", ["1", "1.5"])
def test_whole_numbers_beyond_int64_are_text(tmp_path, text, other):
    ds = ingot.open(write(tmp_path / "x.csv", f"a\n{text}\n{other}\n".encode()))
    assert (dict(ds.spec), ds[0], ds[1]) == ({"a": "utf8"}, {"a": text}, {"a": other})


def test_a_spec_reads_unsigned_numbers_and_codes(tmp_path):
    path = write(tmp_path / "x.csv", b"a,b,c\n18446744073709551615,007,+49\n")
    ds = ingot.open(path, spec={"a": "array(uint64)", "b": "int", "c": "int"})
    assert ds[0] == {"a": (1 << 64) - 1, "b": 7, "c": 49}
    with pytest.raises(
        ingot.FormatError, match=r"line 2: field .a. is int, but .* is not a valid int64"
    ):
        ingot.open(path, spec={"a": "int"})


@pytest.mark.parametrize("first", ["1", "1.5"])
@pytest.mark.parametrize(
    ("late", "why"),
    [
        ("01234", "has a leading zero, so it is text"),
        ("-01", "has a leading zero, so it is text"),
        ("+4917612345", "has a plus sign, so it is text"),
        ("12345678901234567891", "is beyond int64, so it is text"),
        ("1e400", "is beyond float64, so it is text"),
        ("-" + "9" * 310 + ".5", "is beyond float64, so it is text"),
    ],
)
def test_later_digits_that_are_text_are_not_made_a_number(tmp_path, first, late, why):
    path = write(tmp_path / "x.csv", ("a\n" + f"{first}\n" * 1000 + late).encode())
    with pytest.raises(
        ingot.FormatError, match=rf'line 1002: field "a" .*"{re.escape(late[:40])}" {why}'
    ):
        ingot.open(path)


def test_whole_numbers_beside_floats_are_text_where_a_float_would_round_them(tmp_path):
    wide = (1 << 53) + 1
    ds = ingot.open(
        write(tmp_path / "x.csv", f"a,b,c\n{wide},{1 << 53},{wide}\n0.5,0.5,1".encode())
    )
    assert dict(ds.spec) == {"a": "utf8", "b": "float", "c": "int"}
    assert ds[0] == {"a": str(wide), "b": float(1 << 53), "c": wide}
    late = write(tmp_path / "y.csv", ("a\n" + "0.5\n" * 1000 + f"{wide}\n").encode())
    with pytest.raises(ingot.FormatError, match=r'line 1002: field "a" .* would be rounded, so'):
        ingot.open(late)
    assert ingot.open(late, spec={"a": "float"})[1000]["a"] == float(wide)


@pytest.mark.parametrize("text", ["1e400", "-1.5E+999", "inf", "-Infinity"])
def test_a_number_beyond_float64_is_text_and_infinity_is_not(tmp_path, text):
    ds = ingot.open(write(tmp_path / "x.csv", f"a\n{text}\n1.5\n".encode()))
    is_infinite = "e" not in text.lower()
    assert dict(ds.spec) == {"a": "float" if is_infinite else "utf8"}
    assert ds[0]["a"] == (float(text) if is_infinite else text)


def test_digits_with_a_plus_sign_are_text(tmp_path):
    ds = ingot.open(write(tmp_path / "x.csv", b"tel,x\n+4917612345,+1.5\n"))
    assert (dict(ds.spec), ds[0]) == (
        {"tel": "utf8", "x": "float"},
        {"tel": "+4917612345", "x": 1.5},
    )


def test_columns_without_a_name_are_named_by_their_position(tmp_path):
    ds = ingot.open(write(tmp_path / "x.csv", b",a,\n0,1.5,x\n"))
    assert ds[0] == {"unnamed_0": 0, "a": 1.5, "unnamed_2": "x"}
    path = write(tmp_path / "y.csv", b",unnamed_0\n0,1\n")
    with pytest.raises(ingot.FormatError, match=r"line 1: two columns are named .unnamed_0."):
        ingot.open(path)


def test_a_csv_file_of_only_a_header_has_no_rows(tmp_path):
    ds = ingot.open(write(tmp_path / "x.csv", b"a,b\n"))
    assert (len(ds), dict(ds.spec), list(ds)) == (0, {"a": "utf8", "b": "utf8"}, [])
    write(tmp_path / "y.csv", b"a,b\n1,2\n")
    ds = ingot.open(str(tmp_path / "*.csv"))
    assert (dict(ds.spec), list(ds)) == ({"a": "int", "b": "int"}, [{"a": 1, "b": 2}])


def test_verify_names_the_fields_of_files_without_checksums(tmp_path):
    csv = write(tmp_path / "x.csv", b"a,b\n1,x\n2,y\n")
    lines = write(tmp_path / "x.jsonl", b'{"a": 1, "b": "x"}\n')
    np.save(tmp_path / "x.npy", np.arange(3))
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    assert ingot.open(csv).verify().unchecked == ("a", "b")
    assert ingot.open(lines).verify().unchecked == ("a", "b")
    assert ingot.open(tmp_path / "x.npy").verify().unchecked == ("array",)
    assert ingot.open(tmp_path / "x.npz").verify().unchecked == ()
    ingot.open(csv).save(tmp_path / "copy")
    assert ingot.open(tmp_path / "copy").verify().unchecked == ()

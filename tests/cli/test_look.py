import json
import shutil

import pytest

import ingot
from tests.support import DATA, containers
from tests.support.containers import ALL, NUM_ROWS, PACK, RECORD_FILES, RECORDS, ROW_CONTAINERS


def num_rows(name):
    if name == PACK:
        return 3
    return len(RECORDS) if name in RECORD_FILES else NUM_ROWS


@pytest.mark.parametrize("name", ALL)
def test_info_tells_rows_files_and_fields_of_every_container(data, ingot_cli, name):
    ran = ingot_cli("info", name, "--json", cwd=data)
    assert ran.code == 0, ran.err
    about = json.loads(ran.out)
    assert about["rows"] == num_rows(name)
    assert about["path"] == str(data / name)
    assert about["file_bytes"] == ingot.open(data / name).nbytes
    assert sum(one["nbytes"] for one in about["files"]) >= about["file_bytes"] > 0
    if name in ROW_CONTAINERS:
        assert {one["name"] for one in about["fields"]} == set(containers.SPEC)
    else:
        assert about["fields"] is None
    plain = ingot_cli("info", name, cwd=data)
    assert plain.code == 0, plain.err
    assert f"{num_rows(name)} " in plain.out
    assert "\x1b" not in plain.out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rows", "directory"),
        ("rows.ingot", "ingot"),
        ("rows_granular", "granular"),
        ("rows.h5", "hdf5"),
        ("records.bag", "bag"),
        (PACK, "ingot"),
    ],
)
def test_info_names_the_format(data, ingot_cli, name, expected):
    assert json.loads(ingot_cli("info", name, "--json", cwd=data).out)["format"] == expected


def test_info_names_formats_of_others(ingot_cli, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "1.jpg").write_bytes(containers.jpeg(1))
    for name in ("mds", "litdata"):
        shutil.copytree(DATA / "foreign" / name, tmp_path / name)
    for name, *expected in [
        ("x.jsonl", "jsonlines", "as text"),
        ("images", "images", "compression unknown"),
        ("mds", "mds", "not compressed"),
        ("litdata", "litdata", "not compressed"),
    ]:
        about = json.loads(ingot_cli("info", name, "--json", cwd=tmp_path).out)
        assert [about["format"], about["compression"]] == expected


def test_a_path_may_have_braces(tmp_path, ingot_cli):
    for number in range(3):
        with ingot.Writer(tmp_path / f"x-{number:02}.ingot") as writer:
            writer.append(b"%d" % number)
    about = json.loads(ingot_cli("info", "x-{00..02}.ingot", "--json", cwd=tmp_path).out)
    assert (about["rows"], len(about["files"])) == (3, 3)
    ran = ingot_cli("info", "x-{00..03}.ingot", cwd=tmp_path)
    assert ran.code == 2
    assert "x-03.ingot" in ran.err


def test_info_tells_the_bytes_of_each_field(data, ingot_cli):
    about = json.loads(ingot_cli("info", "rows", "--json", cwd=data).out)
    sizes = {one["name"]: one["nbytes"] for one in about["fields"]}
    rows = containers.rows()
    assert sizes == {
        "image": sum(len(row["image"]) for row in rows),
        "label": 8 * NUM_ROWS,
        "caption": sum(len(row["caption"].encode()) for row in rows),
        "box": 16 * NUM_ROWS,
    }
    assert [one["rows"] for one in about["files"]] == [12, 12, 6]


@pytest.mark.parametrize("name", ALL)
def test_head_and_cat_print_a_json_value_per_row_of_every_container(data, ingot_cli, name):
    ran = ingot_cli("head", name, "-n", 2, cwd=data)
    assert (ran.code, ran.err) == (0, "")
    values = [json.loads(line) for line in ran.out.splitlines()]
    assert len(values) == 2
    ran = ingot_cli("cat", name, "--json", cwd=data)
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [one["row"] for one in lines] == list(range(num_rows(name)))
    assert [one["value"] for one in lines[:2]] == values


@pytest.mark.parametrize("name", ROW_CONTAINERS)
def test_head_and_cat_print_the_rows_that_meet_a_condition(data, ingot_cli, name):
    def found(command, where, *more):
        ran = ingot_cli(command, name, "--where", where, "--json", "-f", "label", *more, cwd=data)
        assert (ran.code, ran.err) == (0, "")
        lines = [json.loads(line) for line in ran.out.splitlines()]
        assert all(one["value"] == {"label": one["row"] % 3 - 1} for one in lines)
        return [one["row"] for one in lines]

    assert found("head", "label == 1", "-n", 3) == [2, 5, 8]
    assert found("head", "label == 1", "-n", 0) == []
    assert found("head", "label > 1") == []
    assert found("cat", "label == 1 and '1' in caption") == [11, 14, 17]
    assert found("cat", "row % 10 == 0", "--start", 5) == [10, 20]
    assert found("cat", "row % 10 == 0", "--stop", 20) == [0, 10]
    assert found("cat", "True", "--start", 40) == []


@pytest.mark.parametrize("name", ["rows", "rows.ingot", "rows_granular"])
def test_head_summarizes_values_without_decoding_them(data, ingot_cli, name):
    row = json.loads(ingot_cli("head", name, "-n", 1, cwd=data).out)
    stored = containers.jpeg(0)
    assert row["image"] == {"type": "jpg", "bytes": len(stored), "hex": stored[:16].hex()}
    assert row["label"] == -1
    assert row["caption"] == "picture 0 \u00e9"
    assert row["box"] == {"array": "float32", "shape": [4], "values": [0.0, 1.0, 2.0, 3.0]}


def test_full_prints_bytes_completely(data, ingot_cli):
    value = json.loads(ingot_cli("get", "records.bag", 2, "--full", cwd=data).out)
    assert value["bytes"] == 256
    assert value["base64"].startswith("AAECAwQF")
    value = json.loads(ingot_cli("get", "records.bag", 1, cwd=data).out)
    assert value == {"bytes": 5, "text": "first"}


@pytest.mark.parametrize("name", ["rows", "rows.ingot", "rows_granular", "rows.h5"])
def test_get_writes_the_stored_bytes_of_a_field_to_a_file(data, ingot_cli, tmp_path, name):
    target = tmp_path / "cat.jpg"
    ran = ingot_cli("get", name, 7, "--field", "image", "-o", target, cwd=data)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert target.read_bytes() == containers.jpeg(7)
    again = ingot_cli("get", name, 8, "--field", "image", "-o", target, cwd=data)
    assert again.code == 2
    assert target.read_bytes() == containers.jpeg(7)
    assert "exists; pass --overwrite" in again.err
    ran = ingot_cli("get", name, 8, "--field", "image", "-o", target, "--overwrite", cwd=data)
    assert ran.code == 0
    assert target.read_bytes() == containers.jpeg(8)
    assert list(tmp_path.iterdir()) == [target]


def test_get_writes_an_element_of_a_sequence(ingot_cli, tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"frames": "bytes[]"}) as writer:
        writer.append({"frames": [b"zero", b"one", b"two"]})
    for element, value in [("1", "one"), ("-1", "two")]:
        ran = ingot_cli("get", "x.ingot", 0, "--element", element, "-o", "-", cwd=tmp_path)
        assert (ran.code, ran.out, ran.err) == (0, value, "")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none/x", "none/x: the directory of this file does not exist"),
        (".", ".: a directory; name a file in it"),
    ],
)
def test_get_names_a_target_that_cannot_be_written(data, ingot_cli, tmp_path, target, message):
    ran = ingot_cli("get", data / "records.bag", 1, "-o", target, "--overwrite", cwd=tmp_path)
    assert (ran.code, ran.err) == (2, f"ingot: {message}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", RECORD_FILES)
def test_get_writes_a_record_to_standard_output_as_it_is(data, ingot_cli, name):
    ran = ingot_cli("get", name, 2, "-o", "-", cwd=data, text=False)
    assert (ran.code, ran.out) == (0, bytes(range(256)))
    assert json.loads(ingot_cli("get", name, -1, cwd=data).out)["bytes"] == len(RECORDS[-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "rows", "30"], "rows: row 30 does not exist: the rows are 0 to 29"),
        (["get", "rows", "1", "-o", "x"], "-o writes one value: name one of the fields"),
        (
            ["get", "rows", "1", "-f", "label", "-o", "x"],
            "field 'label' is int, which has no bytes",
        ),
        (["get", "rows", "1", "-f", "lable"], "no field 'lable'"),
        (["get", "rows", "--lable", "1"], "no such option: --lable"),
        (["get", "rows", "one"], "'one' is not a number"),
        (["get", "rows", "1", "--element", "0"], "name a file with -o"),
        (
            ["get", "rows", "1", "-f", "image", "--element", "0", "-o", "x"],
            "field 'image' is not a sequence; leave out --element",
        ),
        (
            ["get", "records.bag", "1", "--element", "0", "-o", "x"],
            "row 1 is not a sequence; leave out --element",
        ),
        (["get", "records.bag", "1", "-f", "label"], "these are records, which have no fields"),
        (["head", "rows", "-f", "lable"], "no field 'lable'"),
        (
            ["head", "rows", "--where", "lable == 3"],
            "did you mean 'label'?\n  lable == 3\n  ^^^^^\n",
        ),
        (["cat", "rows", "--where", "label = 3"], "write == to compare\n  label = 3\n        ^\n"),
        (["cat", "rows", "--where", "label == 'x'"], "a number cannot be compared with text"),
        (["cat", "rows", "--where", "\x1b[31m"], "is not an operator"),
        (["cat", "records.bag", "--where", "row == 3"], "leave out --where"),
        (["convert", "records.bag", "x", "--where", "row == 3"], "leave out --where"),
        (["convert", "rows", "x", "--where", "lable == 3"], "did you mean 'label'?"),
        (["ls", "records.ingot"], "records.ingot: "),
    ],
)
def test_a_wrong_question_gets_one_line_and_code_2(data, ingot_cli, tmp_path, arguments, message):
    arguments = [str(tmp_path / one) if one == "x" else one for one in arguments]
    ran = ingot_cli(*arguments, cwd=data)
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert ran.err.startswith("ingot: ")
    assert "Traceback" not in ran.err
    assert not (tmp_path / "x").exists()


def test_ls_lists_a_packed_folder(data, ingot_cli):
    assert ingot_cli("ls", PACK, cwd=data).out == "a.txt\nsub/\n"
    assert ingot_cli("ls", PACK, "sub", cwd=data).out == "b.bin\nempty/\n"
    found = json.loads(ingot_cli("ls", PACK, "-r", "--json", cwd=data).out)
    assert found == [
        {"path": "a.txt", "folder": False, "bytes": 5},
        {"path": "sub", "folder": True, "bytes": None},
        {"path": "sub/b.bin", "folder": False, "bytes": 200},
        {"path": "sub/empty", "folder": True, "bytes": None},
    ]
    assert ingot_cli("ls", PACK, "-l", cwd=data).out == "bytes  path\n    5  a.txt\n       sub/\n"
    assert ingot_cli("ls", PACK, "nowhere", cwd=data).code == 2

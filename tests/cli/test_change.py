import json

import pytest

import ingot
from tests.support import containers
from tests.support.containers import PACK, RECORD_FILES, RECORDS, ROW_CONTAINERS


@pytest.mark.parametrize("name", [*RECORD_FILES, *ROW_CONTAINERS])
def test_convert_copies_every_container(data, ingot_cli, tmp_path, name):
    target = tmp_path / "out.ingot"
    ran = ingot_cli("convert", name, target, "--json", cwd=data)
    assert (ran.code, ran.err) == (0, "")
    with ingot.open(target) as opened:
        assert json.loads(ran.out) == {
            "path": str(target),
            "format": "ingot",
            "rows": len(opened),
            "nbytes": target.stat().st_size,
            "checked": True,
            "left_out": [],
            "rounded": [],
        }
        assert len(opened) == (len(RECORDS) if name in RECORD_FILES else containers.NUM_ROWS)
    assert list(tmp_path.iterdir()) == [target]


def test_convert_takes_fields_and_a_format(data, ingot_cli, tmp_path):
    target = tmp_path / "folder"
    ran = ingot_cli(
        "convert", "rows", target, "--format", "granular", "-f", "label", "-f", "caption", cwd=data
    )
    assert ran.code == 0, ran.err
    assert dict(ingot.open(target).spec) == {"caption": "utf8", "label": "int"}
    assert "30 rows" in ran.out
    assert "checked against the source" in ran.out


def test_convert_copies_the_rows_that_meet_a_condition(data, ingot_cli, tmp_path):
    for name in ("out.jsonl", "out"):
        target = tmp_path / name
        where = ["--where", "label == 1 and glob(caption, 'picture 1*')"]
        ran = ingot_cli("convert", "rows", target, "-f", "caption", *where, "--json", cwd=data)
        assert (ran.code, ran.err) == (0, "")
        assert json.loads(ran.out)["rows"] == 3
        found = ingot.open(target).column("caption").tolist()
        assert found == [f"picture {k} \u00e9" for k in (11, 14, 17)]


def test_convert_reads_the_types_of_the_source_before_it_chooses_rows(ingot_cli, tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n2\n30\n", encoding="utf-8")
    options = ["--spec", "a=utf8", "--where", "len(a) == 1"]
    ran = ingot_cli("convert", "x.csv", "y.jsonl", *options, cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert (tmp_path / "y.jsonl").read_text(encoding="utf-8") == '{"a":"1"}\n{"a":"2"}\n'


def test_merge_writes_several_sources_as_one(data, ingot_cli, tmp_path):
    target = tmp_path / "both.bag"
    ran = ingot_cli("merge", "records.ingot", "records.ingot", target, cwd=data)
    assert ran.code == 0, ran.err
    assert list(ingot.open(target)) == RECORDS * 2


def test_merge_and_split_take_fields(data, ingot_cli, tmp_path):
    captions = [row["caption"].encode() for row in containers.rows()]
    target = tmp_path / "both.bag"
    ran = ingot_cli("merge", "rows", "rows.ingot", target, "-f", "caption", cwd=data)
    assert ran.code == 0, ran.err
    assert list(ingot.open(target)) == captions * 2
    ran = ingot_cli("split", "rows", f"{tmp_path}/a.bag=3", "--in-order", "-f", "caption", cwd=data)
    assert ran.code == 0, ran.err
    assert list(ingot.open(tmp_path / "a.bag")) == captions[:3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rows.ingot"], "rows.ingot: a single PATH is a data set directory; name the target"),
        (["rows", "-f", "label"], "rows: --field needs a target"),
        (["rows", "--no-check"], "rows: --no-check needs a target"),
        (["rows", "--overwrite"], "rows: --overwrite needs a target"),
    ],
)
def test_merge_in_place_takes_a_directory_as_it_is(data, ingot_cli, arguments, message):
    ran = ingot_cli("merge", *arguments, cwd=data)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_merge_of_one_data_set_merges_its_files(ingot_cli, tmp_path):
    with ingot.DatasetWriter(tmp_path / "ds", {"a": "int"}, shard_rows=2) as writer:
        writer.extend({"a": list(range(9))})
    ran = ingot_cli("merge", "ds", "--json", cwd=tmp_path)
    assert (ran.code, json.loads(ran.out)) == (0, {"path": str(tmp_path / "ds"), "files": 1})
    assert ingot.open(tmp_path / "ds").column("a").tolist() == list(range(9))


@pytest.mark.parametrize("name", ["rows", "rows_granular", "records.bag"])
def test_split_writes_disjoint_parts(data, ingot_cli, tmp_path, name):
    ran = ingot_cli(
        "split", name, f"{tmp_path}/train.ingot=0.8", f"{tmp_path}/test=5", "--json", cwd=data
    )
    assert ran.code == 2, "fractions and numbers do not mix"
    ran = ingot_cli(
        "split", name, f"{tmp_path}/train.ingot=0.8", f"{tmp_path}/test=0.2", "--json", cwd=data
    )
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    expected = ingot.open(data / name)
    train, test = ingot.open(tmp_path / "train.ingot"), ingot.open(tmp_path / "test")
    assert [one["rows"] for one in found] == [len(train), len(test)]
    assert len(train) + len(test) == len(expected)
    if name == "records.bag":
        assert sorted([*train, *(row["record"] for row in test)]) == sorted(RECORDS)
    else:
        captions = [row["caption"] for part in (train, test) for row in part]
        assert sorted(captions) == sorted(row["caption"] for row in containers.rows())


def test_split_in_order_cuts_consecutive_rows(data, ingot_cli, tmp_path):
    ran = ingot_cli("split", "rows", f"{tmp_path}/a.ingot=20", "--in-order", cwd=data)
    assert ran.code == 0, ran.err
    assert ingot.open(tmp_path / "a.ingot").column("label").tolist() == [
        k % 3 - 1 for k in range(20)
    ]


def test_split_names_a_target_that_appears_twice(data, ingot_cli, tmp_path):
    ran = ingot_cli("split", data / "rows", "a=1", "b=1", "a=2", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("ingot: a: a target appears twice")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_goes_into_a_pack_and_out_again(data, ingot_cli, tmp_path):
    ran = ingot_cli("pack", data / "tree", "p.ingot", "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    size = (tmp_path / "p.ingot").stat().st_size
    assert json.loads(ran.out) == {"path": str(tmp_path / "p.ingot"), "files": 2, "bytes": size}
    assert ingot_cli("pack", data / "tree", "p.ingot", cwd=tmp_path).code == 2
    ran = ingot_cli("unpack", "p.ingot", "out", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert (tmp_path / "out" / "sub" / "b.bin").read_bytes() == bytes(range(200))
    assert ingot_cli("unpack", "p.ingot", "out", cwd=tmp_path).code == 2
    assert ingot_cli("unpack", "p.ingot", "out", "--overwrite", cwd=tmp_path).code == 0


def test_extract_writes_one_file(data, ingot_cli, tmp_path):
    ran = ingot_cli("extract", data / PACK, "sub/b.bin", "--json", cwd=tmp_path)
    assert (ran.code, json.loads(ran.out)) == (0, {"path": str(tmp_path / "b.bin"), "bytes": 200})
    assert (tmp_path / "b.bin").read_bytes() == bytes(range(200))
    assert ingot_cli("extract", data / PACK, "a.txt", "-o", "-").out == "hello"
    assert ingot_cli("extract", data / PACK, "sub", cwd=tmp_path).code == 2


def test_recover_finishes_a_file_whose_writer_died(ingot_cli, tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression=None) as writer:
        writer.extend([b"one", b"two"])
    path.write_bytes(path.read_bytes() + b"torn")
    refused = ingot_cli("info", "x.ingot", cwd=tmp_path)
    assert refused.code == 1
    ran = ingot_cli("recover", "x.ingot", "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {
        "path": str(path),
        "rows": 2,
        "was_whole": False,
        "cut_bytes": 4,
        "damaged": [],
    }
    assert list(ingot.open(path)) == [b"one", b"two"]


def test_convert_takes_types_for_the_fields_of_the_source(ingot_cli, tmp_path):
    (tmp_path / "x.csv").write_text("id,a=b\n0017,1\n0018,2\n")
    ran = ingot_cli(
        "convert", "x.csv", "x.ingot", "--spec", "id=int", "--spec", "a=b=utf8", cwd=tmp_path
    )
    assert ran.code == 0, ran.err
    assert list(ingot.open(tmp_path / "x.ingot")) == [
        {"id": 17, "a=b": "1"},
        {"id": 18, "a=b": "2"},
    ]
    ran = ingot_cli("convert", "x.csv", "y.ingot", "--spec", "id", cwd=tmp_path)
    assert (ran.code, "--spec is FIELD=TYPE" in ran.err) == (2, True)


def test_advice_about_types_names_the_option(ingot_cli, tmp_path):
    (tmp_path / "x.csv").write_text("a\n" + "1\n" * 1000 + "text\n")
    ran = ingot_cli("convert", "x.csv", "x.ingot", cwd=tmp_path)
    assert (ran.code, "--spec FIELD=TYPE" in ran.err) == (2, True), ran.err

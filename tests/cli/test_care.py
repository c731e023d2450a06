import json
import os
import shutil

import pytest

import ingot
from ingot.cli.bench import Measurement, advice_for
from tests.support import DATA
from tests.support.containers import ALL


@pytest.mark.parametrize("name", ALL)
def test_verify_finds_every_container_whole(data, ingot_cli, name):
    ran = ingot_cli("verify", name, "--json", cwd=data)
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert set(found) == {"path", "ok", "rows", "damaged", "unchecked"}
    assert found["ok"]
    assert found["rows"] >= 3
    assert found["damaged"] == []


def test_verify_tells_in_json_why_a_file_does_not_open(ingot_cli, tmp_path):
    (tmp_path / "x.tfrecord").write_bytes(b"\x05" + bytes(40))
    ran = ingot_cli("verify", "x.tfrecord", "--json", cwd=tmp_path)
    found = json.loads(ran.out)
    assert (ran.code, found["ok"], found["rows"]) == (1, False, 0)
    assert found["path"] == str(tmp_path / "x.tfrecord")
    assert found["damaged"][0]["record"] == 0
    assert "record 0: offset 0" in found["damaged"][0]["reason"]


@pytest.mark.parametrize(
    ("name", "code"), [("x.jsonl", 1), ("x.ingot", 1), ("x.txt", 2), (".", 2), ("y.jsonl", 2)]
)
def test_verify_tells_damage_from_wrong_usage(ingot_cli, tmp_path, name, code):
    folder = tmp_path / "here"
    folder.mkdir()
    if name.startswith("x"):
        (folder / name).write_text("[broken\n")
    ran = ingot_cli("verify", name, cwd=folder)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("ingot: ")
    ran = ingot_cli("verify", name, "--json", cwd=folder)
    assert ran.code == code
    assert (ran.out == "") == (code == 2)


def test_verify_takes_a_broken_manifest_for_damage(ingot_cli, tmp_path):
    with ingot.DatasetWriter(tmp_path / "rows", {"a": "int"}) as writer:
        writer.append({"a": 1})
    (tmp_path / "rows" / "dataset.json").write_text("{")
    assert ingot_cli("verify", "rows", cwd=tmp_path).code == 1


def test_verify_lists_damaged_records_and_ends_with_1(ingot_cli, tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression=None) as writer:
        writer.extend([b"%d." % k * 50 for k in range(100)])
    content = bytearray(path.read_bytes())
    for number in (17, 60):
        content[content.index(b"%d." % number * 50) + 3] ^= 1
    path.write_bytes(content)
    ran = ingot_cli("verify", "x.ingot", cwd=tmp_path)
    assert ran.code == 1
    assert [line.partition(":")[0] for line in ran.out.splitlines()] == [
        "record 17",
        "record 60",
        "x.ingot",
    ]
    found = json.loads(ingot_cli("verify", "x.ingot", "--json", cwd=tmp_path).out)
    assert not found["ok"]
    assert [one["record"] for one in found["damaged"]] == [17, 60]
    assert set(found["damaged"][0]) == {"record", "records", "offset", "reason"}
    assert ran.out.endswith("x.ingot: 100 rows, damaged in 2 places\n")
    ran = ingot_cli("convert", "x.ingot", "y.bag", cwd=tmp_path)
    assert ran.code == 1
    assert "record 17" in ran.err
    assert os.listdir(tmp_path) == ["x.ingot"]  # noqa: PTH208


@pytest.mark.parametrize("name", ["rows", "records.bag", "rows.h5"])
def test_bench_measures_and_advises(data, ingot_cli, name):
    ran = ingot_cli(
        *("bench", name, "--seconds", 0.01, "--batch", 1, "--batch", 8),
        *("--workers", 0, "--workers", 1, "--json"),
        cwd=data,
    )
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert set(found) == {"path", "rows", "bytes", "measurements", "advice"}
    seen = {
        (one["what"], one["batch"], one["workers"], one["cold"]) for one in found["measurements"]
    }
    warm = {("in order", None, None, False), ("at random", 1, None, False)}
    warm |= {("at random", 8, None, False), ("loader", 8, 0, False), ("loader", 8, 1, False)}
    cold = {("at random", 1, None, True), ("at random", 8, None, True)}
    assert seen == warm | cold
    assert all(one["rows_per_s"] > 0 for one in found["measurements"])
    assert len(found["advice"]) >= 3


def test_bench_rejects_fields_of_records(data, ingot_cli):
    ran = ingot_cli("bench", "records.bag", "-f", "label", cwd=data)
    assert (ran.code, ran.out) == (2, "")
    assert "these are records, which have no fields" in ran.err


def test_doctor_shows_the_settings(ingot_cli, tmp_path, monkeypatch):
    monkeypatch.delenv("INGOT_INDEX_DIR", raising=False)
    ran = ingot_cli("doctor", tmp_path, "--json", INGOT_IO="pread", INGOT_DELAY_MS="0")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert set(found) == {
        *("ingot", "system", "reading", "limits", "memory", "disk"),
        *("packages", "environment", "advice"),
    }
    assert found["environment"] == {"INGOT_DELAY_MS": "0", "INGOT_IO": "pread"}
    assert found["ingot"]["version"] == ingot.__version__
    assert found["packages"]["typer"]
    assert "unset INGOT_IO, so that Ingot chooses how to read" in found["advice"]
    plain = ingot_cli("doctor", tmp_path)
    assert plain.code == 0
    assert "io_uring" in plain.out
    lines = [line for line in plain.out.splitlines() if line.startswith("packages ")]
    assert [line.split(maxsplit=2) for line in lines] == [
        ["packages", name, version or "not installed"]
        for name, version in found["packages"].items()
    ]
    assert ingot_cli("doctor", tmp_path / "nowhere").code == 2


@pytest.mark.parametrize(
    ("warm", "cold", "advice"),
    [
        (300.0, 100.0, "data in memory is read 3.0 times as fast as cold data"),
        (80.0, 100.0, "cold data is read about as fast as data in memory"),
        (105.0, 100.0, "cold data is read about as fast as data in memory"),
    ],
)
def test_bench_compares_memory_with_the_device_where_they_differ(warm, cold, advice):
    done = [
        Measurement("at random", 64, None, cold=False, rows_per_s=warm, bytes_per_s=warm),
        Measurement("at random", 64, None, cold=True, rows_per_s=cold, bytes_per_s=cold),
    ]
    (found,) = advice_for(done, nbytes=1)
    assert found.startswith(advice)


def test_version_names_the_formats(ingot_cli):
    found = json.loads(ingot_cli("version", "--json").out)
    assert found["ingot"] == ingot.__version__
    assert {"ingot", "ffrecord", "arrayrecord", "bag", "hdf5"} <= set(found["reads"])
    plain = ingot_cli("version").out
    assert plain.startswith(f"ingot {ingot.__version__}, Python 3.")
    assert ingot_cli("--version") == (0, plain, "")


def test_one_row_is_not_rows(ingot_cli, tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"one")
    assert ingot_cli("verify", "x.ingot", cwd=tmp_path).out == "x.ingot: 1 row, whole\n"
    assert ingot_cli("info", "x.ingot", cwd=tmp_path).out.startswith("x.ingot: 1 record, ")


def test_the_committed_part_of_an_unfinished_file_can_be_read(ingot_cli, tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression=None) as writer:
        writer.append(b"one")
        writer.flush()
        size = path.stat().st_size
        writer.append(b"two")
    path.write_bytes(path.read_bytes()[: size + 2])
    refused = ingot_cli("head", "x.ingot", cwd=tmp_path)
    assert refused.code == 1
    assert "not finished" in refused.err
    assert "pass --partial to read them, or run ingot recover to make it whole" in refused.err
    ran = ingot_cli("head", "x.ingot", "--partial", cwd=tmp_path)
    assert (ran.code, json.loads(ran.out)) == (0, {"bytes": 3, "text": "one"})


def test_index_is_built_once_and_reported(ingot_cli, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a": 2}\n', encoding="utf-8")
    ran = ingot_cli("index", "x.jsonl", "--dir", "kept", cwd=tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "x.jsonl: 2 rows, the index is up to date\n", "")
    (found,) = (tmp_path / "kept").rglob("*.index")
    stamp = found.stat().st_mtime_ns
    ran = ingot_cli("index", "x.jsonl", "--dir", "kept", "--json", cwd=tmp_path)
    assert json.loads(ran.out) == {"path": str(tmp_path / "x.jsonl"), "rows": 2, "indexes": 1}
    assert found.stat().st_mtime_ns == stamp


def test_index_counts_the_indexes_of_a_folder_of_shards(ingot_cli, tmp_path):
    shutil.copytree(DATA / "foreign" / "mds", tmp_path / "mds")
    ran = ingot_cli("index", "mds", "--dir", "kept", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "mds: 50 rows, 4 indexes are up to date\n")
    assert len(list((tmp_path / "kept").rglob("*.index"))) == 4


def test_recover_keeps_a_file_that_a_data_set_lists(ingot_cli, tmp_path):
    with ingot.DatasetWriter(tmp_path / "ds", {"a": "int"}) as writer:
        writer.extend({"a": list(range(9))})
    (path,) = (tmp_path / "ds").glob("*.ingot")
    path.write_bytes(path.read_bytes()[:-1])
    content = path.read_bytes()
    ran = ingot_cli("recover", path)
    assert ran.code == 2
    assert "copy it again, or pass --force to keep the committed rows" in ran.err
    assert path.read_bytes() == content


def test_index_says_when_none_is_needed(data, ingot_cli):
    ran = ingot_cli("index", "rows.ingot", cwd=data)
    assert ran.code == 0
    assert ran.out.endswith("this format needs no index\n")

"""Data sets of which a file is missing, cut, or another one."""

import json
import shutil

import pytest

import ingot

SPEC = {"a": "int", "b": "bytes"}


@pytest.fixture
def folder(tmp_path):
    """Ten rows in each of four files."""
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, SPEC, shard_rows=10, compression=None) as writer:
        writer.extend({"a": k, "b": b"%d" % k * 100} for k in range(40))
    return path


def shards(folder):
    content = json.loads((folder / "dataset.json").read_text())
    return [folder / shard["name"] for shard in content["shards"]]


def cut(path):
    path.write_bytes(path.read_bytes()[:-1000])
    return path.stat().st_size


def test_a_file_that_was_copied_in_part_is_to_be_copied_again(folder):
    path = shards(folder)[1]
    whole = path.stat().st_size
    left = cut(path)
    with pytest.raises(ingot.CorruptFileError, match="copy it again") as caught:
        ingot.open(folder)
    assert f"{path}: the file is truncated: {left:,} of {whole:,} bytes" in str(caught.value)
    assert "recover" not in str(caught.value)
    assert caught.value.path == str(path)


def test_a_file_that_is_missing_is_to_be_copied_again(folder):
    path = shards(folder)[1]
    size = path.stat().st_size
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"is missing, {size:,} bytes with 10 rows; copy"):
        ingot.open(folder)


def test_a_file_of_a_data_set_is_not_cut_by_recovery(folder):
    path = shards(folder)[1]
    whole = path.read_bytes()
    cut(path)
    before = path.read_bytes()
    with pytest.raises(ingot.FormatError, match="copy it again"):
        ingot.recover(path)
    assert path.read_bytes() == before
    recovered = ingot.recover(path, force=True)
    assert not recovered.was_whole
    path.write_bytes(whole)
    assert ingot.recover(path).was_whole
    assert len(ingot.open(folder)) == 40


@pytest.mark.parametrize("damage", ["cut", "missing", "garbage"])
def test_a_data_set_opens_without_its_damaged_files(folder, damage):
    first, _, third, _ = shards(folder)
    for path in (first, third):
        if damage == "cut":
            cut(path)
        elif damage == "missing":
            path.unlink()
        else:
            path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises((ingot.FormatError, FileNotFoundError)):
        ingot.open(folder)
    with pytest.warns(UserWarning, match="20 of 40 rows can be read; skipped 2 of 4 files") as w:
        ds = ingot.open(folder, skip_damaged=True)
    assert first.name in str(w[0].message)
    assert third.name in str(w[0].message)
    assert ds.column("a").tolist() == [*range(10, 20), *range(30, 40)]
    assert ds.verify().ok


def test_a_whole_data_set_is_opened_whole(folder):
    assert len(ingot.open(folder, skip_damaged=True)) == 40


def test_a_data_set_without_a_sound_file_is_an_error(folder):
    for path in shards(folder):
        path.unlink()
    with pytest.raises(ingot.FormatError, match="0 of 40 rows can be read"):
        ingot.open(folder, skip_damaged=True)


def test_another_file_with_as_many_rows_is_noticed(folder, tmp_path):
    other = tmp_path / "y"
    with ingot.DatasetWriter(other, SPEC, shard_rows=10, compression=None) as writer:
        writer.extend({"a": -k, "b": b"%d" % k * 100} for k in range(40))
    (own, *_), (foreign, *_) = shards(folder), shards(other)
    assert own.stat().st_size == foreign.stat().st_size
    shutil.copy(foreign, own)
    with pytest.raises(ingot.FormatError, match="another file is in its place: its id is"):
        ingot.open(folder)


def test_files_of_one_data_set_that_were_swapped_are_noticed(folder):
    first, second, *_ = shards(folder)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(ingot.FormatError, match="another file is in its place"):
        ingot.open(folder)


def test_a_manifest_without_ids_is_read(folder):
    path = folder / "dataset.json"
    content = json.loads(path.read_text())
    for shard in content["shards"]:
        del shard["id"]
    path.write_text(json.dumps(content))
    assert len(ingot.open(folder)) == 40


@pytest.mark.parametrize("own", [3, "", "x" * 32, "0" * 31, ["0" * 32]])
def test_an_invalid_id_is_rejected(folder, own):
    path = folder / "dataset.json"
    content = json.loads(path.read_text())
    content["shards"][0]["id"] = own
    path.write_text(json.dumps(content))
    with pytest.raises(ingot.FormatError, match="not the manifest of a data set"):
        ingot.open(folder)


def test_a_manifest_of_absurd_size_is_not_loaded(folder):
    with (folder / "dataset.json").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(ingot.FormatError, match="expected at most"):
        ingot.open(folder)


def test_a_single_file_that_was_cut_is_to_be_copied_again(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression=None) as writer:
        writer.extend([bytes(1000)] * 10)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ingot.UnfinishedFileError, match="a truncated copy, copy it again"):
        ingot.open(path)


def test_a_damaged_row_has_the_same_number_everywhere(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"t": "utf8"}, shard_rows=100, compression=None) as writer:
        writer.extend({"t": f"value {k:04}"} for k in range(300))
    shard = json.loads((path / "dataset.json").read_text())["shards"][1]["name"]
    data = bytearray((path / shard).read_bytes())
    data[data.index(b"value 0150")] ^= 1
    (path / shard).write_bytes(data)
    with ingot.open(path) as ds:
        for read in (lambda: ds[150], lambda: ds[[3, 150]], lambda: ds[100:][50], lambda: list(ds)):
            with pytest.raises(ingot.CorruptFileError, match=f"{shard}: record 150: ") as caught:
                read()
            assert caught.value.record == 150
        (damage,) = ds.verify().damaged
        assert damage.record == 150
        assert f"{shard}: record 150: " in damage.reason

"""Data sets whose files others replace, remove or make."""

import pickle
import shutil

import pytest

import ingot

SPEC = {"a": "int", "t": "utf8"}


def write(path, name, count=100, **options):
    with ingot.DatasetWriter(path, SPEC, overwrite=True, **options) as writer:
        writer.extend({"a": k, "t": f"{name} {k}"} for k in range(count))


@pytest.mark.parametrize("name", ["x.ingot", "x"])
def test_a_pickled_data_set_does_not_read_another(tmp_path, name):
    path = tmp_path / name
    write(path, "old")
    ds = ingot.open(path)
    parts = [ds, ds.where(ds.column("a") >= 95), ds.stored(), ds.concat(ds), ds.select("t")]
    pickled = [pickle.dumps(one) for one in parts]
    assert [len(pickle.loads(one)) for one in pickled] == [100, 5, 100, 200, 100]  # noqa: S301
    write(path, "new")
    for one in pickled:
        with pytest.raises((ingot.FormatError, FileNotFoundError)) as caught:
            pickle.loads(one)  # noqa: S301
        text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
        assert "replaced" in text


def test_a_data_set_that_was_compacted_says_to_open_it_again(tmp_path):
    path = tmp_path / "x"
    write(path, "old", shard_rows=10)
    pickled = pickle.dumps(ingot.open(path))
    ingot.compact(path)
    with pytest.raises(ingot.FormatError, match=r"was compacted or replaced .* open it again"):
        pickle.loads(pickled)  # noqa: S301


def test_two_writers_of_a_new_data_set_are_warned_that_their_rows_are_mixed(tmp_path):
    path = tmp_path / "x"
    first, second = (ingot.DatasetWriter(path, {"a": "int"}) for _ in range(2))
    first.append({"a": 1})
    second.append({"a": 2})
    first.close()
    with pytest.warns(UserWarning, match="another writer has made a data set here"):
        second.close()
    assert ingot.open(path).column("a").tolist() == [1, 2]


@pytest.mark.parametrize("how", ["remove", "cut"])
def test_a_full_file_that_is_gone_is_not_committed(tmp_path, how):
    path = tmp_path / "x"
    writer = ingot.DatasetWriter(path, {"a": "int"}, shard_rows=2, atomic=True)
    for k in range(5):
        writer.append({"a": k})
    victim = min(path.glob("000000*"))
    if how == "remove":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-10])
    with pytest.raises(ingot.StorageError, match="removed or changed before"):
        writer.close()
    writer.abandon()
    assert not (path / "dataset.json").exists()


def test_a_writer_that_failed_does_not_ruin_a_later_data_set(tmp_path):
    path = tmp_path / "x"
    first = ingot.DatasetWriter(path, {"a": "int"})
    first.append({"a": 1})
    second = ingot.DatasetWriter(path, {"b": "utf8"})
    second.append({"b": "x"})
    first.close()
    with pytest.raises(ingot.FormatError):
        second.close()
    shutil.rmtree(path)
    first = ingot.DatasetWriter(path, {"a": "int"})
    first.append({"a": 7})
    second.abandon()
    first.close()
    assert ingot.open(path).column("a").tolist() == [7]


def test_a_folder_of_typed_files_is_one_data_set(tmp_path):
    for k in range(3):
        with ingot.DatasetWriter(tmp_path / f"p{k}.ingot", {"a": "int"}) as writer:
            writer.append({"a": k})
    assert ingot.open(tmp_path).column("a").tolist() == [0, 1, 2]


def test_a_directory_without_its_manifest_says_what_to_do(tmp_path):
    path = tmp_path / "x"
    write(path, "old")
    (path / "dataset.json").unlink()
    with pytest.raises(ingot.FormatError, match=r"copy dataset\.json too; .*\*\.ingot"):
        ingot.open(path)


@pytest.mark.parametrize("kind", ["records", "rows"])
def test_an_append_that_fails_says_that_the_file_is_as_it_was(tmp_path, kind):
    path = tmp_path / "x.ingot"

    def append(value, *, fail):
        if kind == "records":
            with ingot.Writer(path, append=True) as writer:
                writer.append(b"%d" % value)
                assert not fail
        else:
            with ingot.DatasetWriter(path, {"a": "int"}, append=True) as writer:
                writer.append({"a": value})
                assert not fail

    append(0, fail=False)
    with pytest.raises(AssertionError) as caught:
        append(1, fail=True)
    assert "the file is as it was, with 1 r" in caught.value.__notes__[0]
    assert len(ingot.open(path)) == 1


@pytest.mark.parametrize("path", ["s3://bucket/train", "gs://b/x.ingot"])
def test_addresses_of_stores_are_rejected_by_everything(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    ds = tmp_path / "x"
    write(ds, "old")
    calls = [
        lambda: ingot.DatasetWriter(path, SPEC),
        lambda: ingot.open(ds).save(path),
        lambda: ingot.build(path, str, range(3), spec=SPEC, workers=0),
        lambda: ingot.recover(path),
        lambda: ingot.compact(path),
        lambda: ingot.set_metadata(path, {}),
        lambda: ingot.open(path),
        lambda: ingot.Writer(path),
    ]
    for call in calls:
        with pytest.raises(ingot.FormatError, match="local files"):
            call()
    assert [one.name for one in tmp_path.iterdir()] == ["x"]

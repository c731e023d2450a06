import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import ingot
from ingot.compat import granular
from tests.support import DATA

GOLDEN = DATA / "granular"
INTS = {"foo": "int"}


def write(folder, count, spec=INTS, **options):
    with granular.DatasetWriter(folder, spec, granular.encoders, **options) as writer:
        for k in range(count):
            writer.append(dict.fromkeys(spec, k))
    return folder


def preproc(datapoint, seed):
    del seed
    return {"image": datapoint["abc"], "label": datapoint["foo"]}


def test_the_quickstart_of_granular_runs(tmp_path):
    directory = tmp_path / "dataset"
    spec = {"foo": "int", "bar": "utf8[]", "baz": "msgpack", "abc": "jpg", "xyz": "array"}
    with granular.DatasetWriter(directory, spec, granular.encoders) as writer:
        for i in range(10):
            datapoint = {
                "foo": i,
                "bar": ["hello"] * i,
                "baz": {"a": 1},
                "abc": np.zeros((60, 80, 3), np.uint8),
                "xyz": np.arange(0, 1 + i, dtype=np.float32),
            }
            writer.append(datapoint)
    assert {path.name for path in directory.glob("*")} == {
        "spec.json",
        "refs.bag",
        *(f"{key}.bag" for key in spec),
    }
    with granular.DatasetReader(directory, granular.decoders) as reader:
        assert reader.spec == spec
        assert list(reader.spec) == sorted(spec)
        assert len(reader) == 10
        assert reader.size == sum(path.stat().st_size for path in directory.glob("*.bag"))
        datapoint = reader[2]
        assert datapoint["foo"] == 2
        assert datapoint["bar"] == ["hello", "hello"]
        assert datapoint["abc"].shape == (60, 80, 3)
        source = granular.sources.Epochs(reader, shuffle=True, seed=0)
        source = granular.sources.Transform(source, preproc)
        with granular.Loader(source, batch=8, workers=64) as loader:
            assert loader.spec == {
                "image": (np.dtype(np.uint8), (60, 80, 3)),
                "label": (np.dtype(np.int64), ()),
            }
            dataset = iter(loader)
            labels = [k for _ in range(10) for k in next(dataset)["label"].tolist()]
            assert next(dataset)["image"].shape == (8, 60, 80, 3)
            state = loader.save()
            assert state == {"step": 88}
            loader.load(state)
    assert all(sorted(labels[k : k + 10]) == list(range(10)) for k in range(0, 80, 10))
    shuffled = np.random.default_rng([0, 0]).permutation(10).tolist()
    assert labels[:10] == shuffled


def test_rows_are_found_by_any_integer(tmp_path):
    reader = granular.DatasetReader(write(tmp_path / "x", 5), granular.decoders)
    assert reader[np.int64(2)] == reader[-3] == {"foo": 2}
    assert reader[[4, 0, -1]] == reader[np.array([4, 0, 4])] == {"foo": [4, 0, 4]}
    assert reader[1:] == reader[range(1, 9)] == {"foo": [1, 2, 3, 4]}
    for index in (5, -6, [0, 5]):
        with pytest.raises(IndexError):
            reader[index]
    with pytest.raises(KeyError):
        reader[0, ["bar"]]
    with pytest.raises(TypeError):
        reader["foo"]


def test_a_bag_is_a_sequence(tmp_path):
    with granular.BagWriter(tmp_path / "x.bag") as writer:
        for record in (b"a", b"", b"ccc"):
            writer.append(record)
    reader = granular.BagReader(tmp_path / "x.bag")
    assert list(reader) == [b"a", b"", b"ccc"]
    assert reader[np.int32(2)] == reader[-1] == b"ccc"
    assert reader[[2, 0]] == [b"ccc", b"a"]
    assert reader[1:99] == reader[range(1, 3)] == [b"", b"ccc"]
    with pytest.raises(IndexError):
        reader[3]
    with pytest.raises(IndexError):
        reader[range(-2, 2)]


def test_the_arguments_of_both_versions_are_understood(tmp_path):
    granular.BagWriter(tmp_path / "old.bag", 2).close()
    granular.BagWriter(filepath=tmp_path / "older.bag", version=1).close()
    granular.BagWriter(tmp_path / "new.bag", tmp_path / "limits").close()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"old.bag", "older.bag", "new.bag", "limits"}
    assert (tmp_path / "older.bag").read_bytes() == bytes(8)
    for reader in (
        granular.BagReader(source=tmp_path / "old.bag", cache_index=False, cache_data=True),
        granular.BagReader(tmp_path / "older.bag", *(True, False)),
        granular.BagReader(tmp_path / "new.bag", tmp_path / "limits"),
        granular.BagReader(tmp_path / "new.bag", idx_source=tmp_path / "limits", cache_data=True),
    ):
        assert (len(reader), reader[0:0]) == (0, [])


def test_the_layout_follows_the_types_unless_given(tmp_path):
    write(tmp_path / "new", 3)
    write(tmp_path / "old", 3, layout="0.21")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "spec.json",
        "foo.bag",
        "foo.idx",
    }
    assert {path.name for path in (tmp_path / "old").iterdir()} == {
        "spec.json",
        "foo.bag",
        "refs.bag",
    }
    with pytest.raises(ValueError, match=r"layout of 0\.22 does not support sequences"):
        granular.DatasetWriter(tmp_path / "x", {"foo": "int[]"}, granular.encoders, layout="0.22")
    with pytest.raises(ValueError, match="the layout must be"):
        granular.DatasetWriter(tmp_path / "x", INTS, granular.encoders, layout="0.24")
    with pytest.raises(ValueError, match="'refs' is reserved"):
        granular.DatasetWriter(tmp_path / "x", {"refs": "int[]"}, granular.encoders)
    assert not (tmp_path / "x").exists()


def test_empty_records_are_rejected_only_where_they_mislead(tmp_path):
    with granular.BagWriter(tmp_path / "x.bag", version=2) as writer:
        with pytest.raises(ValueError, match="must not be empty"):
            writer.append(b"")
        writer.append(b"a")
        writer.append(b"")
    assert list(granular.BagReader(tmp_path / "x.bag")) == [b"a", b""]
    kinds = {"a": "utf8"}
    with granular.DatasetWriter(tmp_path / "x", kinds, granular.encoders, layout="0.21") as writer:
        writer.append({"a": ""})
        writer.append({"a": ""})
    reader = granular.DatasetReader(tmp_path / "x", granular.decoders)
    assert reader[0:2] == {"a": ["", ""]}


@pytest.mark.parametrize("layout", ["0.21", "0.22"])
def test_a_row_that_cannot_be_encoded_is_not_written(tmp_path, layout):
    spec = {"a": "int", "b": "utf8"}
    with granular.DatasetWriter(tmp_path / "x", spec, granular.encoders, layout=layout) as writer:
        writer.append({"a": 1, "b": "x"})
        with pytest.raises(TypeError) as caught:
            writer.append({"a": 2, "b": 3})
        assert "Error encoding key 'b'" in caught.value.__notes__[0]
        for bad in ({"a": 2}, {"a": 2, "b": "x", "c": 1}, None):
            with pytest.raises(ValueError, match="datapoint"):
                writer.append(bad)
        assert len(writer) == 1
        assert writer.append({"a": 2, "b": "y"}) == 1
    reader = granular.DatasetReader(tmp_path / "x", granular.decoders)
    assert reader[0:2] == {"a": [1, 2], "b": ["x", "y"]}


def test_sequences_are_any_iterable_but_text(tmp_path):
    with granular.DatasetWriter(tmp_path / "x", {"a": "utf8[]"}, granular.encoders) as writer:
        writer.append({"a": (word for word in ("x", "y"))})
        with pytest.raises(TypeError, match="sequence"):
            writer.append({"a": "text"})
        writer.append({"a": ()})
    reader = granular.DatasetReader(tmp_path / "x", granular.decoders)
    assert [reader[0], reader[1]] == [{"a": ["x", "y"]}, {"a": []}]
    assert reader.available(1) == {"a": range(0)}


def test_integers_of_all_sizes_and_signs_round_trip():
    encode, decode = granular.encoders["int"], granular.decoders["int"]
    for bits in range(130):
        for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
            assert decode(encode(number)) == number
    assert encode(np.int64(-300)) == encode(-300)
    assert decode(b"") == 0
    with pytest.raises(OverflowError):
        granular.encoders["u64"](-1)
    with pytest.raises(TypeError):
        encode(1.5)


def test_a_data_set_is_read_while_it_is_written(tmp_path):
    with granular.DatasetWriter(tmp_path / "x", INTS, granular.encoders) as writer:
        writer.append({"foo": 1})
        writer.append({"foo": 2}, flush=False)
        assert len(granular.DatasetReader(tmp_path / "x", granular.decoders)) == 1
        writer.flush()
        assert granular.DatasetReader(tmp_path / "x", granular.decoders)[0:2] == {"foo": [1, 2]}


def test_a_data_set_of_two_processes_is_rejected(tmp_path):
    code = (
        "import sys; from ingot.compat import granular\n"
        f"granular.DatasetWriter({str(tmp_path / 'x')!r}, {INTS}, granular.encoders)"
    )
    with granular.DatasetWriter(tmp_path / "x", INTS, granular.encoders) as writer:
        writer.append({"foo": 1})
        other = subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True
        )
        assert "another writer" in other.stderr
        writer.append({"foo": 2})
    assert granular.DatasetReader(tmp_path / "x", granular.decoders)[:] == {"foo": [1, 2]}
    with pytest.raises(ValueError, match="keys and types"):
        granular.DatasetWriter(tmp_path / "x", {"foo": "utf8"}, granular.encoders)


def test_an_old_data_set_is_not_appended_to(tmp_path):
    write(tmp_path / "x", 2, layout="0.21")
    for layout in ("0.21", "0.22", None):
        with pytest.raises(FileExistsError):
            granular.DatasetWriter(tmp_path / "x", INTS, granular.encoders, layout=layout)
    assert len(granular.DatasetReader(tmp_path / "x", granular.decoders)) == 2


@pytest.mark.parametrize("shardlen", [None, 4, 5, 10])
def test_shards_are_appended_to(tmp_path, shardlen):
    for start in (0, 10):
        with granular.ShardedDatasetWriter(tmp_path, INTS, granular.encoders, shardlen) as writer:
            assert len(writer) == start
            for k in range(start, start + 10 if start == 0 else start + 3):
                assert writer.append({"foo": k}) == k
    reader = granular.ShardedDatasetReader(tmp_path, granular.decoders)
    assert reader[0:13] == {"foo": list(range(13))}
    lengths = [stop - start for start, stop in zip(reader.starts, reader.stops, strict=True)]
    assert all(length == shardlen for length in lengths[:-1])


def test_rows_after_old_shards_go_to_the_next_one(tmp_path):
    for start in (0, 6):
        with granular.ShardedDatasetWriter(
            tmp_path, INTS, granular.encoders, 4, layout="0.21"
        ) as writer:
            for k in range(start, start + 6):
                writer.append({"foo": k})
    reader = granular.ShardedDatasetReader(tmp_path, granular.decoders)
    assert reader[0:12] == {"foo": list(range(12))}
    assert reader.stops == [4, 6, 10, 12]


def test_writers_of_different_shards_make_one_data_set(tmp_path):
    for part in (1, 0):
        with granular.ShardedDatasetWriter(
            tmp_path, INTS, granular.encoders, shardlen=2, shardstart=part, shardstep=2
        ) as writer:
            for k in range(4):
                writer.append({"foo": 10 * part + k})
    (tmp_path / "README").write_text("not a shard")
    reader = granular.ShardedDatasetReader(tmp_path, granular.decoders)
    assert reader[0:8]["foo"] == [0, 1, 10, 11, 2, 3, 12, 13]
    for part in (0, 1):
        reader = granular.ShardedDatasetReader(
            tmp_path, granular.decoders, shardstart=part, shardstep=2
        )
        assert reader[:]["foo"] == [10 * part + k for k in range(4)]
    with pytest.raises(ValueError, match="shardlen"):
        granular.ShardedDatasetWriter(tmp_path, INTS, granular.encoders, shardstart=1)


def test_readers_are_pickled_copied_and_closed(tmp_path):
    write(tmp_path / "x", 4)
    reader = granular.DatasetReader(tmp_path / "x", granular.decoders)
    again, other = pickle.loads(pickle.dumps(reader)), reader.copy()  # noqa: S301
    assert not reader.closed
    reader.close()
    reader.close()
    assert reader.closed
    with pytest.raises(ValueError, match="closed"):
        reader[0]
    assert again[3] == other[3] == {"foo": 3}
    bag = granular.BagReader(tmp_path / "x" / "foo.bag")
    again = pickle.loads(pickle.dumps(bag))  # noqa: S301
    assert list(again) == list(bag.copy()) == list(bag)


def test_readers_are_used_from_several_threads(tmp_path):
    write(tmp_path / "x", 200)
    reader = granular.DatasetReader(tmp_path / "x", granular.decoders)
    bag = granular.BagReader((tmp_path / "x" / "foo.bag").read_bytes(), tmp_path / "x" / "foo.idx")
    stored = [granular.encoders["int"](k) for k in range(200)]
    wrong = []

    def read(seed):
        order = np.random.default_rng(seed).integers(0, 200, 1000).tolist()
        wrong.extend(k for k in order if reader[k]["foo"] != k or bag[k] != stored[k])

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def read_in_child(reader, results):
    results.put([reader[k]["foo"] for k in range(len(reader))])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_readers_are_used_in_other_processes(tmp_path, method):
    reader = granular.DatasetReader(write(tmp_path / "x", 20), granular.decoders)
    assert reader[3] == {"foo": 3}
    context = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    process = context.Process(target=read_in_child, args=(reader, results))
    process.start()
    assert results.get() == list(range(20))
    process.join()


def test_keys_are_any_names_of_files(tmp_path):
    kinds = {"a.b": "int", "obs:image": "int", "with space": "int", "refs": "int"}
    reader = granular.DatasetReader(write(tmp_path / "x", 3, kinds), granular.decoders)
    assert reader[2] == dict.fromkeys(kinds, 2)
    row = ingot.open(tmp_path / "x")[-1]
    assert row == {"a": {"b": 2}, "obs:image": 2, "with space": 2, "refs": 2}
    reader = granular.DatasetReader(
        write(tmp_path / "y", 3, {"a": "int", "a.b": "int"}), granular.decoders
    )
    assert reader[1, ["a"]] == {"a": 1}
    with pytest.raises(ingot.FormatError, match="both a field and a group"):
        ingot.open(tmp_path / "y")


def test_decoders_may_be_none_or_custom(tmp_path):
    write(tmp_path / "x", 2)
    assert granular.DatasetReader(tmp_path / "x", None)[1] == {"foo": b"\1"}
    own = granular.DatasetReader(tmp_path / "x", {"int": lambda data: data.hex()})
    assert own[0:2] == {"foo": ["00", "01"]}
    with pytest.raises(KeyError):
        granular.DatasetReader(tmp_path / "x", {})
    with pytest.raises(KeyError):
        granular.DatasetReader(tmp_path / "x", None, cache_keys=["bar"])


def test_values_may_be_encoded_already(tmp_path):
    with granular.DatasetWriter(tmp_path / "x", {"a": "mine"}, None) as writer:
        writer.append({"a": b"1"})
        with pytest.raises(TypeError, match="bytes"):
            writer.append({"a": 2})
    assert granular.DatasetReader(tmp_path / "x", {"mine": int})[0] == {"a": 1}
    with pytest.raises(ingot.FormatError, match="'mine' is not one of Granular's types"):
        ingot.open(tmp_path / "x")


@pytest.mark.parametrize("enabled", [True, False])
def test_buffers_are_shared_by_name(monkeypatch, enabled):
    monkeypatch.setattr(granular.bag.SharedBuffer, "ENABLE", enabled)
    buffer = granular.bag.SharedBuffer(b"abc\3" + bytes(7))
    again = pickle.loads(pickle.dumps(buffer))  # noqa: S301
    assert bytes(again[0:3]) == b"abc"
    with again.open("rb") as file:
        assert (file.seek(-1, os.SEEK_END), file.read(), file.tell()) == (10, b"\0", 11)
    assert list(granular.BagReader(buffer)) == [b"abc"]
    again.close()
    buffer.close()
    buffer.close()
    assert buffer.closed
    assert list(granular.BagReader(granular.bag.SharedBuffer(b""))) == []


def test_the_last_rows_of_a_writer_are_kept_when_something_fails(tmp_path):
    def rows():
        yield {"a": [1]}
        message = "no more"
        raise RuntimeError(message)

    def fill():
        with granular.DatasetWriter(tmp_path / "x", {"a": "int[]"}, granular.encoders) as writer:
            for row in rows():
                writer.append(row)

    with pytest.raises(RuntimeError, match="no more"):
        fill()
    assert granular.DatasetReader(tmp_path / "x", granular.decoders)[0] == {"a": [1]}


def test_a_type_without_a_function_is_named(tmp_path):
    with pytest.raises(
        KeyError, match="key 'k' has type 'foo', for which encoders has no function"
    ):
        granular.DatasetWriter(tmp_path / "x", {"k": "foo"}, granular.encoders)
    with granular.DatasetWriter(tmp_path / "y", {"k": "utf8"}, granular.encoders) as writer:
        writer.append({"k": "a"})
    with pytest.raises(
        KeyError, match="key 'k' has type 'utf8', for which decoders has no function"
    ):
        granular.DatasetReader(tmp_path / "y", {"int": bytes})


@pytest.mark.parametrize("name", ["x.ingot", "x"])
def test_rows_of_granular_are_saved_as_those_of_ingot(tmp_path, name):
    rows = [
        {
            "i": k,
            "a": np.full((2, k + 1), k, np.int16),
            "s": [k, k + 1],
            "t": {"x": [k, "text"]},
            "u": f"row {k}",
        }
        for k in range(3)
    ]
    spec = {"i": "int", "a": "array", "s": "int[]", "t": "tree", "u": "utf8"}
    with granular.DatasetWriter(tmp_path / "g", spec, granular.encoders) as writer:
        for row in rows:
            writer.append(row)
    ds = ingot.open(tmp_path / "g")
    ds[0]["a"][:] = 1  # It is the caller's own.
    ds.save(tmp_path / name)
    with ingot.DatasetWriter(tmp_path / "again.ingot", ds.spec) as writer:
        writer.extend(ds)
    for path in (tmp_path / name, tmp_path / "again.ingot"):
        found = list(ingot.open(path))
        assert [str(row["a"]) for row in found] == [str(row["a"]) for row in rows]
        assert [list(row["s"]) for row in found] == [row["s"] for row in rows]
        for key in ("i", "t", "u"):
            assert [row[key] for row in found] == [row[key] for row in rows]


@pytest.mark.parametrize("target", ["x.ingot", "x.parquet"])
def test_images_of_granular_are_saved_as_the_files_that_they_are(tmp_path, target):
    images = np.random.default_rng(0).integers(0, 255, (3, 16, 16, 3), np.uint8)
    with granular.DatasetWriter(
        tmp_path / "g", {"j": "jpg", "k": "int"}, granular.encoders
    ) as writer:
        for k, image in enumerate(images):
            writer.append({"j": image, "k": k})
    ds = ingot.open(tmp_path / "g")
    assert ds.to_arrow()["k"].to_pylist() == [0, 1, 2]
    files = [row["j"] for row in ds.stored()]
    if target == "x.ingot":
        for some in (ds, ds.select("j"), ds.concat(ds)):
            some.save(tmp_path / target, overwrite=True)
            found = ingot.open(tmp_path / target).stored()
            assert [row["j"] for row in found] == [*files, *files][: len(some)]
    ingot.convert(tmp_path / "g", tmp_path / "converted" / target)
    assert ds.to_arrow()["j"].to_pylist() == files

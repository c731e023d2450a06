"""What programs that were written for Granular rely on, held against 0.21 and 0.24."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import granular as real
import numpy as np
import pytest

import ingot
from ingot.compat import granular

OLD = Path(sys.prefix) / "granular-0.21"
BOTH = pytest.mark.parametrize("package", [real, granular], ids=["real", "here"])
SPEC = {"a": "bytes", "b": "int"}


def run(program, folder, package="here"):
    """Run a program with a package, in a folder; return what it prints."""
    statement = "from ingot.compat import granular" if package == "here" else "import granular"
    environment = os.environ | ({"PYTHONPATH": str(OLD)} if package == "0.21" else {})
    ended = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{program}"],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    return ended.stdout + ended.stderr


def write(package, folder, count=3, **options):
    with package.DatasetWriter(folder, SPEC, package.encoders, **options) as writer:
        for k in range(count):
            writer.append({"a": b"x" * k, "b": k})
    return folder


def files(folder):
    return {
        str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()
    }


@BOTH
def test_the_parts_of_a_reader_are_attributes(package, tmp_path):
    reader = package.DatasetReader(write(package, tmp_path / "x"), package.decoders)
    assert reader.length == len(reader) == 3
    assert list(reader.decoders) == list(reader.readers) == ["a", "b"]
    assert reader.decoders["b"](reader.readers["b"][2]) == 2
    assert isinstance(reader.readers["a"], package.BagReader)
    assert reader.readers["a"].length == 3
    assert package.DatasetReader(tmp_path / "x", None).decoders == {"a": None, "b": None}
    reader.close()


@BOTH
def test_the_parts_of_a_writer_are_attributes(package, tmp_path):
    with package.DatasetWriter(tmp_path / "x", SPEC, package.encoders) as writer:
        writer.append({"a": b"xyz", "b": 1})
        assert list(writer.encoders) == list(writer.writers) == ["a", "b"]
        assert writer.encoders["b"] is package.encoders["int"]
        assert isinstance(writer.writers["a"], package.BagWriter)
        assert (writer.writers["a"].length, writer.writers["a"].size) == (1, 11)
    with package.ShardedDatasetWriter(tmp_path / "y", SPEC, package.encoders, 2) as writer:
        assert (writer.writer, writer.encoders) == (None, package.encoders)
        writer.append({"a": b"", "b": 1})
        assert isinstance(writer.writer, package.DatasetWriter)


def test_the_references_of_old_files_are_among_the_readers(tmp_path):
    reader = granular.DatasetReader(write(granular, tmp_path / "x", layout="0.21"), None)
    assert list(reader.readers) == ["refs", "a", "b"]
    assert [len(bag) for bag in reader.readers.values()] == [3, 4, 3]


class NamedBag(granular.BagReader):
    def __init__(self, name, path):
        super().__init__(path)
        self.name = name


class NamedReader(granular.DatasetReader):
    def __init__(self, name, path):
        super().__init__(path, granular.decoders)
        self.name = name


class NamedShards(granular.ShardedDatasetReader):
    def __init__(self, name, path):
        super().__init__(path, granular.decoders)
        self.name = name


class NamedWriter(granular.ShardedDatasetWriter):
    def __init__(self, name, path):
        super().__init__(path, SPEC, granular.encoders, shardlen=2)
        self.name = name


@pytest.mark.parametrize(
    ("kind", "place"),
    [(NamedBag, "000000/b.bag"), (NamedReader, "000000"), (NamedShards, ".")],
)
def test_subclasses_of_readers_are_pickled_with_their_attributes(tmp_path, kind, place):
    write(granular, tmp_path / "000000")
    reader = kind("n", tmp_path / place)
    first = reader[0]
    for again in (pickle.loads(pickle.dumps(reader)), reader.copy()):  # noqa: S301
        assert type(again) is kind
        assert (again.name, len(again), again[0], again.closed) == ("n", 3, first, False)
        again.close()
        assert reader[0] == first


def test_subclasses_of_writers_are_pickled_before_they_write(tmp_path):
    writer = pickle.loads(pickle.dumps(NamedWriter("n", tmp_path)))  # noqa: S301
    assert (type(writer), writer.name) == (NamedWriter, "n")
    with writer:
        writer.append({"a": b"", "b": 1})
    assert len(granular.ShardedDatasetReader(tmp_path, granular.decoders)) == 1


def test_a_layout_is_chosen_by_the_granular_that_reads_it(tmp_path):
    read = "print(granular.DatasetReader('{}', granular.decoders)[1])"
    for name, layout in (("old", "0.21"), ("new", "0.22")):
        write(granular, tmp_path / name, layout=layout)
    write(granular, tmp_path / "default")
    expected = "{'a': b'x', 'b': 1}"
    assert expected in run(read.format("old"), tmp_path, "0.21")
    assert expected in run(read.format("new"), tmp_path, "0.24")
    assert files(tmp_path / "default") == files(tmp_path / "new")
    assert files(tmp_path / "old").keys() == {"a.bag", "b.bag", "refs.bag", "spec.json"}
    with granular.ShardedDatasetWriter(
        tmp_path / "shards", SPEC, granular.encoders, layout="0.21"
    ) as writer:
        writer.append({"a": b"", "b": 1})
    assert "refs.bag" in files(tmp_path / "shards" / "000000")


@pytest.mark.parametrize("kind", ["mp4", "webm"])
def test_a_grey_video_comes_back_in_colours(kind):
    grey = np.tile(np.arange(0, 256, 8, np.uint8), (4, 16, 1))
    found = granular.decoders[kind](granular.encoders[kind](grey))
    assert found.shape == (4, 16, 32, 3)
    assert np.abs(found.astype(int) - grey[..., None]).mean() < 8


@BOTH
def test_rows_that_were_not_flushed_count_by_their_limits(package, tmp_path):
    with package.DatasetWriter(tmp_path / "x", SPEC, package.encoders) as writer:
        writer.append({"a": b"xyz", "b": 1})
        assert writer.size == 20
        writer.append({"a": b"xyz", "b": 1}, flush=False)
        assert writer.size == 36
        writer.flush()
        assert writer.size == 40
    with package.DatasetWriter(tmp_path / "x", SPEC, package.encoders) as writer:
        assert writer.size == 40
    assert package.DatasetReader(tmp_path / "x", None).size == 40


def test_rows_that_were_not_flushed_count_in_the_old_layout(tmp_path):
    program = (
        "w = granular.{}Writer({})\n"
        "w.append({}, flush=False); print(w.size); w.flush(); print(w.size)"
    )
    row = {"a": b"xyz", "b": 1}
    new = program.format("Dataset", f"'x', {SPEC}, granular.encoders, layout='0.21'", row)
    old = program.format("Dataset", f"'y', {SPEC}, granular.encoders", row)
    assert run(new, tmp_path)[:6] == run(old, tmp_path, "0.21")[:6] == "31\n31\n"


@pytest.mark.parametrize("index", ["1", "slice(0, 2)"])
@pytest.mark.parametrize(
    "mask", ["{'b': True, 'a': True}", "{'b': True, 'a': False}", "{'b': True}"]
)
def test_a_dict_gives_keys_in_the_order_of_the_specification(tmp_path, mask, index):
    write(granular, tmp_path / "x", layout="0.21")
    program = f"print(granular.DatasetReader('x', granular.decoders)[{index}, {mask}])"
    assert run(program, tmp_path).split("}")[0] == run(program, tmp_path, "0.21").split("}")[0]


@BOTH
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_keys_give_themselves_in_their_order(package, tmp_path):
    reader = package.DatasetReader(write(package, tmp_path / "x"), package.decoders)
    assert list(reader[1, ("b", "a")]) == list(reader[0:2, ["b", "a"]]) == ["b", "a"]


@BOTH
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_reopened_writer_appends(package, tmp_path):
    for start in (0, 2, 4):
        writer = package.DatasetWriter(tmp_path / "x", SPEC, package.encoders)
        assert len(writer) == start
        for k in range(start, start + 2):
            writer.append({"a": b"x", "b": k})
    writer.close()
    reader = package.DatasetReader(tmp_path / "x", package.decoders)
    assert reader[0:6]["b"] == list(range(6))


@BOTH
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_reopened_bag_is_appended_to(package, tmp_path):
    class Own(package.BagWriter):
        pass

    for start, kind in enumerate((package.BagWriter, Own, package.BagWriter)):
        writer = kind(tmp_path / "x.bag")
        assert writer.append(b"%d" % start) == start
    writer.close()
    assert package.BagReader(tmp_path / "x.bag")[0:3] == [b"0", b"1", b"2"]


def test_a_writer_that_another_continues_loses_nothing_and_writes_no_more(tmp_path):
    first = granular.ShardedDatasetWriter(tmp_path, SPEC, granular.encoders, shardlen=3)
    first.append({"a": b"x", "b": 0}, flush=False)
    second = granular.ShardedDatasetWriter(tmp_path, SPEC, granular.encoders, shardlen=3)
    second.append({"a": b"x", "b": 1})
    with pytest.raises(ingot.ClosedError, match="another writer of this process has taken over"):
        first.append({"a": b"x", "b": 2})
    first.close()
    second.close()
    assert granular.ShardedDatasetReader(tmp_path, granular.decoders)[:]["b"] == [0, 1]


def test_a_writer_with_other_keys_leaves_the_first_alone(tmp_path):
    with granular.DatasetWriter(tmp_path, SPEC, granular.encoders) as writer:
        with pytest.raises(ValueError, match="keys and types"):
            granular.DatasetWriter(tmp_path, {"c": "int"}, granular.encoders)
        writer.append({"a": b"x", "b": 0})
    assert len(granular.DatasetReader(tmp_path, None)) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_leaves_the_writer_of_its_parent_open(tmp_path):
    with granular.DatasetWriter(tmp_path, SPEC, granular.encoders) as writer:
        writer.append({"a": b"x", "b": 0})
        child = os.fork()
        if child == 0:
            try:
                granular.DatasetWriter(tmp_path, SPEC, granular.encoders)
            except OSError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        writer.append({"a": b"x", "b": 1})
    assert granular.DatasetReader(tmp_path, granular.decoders)[:]["b"] == [0, 1]


@pytest.mark.parametrize(
    ("first", "then"), [(np.float32(1), 0.5), (np.uint8(1), 7), (np.float32(1), 3), (1.5, 2)]
)
def test_plain_numbers_are_loaded_as_the_first_of_their_key(first, then):
    def source(step):
        return {"x": then if step else first}

    with granular.Loader(source, batch=2, workers=0) as loader:
        batch = next(iter(loader))
    assert batch["x"].dtype == np.asarray(first).dtype
    assert batch["x"].tolist() == [first, then]


@pytest.mark.parametrize(
    ("first", "then"),
    [(1, 0.5), (np.uint8(1), 300), (np.bool_(1), 2), (np.float32(1), np.float64(0.1))],
)
def test_numbers_that_would_not_come_back_are_not_loaded(first, then):
    with granular.Loader(lambda step: {"x": then if step else first}, 2, workers=0) as loader:
        iter(loader)
        with pytest.raises(RuntimeError, match="step 1"):
            next(loader)


ENDS = {
    "end of the program": "",
    "exception": "raise KeyError",
    "del": "del writer",
    "exception in with": "with writer: raise KeyError",
}
WRITERS = {
    "bag": ("BagWriter('x.bag')", "b'x%d' % k"),
    "data set": (f"DatasetWriter('x', {SPEC}, granular.encoders)", "{'a': b'x', 'b': k}"),
    "shards": (f"ShardedDatasetWriter('x', {SPEC}, granular.encoders, 2)", "{'a': b'x', 'b': k}"),
}


@pytest.mark.parametrize("flush", [True, False])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_leaves_the_same_files(tmp_path, end, writer, flush):
    opened, row = WRITERS[writer]
    program = (
        f"writer = granular.{opened}\n"
        f"for k in range(3): writer.append({row}, flush={flush})\n{ENDS[end]}"
    )
    left = {}
    for package in ("0.24", "here"):
        (tmp_path / package).mkdir()
        run(program, tmp_path / package, package)
        left[package] = files(tmp_path / package)
    assert left["here"] == left["0.24"]
    assert left["here"]


@pytest.mark.parametrize("flush", [True, False])
def test_an_exception_in_with_leaves_the_same_old_files(tmp_path, flush):
    program = (
        "with granular.DatasetWriter('x', {'a': 'utf8[]'}, granular.encoders) as writer:\n"
        f"    writer.append({{'a': ['x', 'y']}}, flush={flush})\n    raise KeyError"
    )
    for package in ("0.21", "here"):
        (tmp_path / package).mkdir()
        run(program, tmp_path / package, package)
    assert files(tmp_path / "here") == files(tmp_path / "0.21")
    assert len(granular.DatasetReader(tmp_path / "here" / "x", None)) == 1

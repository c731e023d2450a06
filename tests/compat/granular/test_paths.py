"""Paths of other file systems: anything with `open`."""

import io
import os
import pickle
import threading

import numpy as np
import pytest

import ingot
from ingot.compat import granular

STORE = {}
OPENED = []


class Sink(io.BytesIO):
    """A file that is stored when it is flushed or closed."""

    def __init__(self, name, content):
        super().__init__()
        self.write(content)
        self.name = name

    def flush(self):
        if not self.closed:
            STORE[self.name] = self.getvalue()

    def close(self):
        self.flush()
        super().close()


class StorePath:
    """A path in a store in memory; not one of `os.PathLike`."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return f"memory://{self.text}"

    @property
    def name(self):
        return self.text.rpartition("/")[2]

    @property
    def parent(self):
        return StorePath(self.text.rpartition("/")[0])

    def __truediv__(self, other):
        return StorePath(f"{self.text}/{other}")

    def with_suffix(self, suffix):
        return StorePath(self.text.rpartition(".")[0] + suffix)

    def exists(self):
        return self.text in STORE or any(name.startswith(f"{self.text}/") for name in STORE)

    def mkdir(self):
        STORE[f"{self.text}/"] = b""

    def glob(self, pattern):
        assert pattern == "*"
        start = f"{self.text}/"
        names = {name[len(start) :].partition("/")[0] for name in STORE if name.startswith(start)}
        return [self / name for name in sorted(names - {""})]

    def open(self, mode="rb", buffering=-1):
        del buffering
        if mode == "rb":
            if self.text not in STORE:
                raise FileNotFoundError(self.text)
            OPENED.append(self.text)
            return io.BytesIO(STORE[self.text])
        return Sink(self.text, STORE.get(self.text, b"") if mode == "ab" else b"")


@pytest.fixture
def folder():
    STORE.clear()
    return StorePath("bucket/data")


def rows(reader):
    return [reader[k] for k in range(len(reader))]


@pytest.mark.parametrize("kinds", [{"a": "int", "b": "utf8"}, {"a": "int", "b": "utf8[]"}])
@pytest.mark.parametrize("cached", [(), ("a", "refs")])
def test_a_data_set_is_read_through_a_custom_path(folder, kinds, cached):
    is_list = kinds["b"].endswith("[]")
    expected = [{"a": k - 2, "b": ["w"] * k if is_list else "w" * k} for k in range(5)]
    with granular.DatasetWriter(folder, kinds, granular.encoders) as writer:
        for one in expected:
            writer.append(one)
        size = writer.size
    with granular.DatasetReader(folder, granular.decoders, cache_keys=cached) as reader:
        assert (reader.spec, reader.size) == (kinds, size)
        again = pickle.loads(pickle.dumps(reader))  # noqa: S301
        assert rows(reader) == rows(again) == expected
        assert reader[[4, 1], ["a"]] == {"a": [2, -1]}
        assert reader[1:4, ["a"]] == {"a": [-1, 0, 1]}
        with pytest.raises(IndexError):
            reader[5]


def test_a_data_set_is_appended_to_through_a_custom_path(folder):
    for start in (0, 3):
        with granular.DatasetWriter(folder, {"a": "int"}, granular.encoders) as writer:
            assert len(writer) == start
            for k in range(start, start + 3):
                writer.append({"a": k})
    assert granular.DatasetReader(folder, granular.decoders)[:] == {"a": list(range(6))}
    STORE["bucket/data/a.bag"] += b"more"
    with pytest.raises(ingot.FormatError, match="died"):
        granular.DatasetWriter(folder, {"a": "int"}, granular.encoders)


def test_shards_are_appended_to_through_a_custom_path(folder):
    for start in (0, 5):
        with granular.ShardedDatasetWriter(folder, {"a": "int"}, granular.encoders, 3) as writer:
            for k in range(start, start + 5):
                assert writer.append({"a": k}) == k
    reader = granular.ShardedDatasetReader(folder, granular.decoders)
    assert reader[:] == {"a": list(range(10))}
    assert reader.stops == [3, 6, 9, 10]


def test_the_bytes_match_local_files(folder, tmp_path):
    for version in (1, 2, 3):
        with (
            granular.BagWriter(tmp_path / f"{version}.bag", version=version) as one,
            granular.BagWriter(folder / f"{version}.bag", version=version) as other,
        ):
            for record in (b"abc", b"", b"d"):
                assert one.append(record) == other.append(record)
        for path in tmp_path.glob(f"{version}.*"):
            assert path.read_bytes() == STORE[f"bucket/data/{path.name}"]
        reader = granular.BagReader(folder / f"{version}.bag")
        assert list(reader) == [b"abc", b"", b"d"]
        assert reader.size == granular.BagReader(tmp_path / f"{version}.bag").size


def test_several_threads_read_a_bag_through_a_custom_path(folder):
    with granular.BagWriter(folder / "x.bag") as writer:
        for k in range(300):
            writer.append(str(k).encode() * (k % 7), flush=False)
    reader = granular.BagReader(folder / "x.bag")
    wrong = []

    def read(seed):
        order = np.random.default_rng(seed).integers(0, 300, 2000).tolist()
        wrong.extend(k for k in order if reader[k] != str(k).encode() * (k % 7))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_opens_files_of_its_own(folder):
    with granular.BagWriter(folder / "x.bag") as writer:
        writer.append(b"abc")
    reader = granular.BagReader(folder / "x.bag")
    assert reader[0] == b"abc"
    OPENED.clear()
    assert (reader[0], OPENED) == (b"abc", [])
    child = os.fork()
    if child == 0:
        os._exit(0 if (reader[0], OPENED) == (b"abc", ["bucket/data/x.bag"]) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "table", [b"\1", b"\7" + bytes(7), b"\2" + bytes(7) + b"\1" + bytes(7), b"\xff" * 8]
)
def test_invalid_limits_are_rejected_through_a_custom_path(folder, table):
    STORE["bucket/data/x.bag"] = b"abc"
    STORE["bucket/data/x.idx"] = table
    if len(table) == 1:
        assert len(granular.BagReader(folder / "x.bag")) == 0
        STORE["bucket/data/y.bag"] = table
        with pytest.raises(ingot.CorruptFileError):
            granular.BagReader(folder / "y.bag")
        return
    with pytest.raises(ingot.CorruptFileError):
        granular.BagReader(folder / "x.bag")

"""Granular itself, 0.24 in this process and 0.21 in another, beside `ingot.compat.granular`."""

import inspect
import shutil
import tempfile
from pathlib import Path

import granular as real
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingot.compat import granular

SPEC = {"foo": "int", "bar": "utf8", "baz": "msgpack", "abc": "png", "xyz": "array", "raw": "bytes"}
LISTS = {"title": "utf8", "frames": "array[]", "times": "int[]", "words": "utf8[]"}
FEW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def folder():
    found = Path(tempfile.mkdtemp())
    yield found
    shutil.rmtree(found)


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def row(k):
    return {
        "foo": k,
        "bar": f"text {k}",
        "baz": {"a": k, "b": [1.5, None, True]},
        "abc": np.full((6, 8, 3), k, np.uint8),
        "xyz": np.arange(k, dtype=np.float32),
        "raw": bytes([k]) * k or b"-",
    }


def lists(k):
    return {
        "title": f"title {k}",
        "frames": [np.full((2, 3), k + n, np.int16) for n in range(k % 4)],
        "times": list(range(k % 3)),
        "words": ["w"] * (k % 5),
    }


def public_methods(kind):
    return {
        name: list(inspect.signature(item).parameters)
        for name, item in inspect.getmembers(kind, inspect.isfunction)
        if name == "__init__" or not name.startswith("_")
    }


def check_signatures(theirs, ours):
    for name, methods in theirs.items():
        mine = public_methods(getattr(ours, name))
        for method, parameters in methods.items():
            assert method in mine, f"{name}.{method}"
            missing = [one for one in parameters if one not in mine[method]]
            assert not missing, f"{name}.{method}: {missing}"


def test_every_public_name_of_granular_is_there():
    assert {name for name in vars(real) if not name.startswith("_")} <= set(vars(granular))
    assert granular.encoders.keys() == real.encoders.keys()
    assert granular.decoders.keys() == real.decoders.keys()
    for module in ("bag", "dataset", "sharded", "sources", "loader", "utils"):
        theirs, ours = getattr(real, module), getattr(granular, module)
        classes = {
            name: public_methods(item)
            for name, item in vars(theirs).items()
            if inspect.isclass(item)
            and item.__module__ == theirs.__name__
            and name != "SharedArray"
        }
        check_signatures(classes, ours)


def test_every_parameter_of_the_last_old_version_is_there(old):
    for name, methods in old("signatures").items():
        if name not in ("Closing", "SharedArray"):
            home = next(m for m in (granular, granular.bag, granular.sources) if hasattr(m, name))
            check_signatures({name: methods}, home)


def test_new_data_sets_are_the_same_bytes(folder):
    for module, name in ((real, "theirs"), (granular, "ours")):
        with module.DatasetWriter(folder / name, SPEC, module.encoders) as writer:
            for k in range(1, 12):
                assert writer.append(row(k), flush=k % 3 == 0) == k - 1
            assert len(writer) == 11
            writer.flush()
            size = writer.size
        with module.DatasetReader(folder / name, module.decoders) as reader:
            assert reader.size == size
    assert files(folder / "ours") == files(folder / "theirs")


def test_old_data_sets_are_the_same_bytes(old, folder):
    spec = {**SPEC, **LISTS}
    rows = [{**row(k), **lists(k)} for k in range(1, 12)]
    length, size = old("write", str(folder / "theirs"), spec, rows)
    with granular.DatasetWriter(str(folder / "ours"), spec, granular.encoders) as writer:
        for one in rows:
            writer.append(one)
        assert (len(writer), writer.size) == (length, size)
    assert files(folder / "ours") == files(folder / "theirs")


@pytest.mark.parametrize("module", [real, granular])
def test_new_data_sets_are_read_by_both(module, folder):
    with granular.DatasetWriter(folder / "x", SPEC, granular.encoders) as writer:
        for k in range(1, 12):
            writer.append(row(k))
    with module.DatasetReader(folder / "x", module.decoders) as reader:
        assert all(same(reader[k - 1], row(k)) for k in range(1, 12))
        assert same(reader[2:5], {key: [row(k)[key] for k in (3, 4, 5)] for key in sorted(SPEC)})
        assert same(reader[4, ("foo", "bar")], {"foo": 5, "bar": "text 5"})


def test_new_shards_are_read_by_both(folder):
    with granular.ShardedDatasetWriter(folder, {"foo": "int"}, granular.encoders, 4) as writer:
        assert [writer.append({"foo": k}) for k in range(10)] == list(range(10))
        assert (writer.shards, len(writer)) == (3, 10)
    for module in (real, granular):
        with module.ShardedDatasetReader(folder, module.decoders) as reader:
            assert [reader[k]["foo"] for k in range(10)] == list(range(10))
            assert reader[2:9] == {"foo": list(range(2, 9))}
            assert (reader.starts, reader.stops) == ([0, 4, 8], [4, 8, 10])


def test_old_shards_are_read_by_both(old, folder):
    rows = [lists(k) for k in range(10)]
    with granular.ShardedDatasetWriter(folder, LISTS, granular.encoders, 4) as writer:
        for one in rows:
            writer.append(one)
    spec, size, found, available, again = old("read", folder, True)  # noqa: FBT003
    with granular.ShardedDatasetReader(folder, granular.decoders) as reader:
        assert (reader.spec, reader.size) == (spec, size)
        assert [reader.available(k) for k in range(10)] == available
        assert same([reader[k] for k in range(10)], found)
    assert same(found, rows)
    assert same(again, rows)


VALUES = st.fixed_dictionaries(
    {
        "title": st.text(),
        "frames": st.lists(st.binary(max_size=20), max_size=3),
        "times": st.lists(st.integers(-(2**100), 2**100), max_size=4),
        "words": st.lists(st.text(max_size=5), max_size=4),
    }
)
TYPES = {"title": "utf8", "frames": "bytes[]", "times": "int[]", "words": "utf8[]"}


@FEW
@given(st.lists(VALUES, max_size=6))
def test_old_data_sets_of_any_values_are_read_by_both(old, rows):
    with tempfile.TemporaryDirectory() as name:
        with granular.DatasetWriter(f"{name}/x", TYPES, granular.encoders) as writer:
            for one in rows:
                writer.append(one)
        _, size, found, available, again = old("read", f"{name}/x")
        with granular.DatasetReader(f"{name}/x", granular.decoders) as reader:
            assert reader.size == size
            assert [reader[k] for k in range(len(reader))] == found == again == rows
            assert [reader.available(k) for k in range(len(reader))] == available


@FEW
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=30),
            st.integers(-(2**120), 2**120),
            st.integers(-(2**63), 2**63 - 1),
            st.integers(0, 2**64 - 1),
        ),
        max_size=8,
    )
)
def test_new_data_sets_of_any_values_are_read_by_both(rows):
    spec = {"a": "bytes", "b": "int", "c": "i64", "d": "u64"}
    with tempfile.TemporaryDirectory() as name:
        with granular.DatasetWriter(f"{name}/x", spec, granular.encoders) as writer:
            for one in rows:
                writer.append(dict(zip(spec, one, strict=True)), flush=False)
        for module in (real, granular):
            with module.DatasetReader(f"{name}/x", module.decoders) as reader:
                found = [tuple(reader[k][key] for key in spec) for k in range(len(reader))]
                assert found == rows


@FEW
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=10), st.sampled_from([1, 2]))
def test_old_bags_are_the_same_bytes(old, records, version):
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = f"{name}/ours.bag", f"{name}/theirs.bag"
        old("write_bag", theirs, records, version)
        with granular.BagWriter(ours, version) as writer:
            for k, record in enumerate(records):
                assert writer.append(record) == k
            size = writer.size
        assert Path(ours).read_bytes() == Path(theirs).read_bytes()
        assert old("read_bag", ours) == (records, size)
        with granular.BagReader(theirs) as reader:
            assert (list(reader), len(reader), reader.size) == (records, len(records), size)
        with granular.BagReader(theirs, single_file=True) as reader:
            assert list(reader) == records


@FEW
@given(st.lists(st.binary(max_size=40), max_size=10))
def test_new_bags_are_the_same_bytes(records):
    with tempfile.TemporaryDirectory() as name:
        for module, stem in ((granular, "ours"), (real, "theirs")):
            with module.BagWriter(f"{name}/{stem}.bag") as writer:
                for record in records:
                    writer.append(record)
        for suffix in (".bag", ".idx"):
            paths = [Path(name, stem + suffix) for stem in ("ours", "theirs")]
            assert paths[0].read_bytes() == paths[1].read_bytes()
        with granular.BagReader(f"{name}/theirs.bag") as reader:
            assert list(reader) == reader[0 : len(records)] == records


@FEW
@given(st.integers(0, 2**45))
def test_integers_are_the_bytes_of_granular_where_it_has_any(number):
    try:
        theirs = real.encoders["int"](number)
    except OverflowError:
        theirs = None
    ours = granular.encoders["int"](number)
    assert theirs in (None, ours)
    assert real.decoders["int"](ours) == number


def test_types_are_the_bytes_of_granular():
    picture = np.random.default_rng(0).integers(0, 255, (13, 17, 3), np.uint8)
    arrays = [np.zeros((2, 0)), np.array(5, "i2"), np.array(["ab", "c"]), np.arange(6.0), picture]
    for array in arrays:
        ours, theirs = granular.encoders["array"](array), real.encoders["array"](array)
        assert ours == theirs
        assert same(granular.decoders["array"](theirs), real.decoders["array"](ours))
        tree = {"a": [1, (array, "x")], "b": {"c": array}}
        ours, theirs = granular.encoders["tree"](tree), real.encoders["tree"](tree)
        assert ours == theirs
        assert same(granular.decoders["tree"](theirs), real.decoders["tree"](ours))
    for kind in ("jpg", "png"):
        ours, theirs = granular.encoders[kind](picture), real.encoders[kind](picture)
        assert ours == theirs
        assert same(granular.decoders[kind](theirs), real.decoders[kind](ours))


def test_unfinished_granular_files_are_appended_to(folder):
    with real.DatasetWriter(folder / "x", {"foo": "int"}, real.encoders) as writer:
        writer.append({"foo": 1})
    with granular.DatasetWriter(folder / "x", {"foo": "int"}, granular.encoders) as writer:
        assert len(writer) == 1
        assert writer.append({"foo": 2}) == 1
    with real.DatasetWriter(folder / "x", {"foo": "int"}, real.encoders) as writer:
        assert writer.append({"foo": 3}) == 2
    for module in (real, granular):
        with module.DatasetReader(folder / "x", module.decoders) as reader:
            assert reader[0:3] == {"foo": [1, 2, 3]}

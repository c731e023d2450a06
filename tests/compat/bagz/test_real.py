"""Bags beside the real Bagz and Granular."""

import inspect
import itertools

import bagz as real
import granular
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.compat import bagz as ours
from ingot.formats.bag import BagFile, BagReader, BagWriter

EACH = settings(max_examples=60, deadline=None)

record_sets = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.tuples(st.binary(min_size=1, max_size=9), st.integers(0, 3000)).map(
            lambda pair: pair[0] * pair[1]
        ),
    ),
    max_size=40,
)
compressions = st.one_of(
    st.just(("CompressionAutoDetect",)),
    st.just(("CompressionNone",)),
    st.integers(-5, 12).map(lambda level: ("CompressionZstd", level)),
    st.text(min_size=1, max_size=60).map(lambda text: ("CompressionZstd", 0, text)),
)
bounds = st.one_of(st.none(), st.integers(-60, 60))
slices = st.builds(slice, bounds, bounds, st.integers(-9, 9).filter(lambda step: step != 0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bags")


def write(package, path, records, placement, compression):
    kind, *arguments = compression
    options = package.Writer.Options(
        getattr(package.LimitsPlacement, placement), getattr(package, kind)(*arguments)
    )
    with package.Writer(path, options) as writer:
        for record in records:
            writer.write(record)


def reader_of(package, path, placement, compression, **options):
    kind, *arguments = compression
    return package.Reader(
        path,
        package.Reader.Options(
            limits_placement=getattr(package.LimitsPlacement, placement),
            compression=getattr(package, kind)(*arguments),
            max_parallelism=1,
            **options,
        ),
    )


@EACH
@given(
    records=record_sets,
    name=st.sampled_from(["x.bag", "x.bagz", "x.rec"]),
    placement=st.sampled_from(["TAIL", "SEPARATE"]),
    compression=compressions,
)
def test_each_package_reads_what_the_other_writes(folder, records, name, placement, compression):
    contents = []
    for writer, reader in itertools.product((real, ours), repeat=2):
        write(writer, folder / name, records, placement, compression)
        assert reader_of(reader, folder / name, placement, compression).read() == records
        if compression[0] == "CompressionNone":
            contents.append((folder / name).read_bytes())
    assert len(set(contents)) <= 1
    for entry in folder.iterdir():
        entry.unlink()


@EACH
@given(records=record_sets, first=slices, second=slices, index=st.integers(0, 45))
def test_views_match_the_real_package(folder, records, first, second, index):
    path = folder / "views.bagz"
    write(ours, path, records, "TAIL", ("CompressionAutoDetect",))
    views = [reader_of(one, path, "TAIL", ("CompressionAutoDetect",)) for one in (real, ours)]
    views = [view[first][second] for view in views]
    expected = records[first][second]
    for view in views:
        assert (len(view), view.read()) == (len(expected), expected)
        assert reversed(view).read() == expected[::-1]
        assert view.count(b"") == expected.count(b"")
    for read in (lambda view: view[index], lambda view: view.read_indices([index])):
        if index < len(expected):
            assert read(views[0]) == read(views[1])
        else:
            # The real package finds records beyond the end of a view.
            with pytest.raises(IndexError):
                read(views[1])


@EACH
@given(counts=st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_layouts_of_shards_match_the_real_package(folder, counts):
    for k, count in enumerate(counts):
        records = [b"%d/%d" % (k, j) for j in range(count)]
        path = folder / f"s-{k:05}-of-{len(counts):05}.bag"
        write(real, path, records, "TAIL", ("CompressionNone",))
    for layout in ("CONCATENATED", "INTERLEAVED"):
        found = []
        for package in (real, ours):
            options = package.Reader.Options(getattr(package.ShardingLayout, layout))
            try:
                found.append(package.Reader(folder / f"s@{len(counts)}.bag", options).read())
            except ValueError as error:
                found.append("non-increasing" in str(error))
        assert found[0] == found[1]


def test_every_public_name_and_parameter_is_there():
    for name in (name for name in dir(real) if name[0].isupper()):
        theirs, mine = getattr(real, name), getattr(ours, name)
        members = {member for member in dir(theirs) if not member.startswith("_")}
        assert members <= set(dir(mine)), name
        for member in members | {"__init__"}:
            signatures = getattr(getattr(theirs, member), "__nb_signature__", None)
            if signatures is None or name == "ReaderIterator":
                continue
            wanted = _parameters(signatures[0][0])
            found = list(inspect.signature(getattr(mine, member)).parameters)
            assert [one for one in found if one in wanted] == wanted, f"{name}.{member}"
    for options in (real.Reader.Options, real.Writer.Options):
        mine = getattr(ours, options.__qualname__.partition(".")[0]).Options()
        assert {name for name in dir(options) if not name.startswith("_")} <= set(dir(mine))


def _parameters(signature):
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    names = [part.partition(":")[0].strip() for part in inside.split(", ") if ":" in part]
    return [name for name in names if name.isidentifier()]


CALLS = {
    "one": lambda r: r[3],
    "numpy": lambda r: r[np.int64(3)],
    "beyond": lambda r: r[10],
    "float": lambda r: r[1.0],
    "text": lambda r: r["1"],
    "list": lambda r: r[[1]],
    "batch": lambda r: r.read_indices([3, 3, 1]),
    "narrow": lambda r: r.read_indices(np.array([1, 2], np.int32)),
    "strided": lambda r: r.read_indices(np.arange(10)[::2]),
    "two dimensions": lambda r: r.read_indices(np.array([[1]])),
    "no dimension": lambda r: r.read_indices(np.array(1)),
    "set": lambda r: r.read_indices({1}),
    "slice": lambda r: r.read_indices(slice(8, 1, -3)),
    "range": lambda r: r.read_range(8, 2),
    "range beyond": lambda r: r.read_range(8, 3),
    "empty range": lambda r: r.read_range(10, 0),
    "far empty range": lambda r: r.read_range(11, 0),
    "range iterator": lambda r: list(r.read_range_iter(2, 3, read_ahead=1)),
    "range iterator beyond": lambda r: r.read_range_iter(8, 3),
    "positional": lambda r: r.read_range_iter(1, 2, 1),
    "endless": lambda r: list(itertools.islice(r.read_indices_iter(itertools.cycle([2])), 3)),
    "iterator beyond": lambda r: list(r.read_indices_iter([1, 10])),
    "no iterable": lambda r: r.read_indices_iter(5),
    "texts": lambda r: list(r.read_indices_iter(["a"])),
    "zero step": lambda r: r[::0],
    "index": lambda r: r.index(b"3"),
    "index from": lambda r: r.index(b"3", 4),
    "index missing": lambda r: r.index(b"x"),
    "index of text": lambda r: r.index("3"),
    "count": lambda r: r.count(b"3"),
    "contains text": lambda r: "3" in r,
    "bytes of a record": lambda r: r.approximate_bytes_per_record(),
    "state": lambda r: r[1:8:2].__getstate__()[2:],
}
"""Calls whose result, or class of error, is that of the real package."""

REPAIRED = {
    "negative": (lambda r: r[-1], TypeError, b"9"),
    "negative batch": (lambda r: r.read_indices([-1]), TypeError, [b"9"]),
    "negative array": (lambda r: r.read_indices(np.array([-1])), IndexError, [b"9"]),
    "stop": (lambda r: r.index(b"5", 3, 5), 5, ValueError),
    "negative start": (lambda r: r.index(b"5", -9), TypeError, 5),
    "far stop": (lambda r: r.index(b"5", 0, 99), IndexError, 5),
    "no reading ahead": (lambda r: list(r.read_range_iter(1, 2, read_ahead=0)), [], [b"1", b"2"]),
    "floats": (lambda r: r.read_indices(np.array([1.5])), [b"1"], TypeError),
    "mask": (lambda r: r.read_indices(np.array([True])), [b"1"], TypeError),
    "negative range": (lambda r: r.read_range(-1, 1), TypeError, IndexError),
}
"""Calls that differ, with the answer of the real package and ours."""


@pytest.fixture(scope="module")
def readers(folder):
    path = folder / "ten.bag"
    write(real, path, [b"%d" % k for k in range(10)], "TAIL", ("CompressionNone",))
    return [reader_of(one, path, "TAIL", ("CompressionNone",)) for one in (real, ours)]


def outcome(call, reader):
    try:
        return call(reader)
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is compared
        kinds = (IndexError, TypeError, ValueError, KeyError)
        return next(kind for kind in kinds if isinstance(error, kind))


@pytest.mark.parametrize("name", CALLS)
def test_calls_answer_as_the_real_package_does(readers, name):
    assert outcome(CALLS[name], readers[0]) == outcome(CALLS[name], readers[1])


@pytest.mark.parametrize("name", REPAIRED)
def test_calls_that_differ_do_so_as_listed(readers, name):
    call, theirs, mine = REPAIRED[name]
    assert [outcome(call, reader) for reader in readers] == [theirs, mine]


@EACH
@given(records=record_sets)
def test_granular_reads_what_is_written_and_is_read(folder, records):
    path, limits = folder / "g.bag", folder / "g.idx"
    with BagWriter(path, limits) as writer:
        writer.extend(records)
    assert writer.size == path.stat().st_size + limits.stat().st_size
    with granular.BagReader(path) as reader:
        assert reader[0 : len(records)] == records
    assert list(ingot.open(path)) == records
    limits.unlink()

    nonempty = [record for record in records if record]
    with BagWriter(path) as writer:
        writer.extend(nonempty)
    with granular.BagReader(path, single_file=True) as reader:
        assert reader[0 : len(nonempty)] == nonempty
    path.unlink()

    with granular.BagWriter(path) as writer:
        for record in records:
            writer.append(record)
    assert list(BagReader([BagFile(str(path), str(limits))])) == records
    with BagWriter(path, limits, mode="append") as writer:
        assert writer.append(b"more") == len(records)
    with granular.BagWriter(path) as writer:
        assert writer.append(b"and more") == len(records) + 1
    assert list(ingot.open(path)) == [*records, b"more", b"and more"]
    path.unlink()
    limits.unlink()

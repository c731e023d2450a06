"""HDF5 files as data sets: what they hold, read as h5py reads it."""

import hashlib
import json
import math
import pickle

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from tests.formats.hdf5.files import columns, h5py_fields, make
from tests.support import DATA

GOLDEN = DATA / "h5record"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())["files"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


def write(path, datasets, **options):
    with h5py.File(path, "w", **options) as file:
        for name, data in datasets.items():
            file[name] = data
    return ingot.open(path)


def flat(values, above=""):
    """Return dicts inside of dicts as one, with dots in the names."""
    found = {}
    for name, value in values.items():
        is_deep = isinstance(value, dict)
        found |= flat(value, f"{above}{name}.") if is_deep else {above + name: value}
    return found


def plain(value):
    """Return a value so that equal ones are ==: their types, shapes and bytes."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, value.tobytes()
    return value


def golden_bytes(value):
    return value.encode() if isinstance(value, str) else value.tobytes()


def golden_rows(field):
    """Return what the manifest has of each row, and what makes that of a value."""
    if "le_hex" in field:
        return [bytes.fromhex(one) for one in field["le_hex"]], golden_bytes
    if "sha256" in field:
        return field["sha256"], lambda value: hashlib.sha256(golden_bytes(value)).hexdigest()
    return field["values"], lambda value: value if isinstance(value, str) else value.item()


@pytest.mark.parametrize("name", MANIFEST)
def test_golden_files_read_as_their_manifest_says(name):
    told, ds = MANIFEST[name], ingot.open(GOLDEN / name)
    assert len(ds) == told["rows"]
    assert set(ds.spec) == set(told["decoded"])
    rows = list(ds)
    order = np.random.default_rng(7).integers(-len(ds), len(ds), 2 * len(ds))
    order = np.concatenate([order, np.arange(len(ds))])
    batch = ds[order]
    for field, decoded in told["decoded"].items():
        expected, seen = golden_rows(decoded)
        assert [seen(row[field]) for row in rows] == expected
        assert [seen(value) for value in batch[field]] == [expected[k] for k in order]
        whole = b"".join(golden_bytes(row[field]) for row in rows)
        assert hashlib.sha256(whole).hexdigest() == decoded["column_sha256"]
        dtype = decoded["dtype"].removeprefix("vlen:")
        if dtype == "str":
            continue
        shapes = decoded.get("shapes", [decoded.get("shape", [])] * len(ds))
        assert [row[field].size for row in rows] == [math.prod(shape) for shape in shapes]
        assert {str(row[field].dtype) for row in rows} == {dtype}
        if "sha256" not in decoded:
            assert ds.column(field).dtype == dtype
            assert [seen(value) for value in ds.column(field)] == expected
            column = ds.take(order).column(field)
            assert [seen(value) for value in column] == [expected[k] for k in order]


def unlike_first(column):
    each = (plain(column[k : k + 1]) != plain(column[:1]) for k in range(len(column)))
    return np.fromiter(each, bool)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_file_reads_as_h5py_reads_it(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.h5"
    rows = data.draw(st.integers(0, 9), "rows")
    names = ["a", "b", "group/c", "group/deep/er/d"][: data.draw(st.integers(1, 4))]
    made = {name: data.draw(columns(rows)) for name in names}
    libver = data.draw(st.sampled_from(["earliest", "v110", "latest"]))
    userblock, fill = data.draw(st.sampled_from([0, 0, 512])), data.draw(st.sampled_from([0, 1]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30), "seed"))
    expected = {}
    with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
        for name, column in made.items():
            make(file, rng, name, column, fill)
    with h5py.File(path) as file:
        for name in made:
            expected |= h5py_fields(name.replace("/", "."), file[name][:])

    def picked(name, numbers):
        values = expected[name]
        is_array = isinstance(values, np.ndarray)
        return values[np.array(numbers, int)] if is_array else [values[k] for k in numbers]

    def same(part, numbers, names=tuple(expected)):
        assert set(part.spec) == set(names)
        found = [flat(row) for row in part]
        batch = flat(part[range(len(numbers))])
        for name in names:
            values = picked(name, numbers)
            assert plain([row[name] for row in found]) == plain(list(values)), name
            assert plain(list(batch[name])) == plain(list(values)), name
            if part.spec.fields[name].kind == "column":
                assert plain(part.column(name)) == plain(values), name

    every = list(range(rows))
    chosen = data.draw(st.lists(st.integers(-rows, rows - 1), max_size=12)) if rows else []
    numbers = [every[k] for k in chosen]
    part = data.draw(st.slices(rows)) if rows else slice(None)
    names = data.draw(st.lists(st.sampled_from(sorted(expected)), min_size=1, unique=True))
    rest = [name for name in expected if name not in names]
    with ingot.open(path) as ds:
        same(ds, every)
        for name, values in flat(ds[chosen]).items():
            assert plain(list(values)) == plain(list(picked(name, numbers))), name
        same(ds.take(chosen), numbers)
        same(ds[part], every[part])
        same(ds.select(names)[part], every[part], names)
        same(ds.concat(ds.take(chosen)), every + numbers)
        same(ds.split(rows // 2, seed=None)[-1], every[rows // 2 :])
        if rest:
            same(ds.select(names).zip(ds.select(rest)), every)
        for name in (one for one in ds.spec if ds.spec.fields[one].kind == "column"):
            unlike = np.flatnonzero(unlike_first(expected[name])).tolist()
            same(ds.where(unlike_first, name), unlike)


@pytest.mark.parametrize("options", [{}, {"chunks": (2,)}, {"compression": "gzip"}])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", ">f8"])
def test_runs_of_numbers_are_the_same_in_either_byte_order(path, dtype, options):
    with h5py.File(path, "w") as file:
        runs = file.create_dataset("runs", (3,), h5py.vlen_dtype(np.dtype(dtype)), **options)
        for k, run in enumerate([[1, 2, 3], [], [4]]):
            runs[k] = np.array(run, dtype)
    ds = ingot.open(path)
    if "compression" in options and dtype.startswith(">"):
        with pytest.raises(
            ingot.FormatError, match=f"h5py gives wrong numbers for runs of {dtype}"
        ):
            ds[0]
        return
    assert [row["runs"].tolist() for row in ds] == [[1, 2, 3], [], [4]]
    assert [run.tolist() for run in ds[[2, 0]]["runs"]] == [[4], [1, 2, 3]]
    assert ds[0]["runs"].dtype == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize("is_packed", [False, True])
def test_numbers_that_numpy_lacks_are_converted(path, is_packed):
    half = h5py.h5t.IEEE_F32LE.copy()  # bfloat16
    half.set_fields(15, 7, 8, 0, 7)
    half.set_size(2)
    half.set_ebias(127)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if is_packed:
        plist.set_chunk((2,))
        plist.set_deflate(4)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((2,))
        h5py.h5d.create(file.id, b"runs", h5py.h5t.vlen_create(half), space, plist)
        h5py.h5d.create(file.id, b"single", half, space, plist)
        file["runs"][0], file["runs"][1] = np.array([1, 2, 3], "f4"), np.array([0.5], "f4")
        file["single"][:] = [7, 8]
    ds = ingot.open(path)
    assert ds.column("single").tolist() == [7, 8]
    assert [row["runs"].tolist() for row in ds] == [[1, 2, 3], [0.5]]


def test_text_in_chunks_that_are_wider_than_a_row_is_read(path):
    texts = ["a", "bc", "def", "", "gh"]
    with h5py.File(path, "w") as file:
        for name, dtype in {"text": h5py.string_dtype(), "fixed": "S3"}.items():
            options = {"maxshape": (None, None), "chunks": (2, 3)}
            file.create_dataset(name, (5, 1), dtype, **options)[:, 0] = texts
    assert ingot.open(path)[range(5)] == {"fixed": texts, "text": texts}


def test_large_values_share_a_heap_with_small_ones(path):
    texts = ["a", "b" * 70_000, "", "c" * 3_000_000, *(f"row {k}" for k in range(3000))]
    ds = write(path, {"text": texts})
    assert [row["text"] for row in ds] == texts
    order = np.random.default_rng(1).permutation(len(texts))
    assert ds[order]["text"] == [texts[k] for k in order]


@pytest.mark.parametrize("sizes", [(2, 2), (4, 4), (4, 8), (8, 4), (8, 8)])
@pytest.mark.parametrize("strategy", [0, 1, 2, 3])
def test_files_of_any_address_size_and_space_strategy_are_read(path, sizes, strategy):
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(*sizes)
    plist.set_file_space_strategy(strategy, False, 1)  # noqa: FBT003
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist)) as file:
        file["x"], file["text"] = np.arange(5), ["a", "bb", "", "ccc", "d"]
        file.create_dataset("chunked", data=np.arange(5), chunks=(2,))
    found = ingot.open(path)[[4, 1]]
    assert found["text"] == ["d", "bb"]
    assert found["x"].tolist() == found["chunked"].tolist() == [4, 1]


def test_groups_are_fields_with_others_inside(path):
    ds = write(path, {"id": [0, 1], "obs/image": [[1, 2], [3, 4]], "obs/more/text": ["a", "b"]})
    types = {"id": "array(int64)", "obs.image": "array(int64,2)", "obs.more.text": "utf8"}
    assert dict(ds.spec) == types
    assert ds[1]["obs"]["image"].tolist() == [3, 4]
    assert ds[1]["obs"]["more"] == {"text": "b"}
    assert ds.select("obs.more")[0] == {"obs": {"more": {"text": "a"}}}
    assert ds.others == ()


@pytest.mark.parametrize(
    ("lengths", "rows", "others"),
    [
        ({"a": 3, "b": 3, "c": 10}, 3, ["c"]),
        ({"a": 3, "b": 10}, 10, ["a"]),
        ({"a": 3, "b": 10, "c": 10, "d": 3, "e": 99}, 10, ["a", "d", "e"]),
        ({"a": 0, "b": 0, "c": 5}, 5, ["a", "b"]),
        ({"a": 0, "b": 0}, 0, []),
    ],
)
def test_the_number_of_rows_is_that_of_most_data_sets_then_the_largest(path, lengths, rows, others):
    data = {name: np.arange(length) for name, length in lengths.items()}
    ds = write(path, data | {"scalar": 5})
    assert len(ds) == rows
    assert sorted(ds.others) == [*others, "scalar"]
    assert repr(ds).endswith(f"besides {', '.join(ds.others)}>")
    for name in others:
        other = ingot.open(path / name)
        assert other.column(name).tolist() == list(range(lengths[name]))
        assert other.others == ()


def test_a_place_in_a_file_is_opened_by_its_path(path):
    write(path, {"a/b/x": np.arange(3), "a/y": np.arange(3) + 5, "z": np.arange(9)})
    ds = ingot.open(f"{path}/a")
    assert ds.path == f"{path}/a"
    assert [row["y"] + row["b"]["x"] for row in ds] == [5, 7, 9]
    assert ingot.open(path / "a" / "b")[[2, 0]]["x"].tolist() == [2, 0]
    assert ingot.open(f"{path}/a/b/x").column("x").tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(ds))[1]["y"] == 6  # noqa: S301


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("i8", 7),
        (h5py.string_dtype(), "text"),
        ("S4", "abc"),
        ("V4", b"\0ab\0"),
        ([("a", "i4"), ("b", "f8")], {"a": 1, "b": 2.5}),
        (h5py.vlen_dtype(np.dtype("i4")), [1, 2, 3]),
    ],
)
def test_a_single_value_is_a_row_when_it_is_asked_for(path, dtype, value):
    with h5py.File(path, "w") as file:
        given = {bytes: np.void, dict: lambda one: tuple(one.values()), list: np.array}
        one = given.get(type(value), lambda one: one)(value)
        file.create_dataset("one", (), dtype)[()] = one
        file["x"] = [1, 2]
    (row,) = ingot.open(f"{path}/one")
    found = row["one"].tolist() if isinstance(row["one"], np.ndarray) else row["one"]
    assert found == value


@pytest.mark.parametrize("name", ["none", "x/none", "soft"])
def test_a_missing_name_is_reported_with_the_existing_ones(path, name):
    write(path, {"x": [1], "group/y": [2]})
    with h5py.File(path, "a") as file:
        file["soft"] = h5py.SoftLink("/nowhere")
    message = f"^{path}: there is no '{name}', but 'group', 'soft', 'x'$"
    with pytest.raises(ingot.FormatError, match=message) as caught:
        ingot.open(f"{path}/{name}")
    assert type(caught.value) is ingot.FormatError
    assert caught.value.path == str(path)


@pytest.mark.parametrize("name", ["a[0]", "b*", "c@2.d", "e?", "f g"])
def test_a_place_may_have_a_name_that_would_be_a_pattern(path, name):
    write(path, {name: [1, 2], "other": [1, 2, 3]})
    assert flat(ingot.open(f"{path}/{name}")[0]) == {name: 1}


def test_a_dot_in_a_name_is_a_step_down(path):
    assert write(path, {"a.b": [1, 2], "a/c": [3, 4]})[1] == {"a": {"b": 2, "c": 4}}
    ds = write(path, {"a.b": [1, 2], "a/b": [1, 2], "c": [5, 6]})
    assert ds[1] == {"a": {"b": 2}, "c": 6}
    assert len(ds.others) == 1


def test_attributes_are_metadata(path):
    told = {"bool": True, "empty": None, "large": 2**64 - 1, "text": "naïve", "texts": ["u", "v"]}
    with h5py.File(path, "w") as file:
        file["x"], file["group/y"] = [1, 2], [3, 4]
        file["x"].attrs["units"] = "m"
        file["group/y"].attrs["scale"] = [0.5, 2.0]
        file["group"].attrs["inner"] = 1
        file.attrs.update(told | {"empty": h5py.Empty("f4"), "large": np.uint64(2**64 - 1)})
        file.attrs["bytes"] = np.bytes_(b"raw\xff")
        file.attrs["complex"], file.attrs["link"] = 1j, file["x"].ref  # JSON has none of these.
    inside = {"group/y@scale": [0.5, 2.0]}
    others = {"group@inner": 1, "x@units": "m", **inside}
    assert ingot.open(path).metadata == {**told, "bytes": "raw\\xff", **others}
    assert ingot.open(path / "group").metadata == {"inner": 1, **inside}
    assert ingot.open(path / "x").metadata == {"units": "m"}


def test_several_files_are_one_data_set(tmp_path):
    paths = [tmp_path / f"p{k}.h5" for k in range(3)]
    for k, path in enumerate(paths):
        write(path, {"g/x": np.arange(4) + 10 * k, "t": [f"{k}{j}" for j in "abcd"]})
    for source in (tmp_path, f"{tmp_path}/p*.h5", paths):
        ds = ingot.open(source)
        assert ds.column("g.x").tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
        assert ds[[11, 0, -6]]["t"] == ["2d", "0a", "1c"]
    assert ingot.open([paths[2] / "g", paths[0] / "g"])[[0, -1]]["x"].tolist() == [20, 3]
    write(tmp_path / "other.h5", {"z": [1]})
    with pytest.raises(ValueError, match=r"other.h5 has the fields .*'z'"):
        ingot.open([paths[0], tmp_path / "other.h5"])
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"1")
    with pytest.raises(ingot.FormatError, match=r"x.ingot: not an HDF5 file, but .*p0.h5"):
        ingot.open([paths[0], tmp_path / "x.ingot"])


@pytest.mark.parametrize("userblock", [0, 512, 4096])
@pytest.mark.parametrize("name", ["x.hdf5", "X.H5", "x.nc", "plain"])
def test_a_file_is_known_by_its_first_bytes(tmp_path, name, userblock):
    ds = write(tmp_path / name, {"x": [1, 2]}, userblock_size=userblock)
    assert ds.column("x").tolist() == [1, 2]
    assert ingot.open(tmp_path / name / "x")[1] == {"x": 2}


def test_links_to_other_places_are_followed_only_by_name(path, tmp_path):
    write(tmp_path / "other.h5", {"data": np.arange(5) * 100})
    write(path, {"data": np.arange(5), "group/y": np.arange(5) + 50})
    with h5py.File(path, "a") as file:
        file["soft"], file["softer"] = h5py.SoftLink("/data"), h5py.SoftLink("/group")
        file["lost"] = h5py.ExternalLink("none.h5", "/")
        file["outside"] = h5py.ExternalLink("other.h5", "/data")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/")
    assert sorted(ingot.open(path).spec) == ["data", "group.y"]
    assert ingot.open(path / "soft").column("soft").tolist() == [0, 1, 2, 3, 4]
    assert ingot.open(path / "softer").column("y").tolist() == [50, 51, 52, 53, 54]
    for name, other in {"lost": "none", "outside": "other", "elsewhere/data": "other"}.items():
        with pytest.raises(ingot.FormatError, match=rf"{path / name}: .*link to {other}\.h5"):
            ingot.open(path / name)


def test_a_group_may_be_inside_of_itself(path):
    with h5py.File(path, "w") as file:
        group = file.create_group("g")
        group["x"] = np.arange(3)
        group["itself"], group["root"], file["same"] = group, file, group["x"]
    assert ingot.open(path)[1] == {"g": {"x": 1}}
    assert ingot.open(path / "g" / "itself" / "itself" / "x")[2] == {"x": 2}


def test_columns_without_a_field_type_are_listed_as_others(path, tmp_path):
    short = h5py.h5t.STD_I32LE.copy()
    short.set_precision(24)
    short.set_size(3)
    run = np.dtype("i4")
    kinds = {
        "reference": h5py.ref_dtype,
        "region": h5py.regionref_dtype,
        "runs of runs": h5py.vlen_dtype(h5py.vlen_dtype(run)),
        "runs of text": h5py.vlen_dtype(np.dtype("S5")),
        "time": h5py.opaque_dtype(np.dtype("M8[s]")),
    }
    with h5py.File(path, "w") as file:
        file["x"], file["null"], file["pairs"] = [1, 2], h5py.Empty("f4"), [[b"a", b"b"]] * 2
        for name, kind in kinds.items():
            file.create_dataset(name, (2,), kind)
        external = [(str(tmp_path / "x.raw"), 0, 8)]
        file.create_dataset("external", data=np.arange(2, dtype="i4"), external=external)
        for name, kind in {"int24": short, "clock": h5py.h5t.UNIX_D32LE}.items():
            h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((2,)))
        others = sorted(set(file) - {"x"})
        file["type"] = run
    ds = ingot.open(path)
    assert ds[1] == {"x": 2}
    assert sorted(ds.others) == others
    for name in [*others, "type"]:
        with pytest.raises(ingot.FormatError, match=f"{name}: there are no data sets whose rows"):
            ingot.open(path / name)


def test_a_virtual_data_set_has_the_rows_of_its_files(tmp_path):
    layout = h5py.VirtualLayout((4, 2), "i8")
    for k in range(2):
        write(tmp_path / f"part{k}.h5", {"d": np.arange(4).reshape(2, 2) + 10 * k})
        source = h5py.VirtualSource(str(tmp_path / f"part{k}.h5"), "d", (2, 2))
        layout[2 * k : 2 * k + 2] = source
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    ds = ingot.open(tmp_path / "whole.h5", allow_external=True)
    assert ds[[3, 0]]["v"].tolist() == [[12, 13], [0, 1]]
    assert pickle.loads(pickle.dumps(ds))[3]["v"].tolist() == [12, 13]  # noqa: S301
    assert [row["v"].tolist() for row in ds] == [[0, 1], [2, 3], [10, 11], [12, 13]]


def virtual(file, name, *place):
    """Make a virtual data set of four numbers in another place, as `secret.h5`, `d`."""
    layout = h5py.VirtualLayout((4,), "i8")
    layout[:] = h5py.VirtualSource(*place, (4,))
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("way", ["direct", "by itself", "by a link", "unlimited", "external"])
def test_a_virtual_data_set_does_not_leave_its_file_unless_allowed(path, tmp_path, way):
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file.create_dataset("d", data=np.arange(4) + 7, maxshape=(None,), chunks=(2,))
    (tmp_path / "secret.raw").write_bytes((np.arange(4) + 7).tobytes())
    with h5py.File(path, "w") as file:
        if way == "direct":
            virtual(file, "v", secret, "d")
        elif way == "by itself":
            virtual(file, "more/w", secret, "d")
            virtual(file, "v", ".", "/more/w")
        elif way == "by a link":
            file["link"] = h5py.ExternalLink(secret, "/")
            file["soft"] = h5py.SoftLink("link")
            virtual(file, "v", ".", "/soft/d")
        elif way == "unlimited":
            layout = h5py.VirtualLayout((4,), "i8", maxshape=(None,))
            source = h5py.VirtualSource(secret, "d", (4,), maxshape=(None,))
            layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
            file.create_virtual_dataset("v", layout)
        else:
            external = [(str(tmp_path / "secret.raw"), 0, 32)]
            file.create_dataset("w", (4,), "i8", external=external)
            virtual(file, "v", ".", "/w")
    for place in (path, path / "v"):
        with pytest.raises(ingot.FormatError, match=r"secret\.(h5|raw)|link to"):
            ingot.open(place)
    if way != "external":
        assert ingot.open(path / "v", allow_external=True).column("v").tolist() == [7, 8, 9, 10]


def test_a_virtual_data_set_may_gather_values_of_its_own_file(path):
    with h5py.File(path, "w") as file:
        file["parts/a"] = np.arange(4)
        virtual(file, "v", ".", "/parts/a")
    assert ingot.open(path / "v").column("v").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("datasets", [{}, {"one": 5, "two": "text"}])
def test_a_file_without_rows_is_reported(path, datasets):
    listed = ", ".join(map(repr, datasets)) or "nothing"
    message = f"^{path}: there are no data sets whose rows can be read, but {listed}$"
    with pytest.raises(ingot.FormatError, match=message):
        write(path, datasets)


def test_no_rows_are_a_data_set_too(path):
    kinds = {"n": "i4", "s": "S3", "t": h5py.string_dtype(), "v": h5py.vlen_dtype(np.dtype("f4"))}
    with h5py.File(path, "w") as file:
        for name, kind in kinds.items():
            file.create_dataset(name, (0,), kind, maxshape=(None,))
        file.create_dataset("image", (0, 2, 3), "u1")
    ds = ingot.open(path)
    assert (len(ds), list(ds), ds.column("n").tolist()) == (0, [], [])
    found = ds[[]]
    assert found["image"].shape == (0, 2, 3)
    assert found["t"] == found["v"] == found["s"] == []
    assert ds.verify() == ingot.Verification(0, [], ("image", "n", "s", "t", "v"))
    with pytest.raises(IndexError, match="out of range for 0 rows"):
        ds[0]


def test_elements_of_runs_are_picked(path):
    with h5py.File(path, "w") as file:
        runs = file.create_dataset("runs", (3,), h5py.vlen_dtype(np.dtype("i2")))
        for k in range(3):
            runs[k] = np.arange(10 * k, 15 * k)
    ds = ingot.open(path)
    assert ds[2, {"runs": range(3, 6)}]["runs"].tolist() == [23, 24, 25]
    found = ds[[2, 0, 1], {"runs": [range(1), range(9), range(2, 4)]}]["runs"]
    assert [one.tolist() for one in found] == [[20], [], [12, 13]]
    assert [ds.available(k)["runs"] for k in range(3)] == [range(0), range(5), range(10)]

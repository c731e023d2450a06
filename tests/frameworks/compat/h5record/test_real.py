"""H5Record itself beside `ingot.compat.h5record`: the same files, values, types and signatures."""

import hashlib
import inspect
import json
import shutil
import tempfile
from pathlib import Path

import h5py
import h5record as real
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot
from ingot.compat import h5record
from ingot.compat.h5record import (
    FloatSequence,
    H5Dataset,
    Image,
    ImageSequence,
    Integer,
    Sequence,
    String,
)
from tests.compat.h5record.rows import (
    GOLDEN,
    expected,
    row,
    rows,
    same,
    schema,
)
from tests.compat.h5record.test_crash import COLUMNS, failing
from tests.frameworks.compat.h5record.package import write_real

FILES = json.loads((GOLDEN / "manifest.json").read_text())["files"]
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
CLASSES = {name for name, one in vars(real).items() if inspect.isclass(one)} - {"Dataset"}


def golden_schema(name, module=h5record):
    columns = [dict(one) for one in FILES[name]["schema"]]
    return [getattr(module, one.pop("class"))(**one) for one in columns]


def column_bytes(value):
    if isinstance(value, str):
        return value.encode()
    return (value[0] if value.dtype == object else value).tobytes()


@pytest.mark.parametrize("name", FILES)
def test_every_value_of_a_golden_file_is_that_of_the_manifest(name):
    ds = H5Dataset(golden_schema(name), GOLDEN / name)
    assert len(ds) == FILES[name]["rows"]
    found = list(ds)
    for column, told in FILES[name]["decoded"].items():
        values = [one[column] for one in found]
        each = [column_bytes(value) for value in values]
        assert hashlib.sha256(b"".join(each)).hexdigest() == told["column_sha256"]
        if "sha256" in told:
            assert [hashlib.sha256(one).hexdigest() for one in each] == told["sha256"]
        if "le_hex" in told:
            assert [one.hex() for one in each] == told["le_hex"]
        if "values" in told:
            assert values == told["values"]
        if "shapes" in told:
            bare = [value[0] if value.dtype == object else value for value in values]
            assert [list(one.shape) for one in bare] == told["shapes"]
        if told["dtype"].startswith("vlen:"):
            assert {(one.shape, one[0].dtype.name) for one in values} == {((1,), told["dtype"][5:])}
        elif told["dtype"] != "str":
            assert {one.dtype.name for one in values} == {told["dtype"]}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("to_memory", [False, True])
def test_golden_files_give_what_the_real_package_gives(name, to_memory):
    ours = H5Dataset(golden_schema(name), GOLDEN / name, to_memory=to_memory)
    theirs = real.H5Dataset(golden_schema(name, real), GOLDEN / name, to_memory=to_memory)
    assert len(ours) == len(theirs)
    for k in range(len(ours)):
        a, b = ours[k], theirs[k]
        if "img_seq_hw" in b:  # 2 x 3 there is 3 x 2 here, as it was written
            b["img_seq_hw"] = b["img_seq_hw"].reshape(3, 2, 3, -1)
        assert same(b, a), k


@pytest.mark.parametrize("name", FILES)
def test_golden_files_are_appended_to(name, tmp_path):
    path = Path(shutil.copy(GOLDEN / name, tmp_path))
    columns = golden_schema(name)
    before = path.read_bytes()
    first = {
        key: one[0] if isinstance(one, np.ndarray) and one.dtype == object else one
        for key, one in H5Dataset(columns, path)[0].items()
    }
    full = FILES[name]["constructor_kwargs"].get("data_length") == FILES[name]["rows"]
    if full:
        with pytest.raises(ValueError, match=f"at most {FILES[name]['rows']} rows"):
            H5Dataset(columns, path, [first], append_mode=True)
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == [name]
        return
    ours = H5Dataset(columns, path, [first], append_mode=True)
    theirs = real.H5Dataset(golden_schema(name, real), path)
    old = real.H5Dataset(golden_schema(name, real), GOLDEN / name)
    assert len(ours) == len(theirs) == FILES[name]["rows"] + 1
    assert all(same(theirs[k], old[k]) for k in range(len(old)))
    assert same(theirs[len(old)], theirs[0])
    assert same(ours[len(old)], ours[0])


def test_every_class_of_the_real_package_is_there():
    assert {*h5record.__all__} == CLASSES
    for name in CLASSES:
        assert inspect.isclass(getattr(h5record, name))
        theirs = [one.__name__ for one in getattr(real, name).__mro__ if one.__name__ in CLASSES]
        ours = [one.__name__ for one in getattr(h5record, name).__mro__]
        assert set(theirs) <= set(ours), name


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_signatures_match_the_real_package(name):
    theirs, ours = getattr(real, name), getattr(h5record, name)
    for method, function in inspect.getmembers(theirs, inspect.isfunction):
        if method.startswith("_") and method != "__init__":
            continue
        if function.__module__.startswith("h5record"):
            a, b = (
                [
                    (one.name, one.default, one.kind)
                    for one in inspect.signature(f).parameters.values()
                ]
                for f in (function, getattr(ours, method))
            )
            assert a == b, method


@pytest.mark.parametrize("name", sorted(CLASSES - {"Attribute", "AtomicFile", "H5Dataset"}))
def test_attributes_match_the_real_package(name):
    arguments = {"h": 4, "w": 5} if name.startswith("Image") else {}
    theirs, ours = (getattr(module, name)(**arguments) for module in (real, h5record))
    assert ours.__module__ == "ingot.compat.h5record"
    for key, value in vars(theirs).items():
        assert getattr(ours, key) == value
    assert ours.dtype == theirs.dtype
    assert h5py.check_vlen_dtype(np.dtype(ours.dtype)) == h5py.check_vlen_dtype(
        np.dtype(theirs.dtype)
    )


FLOAT32 = st.floats(width=32)
FLOAT16 = st.floats(width=16)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def runs(elements, dtype):
    short = st.lists(elements, max_size=6).map(lambda found: np.array(found, dtype))
    long = st.integers(1000, 3000).map(lambda n: (np.arange(n) % 1000).astype(dtype))
    return st.one_of(short, short, long)


def pixels(*shape):
    seeds = st.integers(0, 2**32 - 1)
    return seeds.map(lambda n: np.random.default_rng(n).integers(0, 256, shape, np.uint8))


SIMPLE = {
    "Integer": st.integers(-(2**63), 2**63 - 1),
    "Float": FLOAT32,
    "Float16": FLOAT16,
    "String": st.one_of(TEXT, st.integers(0, 9000).map(lambda n: "ü" * n)),
    "Sequence": runs(st.integers(-(2**31), 2**31 - 1), np.int32),
    "FloatSequence": runs(FLOAT32, np.float32),
    "Float16Sequence": runs(FLOAT16, np.float16),
}


@st.composite
def tables(draw):
    """Return what makes the schema, in both packages, and rows for it."""
    kinds = draw(
        st.lists(st.sampled_from([*SIMPLE, "Image", "ImageSequence"]), min_size=1, max_size=12)
    )
    columns, values = [], {}
    for n, kind in enumerate(kinds):
        name = f"{kind} {n}"
        sizes = {}
        if kind == "Image":
            sizes = {key: draw(st.integers(1, 9)) for key in "hw"} | {
                "c": draw(st.sampled_from([1, 3, 4]))
            }
            stored = [draw(st.integers(1, sizes[key])) for key in "chw"]
            values[name] = pixels(*stored)
        elif kind == "ImageSequence":
            side = draw(st.integers(1, 5))
            sizes = {"h": side, "w": side}
            values[name] = st.integers(0, 3).flatmap(
                lambda n, side=side: pixels(3 * side * side * n)
            )
        else:
            values[name] = SIMPLE[kind]
        columns.append((kind, {**sizes, "name": name}))
    return columns, draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=4))


def made(columns, module):
    return [getattr(module, kind)(**arguments) for kind, arguments in columns]


@FEW
@given(tables(), st.sampled_from([None, "lzf", "gzip"]), st.sampled_from([None, 0, 3]))
def test_files_written_here_are_read_by_both_packages_and_by_ingot(table, compression, spare):
    columns, data = table
    options = {
        "compression": compression,
        "data_length": None if spare is None else len(data) + spare,
    }
    ours = made(columns, h5record)
    with tempfile.TemporaryDirectory() as folder:
        written = H5Dataset(ours, f"{folder}/x.h5", data, **options)
        found = list(written)
        assert same(expected(ours, data), found)
        with real.H5Dataset(made(columns, real), f"{folder}/x.h5").reader as file:
            theirs = real.H5Dataset(made(columns, real), f"{folder}/x.h5")
            assert same([theirs[k] for k in range(len(theirs))], found)
            assert set(file) == {arguments["name"] for _, arguments in columns}
        over_ingot = H5Dataset(ours, f"{folder}/x.ingot", data, **options)
        assert same(list(over_ingot), found)
        batch = over_ingot[: len(data)]
        for kind, arguments in columns:
            values = batch[arguments["name"]]
            if kind != "ImageSequence":
                assert same(written[: len(data)][arguments["name"]], values)


@FEW
@given(tables(), st.sampled_from([None, "lzf", "gzip"]), st.sampled_from([None, 0, 3]))
def test_files_of_the_real_package_are_read_here(table, compression, spare):
    columns, data = table
    options = {
        "compression": compression,
        "data_length": None if spare is None else len(data) + spare,
    }
    with tempfile.TemporaryDirectory() as folder:
        theirs = write_real(made(columns, real), f"{folder}/x.h5", data, **options)
        found = [theirs[k] for k in range(len(theirs))]
        ours = made(columns, h5record)
        ds = H5Dataset(ours, f"{folder}/x.h5")
        assert same(found, list(ds))
        assert same(found, ds.__getitems__(list(range(len(ds)))))
        assert same(found, list(H5Dataset(ours, f"{folder}/x.h5", to_memory=True)))
        theirs.reader.close()


@pytest.mark.parametrize("compression", [None, "gzip", "lzf", "szip"])
@pytest.mark.parametrize("module", [real, h5record])
def test_images_of_every_compression_are_read_by_both(tmp_path, module, compression):
    pictures = [{"image": row(k)["image"]} for k in range(7)]
    write = write_real if module is real else H5Dataset
    write([module.Image(5, 7)], tmp_path / "x.h5", pictures, compression=compression)
    for reader in (real, h5record):
        ds = reader.H5Dataset([reader.Image(5, 7)], tmp_path / "x.h5")
        assert same([ds[k] for k in range(7)], pictures)
    if module is h5record:
        with h5py.File(tmp_path / "x.h5") as file:
            assert file["image"].compression == compression


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("first", [real, h5record])
def test_rows_are_appended_to_files_of_either_package(tmp_path, first, compression):
    path = tmp_path / "x.h5"
    write = write_real if first is real else H5Dataset
    write(schema(first), path, rows(4), compression=compression, data_length=12)
    ours = H5Dataset(schema(), path, rows(5, start=4), append_mode=True)
    theirs = real.H5Dataset(schema(real), path)
    assert len(ours) == len(theirs) == 9
    assert same(expected(schema(), rows(9)), list(ours))
    assert same(list(ours), [theirs[k] for k in range(9)])


def test_long_files_of_both_packages_are_appended_to_again_and_again(tmp_path):
    path = tmp_path / "x.h5"
    columns = [Integer("i"), String("t"), Sequence("s")]
    data = [
        {"i": k, "t": f"text {k}" * (k % 7), "s": np.arange(k % 5, dtype=np.int32)}
        for k in range(1500)
    ]
    write_real([real.Integer("i"), real.String("t"), real.Sequence("s")], path, data[:40])
    for start, stop in ((40, 41), (41, 700), (700, 1000), (1000, 1500)):
        H5Dataset(columns, path, data[start:stop], append_mode=True, chunk_size=128)
    theirs = real.H5Dataset([real.Integer("i"), real.String("t"), real.Sequence("s")], path)
    assert same([theirs[k] for k in range(1500)], expected(columns, data))
    assert same(list(H5Dataset(columns, path)), expected(columns, data))


def test_short_texts_take_less_room_than_in_files_of_the_real_package(tmp_path):
    data = [{"a": f"sentence {k}", "b": f"another {k}"} for k in range(200)]
    write_real([real.String("a"), real.String("b")], tmp_path / "real.h5", data)
    H5Dataset([String("a"), String("b")], tmp_path / "x.h5", data)
    assert (tmp_path / "x.h5").stat().st_size * 10 < (tmp_path / "real.h5").stat().st_size


def test_films_are_as_high_and_wide_as_they_were_written(tmp_path):
    film = np.arange(3 * 2 * 5 * 4, dtype=np.uint8).reshape(3, 2, 5, 4)
    write_real([real.ImageSequence(2, 5)], tmp_path / "x.h5", [{"img_seq": film.reshape(-1)}] * 2)
    for suffix in ("h5", "ingot"):
        H5Dataset([ImageSequence(2, 5)], tmp_path / f"y.{suffix}", [{"img_seq": film}] * 2)
    for name in ("x.h5", "y.h5", "y.ingot"):
        assert same(H5Dataset([ImageSequence(2, 5)], tmp_path / name)[1], {"img_seq": film})
    grey = ImageSequence(2, 5, c=1)
    ds = H5Dataset([grey], tmp_path / "z.h5", [{"img_seq": film[:1]}])
    assert same(ds[0]["img_seq"], film[:1])


@pytest.mark.parametrize("name", ["a.b", "größe", "two words", "x" * 200, "a'b\"c", "@", "i[]"])
def test_columns_of_any_name_are_read_by_both(tmp_path, name):
    data = [{name: k} for k in range(3)]
    write_real([real.Integer(name)], tmp_path / "x.h5", data)
    H5Dataset([Integer(name)], tmp_path / "y.h5", data)
    for path in (tmp_path / "x.h5", tmp_path / "y.h5"):
        assert real.H5Dataset([real.Integer(name)], path)[2] == {name: 2}
        assert list(H5Dataset([Integer(name)], path)) == data


def test_columns_that_would_be_inside_of_others_are_rejected(tmp_path):
    data = [{"a": k, "a.b": -k} for k in range(3)]
    with pytest.raises(ValueError, match="one would contain the other"):
        H5Dataset([Integer("a"), Integer("a.b")], tmp_path / "x.h5", data)
    write_real([real.Integer("a"), real.Integer("a.b")], tmp_path / "x.h5", data)
    assert list(H5Dataset([Integer("a")], tmp_path / "x.h5")) == [{"a": k} for k in range(3)]


def test_a_file_with_a_shifted_column_is_rejected(tmp_path):
    data = [{"i": k, "f": k} if k != 3 else {"i": k} for k in range(6)]
    write_real([real.Integer("i"), real.Integer("f")], tmp_path / "x.h5", data)
    with pytest.raises(ingot.FormatError, match="has another number of rows"):
        H5Dataset([Integer("i"), Integer("f")], tmp_path / "x.h5")
    with pytest.raises(ingot.FormatError, match="columns of different lengths"):
        H5Dataset(
            [Integer("i"), Integer("f")], tmp_path / "x.h5", [{"i": 1, "f": 1}], append_mode=True
        )


def test_floats_of_old_versions_keep_their_sixteen_bits(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        file.create_dataset("label", data=np.array([0.5, 1.5], "f2"), maxshape=(None,))
    ours = H5Dataset([h5record.Float()], tmp_path / "x.h5")
    theirs = real.H5Dataset([real.Float()], tmp_path / "x.h5")
    assert same([theirs[0], theirs[1]], list(ours))
    assert ours[0]["label"].dtype == np.float16


MANY = [
    slice(1, 3),
    slice(None, None, 3),
    slice(-3, None),
    slice(5, 5),
    [1, 3],
    [],
    [-1],
    np.array([2, 4]),
    torch.tensor([1, 3]),
    np.arange(10) > 4,
    range(2, 4),
]
ONE = [-1, -10, 0, np.int64(2), np.uint8(2), torch.tensor(2), True, np.array(2)]


@pytest.mark.parametrize("suffix", ["h5", "ingot"])
@pytest.mark.parametrize("to_memory", [False, True])
@pytest.mark.parametrize("index", [*ONE, *MANY], ids=str)
def test_indices_that_the_real_package_takes_give_the_same(tmp_path, suffix, to_memory, index):
    def columns(module):
        return [
            module.Integer("i"),
            module.Float("f"),
            module.Image(2, 3, 1),
            module.FloatSequence("s"),
        ]

    data = [
        {"i": k, "f": k / 2, "image": np.full((1, 2, 3), k, np.uint8), "s": np.ones(k, np.float32)}
        for k in range(10)
    ]
    theirs = write_real(columns(real), tmp_path / "real.h5", data)[index]
    H5Dataset(columns(h5record), tmp_path / f"x.{suffix}", data)
    ours = H5Dataset(columns(h5record), tmp_path / f"x.{suffix}", to_memory=to_memory)[index]
    assert same(theirs, ours)


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (10, IndexError),
        (-11, IndexError),
        ([10], IndexError),
        (2.0, TypeError),
        ([1.5], TypeError),
        (np.bool_(1), TypeError),
        ("1", TypeError),
        (None, TypeError),
    ],
    ids=repr,
)
@pytest.mark.parametrize("suffix", ["h5", "ingot"])
@pytest.mark.parametrize("to_memory", [False, True])
def test_indices_that_the_real_package_rejects_are_rejected(
    tmp_path, suffix, to_memory, index, error
):
    data = [{"i": k} for k in range(10)]
    theirs = write_real([real.Integer("i")], tmp_path / "real.h5", data)
    with pytest.raises((IndexError, TypeError, ValueError, OSError)):
        theirs[index]
    ds = H5Dataset([Integer("i")], tmp_path / f"x.{suffix}", data, to_memory=to_memory)
    with pytest.raises(error):
        ds[index]


@pytest.mark.parametrize("suffix", ["h5", "ingot"])
def test_values_can_be_changed_as_in_the_real_package(tmp_path, suffix):
    columns = [Image(2, 2, 1), FloatSequence("s"), ImageSequence(1, 1, 3, "film")]
    data = [
        {"image": np.zeros((1, 2, 2), np.uint8), "s": np.zeros(3, np.float32), "film": [0, 0, 0]}
    ]
    ds = H5Dataset(columns, tmp_path / f"x.{suffix}", data)
    for one in (ds[0], ds.__getitems__([0])[0]):
        one["image"] += 1
        one["s"][0] += 1
        one["film"] += 1
    assert not any(ds[0][key].any() for key in ("image", "film"))
    assert not ds[0]["s"][0].any()


def test_the_real_package_cannot_take_what_is_kept_for_a_file(tmp_path):
    path = tmp_path / "x.h5"
    with pytest.raises(ZeroDivisionError):
        H5Dataset(COLUMNS, path, failing(400, ZeroDivisionError))
    theirs = [real.Integer("i"), real.String("t"), real.Image(2, 2, 1)]
    with pytest.raises(TypeError):
        real.H5Dataset(theirs, path)
    assert not path.exists()

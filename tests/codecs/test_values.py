"""Numbers, arrays, text, msgpack and trees: what comes back, and what is refused."""

import math
import random
import sys

import numpy as np
import pytest

import ingot
from ingot._core import Writer as NativeWriter
from ingot._core import decode_pictures, split_bytes, split_texts, stack_arrays
from ingot.codecs import codec_of


def write(path, spec, rows):
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        writer.extend(rows)
    return ingot.open(path)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_optional_fields_are_lists_whether_or_not_something_is_missing(tmp_path):
    spec = {
        "n": "int?",
        "x": "float?",
        "h": "array(float16)?",
        "v": "array(int8,2)?",
        "a": "array?",
        "s": "utf8?",
        "l": "int[]?",
    }
    row = {
        "n": 3,
        "x": 0.5,
        "h": np.float16(2),
        "v": np.array([1, 2], np.int8),
        "a": np.eye(2),
        "s": "text",
        "l": [1, 2],
    }
    ds = write(tmp_path / "x.ingot", spec, [row, {}, row])
    whole, gaps = ds[[0, 2]], ds[[2, 1, 0]]
    for name, value in row.items():
        assert isinstance(whole[name], list)
        assert isinstance(gaps[name], list)
        assert gaps[name][1] is None
        for found in (*whole[name], gaps[name][0], gaps[name][2], ds[0][name]):
            assert np.array_equal(found, value)
            assert type(found) is type(ds[0][name])
    assert ds.present("n").tolist() == [True, False, True]
    assert ds.column("n").tolist() == [3, 0, 3]
    assert ds[::-1].present("l").tolist() == [True, False, True]
    assert ds[1:].present("s").tolist() == [False, True]
    assert ds.take([1, 0]).where(ds.take([1, 0]).present("n"))[0]["n"] == 3


def test_every_row_has_what_is_not_optional(tmp_path):
    ds = write(tmp_path / "x.ingot", {"n": "int"}, [{"n": 1}, {"n": 2}])
    assert ds.present("n").tolist() == [True, True]
    with pytest.raises(KeyError, match="no field 'm'"):
        ds.present("m")


def test_presence_goes_through_concat_and_zip(tmp_path):
    one = write(tmp_path / "1.ingot", {"a": "int?"}, [{"a": 1}, {}])
    two = write(tmp_path / "2.ingot", {"a": "int?"}, [{}, {"a": 2}])
    other = write(tmp_path / "3.ingot", {"b": "utf8?"}, [{"b": "x"}, {}, {}, {"b": "y"}])
    both = one.concat(two)
    assert both.present("a").tolist() == [True, False, False, True]
    assert both.zip(other)[1:].present("b").tolist() == [False, False, True]
    assert both[[3, 1]]["a"] == [2, None]


def test_all_arrays_can_be_written_to(tmp_path):
    spec = {"a": "array", "f": "array(int16,3)", "l": "float[]"}
    rows = [{"a": np.arange(4.0), "f": [1, 2, 3], "l": [0.5, 1.5]}] * 2
    ds = write(tmp_path / "x.ingot", spec, rows)
    for found in (ds[0], {name: values[0] for name, values in ds[[0, 1]].items()}):
        for value in found.values():
            assert value.flags.writeable
            assert value.flags.aligned
            value[:] = 0
    assert ds[0]["l"].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("kind", ["|b1", "|u1", "<i2", "<f2", "<f4", "<i8", "<c8", "<c16"])
def test_arrays_of_one_type_and_shape_are_stacked(tmp_path, kind):
    rng = np.random.default_rng(0)
    arrays = [(rng.random((3, 0 if k == 7 else 5)) * 9).astype(kind) for k in range(8)]
    ds = write(tmp_path / "x.ingot", {"a": "array"}, [{"a": one} for one in arrays])
    batch = ds[[5, 0, 5, 2]]["a"]
    assert (batch.shape, batch.dtype) == ((4, 3, 5), np.dtype(kind))
    assert batch.flags.c_contiguous
    assert np.array_equal(batch, np.stack([arrays[k] for k in (5, 0, 5, 2)]))
    assert isinstance(ds[[5, 7]]["a"], list)
    assert ds[[7, 7]]["a"].shape == (2, 3, 0)
    assert ds[[]]["a"] == []


def test_numbers_that_do_not_fit_are_rejected(tmp_path):
    spec = {"x": "float", "h": "array(float16,2)", "s": "array(float32,1)", "j": "json"}
    row = {"x": 1.0, "h": [1, 2], "s": [1], "j": None}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        for change, words in (
            ({"x": 10**400}, "row 0: field 'x': the number is too large for 64 bits"),
            ({"h": [1e5, 0]}, "row 0: field 'h': a number is too large for float16"),
            ({"h": [70_000, 0]}, "too large for float16"),
            ({"s": [1e300]}, "too large for float32"),
            ({"j": nested(100_000)}, "row 0: field 'j': the value is nested too deeply"),
        ):
            with pytest.raises(ValueError, match=words):
                writer.append(row | change)
        writer.append(row | {"h": [math.inf, 65_504]})
    ds = ingot.open(tmp_path / "x.ingot")
    assert ds[0]["h"].tolist() == [math.inf, 65_504]


def test_types_that_not_every_machine_has_are_rejected(tmp_path):
    writer = ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "array"})
    for value in (
        np.longdouble(1),
        np.array(["text"]),
        np.array([None]),
        "text",
        np.datetime64(1, "s"),
    ):
        with pytest.raises(TypeError, match="row 0: field 'a': expected an array"):
            writer.append({"a": value})
    writer.abandon()
    with pytest.raises(ValueError, match="bfloat16"):
        codec_of("array(bfloat16,3)")


TREES = [
    None,
    True,
    -(2**80),
    0.1,
    "é\n",
    b"\0\xff",
    [],
    (),
    {},
    math.inf,
    -math.inf,
    {"a": [1, (2, [3, ()])], "array": {"dict": {"tuple": None}}, "": b""},
    np.float32(0.5),
    np.bool_(1),
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.zeros((0, 4)),
    np.array(5),
    {"obs": {"image": np.ones((2, 2, 3), np.uint8)}, "act": (np.float64(1), [np.arange(2)])},
]


def alike(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            alike(found[key], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            alike(one, other)
    elif isinstance(expected, np.ndarray | np.generic):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(found, expected)
    else:
        assert found == expected


def test_trees_come_back_as_they_were(tmp_path):
    rows = [{"t": tree, "all": TREES[:k]} for k, tree in enumerate(TREES)]
    ds = write(tmp_path / "x.ingot", {"t": "tree", "all": "tree[]"}, rows)
    batch = ds[list(range(len(TREES)))]
    for k, tree in enumerate(TREES):
        alike(ds[k]["t"], tree)
        alike(batch["t"][k], tree)
        alike(batch["all"][k], TREES[:k])
    assert math.isnan(codec_of("tree").decode(codec_of("tree").encode(math.nan)))


def test_a_tree_is_stored_as_the_specification_says():
    stored = codec_of("tree").encode({"a": np.array([1, 2], "<u2"), "b": (b"xy", None)})
    text = b'{"dict":{"a":{"array":["<u2",2]},"b":{"tuple":[{"bytes":2},null]}}}'
    assert stored == len(text).to_bytes(4, "little") + text + b"\1\0\2\0xy"


@pytest.mark.parametrize(
    "value", [{1: 2}, {"a": object()}, {1, 2}, [np.array(["a"])], range(3), 1j, "\ud800"]
)
def test_invalid_trees_are_rejected(value):
    with pytest.raises((TypeError, ValueError)):
        codec_of("tree").encode(value)


def test_a_tree_that_is_too_deep_is_rejected():
    with pytest.raises(ValueError, match="too deeply"):
        codec_of("tree").encode(nested(100_000))


def _tree(text, rest=b""):
    return len(text).to_bytes(4, "little") + text + rest


HOSTILE = [
    ("tree", b""),
    ("tree", b"\xff\xff\xff\xff"),
    ("tree", _tree(b"")),
    ("tree", _tree(b"1", b"more")),
    ("tree", _tree(b"[" * 100_000)),
    ("tree", _tree(b"NaN")),
    ("tree", _tree(b"{}")),
    ("tree", _tree(b'{"dict":{},"tuple":[]}')),
    ("tree", _tree(b'{"object":"os.system"}')),
    ("tree", _tree(b'{"array":["|O8",1]}', b"\0" * 8)),
    ("tree", _tree(b'{"array":["<f4",1000000000000]}')),
    ("tree", _tree(b'{"array":["<f4",-1,-1]}', b"abcd")),
    ("tree", _tree(b'{"array":["|u1",0,99999999999999999999]}')),
    ("tree", _tree(b'{"array":["|u1"' + b",1" * 70 + b"]}", b"x")),
    ("tree", _tree(b'{"bytes":-1}')),
    ("tree", _tree(b'{"bytes":9}', b"short")),
    ("tree", _tree(b"\xff")),
    ("msgpack", b""),
    ("msgpack", b"\x92\x01"),
    ("msgpack", b"\x01\x02"),
    ("msgpack", b"\xc1"),
    ("msgpack", b"\x81\x90\x01"),
    ("msgpack", b"\xdd\xff\xff\xff\xff"),
    ("msgpack", b"\xdf\xff\xff\xff\xff"),
    ("msgpack", b"\xc6\xff\xff\xff\xff"),
    ("msgpack", b"\x91" * 100_000 + b"\x01"),
    ("msgpack", b"\xd9\x01\xff"),
    ("msgpack", b"\xc7\x0c\xff" + b"\xff" * 12),
    ("array", b"\x03|u1\x02" + bytes(8) + b"\xff" * 8),
    ("array", b"\x03|u1\x64" + (b"\x01" + bytes(7)) * 100 + b"x"),
    ("array", b"\x03\xff\xff\xff\x00x"),
    ("array", b"\x03|u1\x41" + (b"\x01" + bytes(7)) * 65 + b"x"),
    ("array(float32)[]", b"12345"),
    ("wav", b"RIFF\xff\xff\xff\xffWAVEfmt "),
    ("flac", b"fLaC" + bytes(40)),
    ("mp4", b""),
    ("mp4", b"\0\0\0\x20ftypisom" + bytes(100)),
    ("webp", b"RIFF\x10\0\0\0WEBPVP8 "),
]


@pytest.mark.parametrize(("kind", "data"), HOSTILE)
def test_errors_name_invalid_cells(tmp_path, kind, data):
    path = str(tmp_path / "x.ingot")
    native = NativeWriter(path, "create", "{}", None, 3, False, [("x", "cell", None, kind)])  # noqa: FBT003
    native.append_row([data])
    native.close()
    ds = ingot.open(path)
    for read in (lambda: ds[0], lambda: ds[[0]]):
        with pytest.raises(ingot.FormatError, match=r"x\.ingot: row 0: field 'x' is not valid "):
            read()


def test_damaged_trees_and_arrays_are_decoded_or_rejected():
    rng = random.Random(0)
    for kind, value in (("tree", TREES[-1]), ("array", np.eye(3)), ("msgpack", {"a": [1, b"x"]})):
        stored = codec_of(kind).encode(value)
        for _ in range(400):
            damaged = bytearray(stored)
            for _ in range(rng.randint(1, 3)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            try:
                codec_of(kind).decode(bytes(damaged))
            except ValueError:
                continue


def test_a_cell_of_a_missing_value_is_not_taken_for_another(tmp_path):
    path = str(tmp_path / "x.ingot")
    fields = [("s", "cell", None, "utf8?"), ("s?", "column", 1, "present")]
    native = NativeWriter(path, "create", "{}", None, 3, False, fields)  # noqa: FBT003
    for text, there in ((b"one", b"\1"), (b"lie", b"\0"), (b"two", b"\1")):
        native.append_row([text, there])
    native.close()
    assert ingot.open(path)[[0, 1, 2]]["s"] == ["one", None, "two"]


def test_msgpack(tmp_path):
    values = [None, 0, -(2**63), 2**64 - 1, 1.5, "é", b"\xff", [1, [2]], {"a": 1, 2: b"x"}, True]
    ds = write(tmp_path / "x.ingot", {"m": "msgpack"}, [{"m": value} for value in values])
    assert [row["m"] for row in ds] == values
    assert ds[list(range(len(values)))]["m"] == values
    assert codec_of("msgpack").decode(codec_of("msgpack").encode((1, (2,)))) == [1, [2]]
    for value, kind in ((2**64, ValueError), (object(), TypeError), (nested(5000), ValueError)):
        with pytest.raises(kind):
            codec_of("msgpack").encode(value)


@pytest.mark.parametrize(
    ("kind", "module", "value"),
    [
        ("msgpack", "msgpack", {}),
        ("wav", "soundfile", (np.zeros(3, np.int16), 8000)),
        ("mp4", "av", np.zeros((1, 2, 2, 3), np.uint8)),
        ("webp", "PIL.Image", np.zeros((2, 2, 3), np.uint8)),
    ],
)
def test_a_missing_package_is_named(monkeypatch, kind, module, value):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'ingot-data\["):
        codec_of(kind).encode(value)


def test_native_decoders_reject_offsets_that_lie():
    data = memoryview(b"abcdef")
    for offsets in ([], [1, 6], [0, 7], [0, 4, 2], [0, -1], [0, 2**62]):
        packed = np.array(offsets, np.int64).tobytes()
        for read in (split_bytes, split_texts, stack_arrays):
            with pytest.raises(ValueError, match="offsets"):
                read(data, packed)
        with pytest.raises(ValueError, match="offsets"):
            decode_pictures("png", data, packed)
    assert split_bytes(data, np.array([0, 2, 2, 6]).tobytes()) == [b"ab", b"", b"cdef"]
    assert split_texts(b"", np.array([0, 0]).tobytes()) == [""]

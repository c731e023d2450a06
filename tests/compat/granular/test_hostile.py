"""Folders and records that lie."""

import contextlib
import io
import json
import shutil
import struct
import tracemalloc

import msgpack
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.compat import granular

KINDS = {"a": "utf8[]", "b": "int"}


@pytest.fixture
def folder(tmp_path):
    with granular.DatasetWriter(tmp_path / "x", KINDS, granular.encoders) as writer:
        writer.append({"a": ["x", "y"], "b": 1})
        writer.append({"a": [], "b": 2})
    return tmp_path / "x"


def both_refuse(folder, match):
    with pytest.raises(ingot.FormatError, match=match) as caught:
        ingot.open(folder)
    assert str(folder) in caught.value.path
    with pytest.raises(ingot.FormatError, match=match):
        granular.DatasetReader(folder, granular.decoders)


SPECS = [
    b"",
    b"[]",
    b"{}",
    b"null",
    b'{"a": 1}',
    b'{"a": null}',
    b'{"a": "Int"}',
    b'{"a": ""}',
    b'{"a": "int", "a": "int"}',
    b'{"../a": "int"}',
    b'{"a/../../b": "int"}',
    b'{"a/b": "int"}',
    b'{"a\\\\b": "int"}',
    b'{"a\\u0000b": "int"}',
    b'{"/etc/passwd": "int"}',
    b'{"": "int"}',
    b'{"..": "int"}',
    b'{"A": "int"}',
    b'{"a\\ud800": "int"}',
    b'{"a%s": "int"}' % ("\u2603" * 150).encode(),
    b'{"a\\nb": "int"}',
    b'{"%s": "int"}' % (b"a" * 300),
    b'{"a": "%s"}' % (b"a" * 300),
    b"[" * 100000,
    b'{"a": "int"' + b" " * (2 << 20) + b"}",
    b"\xff\xfe",
]


@pytest.mark.parametrize("content", SPECS, ids=lambda content: repr(content[:20]))
def test_a_specification_that_cannot_be_is_rejected(folder, content):
    (folder / "spec.json").write_bytes(content)
    both_refuse(folder, "specification")


def test_columns_that_do_not_make_rows_are_rejected(folder):
    (folder / "spec.json").write_text(json.dumps({**KINDS, "c": "int"}))
    both_refuse(folder, r"c\.bag is missing")
    (folder / "spec.json").write_text(json.dumps({**KINDS, "refs": "int"}))
    both_refuse(folder, "sequences")
    (folder / "spec.json").write_text(json.dumps({"b": "int", "refs": "bytes"}))
    both_refuse(folder, r"b\.idx is missing")
    (folder / "spec.json").write_text(json.dumps(KINDS))
    (folder / "refs.bag").unlink()
    both_refuse(folder, r"sequences, but refs\.bag is missing")


def put_bag(path, records):
    with granular.BagWriter(path, version=2) as writer:
        for record in records:
            writer.append(record)


REFS = [
    msgpack.packb([[0, 3], 0]),
    msgpack.packb([[0, 2**63], 0]),
    msgpack.packb([[2**64 - 1, 2**64 - 1], 0]),
    msgpack.packb([[0, 2], 9]),
    msgpack.packb([[0, 2]]),
    msgpack.packb([[0, 2], 0, 0]),
    msgpack.packb([0, 0]),
    msgpack.packb([[0, 1], [0, 1]]),
    msgpack.packb([[0], 0]),
    msgpack.packb([[0, 1, 2], 0]),
    msgpack.packb([[-1, 1], 0]),
    msgpack.packb([["x", 1], 0]),
    msgpack.packb([[0, 1.5], 0]),
    msgpack.packb([[0, 2], -1]),
    msgpack.packb([[0, 2], 0]) + b"\0",
    msgpack.packb({"a": 1}),
    b"\xdd\xff\xff\xff\xff",
    b"\x92\xdd\xff\xff\xff\xff",
    b"\x92\x92\xcf",
    b"\x92",
    b"\xc1",
]


@pytest.mark.parametrize("record", REFS, ids=lambda record: record.hex())
def test_invalid_references_are_rejected(folder, record):
    (folder / "refs.bag").unlink()
    put_bag(folder / "refs.bag", [msgpack.packb([[0, 2], 0]), record])
    reader, ds = granular.DatasetReader(folder, granular.decoders), ingot.open(folder)
    assert reader[0] == ds[0] == {"a": ["x", "y"], "b": 1}
    tracemalloc.start()
    for read in (
        lambda: reader[1],
        lambda: reader[0:2],
        lambda: reader.available(1),
        lambda: ds[1],
        lambda: ds[[0, 1]],
    ):
        with pytest.raises(ingot.CorruptFileError, match=r"refs\.bag: record 1") as caught:
            read()
        assert caught.value.record == 1
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert [damage.record for damage in ds.verify().damaged] == [1]


@pytest.mark.parametrize(
    "tail",
    [
        struct.pack("<3Q", 2, 1, 3),
        struct.pack("<3Q", 1, 2**63, 3),
        struct.pack("<3Q", 1, 2, 2**64 - 1),
        struct.pack("<3Q", 1, 2, 100),
        b"\1\2\3",
    ],
    ids=bytes.hex,
)
def test_invalid_limits_are_rejected(tmp_path, tail):
    path = tmp_path / "x.bag"
    path.write_bytes(b"abc" + tail)
    with pytest.raises(ingot.CorruptFileError):
        list(granular.BagReader(path))
    with pytest.raises(ingot.CorruptFileError):
        list(granular.BagReader(path.read_bytes()))
    path.write_bytes(b"abc")
    path.with_suffix(".idx").write_bytes(tail)
    if len(tail) < 8:
        assert list(granular.BagReader(path)) == []
        return
    with pytest.raises(ingot.CorruptFileError):
        list(granular.BagReader(path))


@pytest.mark.parametrize("missing", ["000000", "000001"])
def test_a_missing_shard_is_reported(tmp_path, missing):
    with granular.ShardedDatasetWriter(tmp_path, {"a": "int"}, granular.encoders, 1) as writer:
        for k in range(3):
            writer.append({"a": k})
    shutil.rmtree(tmp_path / missing)
    with pytest.raises(ingot.FormatError, match=f"shard {missing} is missing"):
        granular.ShardedDatasetReader(tmp_path, granular.decoders)
    with pytest.raises(ingot.FormatError):
        ingot.open(tmp_path)


def test_shards_of_different_keys_are_rejected(tmp_path):
    for name, kind in (("000000", "int"), ("000001", "utf8")):
        granular.DatasetWriter(tmp_path / name, {"a": kind}, granular.encoders).close()
    with pytest.raises(ingot.FormatError, match="differ"):
        granular.ShardedDatasetReader(tmp_path, granular.decoders)
    with pytest.raises(ingot.FormatError, match="fields"):
        ingot.open(tmp_path)


def packed(*parts):
    return msgpack.packb(list(parts))


ARRAYS = [
    packed("O", [1], bytes(8)),
    packed("|O", [1], bytes(8)),
    packed("<f4,O", [1], bytes(12)),
    packed("<f4", [2**62, 2**62], b""),
    packed("<f4", [0, 2**63], b""),
    packed("<f4", [-1, -1], bytes(4)),
    packed("<f4", [2], bytes(4)),
    packed("<f4", ["1"], bytes(4)),
    packed("<f4", [True], bytes(4)),
    packed("<f4", 1, bytes(4)),
    packed("<f4", [1], "text"),
    packed("<f4", [0] * 100, b""),
    packed("|V0", [10**9], b""),
    packed("<U0", [10**9], b""),
    packed("<f3", [1], bytes(3)),
    packed("<M8[eons]", [1], bytes(8)),
    packed("<f4", [1]),
    msgpack.packb({"a": 1}),
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\x91" * 5000,
    b"",
    b"\xc1",
]


@pytest.mark.parametrize("data", ARRAYS, ids=lambda data: data[:12].hex())
def test_invalid_arrays_are_rejected(data):
    tracemalloc.start()
    with pytest.raises(ValueError):  # noqa: PT011 -- each says something else
        granular.decoders["array"](data)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("data", ARRAYS[:10], ids=lambda data: data[:12].hex())
def test_invalid_trees_with_arrays_are_rejected(data):
    tree = msgpack.packb({"x": ["_", *msgpack.unpackb(data)]})
    try:
        found = granular.decoders["tree"](tree)
    except ValueError:
        return
    assert found == msgpack.unpackb(tree)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(granular.decoders)), st.binary(max_size=200))
def test_any_bytes_are_decoded_or_rejected(kind, data):
    with contextlib.suppress(ValueError):
        granular.decoders[kind](data)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["jpg", "png", "mp4", "webm", "array", "tree"]), st.data())
def test_damaged_values_are_decoded_or_rejected(kind, data):
    value = VALUES[kind]
    at = data.draw(st.integers(0, len(value) - 1))
    damaged = value[:at] + data.draw(st.binary(max_size=4)) + value[at + 2 :]
    with contextlib.suppress(ValueError):
        granular.decoders[kind](damaged)


def values():
    picture = np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)
    found = {kind: granular.encoders[kind](picture) for kind in ("jpg", "png", "array")}
    found |= {kind: granular.encoders[kind](np.stack([picture] * 3)) for kind in ("mp4", "webm")}
    return found | {"tree": granular.encoders["tree"]({"a": [picture, 1]})}


VALUES = values()


def test_playlists_and_other_formats_are_not_videos(tmp_path):
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(VALUES["mp4"])
    playlist = f"#EXTM3U\n#EXTINF:1,\n{secret}\n#EXT-X-ENDLIST\n".encode()
    concat = f"ffconcat version 1.0\nfile '{secret}'\n".encode()
    for data in (playlist, concat, VALUES["jpg"]):
        with pytest.raises(ValueError, match="cannot read this MP4 or WebM video"):
            granular.decoders["mp4"](data)


def test_pictures_of_other_formats_are_rejected():
    bitmap = io.BytesIO()
    PIL.Image.new("RGB", (2, 2)).save(bitmap, "BMP")
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n"
    for data in (bitmap.getvalue(), postscript):
        with pytest.raises(ValueError, match="cannot read this JPEG or PNG image"):
            granular.decoders["jpg"](data)


def test_videos_of_any_size_round_trip():
    for height, width in ((16, 16), (17, 33)):
        video = np.full((4, height, width, 3), 100, np.uint8)
        for kind in ("mp4", "webm"):
            found = granular.decoders[kind](granular.encoders[kind](video))
            assert found.shape == video.shape
            assert np.abs(found.astype(int) - 100).max() < 8


def test_values_that_would_not_round_trip_are_not_encoded():
    for kind, value, error in (
        ("array", np.array([object()]), TypeError),
        ("msgpack", {(1, 2): 2}, ValueError),
        ("tree", ["_", "<f4", (1,), bytes(4)], ValueError),
        ("tree", {"a": np.array([None])}, TypeError),
        ("utf8", b"x", TypeError),
        ("bytes", "x", TypeError),
        ("jpg", np.zeros((4, 4, 4), np.uint8), ValueError),
        ("mp4", np.zeros((4, 4), np.uint8), TypeError),
    ):
        with pytest.raises(error):
            granular.encoders[kind](value)


def test_a_value_that_cannot_be_decoded_names_its_place(tmp_path):
    with granular.DatasetWriter(tmp_path / "x", {"a": "utf8"}, None) as writer:
        writer.append({"a": b"\xff"})
    for read in (
        lambda: granular.DatasetReader(tmp_path / "x", granular.decoders)[0],
        lambda: ingot.open(tmp_path / "x")[0],
    ):
        with pytest.raises(ingot.FormatError, match="x: row 0: field 'a' is not valid utf8"):
            read()

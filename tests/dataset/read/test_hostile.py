"""Data sets that lie: valid files whose cells, types or names are not what they say."""

import io
import json
import pickle
import resource
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ingot
from ingot._core import Writer as NativeWriter
from ingot.codecs import Pickle


def forge(path, fields, rows):
    """Write a file with any fields and any cells."""
    path.unlink(missing_ok=True)
    writer = NativeWriter(str(path), "create", "{}", None, 3, False, fields)  # noqa: FBT003
    for row in rows:
        writer.append_row(row)
    writer.close()
    return path


def forged(tmp_path, kind, data):
    return ingot.open(forge(tmp_path / "x.ingot", [("x", "cell", None, kind)], [[data]] * 2))


def make(k):
    return {"i": k, "x": {k}}


def test_a_finished_build_is_opened_without_pickle_and_checked(tmp_path):
    folder, spec = tmp_path / "built", {"i": "int", "x": Pickle()}

    def build():
        return ingot.build(folder, make, range(3), spec=spec, workers=0, progress=None)

    build()
    manifest = json.loads((folder / "dataset.json").read_text())
    shard = manifest["shards"][0]

    def replace(fields, rows):
        path = forge(folder / shard["name"], fields, rows)
        others = manifest["shards"][1:]
        lies = {"name": shard["name"], "rows": shard["rows"], "nbytes": path.stat().st_size}
        (folder / "dataset.json").write_text(json.dumps(manifest | {"shards": [lies, *others]}))

    fields = [("i", "column", 8, "int"), ("x", "cell", None, "pickle")]
    trap = b"cos\nsystem\n(S'touch trap'\ntR."
    replace(fields, [[bytes(8), trap]] * shard["rows"])
    with pytest.raises(ingot.FormatError, match="allow_pickle=True"):
        build()[0]
    assert not Path("trap").exists()
    replace(fields, [[bytes(8), trap]] * (shard["rows"] + 1))
    with pytest.raises(ingot.FormatError, match="but the manifest says"):
        build()
    fields = [("i", "column", 8, "float"), ("x", "cell", None, "pickle")]
    replace(fields, [[bytes(8), trap]] * shard["rows"])
    with pytest.raises(ingot.FormatError, match="fields"):
        build()


@pytest.mark.parametrize("name", [".".join("a" * 30_000), "a" * 1_001])
def test_long_names_of_fields_are_rejected(tmp_path, name):
    path = forge(tmp_path / "x.ingot", [(name, "cell", None, "bytes")], [[b"a"]])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ingot.FormatError, match="invalid field name"):
        ingot.open(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize("kind", ["list[" * 3_000 + "x" + "]" * 3_000, "x" + "?" * 4_000 + "y"])
def test_long_names_of_types_are_rejected(tmp_path, kind):
    path = forge(tmp_path / "x.ingot", [("x", "cell", None, kind)], [[b"a"]])
    with pytest.raises(ingot.FormatError, match="unknown type"):
        ingot.open(path)


@pytest.mark.timeout(60)
def test_shapes_of_many_dimensions_are_not_multiplied(tmp_path):
    """To multiply them would take minutes, in which no signal is handled."""
    text = json.dumps({"array": ["<f4", *[2**63] * 400_000]}).encode()
    ds = forged(tmp_path, "tree", len(text).to_bytes(4, "little") + text)
    with pytest.raises(ingot.FormatError, match="invalid shape of 400000 dimensions"):
        ds[0]


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        (",".join("1" * 64), b"a"),
        ("99999999999999999999,0", b""),
        ("9223372036854775807,0", b""),
    ],
)
def test_fixed_shapes_that_cannot_be_stacked_are_lists_or_errors(tmp_path, shape, data):
    ds = forged(tmp_path, f"array(uint8,{shape})", data)
    try:
        assert len(ds[[0, 1]]["x"]) == 2
    except ingot.FormatError as error:
        assert "row 0: field 'x'" in str(error)  # noqa: PT017
    assert len(ds[[]]["x"]) == 0


def png_of(width, height, depth, colour):
    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + pixels + chunk(b"IEND", b"")


def webp_of(side):
    stream = io.BytesIO()
    Image.new("RGB", (side, side)).save(stream, "WEBP", lossless=True, method=0)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("png", png_of(100_000_000, 1, 8, 2)),
        ("png", png_of(10_000, 10_000, 1, 0)),
        ("png", png_of(134_217_729, 1, 8, 6)),
        ("webp", webp_of(8_000)),
    ],
)
def test_small_files_of_huge_pictures_are_rejected(tmp_path, kind, data):
    ds = forged(tmp_path, kind, data)
    for read in (lambda: ds[0], lambda: ds[[0]]):
        with pytest.raises(ingot.FormatError, match=f"row 0: field 'x' is not valid {kind}"):
            read()


def test_whatever_a_pickle_raises_names_row_and_field(tmp_path):
    path = forge(tmp_path / "x.ingot", [("x", "cell", None, "pickle")], [[b"N}R."]])
    with pytest.raises(ingot.FormatError, match="row 0: field 'x' is not valid pickle: TypeError"):
        ingot.open(path, allow_pickle=True)[0]


def test_ranges_beyond_all_numbers_are_cut(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"s": "utf8[]"}) as w:
        w.append({"s": ["a", "b"]})
    ds = ingot.open(tmp_path / "x.ingot")
    assert ds[0, {"s": range(1, 2**70)}] == {"s": ["b"]}
    assert ds[[0], {"s": range(2**70)}] == {"s": [["a", "b"]]}


def test_a_data_set_that_is_replaced_while_it_is_opened_is_there(tmp_path, monkeypatch):
    folder = tmp_path / "x"

    def write(number, **options):
        with ingot.DatasetWriter(folder, {"a": "int"}, **options) as w:
            w.append({"a": number})

    write(1)
    from ingot.dataset.read.directory import Directory  # noqa: PLC0415

    opened = Directory.open
    calls = []

    def replaced(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            write(2, overwrite=True, keep_for=0)
        return opened(*args, **options)

    monkeypatch.setattr(Directory, "open", replaced)
    assert ingot.open(folder)[0] == {"a": 2}
    assert len(calls) == 2


def test_an_unfinished_data_set_is_unpickled(tmp_path):
    writer = ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "int"})
    writer.append({"a": 1})
    writer.flush()
    ds = ingot.open(tmp_path / "x.ingot", partial=True)
    assert pickle.loads(pickle.dumps(ds))[0] == {"a": 1}  # noqa: S301
    writer.close()


def test_small_subsampled_pictures_are_as_others_decode_them(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (17, 4, 3)).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=75, subsampling="4:2:0")
    found = forged(tmp_path, "jpg", stream.getvalue())[0]["x"]
    assert np.array_equal(found, np.asarray(Image.open(stream)))

"""Small files whose values take much memory once they are decoded."""

import io
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from PIL import Image

import ingot
from ingot.codecs import codec_of
from ingot.compat import bagz
from ingot.compat.array_record import array_record_module

LIMIT = 4 << 20
ZEROS = bytes(3 * LIMIT)


@pytest.fixture(autouse=True)
def _limit():
    before = ingot._core.max_decoded_bytes()
    ingot.set_max_decoded_bytes(LIMIT)
    yield
    ingot.set_max_decoded_bytes(before)


def write_ingot(path, records):
    with ingot.Writer(path, compression="zstd") as writer:
        writer.extend(records)


def write_bagz(path, records):
    with bagz.Writer(path) as writer:
        for record in records:
            writer.write(record)


def write_array_record(path, records, options="group_size:1,zstd"):
    writer = array_record_module.ArrayRecordWriter(str(path), options)
    for record in records:
        writer.write(record)
    writer.close()


def write_group(path, records):
    write_array_record(path, records, "group_size:8,zstd")


CONTAINERS = [
    ("x.ingot", write_ingot),
    ("x.bagz", write_bagz),
    ("x.array_record", write_array_record),
]
BOMBS = [*CONTAINERS, ("y.array_record", write_group)]


@pytest.mark.parametrize(("name", "write"), BOMBS, ids=["ingot", "bagz", "array", "group"])
def test_a_record_that_grows_too_much_is_rejected_by_every_read(tmp_path, name, write):
    path = tmp_path / name
    write(path, [ZEROS])
    assert path.stat().st_size < 200_000
    reader = ingot.open(path)
    for read in (
        lambda: reader[0],
        lambda: reader[[0]],
        lambda: reader.read([0]),
        lambda: next(iter(reader)),
        lambda: list(reader[:]),
    ):
        with pytest.raises(ingot.FormatError, match="set_max_decoded_bytes") as caught:
            read()
        assert not isinstance(caught.value, ingot.CorruptFileError)
    ingot.set_max_decoded_bytes(4 * LIMIT)
    assert ingot.open(path)[0] == ZEROS


@pytest.mark.parametrize(("name", "write"), CONTAINERS, ids=["ingot", "bagz", "array"])
def test_a_batch_that_grows_too_much_is_rejected_and_its_records_are_not(tmp_path, name, write):
    write(tmp_path / name, [bytes(LIMIT // 2)] * 3)
    reader = ingot.open(tmp_path / name)
    assert len(reader[[0, 1]]) == 2
    for read in (reader.__getitem__, reader.read):
        with pytest.raises(ingot.FormatError, match="all that is read together"):
            read([0, 1, 2])
    assert [len(record) for record in reader] == [LIMIT // 2] * 3
    assert reader.verify().ok


def test_uncompressed_and_slightly_compressed_records_have_no_limit(tmp_path):
    noise = np.random.default_rng(0).bytes(LIMIT)
    with ingot.Writer(tmp_path / "x.ingot", compression=None) as writer:
        writer.extend([ZEROS, ZEROS])
    assert ingot.open(tmp_path / "x.ingot")[[0, 1]] == [ZEROS, ZEROS]
    write_ingot(tmp_path / "y.ingot", [noise + bytes(50 * LIMIT)])
    assert len(ingot.open(tmp_path / "y.ingot")[0]) == 51 * LIMIT


def jpeg(width, height):
    stream = io.BytesIO()
    Image.new("L", (width, height)).save(stream, "JPEG", progressive=True)
    return stream.getvalue()


def flac(samples):
    stream = io.BytesIO()
    soundfile.write(stream, np.zeros(samples, np.int16), 8000, format="FLAC", subtype="PCM_16")
    return stream.getvalue()


def mp4(frames):
    return codec_of("mp4").encode(np.zeros((frames, 64, 64, 3), np.uint8))


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("json", ("[" + "[]," * (LIMIT // 20) + "0]").encode),
        ("json", lambda: json.dumps(list(range(1000, LIMIT // 30))).encode()),
        ("msgpack", lambda: b"\xdd" + (LIMIT // 50).to_bytes(4) + b"\x90" * (LIMIT // 50)),
        ("tree", lambda: _tree("[" + "[]," * (LIMIT // 20) + "0]")),
        ("jpg", lambda: jpeg(1200, 1200)),
        ("png", lambda: _png(2000, 1000)),
        ("flac", lambda: flac(LIMIT)),
        ("mp4", lambda: mp4(400)),
    ],
)
def test_values_of_every_type_are_limited(kind, make):
    codec, data = codec_of(kind), make()
    assert len(data) < LIMIT // 2
    with pytest.raises(ValueError, match=r"set_max_decoded_bytes|do not fit"):
        codec.decode(data)
    ingot.set_max_decoded_bytes(64 * LIMIT)
    codec.decode(data)


def _tree(text):
    return len(text).to_bytes(4, "little") + text.encode()


def _png(width, height):
    stream = io.BytesIO()
    Image.new("L", (width, height)).save(stream, "PNG")
    return stream.getvalue()


def test_a_batch_of_pictures_is_limited(tmp_path):
    data = jpeg(600, 500)
    with ingot.DatasetWriter(tmp_path / "x", {"a": "jpg"}) as writer:
        writer.extend({"a": data} for _ in range(100))
    ds = ingot.open(tmp_path / "x")
    assert ds[[0, 1]]["a"].shape == (2, 500, 600)


@pytest.mark.parametrize("limit", [-1, 1 << 63])
def test_invalid_limits_are_rejected(limit):
    with pytest.raises(ValueError, match="a number of bytes"):
        ingot.set_max_decoded_bytes(limit)
    with pytest.raises(TypeError):
        ingot.set_max_decoded_bytes("1GB")


def test_iteration_reads_ahead_by_bytes(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression=None, sync=False) as writer:
        writer.extend(itertools.repeat(bytes(40 << 20), 24))
    code = (
        "import ingot, resource, sys\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert len(next(iter(ingot.open(sys.argv[1])))) == 40 << 20\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(after - before)\n"
    )
    for way in ("pread", "uring"):
        outcome = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            check=True,
            capture_output=True,
            text=True,
            env={"INGOT_IO": way},
        )
        assert int(outcome.stdout) < 300_000, way


def test_an_oversized_record_does_not_hide_earlier_ones(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression="zstd") as writer:
        writer.extend([b"a", b"b", ZEROS, b"c"])
    reader = iter(ingot.open(path))
    assert [next(reader), next(reader)] == [b"a", b"b"]
    with pytest.raises(ingot.FormatError, match="record 2"):
        next(reader)


@pytest.mark.parametrize("name", ["INGOT_MAX_DECODED_BYTES", "INGOT_INDEX_BYTES"])
@pytest.mark.parametrize("value", ["1GB", "-1", "1e9", "all", str(1 << 64)])
def test_a_variable_that_is_not_a_number_of_bytes_is_rejected_by_name(
    tmp_path, run_fault, name, value
):
    write_ingot(tmp_path / "x.ingot", [b"x"] * 10)
    outcome = run_fault("digest.py", tmp_path / "x.ingot", env={name: value})
    assert outcome.returncode == 1
    assert f"ValueError: {name}={value}: expected a number of bytes" in outcome.stderr
    for allowed in ("", "0", "1000000000"):
        outcome = run_fault("digest.py", tmp_path / "x.ingot", env={name: allowed})
        assert outcome.returncode == 0, outcome.stderr

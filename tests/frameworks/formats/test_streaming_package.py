"""MDS as Streaming itself writes it."""

import decimal
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ingot

HERE = Path(__file__).parent
PACKAGES = Path(sys.prefix) / "streaming"
ROWS = 60
NUMBERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
REALS = ("float16", "float32", "float64")
COLUMNS = {
    **{name: name for name in (*NUMBERS, *REALS)},
    "int": "int",
    "str_int": "str_int",
    "str_float": "str_float",
    "str_decimal": "str_decimal",
    "str": "str",
    "bytes": "bytes",
    "json": "json",
    "any_array": "ndarray",
    "typed_array": "ndarray:int16",
    "shaped_array": "ndarray:float32:3,2",
    "pil": "pil",
    "jpeg": "jpeg",
    "png": "png",
    "jpegs": "list[jpeg]",
    "pngs": "list[png]",
    "jpeg_array": "jpeg_array",
    "pkl": "pkl",
}


@pytest.fixture(scope="module")
def write():
    """Return a function that has Streaming write samples into a directory."""
    with subprocess.Popen(
        [sys.executable, HERE / "streaming_writer.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
    ) as process:

        def write(folder, columns, samples, **options):
            asked = {"out": str(folder), "columns": columns, **options}
            pickle.dump((asked, samples), process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)  # noqa: S301 -- our own program answers
            if answer is not None:
                raise answer
            return folder

        yield write
        process.stdin.close()


def picture(rng, mode="RGB"):
    """Return an image of any size."""
    height, width = rng.integers(1, 30, 2)
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    return Image.fromarray(rng.integers(0, 256, shape, np.uint8), mode)


def saved(image, kind):
    """Return the file that Pillow makes of an image, as Streaming has it made."""
    stream = io.BytesIO()
    image.save(stream, format=kind)
    return stream.getvalue()


def text(rng, most):
    return "".join(
        map(chr, rng.choice([*range(32, 127), 0xE9, 0x4E2D, 0x1F600], rng.integers(most)))
    )


def sample(k):
    """Return a sample with a value for every column, all of which depend on `k` only."""
    rng = np.random.default_rng(k)
    limits = {name: np.iinfo(name) for name in NUMBERS}
    row = {
        name: rng.integers(one.min, one.max, dtype=name, endpoint=True)
        for name, one in limits.items()
    }
    row |= {name: np.dtype(name).type(rng.standard_normal()) for name in REALS}
    any_type = rng.choice([*NUMBERS, *REALS])
    any_shape = rng.integers(1, 6, rng.integers(1, 4))
    return row | {
        "int": int(rng.integers(-(2**63), 2**63 - 1)),
        "str_int": int(rng.integers(-(2**63), 2**63 - 1)),
        "str_float": float(rng.standard_normal()),
        "str_decimal": decimal.Decimal(int(rng.integers(10**12))) / 1000,
        "str": text(rng, 50),
        "bytes": rng.bytes(rng.integers(300)),
        "json": {"k": k, "list": [None, True, text(rng, 9)], "x": float(rng.random())},
        "any_array": rng.integers(0, 100, any_shape).astype(any_type),
        "typed_array": rng.integers(-999, 999, rng.integers(1, 9, 2)).astype(np.int16),
        "shaped_array": rng.standard_normal((3, 2)).astype(np.float32),
        "pil": picture(rng, rng.choice(["RGB", "L"])),
        "jpeg": picture(rng),
        "png": picture(rng),
        "jpegs": [picture(rng) for _ in range(rng.integers(4))],
        "pngs": [picture(rng) for _ in range(rng.integers(4))],
        "jpeg_array": [saved(picture(rng), "JPEG") for _ in range(rng.integers(1, 4))],
        "pkl": {"k": (k, "any")},
    }


def compare(row, stored, known):
    """Compare a row and what is stored of it with the sample that Streaming was given."""
    assert row.keys() == known.keys()
    for name in (*NUMBERS, *REALS):
        assert row[name] == known[name]
        assert row[name].dtype == known[name].dtype
    for name in ("int", "str_int", "str_float", "str", "bytes", "json", "pkl"):
        assert row[name] == known[name], name
        assert type(row[name]) is type(known[name])
    assert row["str_decimal"] == str(known["str_decimal"])
    for name in ("any_array", "typed_array", "shaped_array"):
        assert row[name].dtype == known[name].dtype
        np.testing.assert_array_equal(row[name], known[name])
    for name in ("pil", "png"):
        np.testing.assert_array_equal(row[name], np.asarray(known[name]))
    assert len(row["pngs"]) == len(known["pngs"])
    for image, expected in zip(row["pngs"], known["pngs"], strict=True):
        np.testing.assert_array_equal(image, np.asarray(expected))
    assert stored["jpeg"] == saved(known["jpeg"], "JPEG")
    assert list(stored["jpegs"]) == [saved(one, "JPEG") for one in known["jpegs"]]
    assert list(stored["jpeg_array"]) == known["jpeg_array"]
    shapes = [image.shape for image in row["jpegs"]]
    assert shapes == [(one.height, one.width, 3) for one in known["jpegs"]]


@pytest.mark.parametrize("compression", [None, "zstd", "zstd:9", "gz", "bz2:9", "br:5", "snappy"])
def test_every_value_of_every_column_comes_out_as_it_went_in(write, tmp_path, compression):
    samples = [sample(k) for k in range(ROWS)]
    options = {"compression": compression, "hashes": ["sha1", "xxh64"], "size_limit": 60_000}
    folder = write(tmp_path / "mds", COLUMNS, samples, **options)
    assert len(list(folder.glob("shard.*"))) > 3
    ds = ingot.open(folder, allow_pickle=True)
    assert len(ds) == ROWS
    for row, stored, known in zip(ds, ds.stored(), samples, strict=True):
        compare(row, stored, known)
    assert ds.verify().damaged == []


def test_random_batches_have_the_rows_that_were_asked_for(write, tmp_path):
    columns = {name: COLUMNS[name] for name in ("int", "str", "shaped_array", "float64")}
    samples = [{name: sample(k)[name] for name in columns} for k in range(ROWS)]
    ds = ingot.open(write(tmp_path / "mds", columns, samples, size_limit=2_000))
    asked = np.random.default_rng(0).integers(0, ROWS, 64)
    batch = ds[asked]
    known = [samples[k] for k in asked]
    assert batch["int"].tolist() == [one["int"] for one in known]
    assert list(batch["str"]) == [one["str"] for one in known]
    np.testing.assert_array_equal(batch["shaped_array"], [one["shaped_array"] for one in known])
    np.testing.assert_array_equal(batch["float64"], [one["float64"] for one in known])

"""The same records, and the same rows, in every container that opens."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

import ingot

RECORDS = [b"", b"first", bytes(range(256)), *(b"record %d" % k * (k % 7) for k in range(40))]
RECORD_FILES = (
    "records.ingot",
    "records.ffr",
    "records.array_record",
    "records.bag",
    "records.bagz",
)
ROW_CONTAINERS = ("rows.ingot", "rows", "rows_granular", "rows.h5")
PACK = "pack.ingot"
ALL = (*RECORD_FILES, *ROW_CONTAINERS, PACK)
NUM_ROWS = 30
SPEC = {"image": "jpg", "label": "int", "caption": "utf8", "box": "array(float32,4)"}


def jpeg(number: int) -> bytes:
    stream = io.BytesIO()
    pixels = np.full((8, 12, 3), number % 256, np.uint8)
    Image.fromarray(pixels).save(stream, "JPEG", quality=17 + number % 70)
    return stream.getvalue()


def rows(count: int = NUM_ROWS) -> list[dict]:
    return [
        {
            "image": jpeg(k),
            "label": k % 3 - 1,
            "caption": f"picture {k} \u00e9",
            "box": np.arange(4, dtype=np.float32) + k,
        }
        for k in range(count)
    ]


def make(folder: Path) -> None:
    """Write all containers."""
    with ingot.Writer(folder / "records.ingot", metadata={"origin": "test"}) as writer:
        writer.extend(RECORDS)
    for name in RECORD_FILES[1:]:
        ingot.convert(folder / "records.ingot", folder / name)
    with ingot.DatasetWriter(folder / "rows", SPEC, shard_rows=12) as writer:
        writer.extend(rows())
    ingot.convert(folder / "rows", folder / "rows.ingot")
    ingot.convert(folder / "rows", folder / "rows_granular", format="granular")
    ingot.convert(folder / "rows", folder / "rows.h5")
    tree = folder / "tree"
    (tree / "sub" / "empty").mkdir(parents=True)
    (tree / "a.txt").write_text("hello")
    (tree / "sub" / "b.bin").write_bytes(bytes(range(200)))
    ingot.pack(tree, folder / PACK)

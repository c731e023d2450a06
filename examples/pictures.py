"""Draw pictures, build a data set of them on all cores, and show what is in it."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import ingot

PICTURES = 2_000
SIZE = 96
SHAPES = ("circle", "square", "triangle")
SPEC = {"image": "jpg", "shape": "int", "caption": "utf8", "corners": "array(float32,2)[]"}
RAMP = " .:-=+*#%@"


def draw(k: int) -> dict[str, Any]:
    """Return a datapoint: one shape on a background that fades."""
    rng = np.random.default_rng(k)
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    left, right = rng.integers(0, 120, (2, 3))
    image = left + (right - left) * x[:, :, None]
    shape = int(rng.integers(len(SHAPES)))
    radius, (cx, cy) = rng.uniform(0.15, 0.3), rng.uniform(0.35, 0.65, 2)
    inside = {
        "circle": (x - cx) ** 2 + (y - cy) ** 2 < radius**2,
        "square": np.maximum(abs(x - cx), abs(y - cy)) < radius,
        "triangle": (y < cy + radius) & (abs(x - cx) < (y - cy + radius) / 2),
    }[SHAPES[shape]]
    image[inside] = rng.integers(170, 256, 3)
    corners = {"circle": 0, "square": 4, "triangle": 3}[SHAPES[shape]]
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    points = np.stack([cx + radius * np.cos(angles), cy + radius * np.sin(angles)], axis=-1)
    return {
        "image": image.astype(np.uint8),
        "shape": shape,
        "caption": f"picture {k}: a {SHAPES[shape]}",
        "corners": points.astype(np.float32),
    }


def shown(image: npt.NDArray[np.uint8], *, coloured: bool) -> list[str]:
    """Return a thumbnail as lines of text."""
    small = image[:: SIZE // 24, :: SIZE // 24].astype(int)
    if not coloured:
        ramp = small[::2].mean(axis=2) * (len(RAMP) - 1) / 255
        return ["".join(RAMP[round(tone)] for tone in line) for line in ramp.tolist()]
    lines = []
    for upper, lower in zip(small[::2], small[1::2], strict=True):
        pairs = zip(upper.tolist(), lower.tolist(), strict=True)
        cells = (
            "\x1b[38;2;{};{};{};48;2;{};{};{}m▀".format(*above, *below) for above, below in pairs
        )
        lines.append("".join(cells) + "\x1b[0m")
    return lines


def show(rows: ingot.Dataset) -> None:
    """Print some rows side by side."""
    coloured = sys.stdout.isatty()
    chosen = [rows[k] for k in range(3)]
    thumbnails = [shown(row["image"], coloured=coloured) for row in chosen]
    for lines in zip(*thumbnails, strict=True):
        print("   ".join(lines))
    print("   ".join(f"{row['caption']:<24}" for row in chosen))


def read(ds: ingot.Dataset) -> None:
    """Read batches at random, decoded, and print the rate."""
    rng = np.random.default_rng(0)
    batches = rng.integers(0, len(ds), (100, 64))
    start = time.perf_counter()
    for batch in batches:
        found = ds[batch, ["image", "shape"]]
    seconds = time.perf_counter() - start
    print(f"random batches of 64, decoded: {batches.size / seconds:,.0f} pictures/s")
    print(f"a batch has images {found['image'].shape} and shapes {found['shape'].shape}")


def main() -> None:
    """Run the demonstration in a temporary directory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "shapes"
        ds = ingot.build(path, draw, range(PICTURES), spec=SPEC, workers=2)
        print(f"built {ds}")
        for name in SHAPES:
            of_shape = ds.where(ds.column("shape") == SHAPES.index(name))
            print(f"\n{len(of_shape)} of {len(ds)} are a {name}, says the index; three of them:")
            show(of_shape)
        print()
        read(ds)
        train, test = ds.split(0.9)
        print(f"split: {len(train)} rows to train, {len(test)} to test")
        print(f"verify: {'every byte is as it was written' if ds.verify().ok else 'damaged'}")


if __name__ == "__main__":
    main()

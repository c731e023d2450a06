# ruff: noqa: INP001
"""Draws docs/images/cli.svg: what `ingot info` prints on a terminal. Run it in a checkout."""

import io
import os
import pty
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

import ingot

TARGET = Path(__file__).parent / "images" / "cli.svg"
WIDTH = 92
SPEC = {
    "image": "png",
    "label": "int",
    "caption": "utf8",
    "frames": "png[]",
    "box": "array(float32,4)",
}


def write(folder: Path) -> None:
    """Write a data set with fields of several kinds."""
    rng = np.random.default_rng(0)
    with ingot.DatasetWriter(folder / "birds", SPEC, shard_rows=400) as writer:
        for k in range(1000):
            images = rng.integers(0, 255, (3, 16, 16, 3), np.uint8)
            row = {"image": images[0], "label": k % 10, "caption": f"a bird of kind {k % 10}"}
            writer.append({**row, "frames": list(images[1:]), "box": np.arange(4) / 4})


def on_terminal(*command: str) -> str:
    """Run a command on a terminal; return what it prints."""
    pieces: list[bytes] = []

    def read(handle: int) -> bytes:
        pieces.append(os.read(handle, 65536))
        return pieces[-1]

    os.environ["COLUMNS"] = str(WIDTH)
    pty.spawn([sys.executable, "-m", *command], read)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def main() -> None:
    """Draw the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
        os.chdir(name)
        for command in (
            "ingot info birds",
            "ingot verify birds --quiet",
            "ingot get birds 7 -f caption",
        ):
            console.print(Text(f"$ {command}", style="green"))
            console.print(Text.from_ansi(on_terminal(*command.split()).replace(f"{name}/", "")))
    TARGET.parent.mkdir(exist_ok=True)
    # A picture loads no fonts from elsewhere: the reader's own will do.
    svg = re.sub(r"@font-face {.*?}", "", console.export_svg(title="ingot"), flags=re.DOTALL)
    TARGET.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()

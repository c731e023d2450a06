"""Open packed folders of FFRecord whose trees are floods of opcodes, in little memory."""

import resource
import sys
from pathlib import Path

import ingot
from ingot.compat.ffrecord import FileWriter

folder = Path(sys.argv[1])
length = 40_000_000
floods = {
    "marks": b"(",
    "dicts": b"}",
    "tuples": b")",
    "memos": b"\x8c\x01a" + b"\x94" * 1000,
    "names": b"\x8c\x01a",
    "entries": b"\x8c\x01a\x94}" + b"(" + b"h\x00K\x00" * 1000 + b"u",
}
for name, opcodes in floods.items():
    with FileWriter(folder / f"{name}.ffr", 2, sync=False) as writer:
        writer.write_one(b"a file")
        writer.write_one(b"piouhjgbr\x80\x04}" + opcodes * (length // len(opcodes)))

in_use = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (in_use + (512 << 20),) * 2)
for name in floods:
    try:
        ingot.PackedFolder(folder / f"{name}.ffr")
    except (MemoryError, ingot.CorruptFileError) as error:
        sys.stdout.write(f"{name}: {type(error).__name__}\n")

"""Make a sparse file whose only record says it has very many bytes, all checksums in order.

With a limit of the address space, reading it must be a MemoryError or a CorruptFileError.
"""

import resource
import struct
import sys

import ingot

path, kind, *wanted = sys.argv[1:]

TABLE = []
for byte in range(256):
    crc = byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    TABLE.append(crc)


def crc32c(*parts):
    crc = 0xFFFFFFFF
    for part in parts:
        for byte in part:
            crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


with ingot.Writer(path) as writer:
    pass
with open(path, "rb") as file:  # noqa: PTH123
    head = file.read()
header = head[: 40 + struct.unpack_from("<I", head, 32)[0]]
file_id = header[16:32]


def sealed(body):
    return body + struct.pack("<I", crc32c(file_id, body))


def trailer(offset, kind, block, previous):
    begin, content = block
    crc = struct.unpack("<I", content[-4:])[0]
    numbers = (offset, begin, len(content), previous[0], 1, 1, 0)
    rest = struct.pack("<7Q3I", *numbers, kind, crc, previous[1])
    return sealed(b"\x89IngEnd\n" + file_id + rest)


base = len(header)
stored, raw = {
    "huge": (1 << 40, 1 << 40),
    "bomb": (8 << 20, (64 << 20) + (8 << 20) * 256),
}[kind]
at = base + stored
flags, codec = (1, 0) if kind == "huge" else (3, 1)
entry = struct.pack("<QI", stored, 0) + (struct.pack("<Q", raw) if kind == "bomb" else b"")
page = sealed(
    struct.pack("<4sHHQQQQII", b"IPAG", flags, 1, at, base, 0, 0, 1, 1)
    + struct.pack("<BBH", codec, 0, 0)
    + entry
)
first = trailer(at + len(page), 1, (at, page), (0, 0))
begin = at + len(page) + len(first)
page_crc, first_crc = (struct.unpack("<I", block[-4:])[0] for block in (page, first))
directory = sealed(
    struct.pack("<4sIQQQ", b"IDIR", 0, begin, 1, len(header))
    + struct.pack("<QIIII", at, len(page), page_crc, 1, 1)
    + header
)
last = trailer(begin + len(directory), 3, (begin, directory), (at + len(page), first_crc))
with open(path, "r+b") as file:  # noqa: PTH123
    file.truncate(base)
    file.seek(at)
    file.write(page + first + directory + last)

reader = ingot.open(path)
assert reader.lengths().tolist() == [raw]
in_use = int(open("/proc/self/statm").read().split()[0]) * 4096  # noqa: PTH123, SIM115
resource.setrlimit(resource.RLIMIT_AS, (in_use + (256 << 20),) * 2)
calls = {
    "one": lambda: reader[0],
    "batch": lambda: reader[[0, 0]],
    "read": lambda: reader.read([0]),
    "iterate": lambda: list(reader),
    "verify": reader.verify,
}
for name in wanted:
    try:
        found = calls[name]()
    except (MemoryError, ingot.FormatError) as error:
        sys.stdout.write(f"{name}: {type(error).__name__}\n")
    else:
        assert not found.ok
        sys.stdout.write(f"{name}: not ok\n")

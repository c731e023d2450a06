"""Riegeli and ArrayRecord files by hand: what is said in them need not be true."""

import struct
from functools import cache

BLOCK = 65_536
USABLE = BLOCK - 24
MAGIC = 0x71930E704FDAE05E
UNSAID = object()
"""In place of a number: the field is left out."""

_MASK = 2**64 - 1
_KEY = (0x2F696C6567656952, 0x0A7364726F636572) * 2
_FIRST = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_SECOND = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)


def _halves_swapped(number):
    return number >> 32 | (number & 0xFFFFFFFF) << 32


def _zip(odd, even):
    """Return what the bytes of two lanes add to two others: even first."""
    a, b = odd.to_bytes(8, "little"), even.to_bytes(8, "little")
    low = bytes([b[3], a[4], b[2], b[5], a[6], b[1], a[7], b[0]])
    high = bytes([a[3], b[4], a[2], a[5], a[1], b[6], a[0], b[7]])
    return int.from_bytes(low, "little"), int.from_bytes(high, "little")


class _State:
    def __init__(self):
        self.mul0, self.mul1 = list(_FIRST), list(_SECOND)
        self.v0 = [first ^ key for first, key in zip(_FIRST, _KEY, strict=True)]
        self.v1 = [second ^ _halves_swapped(key) for second, key in zip(_SECOND, _KEY, strict=True)]

    def update(self, lanes):
        v0, v1, mul0, mul1 = self.v0, self.v1, self.mul0, self.mul1
        for k in range(4):
            v1[k] = (v1[k] + mul0[k] + lanes[k]) & _MASK
            mul0[k] ^= (v1[k] & 0xFFFFFFFF) * (v0[k] >> 32)
            v0[k] = (v0[k] + mul1[k]) & _MASK
            mul1[k] ^= (v0[k] & 0xFFFFFFFF) * (v1[k] >> 32)
        for into, of in ((v0, v1), (v1, v0)):
            for k in (0, 2):
                low, high = _zip(of[k + 1], of[k])
                into[k] = (into[k] + low) & _MASK
                into[k + 1] = (into[k + 1] + high) & _MASK

    def rest(self, data):
        """Take the last 1 to 31 bytes."""
        count, whole = len(data), len(data) & ~3
        self.v0 = [(lane + (count << 32) + count) & _MASK for lane in self.v0]
        for k, lane in enumerate(self.v1):
            parts = (lane & 0xFFFFFFFF, lane >> 32)
            low, high = ((part << count | part >> 32 - count) & 0xFFFFFFFF for part in parts)
            self.v1[k] = low | high << 32
        packet = bytearray(32)
        packet[:whole] = data[:whole]
        if count & 16:
            packet[28:] = data[-4:]
        elif count & 3:
            packet[16:19] = data[whole], data[whole + (count & 3) // 2], data[-1]
        self.update(struct.unpack("<4Q", packet))

    def finish(self):
        for _ in range(4):
            self.update([_halves_swapped(self.v0[k]) for k in (2, 3, 0, 1)])
        return (self.v0[0] + self.v1[0] + self.mul0[0] + self.mul1[0]) & _MASK


@cache
def hash64(data):
    """Return the HighwayHash of bytes with Riegeli's key."""
    state = _State()
    whole = len(data) & ~31
    for lanes in struct.iter_unpack("<4Q", data[:whole]):
        state.update(lanes)
    if data[whole:]:
        state.rest(data[whole:])
    return state.finish()


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    """Return a field of a protocol buffer; none if it is `UNSAID`."""
    if value is UNSAID:
        return b""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def simple(records, *, codec=b"\0", compress=None, sizes=None):
    """Return the data of a simple chunk; `sizes` may be other than those of the records."""
    sizes = b"".join(map(varint, map(len, records) if sizes is None else sizes))
    values = b"".join(records)
    if compress is not None:
        sizes, values = (varint(len(part)) + compress(part) for part in (sizes, values))
    return codec + varint(len(sizes)) + sizes + values


class File:
    """An ArrayRecord file, chunk by chunk.

    Attributes:
        content: What was written so far.
        entries: What the footer will say about each data chunk: offset, bytes, records.
    """

    def __init__(self):
        self.content = bytearray()
        self.entries = []
        self.put(b"s", b"")

    def put(self, kind, data, *, records=0, decoded=0, claimed=None, length=None):
        """Append a chunk; return where it begins. `length` may be other than that of the data."""
        begin = len(self.content)
        length = len(data) if length is None else length
        rest = struct.pack(
            "<QQQQ",
            length,
            hash64(data),
            kind[0] | (records if claimed is None else claimed) << 8,
            decoded,
        )
        header = struct.pack("<Q", hash64(rest)) + rest
        headers = (len(header + data) + (begin + USABLE - 1) % BLOCK) // USABLE
        end = begin + len(header + data) + 24 * headers
        least = begin + records
        end = max(end, least + max(0, -least % BLOCK - (USABLE - 1)))
        self._append(header + data, begin, end)
        self._append(bytes(end - len(self.content)), begin, end)
        del self.content[end:]
        return begin

    def _append(self, data, begin, end):
        while data:
            here = len(self.content)
            if here % BLOCK == 0:
                rest = struct.pack("<QQ", here - begin, end - here)
                self.content += struct.pack("<Q", hash64(rest)) + rest
            room = BLOCK - len(self.content) % BLOCK
            self.content += data[:room]
            data = data[room:]

    def records(self, records, *, data=None, kind=b"r", decoded=None, **claims):
        """Append a data chunk, which the footer will list as it says itself."""
        decoded = sum(map(len, records)) if decoded is None else decoded
        data = simple(records) if data is None else data
        count = len(records)
        begin = self.put(kind, data, records=count, decoded=decoded, **claims)
        self.entries.append((begin, decoded, count))

    def pad(self):
        """Fill the block with zeros, which no chunk has to tell of."""
        self.content += bytes(-len(self.content) % BLOCK)

    def finish(
        self,
        *,
        chunks=None,
        count=None,
        version=1,
        options=b"group_size:1,",
        footer=None,
        magic=MAGIC,
        postscript=None,
        footer_claims=None,
        postscript_claims=None,
    ):
        """Append the footer and the postscript; return the bytes of the file."""
        chunks = len(self.entries) if chunks is None else chunks
        if count is None:
            count = sum(one[2] for one in self.entries if one[2] is not UNSAID)
        about = field(1, version) + field(2, chunks) + field(3, count) + field(4, options)
        listed = [field(1, about)]
        listed += [b"".join(map(field, (1, 2, 3), entry)) for entry in self.entries]
        listed = listed if footer is None else footer
        decoded = sum(map(len, listed))
        claims = {"records": len(listed), "decoded": decoded, **(footer_claims or {})}
        begin = self.put(b"r", claims.pop("data", simple(listed)), **claims)
        self.pad()
        message = field(1, begin) + field(2, magic) if postscript is None else postscript
        claims = {"records": 3, "decoded": 3 * len(message), **(postscript_claims or {})}
        self.put(b"r", claims.pop("data", simple([message] * 3)), **claims)
        self.pad()
        return bytes(self.content)

"""Convert: `convert.py SOURCE TARGET SHARD_BYTES`."""

import sys

import ingot

if __name__ == "__main__":
    source, target, shard_bytes = sys.argv[1:]
    ingot.convert(source, target, shard_bytes=int(shard_bytes), workers=0)

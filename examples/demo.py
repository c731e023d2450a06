"""Write a data set, read it at random, verify it, damage a copy, and show what is reported."""

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ingot

RECORDS = 100_000
BATCH = 64
BATCHES = 2_000


def texts() -> Iterator[bytes]:
    """Yield JSON records such as a crawler or a log would leave."""
    rng = random.Random(0)
    words = ["train", "data", "record", "batch", "shuffle", "token", "image", "label", "shard"]
    for k in range(RECORDS):
        text = " ".join(rng.choices(words, k=60))
        user = f"user-{rng.randrange(10_000)}"
        score = rng.random()
        yield json.dumps({"id": k, "user": user, "text": text, "score": score}).encode()


@contextmanager
def timed(what: str, count: int, nbytes: int) -> Iterator[None]:
    """Print the rate at which the body dealt with `count` records of `nbytes` bytes in all."""
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    print(f"{what:<34}{count / seconds:>12,.0f} records/s{nbytes / seconds / 1e6:>9,.0f} MB/s")


def write(path: Path, records: list[bytes]) -> None:
    """Write the records to a new file."""
    with (
        timed("write, checksums, zstd, synced", len(records), sum(map(len, records))),
        ingot.Writer(path, metadata={"made by": "examples/demo.py"}) as w,
    ):
        w.extend(records)


def read(path: Path, records: list[bytes]) -> None:
    """Read the file in several ways and compare with what was written."""
    start = time.perf_counter()
    r = ingot.open(path)
    print(f"opened {r} in {(time.perf_counter() - start) * 1e3:.2f} ms")
    stats, nbytes = r.stats(), sum(map(len, records))
    print(f"{stats.file_bytes / nbytes:.3f} of the size, index {stats.index_bytes:,} bytes")

    rng = random.Random(1)
    batches = [[rng.randrange(len(r)) for _ in range(BATCH)] for _ in range(BATCHES)]
    some = sum(len(records[k]) for batch in batches for k in batch)
    with timed(f"random batches of {BATCH}", BATCH * BATCHES, some):
        found = [r[batch] for batch in batches]
    if found != [[records[k] for k in batch] for batch in batches]:
        raise SystemExit("the records read are not those written")
    with timed("random, one at a time", BATCH * BATCHES, some):
        for batch in batches:
            for k in batch:
                r[k]
    with timed("in order", len(r), nbytes):
        for _ in r:
            pass
    with timed("verify every checksum", len(r), nbytes):
        verification = r.verify()
    print(f"verified: {verification}")


def damage(path: Path) -> None:
    """Flip one bit of a copy, cut another copy short, and show what is reported."""
    flipped = path.with_name("flipped.ingot")
    shutil.copy(path, flipped)
    with flipped.open("r+b") as file:
        file.seek(1_000_000)
        byte = file.read(1)[0]
        file.seek(1_000_000)
        file.write(bytes([byte ^ 4]))
    r = ingot.open(flipped)
    print("\none bit flipped at offset 1,000,000; verify() says:")
    bad = r.verify().damaged
    for one in bad:
        print(f"  {one}")
    try:
        r[bad[0].record or 0]
    except ingot.CorruptFileError as error:
        print(f"reading that record says:\n  {error}")

    torn = path.with_name("torn.ingot")
    torn.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    print("\nthe last third cut off; open() says:")
    try:
        ingot.open(torn)
    except ingot.UnfinishedFileError as error:
        print(f"  {error}")
    print(f"recover() says:\n  {ingot.recover(torn)}")
    print(f"and then: {ingot.open(torn)}")


def main() -> None:
    """Run the demonstration in a temporary directory."""
    records = list(texts())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "texts.ingot"
        write(path, records)
        read(path, records)
        damage(path)


if __name__ == "__main__":
    main()

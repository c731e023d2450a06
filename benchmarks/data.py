"""The records every system stores: deterministic, made once, kept as raw bytes and their ends."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

_SYLLABLES = (
    "ba be bi bo da de di do fa fe fi ga go ka ke ki ko la le li lo ma me mi mo na ne ni no "
    "pa pe pi po ra re ri ro sa se si so ta te ti to va ve vi za ing ent ion ate ous ment"
)
_SOURCES = ("crawl", "forum", "books", "news", "wiki", "code", "mail", "papers")
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl")


def random_bytes(index: int, size: int) -> bytes:
    """Return the `size` bytes that belong to `index`; they do not compress."""
    return hashlib.shake_128(index.to_bytes(8, "little")).digest(size)


def half_random(index: int) -> bytes:
    """Return 4 KB, one half random and the other one byte repeated."""
    return random_bytes(index, 2048) + bytes([index % 256]) * 2048


@functools.cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Return words of two to four syllables and cumulated weights that fall as in a language."""
    rng = random.Random(0)
    syllables = _SYLLABLES.split()
    words: dict[str, None] = {}
    while len(words) < 20_000:
        words["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 3, 4))))] = None
    weights = itertools.accumulate(1 / (rank + 30) for rank in range(len(words)))
    return list(words), list(weights)


def _turn(rng: random.Random, turn: int, topic: list[str]) -> dict[str, object]:
    """Return one message of a conversation; it comes back to the words of its topic."""
    num_words = rng.randint(15, 29)
    vocabulary, weights = _vocabulary()
    words = rng.choices(vocabulary, cum_weights=weights, k=num_words // 4)
    words += rng.choices(topic, k=num_words - len(words))
    rng.shuffle(words)
    return {
        "id": f"{rng.getrandbits(48):012x}",
        "role": ("user", "assistant")[turn % 2],
        "timestamp": 1_700_000_000 + rng.randrange(10**7),
        "num_tokens": len(words) * 3 // 2,
        "content": " ".join(words).capitalize() + ".",
    }


def json_text(index: int) -> bytes:
    """Return one conversation of a text corpus with its metadata, about 1 KB of JSON."""
    rng = random.Random(index)
    vocabulary, _ = _vocabulary()
    topic = rng.choices(vocabulary, k=22)
    record = {
        "id": hashlib.md5(index.to_bytes(8, "little"), usedforsecurity=False).hexdigest(),
        "source": rng.choice(_SOURCES),
        "language": rng.choice(_LANGUAGES),
        "perplexity": round(rng.uniform(8, 400), 2),
        "tags": rng.sample(vocabulary[:200], k=3),
        "messages": [_turn(rng, turn, topic) for turn in range(rng.randint(3, 4))],
    }
    return json.dumps(record).encode()


def sentence(index: int) -> str:
    """Return nine words of text, about 60 bytes."""
    vocabulary, weights = _vocabulary()
    words = random.Random(index).choices(vocabulary, cum_weights=weights, k=9)
    return " ".join(words).capitalize() + "."


def incompressible(index: int) -> bytes:
    """Return 100 KB of random bytes, as an encoded image would be."""
    return random_bytes(index, 100_000)


def kilobyte(index: int) -> bytes:
    """Return 1 KB of random bytes."""
    return random_bytes(index, 1024)


def word(index: int) -> bytes:
    """Return the eight bytes of `index`."""
    return index.to_bytes(8, "little")


@dataclass(frozen=True)
class Dataset:
    """A named list of records, `size` of them, each a function of its number."""

    name: str
    record: Callable[[int], bytes]
    size: int
    compressed: bool = False

    def resized(self, size: int) -> Dataset:
        """Return the same kind of data with another number of records."""
        return Dataset(self.name, self.record, size, self.compressed)

    def records(self) -> Iterator[bytes]:
        """Yield the records, computed one after the other."""
        return map(self.record, range(self.size))


DATASETS = {
    "4kb": Dataset("4kb", half_random, 100_000),
    "text": Dataset("text", json_text, 100_000, compressed=True),
    "100kb": Dataset("100kb", incompressible, 5_000),
    "1kb": Dataset("1kb", kilobyte, 100_000),
    "words": Dataset("words", word, 1_000_000),
}


def _slice(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


class Source:
    """The records of a data set in a raw file, to write from and to compare with."""

    def __init__(self, dataset: Dataset, directory: Path) -> None:
        """Name the files of `dataset` in `directory`."""
        self.dataset = dataset
        self.path = directory / f"source-{dataset.name}-{dataset.size}.bin"
        self.ends_path = self.path.with_suffix(".npy")

    def prepare(self) -> None:
        """Make the files if they are not there."""
        if self.ends_path.exists():
            return
        sizes = np.zeros(self.dataset.size, np.int64)
        with self.path.open("wb") as file:
            for index, record in enumerate(self.dataset.records()):
                sizes[index] = file.write(record)
        np.save(self.ends_path, np.cumsum(sizes))

    def ends(self) -> np.ndarray:
        """Return the offset at which each record ends."""
        return np.load(self.ends_path)

    def load(self) -> list[bytes]:
        """Return all records in memory."""
        data, ends = self.path.read_bytes(), self.ends().tolist()
        return [data[a:b] for a, b in itertools.pairwise([0, *ends])]

    def some(self, indices: Iterable[int]) -> list[bytes]:
        """Return the records at `indices`."""
        bounds = [0, *self.ends().tolist()]
        with self.path.open("rb") as file:
            return [_slice(file, bounds[index], bounds[index + 1]) for index in indices]

    def payload_bytes(self) -> int:
        """Return the sum of the sizes of the records."""
        return self.path.stat().st_size

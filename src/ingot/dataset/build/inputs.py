"""The inputs of a build, cut into chunks, and the key of a build: what must not change."""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ingot.dataset.build.maker import Task
from ingot.dataset.spec import Spec
from ingot.dataset.write.shards import Options

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_CHUNKS = (16, 256)
_CHUNK = 100
_CHUNK_OF_ITERABLE = 1000
_DIGEST_BYTES = 16


class Inputs:
    """The inputs of a build.

    Args:
        inputs: Any iterable.
        chunk: The number of inputs per chunk; None chooses it by their number.
        key: Returns a text for each input.

    Attributes:
        total: The number of inputs, if it is known beforehand.
        chunk: The number of inputs per chunk.
        num_inputs: The number of inputs seen so far.
        num_chunks: The number of chunks seen so far.
    """

    def __init__(self, inputs: Iterable[Any], chunk: int | None, key: Callable[[Any], str]) -> None:
        self._inputs = inputs
        self._key = key
        self.total = len(inputs) if isinstance(inputs, Sized) else None
        self.chunk = chunk or _chunk(self.total)
        self.num_inputs = self.num_chunks = 0
        self._digest = blake2b(digest_size=_DIGEST_BYTES)

    def tasks(self) -> Iterator[Task]:
        """Yield the chunks, from the first."""
        self.num_inputs = self.num_chunks = 0
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        inputs = iter(self._inputs)
        while found := list(itertools.islice(inputs, self.chunk)):
            digest = blake2b(digest_size=_DIGEST_BYTES)
            for number, one in enumerate(found, self.num_inputs):
                name = self._name(number, one)
                digest.update(b"%d:%b" % (len(name), name))
            task = Task(self.num_chunks, self.num_inputs, found, digest.hexdigest())
            self._digest.update(digest.digest())
            self.num_inputs += len(found)
            self.num_chunks += 1
            yield task

    def _name(self, number: int, one: Any) -> bytes:
        text: Any = self._key(one)
        if not isinstance(text, str):
            raise TypeError(f"key= must return a str, got {type(text).__name__} for input {number}")
        if self._key is repr and _ADDRESS.search(text):
            raise ValueError(
                f"input {number}, {text:.100}, has another repr in every process; pass key=, a "
                "function that returns a text to identify an input"
            )
        encoded: bytes = text.encode("utf-8", "surrogatepass")
        return encoded

    def identity(self) -> dict[str, Any]:
        """Return what identifies the inputs, once all were seen."""
        return {"inputs": self.num_inputs, "digest": self._digest.hexdigest()}


def _chunk(total: int | None) -> int:
    """Return the chunk size: 100, but not too few and not too many chunks."""
    if total is None:
        return _CHUNK_OF_ITERABLE
    fewest, most = _CHUNKS
    return max(1, -(-total // min(max(-(-total // _CHUNK), fewest), most)))


def build_key_of(
    spec: Spec, metadata: str, fn: Callable[[Any], Any], options: Options, source: Inputs
) -> dict[str, Any]:
    """Return the key as JSON values."""
    written = {name: value for name, value in asdict(options).items() if name != "sync"}
    build_key = {
        "fn": _name_of(fn),
        "inputs": source.total,
        "spec": dict(spec),
        "metadata": json.loads(metadata),
        "chunk": source.chunk,
        **written,
    }
    loaded: dict[str, Any] = json.loads(json.dumps(build_key))
    return loaded


def _name_of(fn: Any) -> str:
    if isinstance(fn, functools.partial):
        bound = [*map(repr, fn.args), *(f"{name}={one!r}" for name, one in fn.keywords.items())]
        return f"{_name_of(fn.func)}({', '.join(_ADDRESS.sub('', one) for one in bound)})"
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"


def check_same(path: Path, found: Mapping[str, Any], given: Mapping[str, Any], hint: str) -> None:
    """Refuse to resume a build that has another key, by a ValueError."""
    for name, value in given.items():
        if found.get(name) != value:
            raise ValueError(
                f"{path}: this build has {name} {found.get(name)!r:.100}, got {value!r:.100}; "
                f"{hint}"
            )

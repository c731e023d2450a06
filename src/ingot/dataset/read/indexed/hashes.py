"""Checksums of whole files, as an `index.json` lists them."""

import hashlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ingot.errors import CorruptFileError, FormatError

_STEP = 8 << 20


def check_hashes(path: Path, listed: Mapping[str, str], *, strict: bool) -> Iterator[None]:
    """Compare the checksums of a file with those that are listed, and yield now and then.

    Args:
        path: The file.
        listed: Its checksums, by algorithm.
        strict: Whether an algorithm that is not known here is an error; else it is left out.

    Raises:
        CorruptFileError: A checksum differs.
        FormatError: An algorithm is not known here.
    """
    states = {algorithm: _state(algorithm) for algorithm in listed}
    unknown = [algorithm for algorithm, state in states.items() if state is None]
    if strict and unknown:
        note = "; install xxhash" if unknown[0].startswith("xxh") else ""
        message = f"{path}: its checksum {unknown[0]!r} cannot be computed here{note}"
        raise FormatError(message, str(path))
    known = {algorithm: state for algorithm, state in states.items() if state is not None}
    if not known:
        return
    with path.open("rb") as file:
        while part := file.read(_STEP):
            for state in known.values():
                state.update(part)
            yield
    for algorithm, state in known.items():
        if (digest := state.hexdigest()) != listed[algorithm]:
            message = (
                f"{path}: {algorithm} is {digest}, but {listed[algorithm]} is listed: the file is "
                "damaged; copy it again"
            )
            raise CorruptFileError(message, str(path))


def _state(algorithm: str) -> Any:
    """Return what computes a checksum; None if nothing here does."""
    if algorithm.startswith("xxh"):
        try:
            return getattr(import_module("xxhash"), algorithm)()
        except (ImportError, AttributeError, TypeError):
            return None
    try:
        state = hashlib.new(algorithm, usedforsecurity=False)
    except ValueError:
        return None
    # Those of any length do not say which.
    return state if state.digest_size else None

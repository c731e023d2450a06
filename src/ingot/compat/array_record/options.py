"""The options of ArrayRecord's writers and readers, which it takes as text."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_INT_MAX = 2**31 - 1
_SUFFIXES = {"": 0, "B": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_SIZE = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([BkKMGTPE]?)(?:i?B)?")


class Option(NamedTuple):
    """An option: its valid values, and the function that parses one or raises `ValueError`."""

    valid: str
    parse: Callable[[str], Any]


def _integer(least: int, most: int, *words: str) -> Option:
    def parse(text: str) -> int | None:
        if (text or "(empty)") in words:
            return None
        if re.fullmatch(r"\s*[+-]?\d+\s*", text) is None or not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return Option(", ".join([*words, f"integers in the range [{least}..{most}]"]), parse)


def _size(least: int, most: int) -> Option:
    """Sizes such as 16M, 0.5k and 16MB."""

    def parse(text: str) -> int | None:
        if text == "auto":
            return None
        found = _SIZE.fullmatch(text.strip())
        number = math.inf if found is None else float(found[1]) * 1024.0 ** _SUFFIXES[found[2]]
        if not math.isfinite(number) or not least <= number <= most:
            raise ValueError(text)
        return round(number)

    reals = "integers expressed as reals with optional suffix [BkKMGTPE]"
    return Option(f"auto, {reals}, in the range [{least}..{most}]", parse)


def _choice(words: Mapping[str, Any]) -> Option:
    return Option(", ".join(word or "(empty)" for word in words), words.__getitem__)


_SWITCH = _choice({"": True, "true": True, "false": False})
_WINDOW_LOGS = {"brotli": _integer(10, 30, "auto"), "zstd": _integer(10, 31, "auto")}
_CODECS = ("uncompressed", "brotli", "zstd", "snappy")
_CONFLICTS = {
    "uncompressed": (*_CODECS, "window_log"),
    "brotli": _CODECS,
    "zstd": _CODECS,
    "snappy": (*_CODECS, "window_log"),
    "window_log": ("uncompressed", "snappy"),
}

_WRITER: dict[str, Option] = {
    "default": _choice({"": None}),
    "group_size": _integer(1, _INT_MAX),
    "max_parallelism": _integer(1, _INT_MAX, "auto"),
    "saturation_delay_ms": _integer(1, _INT_MAX),
    "transpose": _SWITCH,
    "transpose_bucket_size": _size(1, 2**64 - 1),
    "uncompressed": _choice({"": None}),
    "brotli": _integer(0, 11, "(empty)"),
    "zstd": _integer(-131072, 22, "(empty)"),
    "snappy": _integer(1, 2, "(empty)"),
    "window_log": _integer(10, 31, "auto"),
    "pad_to_block_boundary": _SWITCH,
}
_READER: dict[str, Option] = {
    "max_parallelism": _integer(0, _INT_MAX, "auto"),
    "readahead_buffer_size": _size(0, 2**30),
    "index_storage_option": _choice(
        {"": "in_memory", "in_memory": "in_memory", "offloaded": "offloaded"}
    ),
    "footer_prefetch_bytes": _size(0, 2**30),
}


def _value(key: str, text: str, option: Option) -> object:
    try:
        return option.parse(text)
    except (ValueError, KeyError):
        found = text or "(empty)"
        message = f"Option {key}: invalid value: {found}, valid values: {option.valid}"
        raise ValueError(message) from None


def _parse(text: str, known: Mapping[str, Option]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in str.split(text, ","):
        key, _, value = item.partition(":")
        if not key and not value:
            continue
        if key not in known:
            message = f"Unknown option {key}, valid options: {', '.join(known)}"
            raise ValueError(message)
        if key in found:
            message = f"Option {key} is present more than once"
            raise ValueError(message)
        if key == "default" and found:
            message = "Option default must be first"
            raise ValueError(message)
        other = next((one for one in found if one in _CONFLICTS.get(key, ())), None)
        if other is not None:
            message = f"Option {key} conflicts with option {other}"
            raise ValueError(message)
        found[key] = _value(key, value, known[key])
    return found


def parse_writer_options(text: str) -> dict[str, Any]:
    """Return the keyword arguments of Ingot's `ArrayRecordWriter` for options given as text.

    Options are separated by commas, as in "group_size:1,zstd:3". Options about threads are
    checked and then ignored: all cores compress.

    Raises:
        ValueError: An option is unknown, present twice, or has an invalid value.
    """
    found = _parse(text, _WRITER)
    codec = next((codec for codec in found if codec in _CODECS), "zstd")
    arguments: dict[str, Any] = {
        "compression": None if codec == "uncompressed" else codec,
        "level": found.get(codec),
    }
    if "window_log" in found:
        log = found["window_log"]
        arguments["window_log"] = _value(
            "window_log", "auto" if log is None else str(log), _WINDOW_LOGS[codec]
        )
    others = ("group_size", "transpose", "transpose_bucket_size", "pad_to_block_boundary")
    return arguments | {key: found[key] for key in others if found.get(key) is not None}


def parse_reader_options(text: str) -> dict[str, Any]:
    """Return the options of a reader by name; those that are "auto" are None.

    Raises:
        ValueError: An option is unknown, present twice, or has an invalid value.
    """
    found = _parse(text, _READER)
    offloaded = found.get("index_storage_option") == "offloaded"
    if offloaded and found.get("footer_prefetch_bytes") != 0:
        message = "footer_prefetch_bytes > 0 is only supported with index_storage_option:in_memory."
        raise ValueError(message)
    return found

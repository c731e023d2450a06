"""`ingot doctor`: what this machine offers, and what is set."""

import os
import platform
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ingot._core import __version__, threads
from ingot.cli.options import AsJson, write_json
from ingot.cli.text import size, table

_PACKAGES = (
    "numpy",
    "typer",
    "rich",
    "torch",
    "jax",
    "grain",
    "tensorflow",
    "apache-beam",
    "fsspec",
    "h5py",
    "pillow",
    "msgpack",
    "soundfile",
    "av",
    "pyarrow",
    "datasets",
)
_FEATURES = ("sse4_2", "pclmulqdq", "avx2", "avx512f", "vpclmulqdq")
_FILES_MIN = 4096
_MEMORY = {"MemTotal": "total", "MemAvailable": "available", "Cached": "page cache"}
_ABSENT = {"limits": "no limit", "packages": "not installed"}
_SETUP = 425
"""The number of the system call `io_uring_setup`, the same on every processor."""


def doctor(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="The place of the data, for its file system.")
    ] = ".",
    as_json: AsJson = False,
) -> None:
    """Show what this machine offers to Ingot.

    Ways to read, limits, memory, the file system, packages, and settings.
    """
    found = examine(Path(path))
    if as_json:
        write_json(found)
        return
    rows = [
        (part, name.removesuffix(" bytes"), _text(part, name, value))
        for part, values in found.items()
        if isinstance(values, dict)
        for name, value in values.items()
    ]
    rows += [("advice", "", one) for one in found["advice"]]
    table(("part", "what", "found"), rows)


def examine(path: Path) -> dict[str, Any]:
    """Return what is found, by part."""
    path.stat()
    limits, reading = _limits(), _reading()
    return {
        "ingot": {"version": __version__, "threads": threads(), "python": _python()},
        "system": {"kernel": platform.release(), "machine": platform.machine(), **_processor()},
        "reading": reading,
        "limits": limits,
        "memory": _memory(),
        "disk": _disk(path),
        "packages": dict(_packages()),
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith("INGOT_")
        },
        "advice": list(_advice(limits, reading)),
    }


def _text(part: str, name: str, value: Any) -> str:
    if value is None:
        return _ABSENT.get(part, "unknown")
    if name.endswith(" bytes"):
        return size(value)
    return f"{value:,}" if type(value) is int else str(value)


def _python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def _processor() -> dict[str, Any]:
    text = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.*)$", text, re.MULTILINE)
    known = set(flags[1].split()) if flags else set()
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return {
        "processor": model[1] if model else platform.processor(),
        "cores": usable,
        "features": " ".join(one for one in _FEATURES if one in known),
    }


def _reading() -> dict[str, str]:
    forced = os.environ.get("INGOT_IO")
    return {"io_uring": _uring(), "forced": forced or "no: chosen by Ingot"}


def _uring() -> str:
    """Ask the system for a ring, without making one: a wrong argument tells whether it would."""
    if sys.platform != "linux":
        return "not on this system"
    import ctypes  # noqa: PLC0415 -- nothing else needs it
    import errno  # noqa: PLC0415

    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(ctypes.c_long(_SETUP), ctypes.c_uint(0), ctypes.c_void_p(None))
    number = ctypes.get_errno()
    if number in {errno.EINVAL, errno.EFAULT}:
        return "available"
    refused = {errno.ENOSYS: "not in this kernel", errno.EPERM: "refused by a filter or a sysctl"}
    return f"{refused.get(number, os.strerror(number))}: files are read with threads"


def _limits() -> dict[str, int | None]:
    kinds = {
        "open files": resource.RLIMIT_NOFILE,
        "locked memory bytes": resource.RLIMIT_MEMLOCK,
        "address space bytes": resource.RLIMIT_AS,
        "file size bytes": resource.RLIMIT_FSIZE,
    }
    found = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
    return {name: None if one == resource.RLIM_INFINITY else one for name, one in found.items()}


def _memory() -> dict[str, int]:
    text = _read("/proc/meminfo")
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE))
    return {
        f"{name} bytes": 1024 * int(found[line]) for line, name in _MEMORY.items() if line in found
    }


def _disk(path: Path) -> dict[str, str | int]:
    whole = path.resolve()
    found: dict[str, str | int] = {"path": str(whole), "file system": _file_system(whole)}
    about = os.statvfs(whole)
    found["free bytes"] = about.f_bavail * about.f_frsize
    found["size bytes"] = about.f_blocks * about.f_frsize
    return found


def _file_system(path: Path) -> str:
    best, kind = -1, "unknown"
    for line in _read("/proc/self/mounts").splitlines():
        _, place, name, *_ = line.split(" ")
        place = place.replace("\\040", " ")
        if path.is_relative_to(place) and len(place) >= best:
            best, kind = len(place), name
    return kind


def _packages() -> Iterator[tuple[str, str | None]]:
    from importlib.metadata import distributions  # noqa: PLC0415 -- the help does not need it

    found = {one.name.lower(): one.version for one in distributions() if one.name}
    for name in _PACKAGES:
        yield name, found.get(name)


def _read(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _advice(limits: dict[str, int | None], reading: dict[str, str]) -> Iterator[str]:
    files = limits.get("open files")
    if files is not None and files < _FILES_MIN:
        yield f"raise the limit of open files from {files:,}: ulimit -n {_FILES_MIN}"
    if reading["io_uring"] != "available":
        yield "cold data are read slower without io_uring; containers allow it with seccomp rules"
    if "INGOT_IO" in os.environ:
        yield "unset INGOT_IO, so that Ingot chooses how to read"
    if os.environ.get("INGOT_DELAY_MS"):
        yield "INGOT_DELAY_MS makes every read wait: unset it"

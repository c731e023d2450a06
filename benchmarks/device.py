"""What the machine did: page cache, bytes read, memory, and the bare device as fio sees it."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

FIO_HINT = "fio is not on the PATH; install the package fio to compare with the bare device"

_libc = ctypes.CDLL(None, use_errno=True)


def evict(files: Iterable[Path]) -> float:
    """Drop `files` from the page cache and return the share of their pages that stayed.

    Pages that any process has mapped stay, so nobody may have the files open.
    """
    resident = pages = 0
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            flags = _page_flags(fd)
        finally:
            os.close(fd)
        resident += sum(flag & 1 for flag in flags)
        pages += len(flags)
    return resident / max(pages, 1)


def _page_flags(fd: int) -> bytes:
    """Return one byte per page of a file, whose lowest bit says that the page is in memory."""
    size = os.fstat(fd).st_size
    if size == 0:
        return b""
    flags = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    # A private writable mapping, because ctypes takes the address of writable buffers only.
    with mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as data:
        first = ctypes.c_char.from_buffer(data)
        failed = _libc.mincore(ctypes.byref(first), ctypes.c_size_t(size), flags)
        del first
    if failed:
        raise OSError(ctypes.get_errno(), "mincore failed")
    return flags.raw


def bytes_read() -> int:
    """Return the bytes this process has asked the kernel for by read calls."""
    return _proc_number(Path("/proc/self/io"), "rchar:")


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    return _proc_number(Path("/proc/self/status"), "VmRSS:") * 1024


def peak_resident_bytes() -> int:
    """Return the most memory this process has had in RAM since `reset_peak`."""
    return _proc_number(Path("/proc/self/status"), "VmHWM:") * 1024


def reset_peak() -> None:
    """Begin to look for the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _proc_number(path: Path, field: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    message = f"{path}: no field {field}"
    raise ValueError(message)


def has_fio() -> bool:
    """Return whether the bare device can be measured."""
    return shutil.which("fio") is not None


def fio_iops(
    files: list[Path], seconds: float, num_jobs: int = 1, *, straddling: bool = False
) -> float:
    """Return the 4 KB random reads a second that fio gets from `files`.

    Direct, io_uring, depth 64 in each job. If `straddling`, each read begins at any sector, as
    that of a record does, and is a sector longer: the device then has two blocks to read.
    """
    shape = ["--bs=4608", "--blockalign=512"] if straddling else ["--bs=4k"]
    random = ["--rw=randread", "--norandommap", "--iodepth=64", f"--numjobs={num_jobs}", *shape]
    return float(_fio(files, seconds, random)["iops"])


def fio_sequential(path: Path, seconds: float) -> float:
    """Return the bytes a second that fio gets from `path` front to end.

    Direct, io_uring, 1 MB, depth 8.
    """
    return float(_fio([path], seconds, ["--rw=read", "--bs=1m", "--iodepth=8"])["bw_bytes"])


def _fio(files: list[Path], seconds: float, how: list[str]) -> dict[str, float]:
    """Return what fio says about reads from `files`."""
    names = ":".join(map(str, files))
    options = [
        "--name=read", f"--filename={names}", "--readonly", "--direct=1", "--ioengine=io_uring",
        "--file_service_type=random",
        "--time_based", f"--runtime={max(1, round(seconds))}", "--group_reporting",
        "--output-format=json",
    ]  # fmt: skip
    result = subprocess.run(["fio", *options, *how], capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(result.stdout)["jobs"][0]["read"]
    return found

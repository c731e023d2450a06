"""Worker processes: they end with their parent, and what goes wrong in them reaches it."""

import multiprocessing
import os
import pickle
import signal
import threading
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

GUARD = 'put what the script runs under if __name__ == "__main__":'


def settle_in() -> None:
    """Prepare a worker process: Ctrl-C is its parent's to handle, and it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def check_imported() -> None:
    """Refuse to start processes from one that still imports the main script, as spawned ones do.

    Raises:
        RuntimeError: It does.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "a worker process imports the main script, which would start workers once more: "
            f"{GUARD}"
        )


def how_it_died(process: BaseProcess) -> str:
    """Return how a process ended, such as `by SIGKILL`; wait for its end."""
    process.join()
    code = process.exitcode or 0
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def is_stopped(pid: int | None) -> bool:
    """Return whether a process is stopped, by SIGSTOP or a debugger, as far as can be known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"T"], [b"t"])


def check_pickles(work: object, otherwise: str) -> None:
    """Refuse work that cannot be sent to a process that is not forked.

    Args:
        work: What would be sent.
        otherwise: What else the user can do.

    Raises:
        TypeError: It contains a function or a source that cannot be pickled.
    """
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"a function or a source cannot be sent to a process that is not forked: {error}; "
            f"define functions at the top level of a module, or {otherwise}"
        ) from error


def unpickling_error(work: object) -> Exception | None:
    """Return why work that was pickled cannot be unpickled; None if it can."""
    stored = pickle.dumps(work)
    try:
        pickle.loads(stored)  # noqa: S301 -- it was made here
    except Exception as error:  # noqa: BLE001 -- sources and functions are of any type
        return error
    return None


def portable(error: BaseException) -> BaseException:
    """Return an exception that the parent can unpickle: this one, or one with the same text."""
    try:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- it was made here
    except Exception:  # noqa: BLE001 -- exceptions may refuse in any way
        again = None
    if isinstance(again, BaseException) and str(again) == str(error):
        return error
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        plain.add_note(note)
    return plain

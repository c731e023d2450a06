"""Making batches in other processes, for functions that hold the GIL."""

import contextlib
import multiprocessing
import os
import queue
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any

from ingot.errors import ClosedError, WorkerError
from ingot.loader.channel import Pipe, Receiver, Sender, connected, pickled, unpickled
from ingot.loader.maker import Convert, Made, Maker, converted
from ingot.processes import (
    GUARD,
    check_imported,
    check_pickles,
    how_it_died,
    is_stopped,
    portable,
    settle_in,
    unpickling_error,
)
from ingot.threads import set_threads

_PAUSE_S = 0.2
_PAUSES_MAX = 150
"""Pauses in which a process need not answer before it is looked at."""

_PATIENCE_S = 5.0
_ATTEMPTS = 3
_BEFORE_PROCESSES_END = 10


class Processes:
    """Makes the batches of steps in processes of its own, one step at a time in each.

    The processes are started as `multiprocessing` starts them. They end with this process, and a
    process that dies is replaced by one that makes the same batch.

    Args:
        maker: Makes the batch of a step.
        convert: Is applied to each batch in this process; None for nothing.
        count: The number of processes.
        context: How they are started: a context of `multiprocessing`, the name of a start method,
            or None for the default.
    """

    def __init__(
        self,
        maker: Maker,
        convert: Convert | None,
        count: int,
        context: BaseContext | str | None = None,
    ) -> None:
        if multiprocessing.current_process().daemon:
            raise RuntimeError(
                "a worker process, such as one of PyTorch's data loader, may not start processes: "
                "pass workers= for threads, or use the loader in the main process"
            )
        self._maker = maker
        if context is None:
            context = multiprocessing.get_context()
        elif isinstance(context, str):
            context = multiprocessing.get_context(context)
        self._context: BaseContext = context
        self._convert = convert
        self._count = count
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changing = threading.Lock()
        self._is_started = self._is_stopped = False
        self._workers = [_Worker(self._maker, self._context) for _ in range(self._count)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        # `multiprocessing` ends all processes when this one exits, and waits for them: none may
        # be replaced after that.
        Finalize(self, _stop, (weakref.ref(self),), exitpriority=_BEFORE_PROCESSES_END)

    def start(self) -> None:
        """Start the processes, the first time; `make` replaces one that dies.

        Raises:
            TypeError: The processes are not forked, and a function cannot be sent to them.
        """
        if os.getpid() != self._process:
            self._begin()
        if not self._is_started:
            for worker in self._workers:
                if worker.process is None:
                    self._start(worker)
            self._is_started = True

    def _start(self, worker: "_Worker") -> None:
        with self._changing:
            if self._is_stopped:
                raise ClosedError("the loader is closed")
            worker.start()

    def fetch(self, steps: Sequence[int]) -> Sequence[None]:
        """Get nothing: each process reads what it needs."""
        return [None] * len(steps)

    def make(self, step: int, fetched: None, is_wanted: Callable[[], bool]) -> Made:
        """Make the batch of a step.

        Raises:
            WorkerError: The step fails, or a process died each time that it was tried.
        """
        del fetched
        worker = self._idle.get()
        try:
            made, error = self._ask(worker, step)
        finally:
            self._idle.put(worker)
            if self._is_stopped:
                self._release()
        if error is not None:
            raise error
        return converted(step, made, self._convert) if is_wanted() else made

    def _ask(self, worker: "_Worker", step: int) -> tuple[Made, BaseException | None]:
        how = ""
        for _ in range(_ATTEMPTS):
            if worker.process is None:
                self._start(worker)
            try:
                return worker.ask(step)
            except (EOFError, OSError):
                how = worker.end()
        reason = self._context.get_start_method() != "fork" and unpickling_error(self._maker)
        if reason:
            message = f"step {step}: the worker process cannot unpickle its work: {reason}"
            raise WorkerError(message, None, step) from reason
        is_forked = self._context.get_start_method() == "fork"
        raise WorkerError(_death(step, how, is_forked=is_forked), None, step)

    def stop(self) -> None:
        """End the processes, and release the memory that no array uses."""
        if os.getpid() != self._process:
            return
        with self._changing:
            self._is_stopped = True
            running = [one.process for one in self._workers if one.process is not None]
            for process in running:
                process.terminate()
            for process in running:
                process.join(_PATIENCE_S)
                process.kill()
                process.join()
        self._release()

    def _release(self) -> None:
        """Forget the processes that no thread is asking, once they have ended."""
        idle: list[_Worker] = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for worker in idle:
            worker.end()
            self._idle.put(worker)


def _stop(processes: "weakref.ref[Processes]") -> None:
    found = processes()
    if found is not None:
        found.stop()


class _Worker:
    """A process that makes batches, or the place of one.

    Attributes:
        process: The process; None before it is started and after it has died.
    """

    def __init__(self, maker: Maker, context: BaseContext) -> None:
        self._maker = maker
        self._context: Any = context
        self.process: BaseProcess | None = None

    def start(self) -> None:
        """Start the process."""
        context = self._context
        check_imported()
        if context.get_start_method() != "fork":
            check_pickles(self._maker, "pass workers= for threads")
        self._pipe, self.process = connected(context, self._started)
        self._receiver = Receiver(self._pipe)

    def _started(self, pipe: Pipe) -> BaseProcess:
        process: BaseProcess = self._context.Process(
            target=_work, args=(pipe, self._maker), daemon=True
        )
        process.start()
        return process

    def ask(self, step: int) -> tuple[Made, BaseException | None]:
        """Return the batch of a step, or the error that it raised.

        Raises:
            EOFError: The process died.
            OSError: It died while it was asked.
        """
        self._pipe.send((step, self._maker.cut, self._receiver.give_back()))
        pauses = 0
        while not self._pipe.poll(_PAUSE_S):
            if self.process is None or not (self.process.is_alive() or self._pipe.poll()):
                raise EOFError
            pauses += 1
            if pauses == _PAUSES_MAX and is_stopped(self.process.pid):
                warnings.warn(_stopped(step, self.process.pid), RuntimeWarning, stacklevel=2)
        parts = self._receiver.receive()
        try:
            made, error, cause = unpickled(parts)
        except Exception as raised:  # noqa: BLE001 -- batches are of any type
            made, error, cause = Made(0), _unsent(step, raised), raised
        if error is not None:
            error.__cause__ = cause
        return made, error

    def end(self) -> str:
        """Forget the process, which ends now if it has not, and return how it died."""
        process, self.process = self.process, None
        if process is None:
            return ""
        self._pipe.close()
        self._receiver.close()
        process.join(_PATIENCE_S)
        process.kill()
        return how_it_died(process)


def _stopped(step: int, pid: int | None) -> str:
    return (
        f"step {step}: worker process {pid} has not answered for {_PAUSES_MAX * _PAUSE_S:.0f} "
        f"seconds, because it is stopped; kill -CONT {pid} resumes it"
    )


def _death(step: int, how: str, *, is_forked: bool) -> str:
    hint = "; the system kills processes when memory runs out" if how == "by SIGKILL" else ""
    if not is_forked and how == "with exit code 1":
        hint = f"; it imports the main script: {GUARD}"
    return (
        f"step {step}: the worker process died {how}, {_ATTEMPTS} times in a row{hint}; "
        f"loader.batch({step}) makes the batch in this process"
    )


def _work(pipe: Pipe, maker: Maker) -> None:
    """Make batches until the pipe is closed."""
    settle_in()
    if "INGOT_THREADS" not in os.environ:
        set_threads(1)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    with pipe:  # It is closed even if a thread of a user keeps this process alive.
        _serve(pipe, maker)


def _serve(pipe: Pipe, maker: Maker) -> None:
    sender = Sender(pipe)
    while True:
        try:
            step, maker.cut, returned = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        sender.take_back(returned)
        made, error, cause = Made(0), None, None
        try:
            made = maker.make(step)
        except BaseException as raised:  # noqa: BLE001 -- whatever it is, the parent raises it
            error, cause = _told(raised)
        try:
            parts = pickled((made, error, cause))
        except Exception as raised:  # noqa: BLE001 -- batches are of any type
            parts = pickled((Made(0), _unsent(step, raised), portable(raised)))
        try:
            sender.send(parts)
        except OSError:
            return
        del made, parts


def _unsent(step: int, error: Exception) -> WorkerError:
    reason = f"step {step}: the batch cannot be sent to the process of the loader: {error}"
    return WorkerError(reason, None, step)


def _told(error: BaseException) -> tuple[BaseException, BaseException | None]:
    """Return an exception and its cause, as they can be sent."""
    found = portable(error)
    found.add_note(f"in worker process {os.getpid()}:\n{traceback.format_exc()}")
    cause = error.__cause__
    return found, None if cause is None else portable(cause)

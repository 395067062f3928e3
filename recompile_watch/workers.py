"""Work shared out to forked processes; what they find comes back in the order of the tasks.

The standard library's own ways to do this take as long to import as the whole command line.
"""

import os
import pickle
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import BinaryIO, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_PIPE_BYTES = 1 << 20  # what an unprivileged process may ask for; a worker goes on while its result waits
CAN_FORK = hasattr(os, "fork")


class WorkerDiedError(Exception):
    """A worker ended before its work was done."""


def in_order(tasks: Sequence[Task], work: Callable[[Task], Result], jobs: int) -> Generator[Result, None, None]:
    """The results of ``work`` for each task, in order; each of ``jobs`` processes takes every n-th task.

    ``work`` must not raise. Raises WorkerDiedError when a process is killed.
    """
    workers: list[tuple[int, BinaryIO]] = []
    try:
        for job in range(jobs):
            workers.append(_start(tasks[job::jobs], work, [stream for _, stream in workers]))
        for number in range(len(tasks)):
            try:
                yield pickle.load(workers[number % jobs][1])
            except (EOFError, pickle.UnpicklingError):
                raise WorkerDiedError from None
    finally:
        for pid, stream in workers:
            stream.close()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def _start(tasks: Sequence[Task], work: Callable[[Task], Result], others: list[BinaryIO]) -> tuple[int, BinaryIO]:
    """Forks one worker; its process id and what it sends."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid:
        os.close(send)
        return pid, os.fdopen(receive, "rb")
    try:
        for stream in others:
            stream.close()
        os.close(receive)
        _widen(send)
        with os.fdopen(send, "wb") as stream:
            for task in tasks:
                pickle.dump(work(task), stream, pickle.HIGHEST_PROTOCOL)
                stream.flush()
    finally:
        os._exit(0)  # nothing of the parent's may run here: no buffer flushed twice, no traceback


def _widen(pipe: int) -> None:
    import fcntl

    with suppress(AttributeError, OSError):  # Linux only
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

"""Work shared out to forked processes; what they find comes back in the order of the tasks.

The standard library's own ways to do this take as long to import as the whole command line.
"""

import os
import pickle
import select
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_PIPE_BYTES = 1 << 20  # what an unprivileged process may ask for; a worker goes on while its result waits
_NUMBER_BYTES = 8
_LOOK_AGAIN_S = 1.0
CAN_FORK = hasattr(os, "fork")


class WorkerDiedError(Exception):
    """A worker ended before its work was done."""


class _Pipe(NamedTuple):
    """A pipe of numbers that all processes share; none is torn, for the system writes and reads so few bytes at once."""

    read_fd: int
    write_fd: int

    def put(self, number: int) -> None:
        os.write(self.write_fd, number.to_bytes(_NUMBER_BYTES))

    def take(self) -> int:
        return int.from_bytes(os.read(self.read_fd, _NUMBER_BYTES))


class _Worker(NamedTuple):
    """A process and what it sends."""

    pid: int
    results: BinaryIO

    def end(self) -> None:
        self.results.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


class _Queue:
    """The tasks, of which each worker that is free takes the next; ``takers`` tells who took them, in their order."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._next, self.takers = _Pipe(*os.pipe()), _Pipe(*os.pipe())
        self._next.put(0)

    def take(self, worker: int) -> int | None:
        """The number of the next task; None when there is none. The number that stands in the pipe is also its lock."""
        number = self._next.take()
        if number < self._length:
            self.takers.put(worker)
        self._next.put(number + 1)
        return number if number < self._length else None

    def close(self) -> None:
        for fd in (*self._next, *self.takers):
            os.close(fd)


def in_order(tasks: Sequence[Task], work: Callable[[Task], Result], jobs: int) -> Generator[Result, None, None]:
    """The results of ``work`` for each task, in order; each of ``jobs`` processes takes the next task when it is free.

    ``work`` must not raise. Raises WorkerDiedError when a process is killed.
    """
    workers: list[_Worker] = []
    queue = _Queue(len(tasks))
    try:
        for number in range(jobs):
            workers.append(_start(number, queue, tasks, work, [worker.results for worker in workers]))
        for _ in tasks:
            try:
                yield pickle.load(_next_taker(queue, workers).results)
            except (EOFError, pickle.UnpicklingError):
                raise WorkerDiedError from None
    finally:
        for worker in workers:
            worker.end()
        queue.close()


def _next_taker(queue: _Queue, workers: list[_Worker]) -> _Worker:
    """The worker that took the next task. One that was killed while it took one holds up all others."""
    while not select.select([queue.takers.read_fd], [], [], _LOOK_AGAIN_S)[0]:
        if any(os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None for worker in workers):
            raise WorkerDiedError
    return workers[queue.takers.take()]


def _start(number: int, queue: _Queue, tasks: Sequence[Task], work: Callable[[Task], Result], others: list[BinaryIO]) -> _Worker:
    """Forks one worker."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid:
        os.close(send)
        return _Worker(pid, os.fdopen(receive, "rb"))
    try:
        for stream in others:
            stream.close()
        os.close(receive)
        _widen(send)
        with os.fdopen(send, "wb") as stream:
            while (task := queue.take(number)) is not None:
                pickle.dump(work(tasks[task]), stream, pickle.HIGHEST_PROTOCOL)
                stream.flush()
    finally:
        os._exit(0)  # nothing of the parent's may run here: no buffer flushed twice, no traceback


def _widen(pipe: int) -> None:
    import fcntl

    with suppress(AttributeError, OSError):  # Linux only
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

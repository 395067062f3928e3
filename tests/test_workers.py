"""Tests of `recompile_watch.workers`: real forked processes."""

from __future__ import annotations

import os
import signal

import pytest

from recompile_watch import workers
from recompile_watch.workers import WorkerDiedError, in_order


def test_results_come_in_the_order_of_the_tasks() -> None:
    """Whichever process is done first."""
    assert list(in_order(range(40), lambda number: (number, b"x" * (number % 7) * 100_000), 3)) == [(n, b"x" * (n % 7) * 100_000) for n in range(40)]


def test_the_work_is_done_elsewhere() -> None:
    """Two jobs are two processes at work at once, and neither is this one."""
    pipes = os.pipe(), os.pipe()

    def work(number: int) -> int:
        os.write(pipes[number][1], b".")
        os.read(pipes[1 - number][0], 1)  # until the other has begun
        return os.getpid()

    assert len({*in_order(range(2), work, 2), os.getpid()}) == 3


def test_who_is_free_takes_the_next() -> None:
    """All tasks but a long one are done by the other process meanwhile."""
    done, wait = os.pipe()

    def work(number: int) -> int:
        if number == 0:
            os.read(done, 1)
        if number == 6:
            os.write(wait, b".")
        return os.getpid()

    first, *others = in_order(range(7), work, 2)
    assert len(set(others)) == 1 and first not in others


def test_a_killed_worker_is_an_error() -> None:
    """Results of a process that was killed are missed, never invented."""

    def work(number: int) -> int:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    found = []
    with pytest.raises(WorkerDiedError):
        for result in in_order(range(8), work, 2):
            found.append(result)
    assert found == [0, 1, 2]


def test_killed_while_it_takes_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait for it in vain, this process does not."""
    put, here = workers._Pipe.put, os.getpid()

    def killed(pipe: workers._Pipe, number: int) -> None:
        if os.getpid() != here and number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        put(pipe, number)

    monkeypatch.setattr(workers._Pipe, "put", killed)
    monkeypatch.setattr(workers, "_LOOK_AGAIN_S", 0.01)
    with pytest.raises(WorkerDiedError):
        list(in_order(range(8), lambda number: number, 2))


def test_leaving_early_leaves_no_process_behind() -> None:
    """Workers that wait with a result that nobody takes are ended and reaped."""
    results = in_order(range(100), lambda _: (os.getpid(), b"x" * 5_000_000), 2)
    pid, _ = next(results)
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

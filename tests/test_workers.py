"""Tests of `recompile_watch.workers`: real forked processes."""

from __future__ import annotations

import os
import signal

import pytest

from recompile_watch.workers import WorkerDiedError, in_order


def test_results_come_in_the_order_of_the_tasks() -> None:
    """Whichever process is done first."""
    assert list(in_order(range(40), lambda number: (number, b"x" * (number % 7) * 100_000), 3)) == [(n, b"x" * (n % 7) * 100_000) for n in range(40)]


def test_the_work_is_done_elsewhere() -> None:
    """Two jobs are two processes, and neither is this one."""
    pids = set(in_order(range(6), lambda _: os.getpid(), 2))
    assert len(pids) == 2 and os.getpid() not in pids


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


def test_leaving_early_leaves_no_process_behind() -> None:
    """Workers that wait with a result that nobody takes are ended and reaped."""
    results = in_order(range(100), lambda _: (os.getpid(), b"x" * 5_000_000), 2)
    pid, _ = next(results)
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

"""Runs one command and says what it cost: wall time, processor time and peak memory of its whole process tree."""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_S = 0.05
_STDERR_SHOWN = 2000


class RunFailedError(Exception):
    """A command that was to be measured did not do its work."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one command.

    wall_s: seconds from start to end, as seen from outside. cpu_s: user and system seconds of the process and its waited-for children.
    peak_bytes: most memory. For one process its resident high-water mark (pages of a mapped file included). For several: the sum of the
    high-water marks of all that lived at the same time; shared pages count in each, so this is an upper bound.
    status: exit status.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int
    status: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Middle, lowest and highest of several values."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


class _TreeSampler(threading.Thread):
    """Adds up the high-water marks of a process and its descendants, every 50 ms.

    The mark of a process only rises, so that a late look misses nothing but a process's last 50 ms; those are in the rusage.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, sum(_high_water(pid) for pid in _tree(self._pid)))

    def stop(self) -> None:
        self._over.set()
        self.join()


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                found += [int(child) for child in children.read_text().split()]
        except OSError:
            continue
    return found


def _high_water(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure(command: Sequence[str], *, stdout: Path | None = None, timeout_s: float = 1800.0) -> Measurement:
    """Runs `command` with its output thrown away or sent to `stdout`.

    Statuses below 64 are results (1, 2 and 3 are findings). Raises RunFailedError on 64 and above, on a signal, on a Python traceback and when
    `timeout_s` is over.
    """
    with tempfile.TemporaryFile() as errors, Path(stdout or os.devnull).open("wb") as output:
        started = time.perf_counter()
        try:
            child = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True)
        except OSError as error:
            raise RunFailedError(f"{command[0]} does not start: {error}") from error
        sampler = _TreeSampler(child.pid)
        sampler.start()
        late = threading.Timer(timeout_s, _kill_group, (child.pid,))
        late.start()
        try:
            # wait4 and not Popen.wait: only it gives this child's own rusage.
            _, wait_status, usage = os.wait4(child.pid, 0)
            wall_s = time.perf_counter() - started
        except BaseException:
            _kill_group(child.pid)
            raise
        finally:
            late.cancel()
            sampler.stop()
        child.returncode = os.waitstatus_to_exitcode(wait_status)
        errors.seek(0)
        _check(command, child.returncode, errors.read().decode(errors="replace"))
    peak_bytes = _peak(usage.ru_maxrss * 1024, sampler.peak_bytes)
    return Measurement(wall_s, usage.ru_utime + usage.ru_stime, peak_bytes, child.returncode)


def _peak(rusage_bytes: int, sampled_bytes: int) -> int:
    """The larger of the kernel's figure and the sampled one.

    Linux starts a child's ru_maxrss at what its parent held when it forked, so a figure that is not above our own says nothing.
    """
    own_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    known = rusage_bytes if rusage_bytes > own_bytes else 0
    return max(known, sampled_bytes) or rusage_bytes


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _check(command: Sequence[str], status: int, errors: str) -> None:
    what = " ".join(command)
    if status < 0:
        raise RunFailedError(f"{what}: ended by signal {-status} (out of time or memory?)\n{errors[-_STDERR_SHOWN:]}")
    if status >= 64 or "Traceback (most recent call last)" in errors:
        raise RunFailedError(f"{what}: status {status}\n{errors[-_STDERR_SHOWN:]}")

"""The diagnostic as a child of the watch: started, listened to and ended without ever waiting for it.

What it runs carries a mark in its environment. When it has ended, by itself or not, nothing that carries the mark goes on.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from recompile_watch.core.diagnostic_runs import Failed, NotRun, RunEnd, end_of
from recompile_watch.core.units import duration_text
from recompile_watch.respond.pipes import read_ready
from recompile_watch.respond.worker_process import MARK, kill_marked, kill_marked_now

MAX_REPORT_BYTES = 8 << 20
_MAX_ERROR_BYTES = 1 << 16
_LEAVE_S = 10.0  # for the diagnostic to end its workers when it is told to end
_SWEEP_S = 5.0
_LOOK_S = 0.1
_NOT_RUN = 3  # exit status: inconclusive, or not run
_WRONG = (64, 78)  # usage, configuration: the same again the next time
# What a workload may need of the watch's environment. Everything else stays behind: it may hold secrets of receivers.
_OPEN = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "HF_HOME"})
_OPEN_PREFIXES = ("LC_", "PYTHON", "XDG_", "CUDA_", "NVIDIA_", "OMP_", "MKL_")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a diagnosis ended. report: its JSON report, None without one."""

    end: RunEnd
    report: Mapping[str, object] | None = None


@dataclass(slots=True)
class _Child:
    """The process that runs now. look_at: when it is looked at although no pipe wakes. told_at: when it was told to end."""

    process: subprocess.Popen[bytes]
    mark: str
    since: float
    look_at: float
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    why: str = ""
    told_at: float | None = None
    gone_at: float | None = None


class DiagnosticProcess:
    """At most one diagnostic. command: the program, without the options of a run. limit_s: of a whole run."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> None:
        self._command, self._limit_s = list(command), limit_s
        self._open = {name: value for name, value in environment.items() if name in _OPEN or name.startswith(_OPEN_PREFIXES)}
        self._child: _Child | None = None

    def start(self, options: Sequence[str], mark: str, now: float) -> Ended | None:
        """Starts it; the end where it cannot be started."""
        try:
            process = subprocess.Popen(
                [*self._command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**self._open, MARK: mark}, start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            return Ended(Failed(f"the diagnostic could not be started ({os.strerror(error.errno or 0)})"))
        self._child = _Child(process, mark, now, now + self._limit_s)
        for pipe in _pipes(process):
            os.set_blocking(pipe.fileno(), False)
        return None

    def reading(self) -> list[int]:
        """The descriptors that wake."""
        return [pipe.fileno() for pipe in _pipes(self._child.process)] if self._child is not None else []

    def next_due(self) -> float | None:
        """When ``collect`` has something to do though no descriptor wakes."""
        return self._child.look_at if self._child is not None else None

    def collect(self, now: float) -> Ended | None:
        """How the run ended, once it and everything that it started is gone; None until then."""
        child = self._child
        if child is None:
            return None
        is_gone = child.process.poll() is not None
        self._listen(child)  # what it said last is heard after its end
        if not is_gone:
            self._hurry(child, now)
            return None
        child.gone_at = now if child.gone_at is None else child.gone_at
        if not kill_marked_now(child.mark) and now < child.gone_at + _SWEEP_S:
            child.look_at = now + _LOOK_S
            return None
        _close(child.process)
        self._child = None
        return _ended(child)

    def kill(self) -> None:
        """Ends it with everything that it started, and waits for that: a few seconds at most."""
        child, self._child = self._child, None
        if child is None:
            return
        _signal(child.process, signal.SIGTERM)
        try:
            child.process.wait(_SWEEP_S)
        except subprocess.TimeoutExpired:
            _signal(child.process, signal.SIGKILL)
        kill_marked(child.mark, _SWEEP_S)
        child.process.wait()
        _close(child.process)

    def _listen(self, child: _Child) -> None:
        for pipe, heard in ((child.process.stdout, child.output), (child.process.stderr, child.errors)):
            if pipe is None or pipe.closed:
                continue
            more, has_ended = read_ready(pipe.fileno(), MAX_REPORT_BYTES - len(heard))
            heard += more
            if has_ended:
                pipe.close()
        del child.errors[:-_MAX_ERROR_BYTES]
        if len(child.output) > MAX_REPORT_BYTES:
            child.why = child.why or f"it printed more than {MAX_REPORT_BYTES >> 20} MiB"
            child.output.clear()

    def _hurry(self, child: _Child, now: float) -> None:
        """Tells a run to end that takes too long or says too much, and ends it when it does not."""
        child.since = min(child.since, now)  # the clock went back: its time begins anew
        if not child.why and now >= child.since + self._limit_s:
            child.why = f"it was ended after {duration_text(self._limit_s)}"
        if child.why and child.told_at is None:
            child.told_at = now
            _signal(child.process, signal.SIGTERM)
        elif child.told_at is not None and now >= child.told_at + _LEAVE_S:
            _signal(child.process, signal.SIGKILL)
        is_leaving = child.told_at is not None or not _pipes(child.process)
        child.look_at = now + _LOOK_S if is_leaving else child.since + self._limit_s


def _ended(child: _Child) -> Ended:
    """A report, else why there is none."""
    code, words = child.process.returncode, _last_line(child.errors)
    if child.why:
        return Ended(Failed(child.why))
    try:
        report = json.loads(child.output)
        return Ended(end_of(report), report)
    except (ValueError, AttributeError, RecursionError):
        pass
    if code == _NOT_RUN and words:
        return Ended(NotRun(words))
    how = f"ended by signal {-code}" if code < 0 else f"it ended with status {code}"
    return Ended(Failed(f"{how}{': ' if words else ''}{words}", is_final=code in _WRONG))


def _last_line(text: bytearray) -> str:
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("recompile-watch: ").strip()[:500] if lines else ""


def _pipes(process: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [pipe for pipe in (process.stdout, process.stderr) if pipe is not None and not pipe.closed]


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in _pipes(process):
        with contextlib.suppress(OSError):
            pipe.close()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)

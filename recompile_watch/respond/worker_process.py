"""One run of the diagnostic's worker, from the request to its end: whatever the process does, this returns and leaves nothing running.

What the worker says is read with limits and may be garbage; what it and torch log is kept up to a bound. The whole session is
killed at the end, and with it every process that still carries the run's mark in its environment (Linux).
"""

import json
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

WORKER = Path(__file__).with_name("diagnose_worker.py")
MARK = "RECOMPILE_WATCH_RUN"
MAX_LINE_BYTES = 4 << 20
MAX_OUTPUT_BYTES = 32 << 20
MAX_LOG_BYTES = 8 << 20
_TICK_S = 0.2
_CHUNK_BYTES = 1 << 16
_REAP_S = 5.0
# What the surroundings say about compiling must not decide what a candidate is.
_FOREIGN = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE", "TORCH_DYNAMO", "TORCHDYNAMO", "TORCHINDUCTOR", "TRITON_CACHE")


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start.

    request: for the worker. time_s: for all of it; silence_s: without a sign of life. cache_dir: for compiled code. mark: in the
    environment of every process of the run; it begins with the mark of this process, where that has one.
    """

    python: str
    request: Mapping[str, object]
    cache_dir: Path
    time_s: float
    silence_s: float = 60.0
    gpu: str = ""
    mark: str = field(default_factory=lambda: os.environ.get(MARK, "") + secrets.token_hex(16))


@dataclass(slots=True)
class Ending:
    """How a run ended. outcome, hello: the worker's own words; None where it said none. failure: why there is no outcome.

    log: what was printed to standard error. stopped: ``timeout``, ``guard`` or ``flood`` where this side ended it. seconds: from start to end.
    has_begun: the interpreter ran the worker at all. eager_calls: calls that succeeded in eager mode before anything was compiled.
    """

    outcome: Mapping[str, object] | None = None
    hello: Mapping[str, object] | None = None
    failure: str = ""
    stopped: str = ""
    log: str = ""
    unreadable_lines: int = 0
    seconds: float = 0.0
    has_begun: bool = False
    eager_calls: int = 0


class Process(Protocol):
    """A process that was started for one run, the leader of its session, as `subprocess.Popen` shows it."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def wait(self, timeout: float) -> int:
        """Its status, or the negative number of a signal. Raises subprocess.TimeoutExpired."""


def run_worker(
    launch: Launch, on_progress: Callable[[Mapping[str, object]], None], should_stop: Callable[[], str | None],
    fork: Callable[[Launch, Callable[[], str | None]], Process | None] | None = None,
) -> Ending:  # fmt: skip
    """Runs the worker to its end. on_progress takes its progress records; should_stop gives the reason to end it now.

    fork: gives a process that serves already; an interpreter is started where it gives none.
    """
    try:
        process = (fork(launch, should_stop) if fork is not None else None) or subprocess.Popen(
            [launch.python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment_of(launch), start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return Ending(failure=f"{launch.python} cannot be run ({getattr(error, 'strerror', None) or error}); name the interpreter with --python")
    try:
        return _Reading(process, launch, on_progress, should_stop).ending()
    finally:
        _end(process, launch.mark)


def environment_of(launch: Launch) -> dict[str, str]:
    """The environment of its process: what the surroundings say about compiling stays behind."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    threads = launch.request.get("threads")
    return {
        **kept, MARK: launch.mark, "CUDA_VISIBLE_DEVICES": launch.gpu, "PYTHONHASHSEED": "0", "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(launch.cache_dir / "inductor"), "TRITON_CACHE_DIR": str(launch.cache_dir / "triton"),
        **({"OMP_NUM_THREADS": str(threads)} if threads else {}),
    }  # fmt: skip


def _end(process: Process, mark: str) -> None:
    """Nothing of the run goes on: its session first, then what left the session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    kill_marked(mark, _REAP_S)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def kill_marked(mark: str, limit_s: float) -> None:
    """Kills everything that carries a mark, and waits until it is gone."""
    end = time.monotonic() + limit_s
    while not kill_marked_now(mark) and time.monotonic() < end:  # again: what is being killed may have started another
        time.sleep(0.01)


def kill_marked_now(mark: str) -> bool:
    """Kills everything that carries a mark; True when nothing does."""
    left = marked(mark)
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return not left


def marked(mark: str) -> list[int]:
    """Processes whose mark begins so and that are not dead yet; none where there is no /proc, nor of no mark."""
    if not mark:
        return []
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


@dataclass(slots=True)
class _Reading:
    """Takes in what a process says until it ends, is silent for too long, or its time is up."""

    process: Process
    launch: Launch
    on_progress: Callable[[Mapping[str, object]], None]
    should_stop: Callable[[], str | None]
    found: Ending = field(default_factory=Ending)
    line: bytearray = field(default_factory=bytearray)
    log: bytearray = field(default_factory=bytearray)
    greeted_at: int = 0  # bytes of the log when it said hello: what torch prints while it is imported is not why it dies later
    taken_bytes: int = 0
    heard_at: float = 0.0

    def ending(self) -> Ending:
        assert self.process.stdout is not None and self.process.stderr is not None
        started_at = self.heard_at = time.monotonic()
        self._send()
        with selectors.DefaultSelector() as selector:
            for stream, take in ((self.process.stdout, self._take_records), (self.process.stderr, self._take_log)):
                selector.register(stream, selectors.EVENT_READ, take)
            while selector.get_map() and self.found.outcome is None:
                self._read(selector)
                if self._is_over(time.monotonic(), started_at):
                    break
            self._drain(selector)
        self.found.log = self.log.decode("utf-8", "replace")
        if self.found.outcome is None and not self.found.failure:
            death = self._death()
            is_none = f"{self.launch.python} does not run the worker: {death}; name the interpreter with --python"
            self.found.failure = death if self.found.has_begun else is_none
        self.found.seconds = time.monotonic() - started_at
        return self.found

    def _send(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # it may have died already: its end tells
            self.process.stdin.write(json.dumps(self.launch.request).encode() + b"\n")
            self.process.stdin.close()

    def _read(self, selector: selectors.BaseSelector) -> None:
        ready = [key for key, _ in selector.select(_TICK_S)]
        for key in sorted(ready, key=lambda one: one.fileobj is self.process.stdout):  # its log first: it was printed before the record
            stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
            chunk = os.read(stream.fileno(), _CHUNK_BYTES)
            if chunk:
                key.data(chunk)
            else:
                selector.unregister(stream)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """What it logged just before its end."""
        end = time.monotonic() + _TICK_S
        while selector.get_map() and time.monotonic() < end and selector.select(0):
            self._read(selector)

    def _is_over(self, now: float, started_at: float) -> bool:
        stop = self.should_stop()
        if stop is not None:
            self.found.stopped, self.found.failure = "guard", stop
        elif now - started_at > self.launch.time_s:
            self.found.stopped, self.found.failure = "timeout", f"it was ended after {self.launch.time_s:.0f} s"
        elif now - self.heard_at > self.launch.silence_s:
            self.found.stopped, self.found.failure = "timeout", f"it gave no sign of life for {self.launch.silence_s:.0f} s"
        elif self.taken_bytes > MAX_OUTPUT_BYTES:
            self.found.stopped, self.found.failure = "flood", f"it printed more than {MAX_OUTPUT_BYTES >> 20} MiB that are no result"
        return bool(self.found.failure)

    def _take_log(self, chunk: bytes) -> None:
        self.log += chunk[: MAX_LOG_BYTES - len(self.log)]

    def _take_records(self, chunk: bytes) -> None:
        self.taken_bytes += len(chunk)
        self.line += chunk
        *lines, rest = self.line.split(b"\n")
        self.line = bytearray(rest[: MAX_LINE_BYTES + 1])
        for line in lines:
            self._take_record(bytes(line))

    def _take_record(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or len(line) > MAX_LINE_BYTES:
            self.found.unreadable_lines += 1
            return
        self.heard_at, self.found.has_begun = time.monotonic(), True
        match record.get("record"):
            case "hello":
                self.found.hello, self.greeted_at = record, len(self.log)
            case "eager" if type(calls := record.get("calls")) is int:
                self.found.eager_calls = calls
            case "progress":
                self.on_progress(record)
            case "outcome":
                self.found.outcome = record
            case _:
                self.found.unreadable_lines += 1

    def _death(self) -> str:
        """How it ended without a result."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(_REAP_S)
            lines = [line for line in self.log[self.greeted_at :].decode("utf-8", "replace").splitlines() if line.strip()]
            words = f"; it printed last: {lines[-1].strip()[:300]}" if lines else ""
            if self.found.unreadable_lines:
                what = "a line that is" if self.found.unreadable_lines == 1 else f"{self.found.unreadable_lines} lines that are"
                words = f", after {what} no result{words}"
            if code < 0:
                name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
                memory = " (the system kills so when memory runs out)" if -code == signal.SIGKILL else ""
                return f"killed by {name}{memory}{words}"
            return f"it ended with status {code} and no result{words}"
        return "it closed its output and gave no result"

"""One sender process and the pipes to it, without ever waiting for it."""

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Outcome, Reason, Retry
from recompile_watch.respond.pipes import read_ready
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.wire import MAX_LINE_BYTES, Greeting, Job, Order, greeting_line, order_line, outcome_of

_LEAVE_S = 2.0  # a sender whose input has ended leaves in a few milliseconds
# What a sender needs of the daemon's environment and what holds no secret. Everything else stays behind.
_OPEN = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SYSTEMROOT"})
_OPEN_PREFIXES = ("LC_", "PYTHON", "XDG_", "MPL")
# Proxies may hold a password: they are told through the pipe.
_TOLD_SUFFIX = "_proxy"


class SenderProcess:
    """The sender of one receiver: started with its first job, one job at a time, killed when a job takes too long."""

    def __init__(self, settings: ReceiverSettings, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._command = list(command)
        self._open = {name: value for name, value in environment.items() if name in _OPEN or name.startswith(_OPEN_PREFIXES)}
        self._told = {name: value for name, value in environment.items() if name.lower().endswith(_TOLD_SUFFIX)}
        self._process: subprocess.Popen[bytes] | None = None
        self._leaving: list[tuple[subprocess.Popen[bytes], float]] = []
        self._waiting: deque[Job] = deque()
        self._job: Job | None = None
        self._since = 0.0  # of the job, else of idling
        self._unsent = b""
        self._unread = b""
        self._failed: list[tuple[str, Outcome]] = []

    @property
    def jobs(self) -> int:
        """Jobs without an outcome."""
        return len(self._waiting) + (self._job is not None) + len(self._failed)

    def submit(self, job: Job, now: float) -> None:
        """Takes a job and starts it if the sender is free."""
        self._waiting.append(job)
        self._start_next(now)

    def drop_waiting(self) -> None:
        """Forgets the jobs that have not started."""
        self._waiting.clear()

    def reading(self) -> list[int]:
        """The descriptor that tells of outcomes."""
        return [self._process.stdout.fileno()] if self._process and self._process.stdout else []

    def writing(self) -> list[int]:
        """The descriptor that is waited for while an order is not yet handed over."""
        return [self._process.stdin.fileno()] if self._unsent and self._process and self._process.stdin else []

    def collect(self, now: float) -> list[tuple[str, Outcome]]:
        """The outcomes since the last call."""
        self._since = min(self._since, now)  # the clock went back: the deadline starts anew
        found = [*self._failed, *self._received(now)]
        self._failed.clear()
        if self._job is not None and now >= self._since + self._settings.deadline_s:
            found += self._broken(Reason.DEADLINE, f"no outcome within {self._settings.deadline_s:g} s", now)
        elif self._process is not None and self._job is None and not self._waiting and now >= self._since + self._settings.warm_s:
            self._end(now)
        self._reap(now)
        self._start_next(now)
        return found

    def next_due(self) -> float | None:
        """When ``collect`` has something to do though no descriptor wakes."""
        due = [end for _, end in self._leaving]
        if self._process is not None:
            due.append(self._since + (self._settings.warm_s if self._job is None else self._settings.deadline_s))
        if self._failed:
            due.append(self._since)
        return min(due, default=None)

    def kill(self) -> None:
        """Ends the process and its children at once."""
        self._kill_now(0.0)
        for process, _ in self._leaving:
            _kill_group(process)
            process.wait()
        self._leaving.clear()

    def _start_next(self, now: float) -> None:
        """Hands the next job over; a job whose process cannot be started has failed."""
        if self._job is not None or not self._waiting:
            return
        self._job, self._since = self._waiting.popleft(), now
        if self._process is None:
            try:
                self._spawn()
            except OSError as error:
                self._failed.append((self._job.id, Retry(Reason.SENDER, f"no sender could be started ({os.strerror(error.errno or 0)})")))
                self._job = None
                return
        order = Order(self._job.id, self._job.task, self._settings.url, self._settings.deadline_s, self._job.message)
        self._unsent += order_line(order)
        self._write()

    def _spawn(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._open, start_new_session=True,
            bufsize=0,
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        self._unread = b""
        self._unsent = greeting_line(Greeting(os.getpid(), self._told))

    def _write(self) -> None:
        """As much as the pipe takes; a sender that is gone shows when it is read from."""
        assert self._process and self._process.stdin
        try:
            self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""

    def _received(self, now: float) -> Iterator[tuple[str, Outcome]]:
        if self._process is None or self._process.stdout is None:
            return
        if self._unsent:
            self._write()
        more, has_ended = read_ready(self._process.stdout.fileno(), MAX_LINE_BYTES - len(self._unread))
        self._unread += more
        while self._process is not None and b"\n" in self._unread:
            line, _, self._unread = self._unread.partition(b"\n")
            yield from self._understood(line, now)
        if self._process is None:
            return
        if len(self._unread) > MAX_LINE_BYTES:
            yield from self._broken(Reason.SENDER, "the sender spoke nonsense", now)
        elif has_ended:
            yield from self._broken(Reason.SENDER, "the sender ended before it had an outcome", now)

    def _understood(self, line: bytes, now: float) -> Iterator[tuple[str, Outcome]]:
        with contextlib.suppress(DeliveryError):
            job_id, outcome = outcome_of(line)
            if self._job is not None and job_id == self._job.id:
                self._job, self._since = None, now
                yield job_id, outcome
                return
        yield from self._broken(Reason.SENDER, "the sender spoke nonsense", now)

    def _broken(self, reason: Reason, words: str, now: float) -> list[tuple[str, Outcome]]:
        """Kills the process; the job that it had, if any, may have been delivered or not."""
        job, self._job, self._since = self._job, None, now
        self._kill_now(now)
        return [(job.id, Retry(reason, words, is_maybe_delivered=True))] if job else []

    def _end(self, now: float) -> None:
        """Closes the input of the idle process, upon which it leaves."""
        process = self._detach()
        if process is not None:
            self._leaving.append((process, now + _LEAVE_S))

    def _kill_now(self, now: float) -> None:
        process = self._detach()
        if process is not None:
            _kill_group(process)
            self._leaving.append((process, now + _LEAVE_S))

    def _detach(self) -> subprocess.Popen[bytes] | None:
        process, self._process, self._unsent, self._unread = self._process, None, b"", b""
        for pipe in (process.stdin, process.stdout) if process else ():
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return process

    def _reap(self, now: float) -> None:
        leaving = [(process, min(end, now + _LEAVE_S)) for process, end in self._leaving if process.poll() is None]
        for process, end in leaving:
            if now >= end:
                _kill_group(process)
        self._leaving = [(process, end if now < end else now + _LEAVE_S) for process, end in leaving]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kills a sender, stopped or not, with what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)

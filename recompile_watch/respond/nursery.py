"""Workers that need not import torch again, which takes half of a short run: one process imports it, and runs are forked off.

What is forked has compiled nothing and read no workload. Where the process does not come up (no torch, no Linux, an interpreter that is
none), nothing is forked, and each run starts an interpreter of its own, whose end tells what is wrong.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import IO

from recompile_watch.respond.worker_process import WORKER, Launch, environment_of, kill_marked

_MESSAGE_BYTES = 1 << 16
_REAP_S = 5.0
_TICK_S = 0.1


@dataclass(slots=True)
class Fork:
    """One run in a process of the nursery's, as `subprocess.Popen` shows its own."""

    nursery: "Nursery"
    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def wait(self, timeout: float) -> int:
        """How it ended: its status, or the negative number of a signal. Raises subprocess.TimeoutExpired."""
        return self.nursery.wait(self.pid, timeout)


class Nursery:
    """A process that imports torch and forks; to be closed. launch: the surroundings of its runs, and the mark of the process."""

    def __init__(self, launch: Launch) -> None:
        self._mark, self._silence_s, self._environment = launch.mark, launch.silence_s, environment_of(launch)
        self._news = threading.Condition()
        self._is_ready, self._is_gone = False, True
        self._forked: dict[int, int] = {}  # process by number of the run
        self._ended: dict[int, int] = {}  # status by process
        self._runs = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        if sys.platform == "linux":
            self._start(launch)

    def _start(self, launch: Launch) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, suppress(OSError, ValueError):
            self._process = subprocess.Popen(
                [launch.python, str(WORKER), "nursery"], stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=self._environment, start_new_session=True,
            )  # fmt: skip
            self._channel.send(json.dumps(launch.request).encode() + b"\n")
            self._is_gone = False
            threading.Thread(target=self._listen, daemon=True).start()
        if self._process is None:
            self._channel.close()

    def fork(self, launch: Launch, should_stop: Callable[[], str | None]) -> Fork | None:
        """A process for one run, once torch is imported; None when there can be none, or it is to be stopped."""
        end = time.monotonic() + self._silence_s
        with self._news:
            while not self._news.wait_for(lambda: self._is_ready or self._is_gone, _TICK_S):
                if should_stop() is not None or time.monotonic() > end:
                    return None
            if self._is_gone:
                return None
            run = next(self._runs)
        changed = {name: value for name, value in environment_of(launch).items() if self._environment.get(name) != value}
        asked = json.dumps({"run": run, "environment": changed}).encode()
        (read_in, write_in), (read_out, write_out), (read_log, write_log) = os.pipe(), os.pipe(), os.pipe()
        inside = (read_in, write_out, write_log)
        pipes = os.fdopen(write_in, "wb"), os.fdopen(read_out, "rb", 0), os.fdopen(read_log, "rb", 0)
        try:
            socket.send_fds(self._channel, [asked], inside)
            with self._news:
                if self._news.wait_for(lambda: run in self._forked or self._is_gone, _REAP_S) and run in self._forked:
                    return Fork(self, self._forked[run], *pipes)
        except OSError:
            pass  # it has died
        finally:
            for fd in inside:
                os.close(fd)
        for pipe in pipes:
            pipe.close()
        return None

    def wait(self, pid: int, timeout: float) -> int:
        """How a process that was forked ended. Raises subprocess.TimeoutExpired."""
        with self._news:
            if not self._news.wait_for(lambda: pid in self._ended or self._is_gone, timeout):
                raise subprocess.TimeoutExpired(str(WORKER), timeout)
            return self._ended.get(pid, -signal.SIGKILL)  # with the nursery die all that it forked

    def close(self) -> None:
        """Ends it, and everything that it forked."""
        if self._process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        kill_marked(self._mark, _REAP_S)
        self._process.wait()
        self._channel.close()

    def _listen(self) -> None:
        while True:
            try:
                message = self._channel.recv(_MESSAGE_BYTES)
                news = json.loads(message) if message else None
            except (OSError, ValueError):
                news = None
            with self._news:
                self._is_gone = not isinstance(news, dict)
                match news:
                    case {"ready": True}:
                        self._is_ready = True
                    case {"run": int(run), "pid": int(pid)}:
                        self._forked[run] = pid
                    case {"pid": int(pid), "status": int(status)}:
                        self._ended[pid] = status
                self._news.notify_all()
                if self._is_gone:
                    return

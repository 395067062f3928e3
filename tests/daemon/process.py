"""A real daemon in a process of its own, and a real HTTP receiver on loopback."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

from tests.conftest import ROOT

PATIENCE_S = 90.0  # a diagnosis steps back behind everything else: on a busy machine it gets a hundredth of a processor
CONFIG = """
state_dir = "{folder}/state"
[[source]]
name = "bot"
path = "{folder}/logs/*.log"
timezone = "UTC"
[[receiver]]
name = "ops"
url = "json://127.0.0.1:{port}/alerts"
burst = 1000
at_once = 1000
same_kind_wait = "1s"
warning_wait = "500ms"
"""


class Receiver:
    """Takes messages over HTTP. status: what it answers."""

    def __init__(self) -> None:
        self.messages: queue.Queue[dict[str, object]] = queue.Queue()
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.messages.put({**json.loads(body), "received_at": time.time()})
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def next(self, timeout_s: float = PATIENCE_S) -> dict[str, object]:
        """The next message; fails the test when none comes."""
        return self.messages.get(timeout=timeout_s)

    def until(self, text: str) -> list[dict[str, object]]:
        """The messages up to the first that holds a text."""
        found: list[dict[str, object]] = []
        while not found or text not in f"{found[-1]['title']} {found[-1]['message']}":
            found.append(self.next())
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver for one test."""
    made = Receiver()
    try:
        yield made
    finally:
        made.close()


class NotifySocket:
    """What systemd hears: the datagrams of sd_notify."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("")  # an abstract name of the kernel's choice: a path would be too long in a deep folder
        self._socket.settimeout(PATIENCE_S)

    @property
    def address(self) -> str:
        """What NOTIFY_SOCKET holds."""
        return f"@{self._socket.getsockname()[1:].decode()}"

    def until(self, text: str) -> list[str]:
        """What was said up to a message with this text."""
        heard = [""]
        while text not in heard[-1]:
            heard.append(self._socket.recv(4096).decode())
        return heard[1:]

    def close(self) -> None:
        self._socket.close()


class Daemon:
    """``recompile-watch watch`` as a child. It is ready when it says so."""

    def __init__(self, folder: Path, config: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        (folder / "logs").mkdir(exist_ok=True)
        self.config = folder / "watch.toml"
        self.config.write_text(config)
        self._notify = NotifySocket()
        self._environment = {**os.environ, "NOTIFY_SOCKET": self._notify.address, "PYTHONPATH": str(ROOT), **(environment or {})}

    def start(self) -> None:
        """Starts it and waits until it is ready."""
        self.errors = (self.folder / "errors").open("ab")
        command = [sys.executable, "-m", "recompile_watch", "watch", "--config", str(self.config)]
        self.process = subprocess.Popen(command, env=self._environment, stderr=self.errors, cwd=ROOT)
        self._notify.until("READY=1")

    def heard(self, text: str) -> list[str]:
        """What it tells systemd, up to a text."""
        return self._notify.until(text)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def end(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        self.errors.close()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._notify.close()

    def log(self, name: str = "bot.log") -> Path:
        return self.folder / "logs" / name

    def write(self, text: bytes, name: str = "bot.log") -> None:
        with self.log(name).open("ab") as stream:
            stream.write(text)

    def asked(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Another command of the program, about this watch."""
        command = [sys.executable, "-m", "recompile_watch", *words, "--state-dir", str(self.folder / "state")]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=60)

    def incidents(self) -> list[dict[str, object]]:
        return cast(list[dict[str, object]], json.loads(self.asked("incidents", "list", "--all", "--json").stdout))


@contextmanager
def daemon(folder: Path, config: str, environment: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """A running daemon for one test."""
    made = Daemon(folder, config, environment)
    try:
        made.start()
        yield made
    finally:
        made.close()


def config_for(folder: Path, port: int, extra: str = "") -> str:
    """Ten lines for a folder and a receiver."""
    return CONFIG.replace("{folder}", str(folder)).replace("{port}", str(port)) + extra

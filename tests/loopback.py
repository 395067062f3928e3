"""A receiver on loopback that does what a script says: answers, waits, drips, resets. Records what it got."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Behaviour = Callable[[socket.socket], None]


@dataclass
class Request:
    """One request as received. at: monotonic seconds when all of it was there."""

    line: str
    headers: dict[str, str]
    body: bytes
    at: float

    def json(self) -> dict[str, object]:
        """The body."""
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


@dataclass
class Receiver:
    """The receiver. script: what it does with the first, second, … connection; the last behaviour stays."""

    port: int
    script: list[Behaviour]
    requests: list[Request] = field(default_factory=list)
    got_one: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    def url(self, scheme: str = "json", path: str = "/alerts") -> str:
        """Its address."""
        return f"{scheme}://127.0.0.1:{self.port}{path}"


def answer(status: int, *headers: str, body: bytes = b"") -> Behaviour:
    """Answers with this status and these header lines."""
    head = "".join(f"{header}\r\n" for header in headers)
    whole = f"HTTP/1.1 {status} X\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return lambda connection: connection.sendall(whole)


def reset(connection: socket.socket) -> None:
    """Ends the connection with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


@contextmanager
def receiver(*script: Behaviour, host: str = "127.0.0.1") -> Iterator[Receiver]:
    """A receiver that follows the script; answers 200 without one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        server.settimeout(0.05)
        made = Receiver(server.getsockname()[1], list(script) or [answer(200)])
        threads = [threading.Thread(target=_serve, args=(server, made), daemon=True)]
        threads[0].start()
        try:
            yield made
        finally:
            made.stopping.set()
            threads[0].join(5)


def hang(made: threading.Event) -> Behaviour:
    """Never answers, until the event is set."""
    return lambda connection: void(made.wait(30))


def drip(made: threading.Event) -> Behaviour:
    """Answers one byte at a time and never comes to an end."""

    def behaviour(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not made.wait(0.05):
            connection.sendall(b"a")

    return behaviour


def void(_: object) -> None:
    """Nothing."""


def _serve(server: socket.socket, made: Receiver) -> None:
    count = 0
    while not made.stopping.is_set():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        behaviour = made.script[min(count, len(made.script) - 1)]
        count += 1
        threading.Thread(target=_one, args=(connection, behaviour, made), daemon=True).start()


def _one(connection: socket.socket, behaviour: Behaviour, made: Receiver) -> None:
    with connection:
        connection.settimeout(10)
        try:
            request = read_request(connection)
            if request is not None:
                made.requests.append(request)
                made.got_one.set()
                behaviour(connection)
        except OSError:
            return


def read_request(connection: socket.socket) -> Request | None:
    """A whole request, None when the other side sends nothing."""
    taken = b""
    while b"\r\n\r\n" not in taken:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        taken += chunk
    head, _, body = taken.partition(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Request(line, headers, body, time.monotonic())

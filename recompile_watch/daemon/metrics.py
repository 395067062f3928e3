"""Prometheus metrics and health over HTTP, on a loopback address; off unless the configuration asks for it.

A thread serves what the loop last set; it reads numbers only and changes nothing. A request whose Host is no loopback
name is refused, so that no web page can read it through a browser (DNS rebinding).
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from recompile_watch.core.bounds import LOOPBACK, loopback_of
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.heard import Heard
from recompile_watch.core.runs import Stretch

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

STALE_S = 30.0  # without a turn for so long the loop hangs
MAX_KINDS = 100


class Metrics:
    """The numbers of one watch."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: monotonic seconds."""
        self.registry = CollectorRegistry()
        self._clock = clock
        self._turned_at = clock()
        self._is_unwritable = False
        self._kinds: set[str] = set()
        self._lines = self._counter("recompile_watch_lines_total", "Complete lines read.", ["source"])
        self._events = self._counter("recompile_watch_events_total", "Events read, of the kinds that the watch judges.", ["kind"])
        self._turns = self._counter("recompile_watch_turns_total", "Turns of the loop.")
        self._failed_commits = Gauge("recompile_watch_failed_commits", "Commits that failed since the start.", registry=self.registry)
        self._messages = self._counter("recompile_watch_messages_total", "Attempts to deliver, by receiver and outcome.", ["receiver", "outcome"])
        self._lag = Gauge("recompile_watch_lag_bytes", "Bytes written and not read yet.", ["source"], registry=self.registry)
        self._incidents = Gauge("recompile_watch_incidents", "Incidents by state and severity.", ["state", "severity"], registry=self.registry)
        self._outbox = Gauge("recompile_watch_outbox_messages", "Messages waiting or under way.", ["state"], registry=self.registry)

    def heard(self, heard: Iterable[Heard]) -> None:
        """Counts what a turn read."""
        for one in heard:
            self._lines.labels(one.source).inc(one.lines)
            for item in one.events:
                for kind, n in [(run.kind, run.n) for run in item.runs] if isinstance(item, Stretch) else [(item.kind, 1)]:
                    self._events.labels(self._kind(kind)).inc(n)

    def turned(self, failed_commits: int, lag_bytes: Mapping[str, int], outbox: Mapping[str, int], *, is_unwritable: bool) -> None:
        """A turn is done. is_unwritable: the state could not be written for some time."""
        self._turned_at, self._is_unwritable = self._clock(), is_unwritable
        self._turns.inc()
        self._failed_commits.set(failed_commits)
        for source, count in lag_bytes.items():
            self._lag.labels(source).set(count)
        for state, count in outbox.items():
            self._outbox.labels(state).set(count)

    def incidents(self, counts: Mapping[tuple[str, str], int]) -> None:
        """How many incidents there are, by state and severity."""
        self._incidents.clear()
        for (state, severity), count in counts.items():
            self._incidents.labels(state, severity).set(count)

    def delivered(self, receiver: str, outcome: str) -> None:
        """An attempt to deliver has ended."""
        self._messages.labels(receiver, outcome).inc()

    @property
    def trouble(self) -> str | None:
        """What is wrong with the watch itself; None while it turns and remembers."""
        if self._clock() - self._turned_at >= STALE_S:
            return "the loop hangs"
        return "the state cannot be written" if self._is_unwritable else None

    def _kind(self, kind: str) -> str:
        if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
            return "other"
        self._kinds.add(kind)
        return kind

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(name, text, list(labels), registry=self.registry)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    timeout = 5

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: what a request holds is foreign text."""


class MetricsServer:
    """Serves ``/metrics`` and ``/healthz`` until it is closed."""

    def __init__(self, listen: str, metrics: Metrics) -> None:
        """listen: ``address:port``. Raises ConfigError when that is no free loopback address."""
        address = loopback_of(listen)
        if address is None:
            raise ConfigError(f'metrics.listen: {listen!r} is no loopback address with a port; write one such as "127.0.0.1:9464"')
        host, port = address
        self._metrics = metrics
        try:
            self._server = make_server("127.0.0.1" if host == "localhost" else host, port, self._answer, _Server, _Silent)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"metrics.listen: {listen} cannot be used ({error}); choose another port") from None
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: "WSGIEnvironment", start: "StartResponse") -> list[bytes]:
        status, content_type, body = self._found(request)
        start(status, [("Content-Type", content_type), ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")])
        return [body]

    def _found(self, request: "WSGIEnvironment") -> tuple[str, str, bytes]:
        host = str(request.get("HTTP_HOST", "")).rpartition(":")[0].strip("[]") or str(request.get("HTTP_HOST", ""))
        if host not in LOOPBACK:
            return "421 Misdirected Request", "text/plain", b"ask a loopback address\n"
        if request.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b"only GET\n"
        match request.get("PATH_INFO"):
            case "/metrics":
                return "200 OK", CONTENT_TYPE_LATEST, generate_latest(self._metrics.registry)
            case "/healthz":
                trouble = self._metrics.trouble
                return ("503 Service Unavailable", "text/plain", f"{trouble}\n".encode()) if trouble else ("200 OK", "text/plain", b"ok\n")
        return "404 Not Found", "text/plain", b"/metrics and /healthz\n"

"""Metrics and health over HTTP, asked as Prometheus and a browser would."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recompile_watch.core.errors import ConfigError
from recompile_watch.core.heard import Heard
from recompile_watch.daemon.metrics import MAX_KINDS, STALE_S, Metrics, MetricsServer
from tests.core.watching import event


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def served(metrics: Metrics) -> Iterator[int]:
    """The port on which they are served."""
    server = MetricsServer("127.0.0.1:0", metrics)
    try:
        yield server.port
    finally:
        server.close()


def asked(port: int, path: str, *, host: str = "localhost", method: str = "GET") -> tuple[int, str]:
    """Status and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_prometheus_can_read_it() -> None:
    """Every sample has its help and type; a label that would end the line is escaped; kinds without end become ``other``."""
    metrics = Metrics(_Clock())
    hostile = 'a"b\\c\nfake_metric 1'
    metrics.heard([Heard(hostile, "-", tuple(event(f"kind_{n}") for n in range(MAX_KINDS + 50)), 7)])
    metrics.incidents({("open", "critical"): 2})
    metrics.turned(0, {hostile: 12}, {"due": 1}, is_unwritable=False)
    with served(metrics) as port:
        status, text = asked(port, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200 and "fake_metric" not in families and all(family.documentation for family in families.values())
    (lines,) = [sample for sample in families["recompile_watch_lines"].samples if sample.name.endswith("_total")]
    assert (lines.labels, lines.value) == ({"source": hostile}, 7)
    events = {sample.labels["kind"]: sample.value for sample in families["recompile_watch_events"].samples if sample.name.endswith("_total")}
    assert len(events) == MAX_KINDS + 1 and events["other"] == 50


def test_health_is_that_of_the_watch() -> None:
    """Well, then with a state that cannot be written, well again, then with a loop that hangs."""
    clock = _Clock()
    metrics = Metrics(clock)
    with served(metrics) as port:
        assert asked(port, "/healthz") == (200, "ok\n")
        metrics.turned(9, {}, {}, is_unwritable=True)
        assert asked(port, "/healthz") == (503, "the state cannot be written\n")
        metrics.turned(9, {}, {}, is_unwritable=False)
        assert asked(port, "/healthz") == (200, "ok\n")
        clock.now += STALE_S
        assert asked(port, "/healthz") == (503, "the loop hangs\n")


def test_a_web_page_cannot_read_it() -> None:
    """A foreign name in Host is refused, and so is everything but reading."""
    with served(Metrics(_Clock())) as port:
        assert asked(port, "/metrics", host="evil.example")[0] == 421
        assert asked(port, "/metrics", host=f"[::1]:{port}")[0] == 200
        assert asked(port, "/metrics", method="POST")[0] == 405 and asked(port, "/")[0] == 404


@pytest.mark.parametrize("listen", ["0.0.0.0:9464", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "example.org:80"])
def test_only_loopback_is_listened_on(listen: str) -> None:
    """Anything else is a mistake of the configuration."""
    with pytest.raises(ConfigError, match="no loopback address"):
        MetricsServer(listen, Metrics(_Clock()))

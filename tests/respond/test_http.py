"""Tests of posting: what each answer and each failure of a receiver means, over real connections."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Outcome, Reason, Refused, Retry
from recompile_watch.respond.addresses import body_of, json_address, slack_address
from recompile_watch.respond.http import post, retry_after_s
from recompile_watch.respond.receivers import form_of
from tests.conftest import DATA
from tests.loopback import Behaviour, answer, hang, read_request, receiver, reset

CERTIFICATE = DATA / "loopback.pem"  # self-signed, for localhost, with its key; made for these tests


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own proxies are not part of these tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def posted(*script: Behaviour, timeout_s: float = 5.0) -> Outcome:
    """What becomes of a post to a receiver that behaves so."""
    with receiver(*script) as made:
        return post(json_address(made.url()), b"{}", timeout_s)


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (answer(200), Delivered()),
        (answer(204), Delivered()),
        (answer(429), Retry(Reason.RATE_LIMIT, "HTTP 429")),
        (answer(429, "Retry-After: 30"), Retry(Reason.RATE_LIMIT, "HTTP 429", 30.0)),
        (
            answer(429, "Date: Thu, 30 Oct 2025 09:00:00 GMT", "Retry-After: Thu, 30 Oct 2025 09:02:00 GMT"),
            Retry(Reason.RATE_LIMIT, "HTTP 429", 120.0),
        ),
        (answer(429, "Retry-After: soon"), Retry(Reason.RATE_LIMIT, "HTTP 429")),
        (answer(503, "Retry-After: 5"), Retry(Reason.SERVER, "HTTP 503", 5.0)),
        (answer(500), Retry(Reason.SERVER, "HTTP 500")),
        (answer(408), Retry(Reason.SERVER, "HTTP 408")),
        (answer(404, body=b"no_service"), Refused(Reason.REJECTED, "HTTP 404 (no_service)")),
        (answer(400, body=b"<b>secret</b>"), Refused(Reason.REJECTED, "HTTP 400")),
        (answer(401), Refused(Reason.LOGIN, "HTTP 401")),
        (answer(403), Refused(Reason.LOGIN, "HTTP 403")),
        (
            answer(302, "Location: http://elsewhere/"),
            Refused(Reason.MOVED, "HTTP 302: the receiver has moved; put its new address into the configuration"),
        ),
        (reset, Retry(Reason.CONNECTION, "the connection ended without an answer", is_maybe_delivered=True)),
        (lambda _: None, Retry(Reason.CONNECTION, "the connection ended without an answer", is_maybe_delivered=True)),
        (lambda c: c.sendall(b"nonsense\r\n\r\n"), Retry(Reason.CONNECTION, "the connection ended without an answer", is_maybe_delivered=True)),
    ],
)
def test_each_answer_has_its_meaning(behaviour: Behaviour, outcome: Outcome) -> None:
    """2xx is delivered; 429, 408 and 5xx may work later; other 4xx and redirects never; a lost connection is in doubt (case 83)."""
    assert posted(behaviour) == outcome


def test_no_answer_in_time() -> None:
    """A receiver that takes the message and says nothing may have it."""
    stop = threading.Event()
    try:
        assert posted(hang(stop), timeout_s=0.3) == Retry(Reason.TIMEOUT, "no answer in time", is_maybe_delivered=True)
    finally:
        stop.set()


def test_nobody_listens() -> None:
    """A refused connection may work later; nothing was delivered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert post(json_address(f"json://127.0.0.1:{port}/"), b"{}", 2) == Retry(Reason.CONNECTION, "no connection: connection refused")


def test_an_unknown_host() -> None:
    """A host name that does not resolve is told as such (case 87)."""
    assert post(json_address("json://recompile-watch.invalid/"), b"{}", 5) == Retry(Reason.DNS, "the host name is not known here")


def test_ipv6() -> None:
    """An IPv6 address works, with brackets in the address and in the Host header."""
    try:
        with receiver(host="::1") as made:
            assert post(json_address(f"json://[::1]:{made.port}/x"), b"{}", 5) == Delivered()
            assert made.requests[0].headers["host"] == f"[::1]:{made.port}"
    except OSError:
        pytest.skip("this machine has no IPv6")


@contextmanager
def tls_receiver() -> Iterator[int]:
    """The port of a receiver with a certificate for localhost that nobody vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def serve() -> None:
            try:
                plain, _ = server.accept()
                with context.wrap_socket(plain, server_side=True) as connection:
                    read_request(connection)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


def test_certificates_are_checked() -> None:
    """A certificate that nobody vouches for is refused, in words without the host."""
    with tls_receiver() as port:
        outcome = post(json_address(f"jsons://localhost:{port}/"), b"{}", 5)
    assert isinstance(outcome, Retry) and outcome.reason is Reason.TLS and "self" in outcome.words and "localhost" not in outcome.words


def test_an_own_authority_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSL_CERT_FILE makes a private authority known."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with tls_receiver() as port:
        assert post(json_address(f"jsons://localhost:{port}/"), b"{}", 5) == Delivered()


def test_a_certificate_of_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate for another name is refused."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with tls_receiver() as port:
        outcome = post(json_address(f"jsons://127.0.0.1:{port}/"), b"{}", 5)
    assert isinstance(outcome, Retry) and outcome.reason is Reason.TLS and "127" not in outcome.words


def test_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain request goes to the proxy of the environment with its login; an exception goes directly."""
    with receiver() as proxy, receiver() as direct:
        monkeypatch.setenv("http_proxy", f"http://user:word@127.0.0.1:{proxy.port}")
        assert post(json_address("json://bot.invalid:81/alerts"), b"{}", 5) == Delivered()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert post(json_address(direct.url()), b"{}", 5) == Delivered()
    assert proxy.requests[0].line == "POST http://bot.invalid:81/alerts HTTP/1.1"
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic dXNlcjp3b3Jk"
    assert len(proxy.requests) == len(direct.requests) == 1


@pytest.mark.parametrize("scheme", ["json", "jsons"])
def test_a_proxy_that_fails(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """A proxy that wants a login, or cannot be reached, is told as the proxy's failure (case 87)."""
    with receiver(answer(407)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        outcome = post(json_address(f"{scheme}://bot.invalid/alerts"), b"{}", 5)
    assert isinstance(outcome, Retry) and outcome.reason is Reason.PROXY
    outcome = post(json_address(f"{scheme}://bot.invalid/alerts"), b"{}", 5)
    assert isinstance(outcome, Retry) and outcome.reason is Reason.PROXY


@pytest.mark.parametrize("proxy", ["socks5://x", "http://", "::::"])
def test_a_proxy_that_is_none(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """An address in the environment that is no proxy is an outcome with a reason."""
    monkeypatch.setenv("http_proxy", proxy)
    outcome = post(json_address("json://bot.invalid/alerts"), b"{}", 5)
    assert isinstance(outcome, Retry) and outcome.reason is Reason.PROXY


def test_apprise_options_of_an_address() -> None:
    """Login, headers, query, method and fields of apprise's `json://` do the same here."""
    address = json_address("jsons://us%40er:p%2Fw@host:8443/a%20b/?method=put&+X-Env=prod&-key=a+b&:title=&:message=text&:team=ml&format=text")
    assert (address.is_secure, address.host, address.port, address.path) == (True, "host", 8443, "/a%20b/?key=a%2Bb")
    assert address.method == "PUT"
    assert address.headers == (("X-Env", "prod"), ("Authorization", "Basic dXNAZXI6cC93"))
    assert body_of(address, '{"title": "t", "message": "m"}') == b'{"text": "m", "team": "ml"}'


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("json://", "no host"),
        ("json://ho st/", "no host"),
        ("json://host:port/", "no URL"),
        ("json://host:99999/", "no URL"),
        ("json://[::1/", "no URL"),
        ("json://host/?verify=no", "always checked"),
        ("json://host/?method=GET", "POST"),
        ("json://host/?colour=red", "not known"),
        ("json://host/?+X-A=b%0d%0aX-B:%20c", "header"),
        ("json://host/?+X%20A=b", "header"),
    ],
)
def test_bad_addresses(url: str, words: str) -> None:
    """Each mistake in an address is told in words, and quotes nothing of the address (case 91)."""
    with pytest.raises(DeliveryError, match=words):
        json_address(url)


@pytest.mark.parametrize(
    ("url", "path", "host"),
    [
        ("slack://T000/B000/XXXX", "/services/T000/B000/XXXX", "hooks.slack.com"),
        ("slack://bot@T000/B000/XXXX/#ops", "/services/T000/B000/XXXX", "hooks.slack.com"),
        ("https://hooks.slack.com/services/T000/B000/XXXX", "/services/T000/B000/XXXX", "hooks.slack.com"),
        ("https://hooks.slack.com/workflows/T000/A1/2/XXXX", "/workflows/T000/A1/2/XXXX", "hooks.slack.com"),
        ("slack+http://127.0.0.1:81/hook", "/hook", "127.0.0.1"),
    ],
)
def test_slack_webhooks(url: str, path: str, host: str) -> None:
    """apprise's form of a webhook, Slack's own, and one that speaks Slack elsewhere."""
    address = slack_address(url)
    assert form_of(url) is Form.SLACK
    assert (address.path, address.host, address.is_secure) == (path, host, not url.startswith("slack+http:"))


@pytest.mark.parametrize("channel", ["#ops", "ops", "%23ops"])
def test_a_channel_of_a_webhook(channel: str) -> None:
    """A channel in the address goes into the payload."""
    address = slack_address(f"slack://T000/B000/XXXX/{channel}")
    assert body_of(address, '{"text": "t"}') == b'{"text": "t", "channel": "#ops"}'


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example"])
def test_a_host_name_that_cannot_be(host: str) -> None:
    """A host name with an empty or an overlong part is refused."""
    outcome = post(json_address(f"json://{host}/"), b"{}", 2)
    assert isinstance(outcome, Refused) and outcome.reason is Reason.ADDRESS


@pytest.mark.parametrize("url", ["slack://T000", "slack://T000/B000", "slack://T000/B 00/X", "https://hooks.slack.com/", "slack+https:///x"])
def test_bad_slack_webhooks(url: str) -> None:
    """A webhook without its three tokens, or its host, is refused."""
    with pytest.raises(DeliveryError):
        slack_address(url)


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("jsons://x", Form.JSON), ("MAILTO://x", Form.MAIL), ("mailtos://x", Form.MAIL), ("slack://xoxb-1-2-3/#ops", Form.TEXT),
        ("tgram://x", Form.TEXT),
        ("nonsense", Form.TEXT), ("", Form.TEXT), ("https://discord.com/api/webhooks/1/x", Form.TEXT),
    ],
)  # fmt: skip
def test_forms(url: str, form: Form) -> None:
    """What has no code of its own here takes plain text through apprise."""
    assert form_of(url) is form


def test_retry_after_in_the_past_is_now() -> None:
    """A date that has passed asks for no wait."""
    assert retry_after_s("Thu, 30 Oct 2025 09:00:00 GMT", "Thu, 30 Oct 2025 09:02:00 GMT") == 0.0

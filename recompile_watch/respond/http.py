"""Posts a message over HTTP, once, and says what became of it: a status, a time to wait, the kind of failure.

Certificates are checked, proxies come from the environment, redirects are not followed (a message would go to a host
that nobody configured). No text of an exception is passed on: it may hold the address.
"""

import http.client
import os
import re
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from socket import gaierror

from recompile_watch.core.messages import Delivered, Outcome, Reason, Refused, Retry
from recompile_watch.respond.addresses import Address

_HEADERS = {"User-Agent": "recompile-watch", "Content-Type": "application/json; charset=utf-8", "Connection": "close"}
_WORD = re.compile(rb"[a-z_]{3,60}")  # such as Slack's invalid_blocks, no_service
_MAX_ANSWER_BYTES = 4096
REACHED = "it can be connected to"
_NO_PROXY = Retry(Reason.PROXY, "the proxy or the certificates that the environment names cannot be used")
_NO_HOST = Refused(Reason.ADDRESS, "the host name in the address cannot be one: a part of it is empty or longer than 63 characters")


@dataclass(frozen=True, slots=True)
class _Route:
    """A connection, not yet made, the request's target on it, and the headers that a proxy needs."""

    connection: http.client.HTTPConnection
    target: str
    headers: dict[str, str]
    has_proxy: bool


def post(address: Address, body: bytes, timeout_s: float) -> Outcome:
    """Posts JSON. timeout_s: seconds to wait for each of connecting, sending and the answer."""
    try:
        route = _route(address, timeout_s)
    except (OSError, ValueError):  # a proxy that is no address, a file of certificates that is none
        return _NO_PROXY
    connection, is_sent = route.connection, False
    try:
        connection.connect()
        is_sent = True
        connection.request(address.method, route.target, body, {**_HEADERS, **route.headers, **dict(address.headers)})
        answer = connection.getresponse()
        return _outcome(answer.status, answer.headers.get("Retry-After"), answer.headers.get("Date"), _said(answer))
    except (OSError, http.client.HTTPException) as error:
        return _failure(error, is_sent=is_sent, has_proxy=route.has_proxy)
    except UnicodeError:
        return _NO_HOST
    finally:
        connection.close()


def reach(address: Address, timeout_s: float) -> Outcome:
    """Connects, with TLS where the address asks for it, and sends nothing. timeout_s: seconds to wait for it."""
    try:
        route = _route(address, timeout_s)
    except (OSError, ValueError):
        return _NO_PROXY
    try:
        route.connection.connect()
    except (OSError, http.client.HTTPException) as error:
        return _failure(error, is_sent=False, has_proxy=route.has_proxy)
    except UnicodeError:
        return _NO_HOST
    finally:
        route.connection.close()
    return Delivered(REACHED)


def retry_after_s(value: str | None, date: str | None) -> float | None:
    """Seconds in a Retry-After header: a number, or a date, which is taken against the answer's own Date. None without one."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}", value.strip()):
        return float(value)
    try:
        until = parsedate_to_datetime(value).timestamp()
        now = parsedate_to_datetime(date).timestamp() if date else time.time()
    except (ValueError, OverflowError):
        return None
    return max(0.0, until - now)


def _route(address: Address, timeout_s: float) -> _Route:
    proxy = _proxy(address)
    kind = http.client.HTTPSConnection if address.is_secure else http.client.HTTPConnection
    if proxy is None:
        return _Route(kind(address.host, address.port, timeout=timeout_s), address.path, {}, False)
    host, port, login = proxy
    headers = {"Proxy-Authorization": login} if login else {}
    connection = kind(host, port, timeout=timeout_s)
    if address.is_secure:
        connection.set_tunnel(address.host, address.port, headers)
        return _Route(connection, address.path, {}, True)
    name = f"[{address.host}]" if ":" in address.host else address.host
    return _Route(connection, f"http://{name}{f':{address.port}' if address.port else ''}{address.path}", headers, True)


def _proxy(address: Address) -> tuple[str, int, str] | None:
    """Host, port and login of the proxy for an address; None where it is reached directly."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # takes 10 ms, rarely needed

    proxies = getproxies()
    url = proxies.get("https" if address.is_secure else "http") or proxies.get("all")
    host = f"{address.host}:{address.port}" if address.port else address.host
    if not url or proxy_bypass(host):
        return None
    from base64 import b64encode
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return parts.hostname, parts.port or 3128, f"Basic {b64encode(login.encode()).decode()}" if login else ""


def _said(answer: http.client.HTTPResponse) -> str:
    """The one word that some services answer with; nothing else of an answer is passed on."""
    if 200 <= answer.status < 300:
        return ""
    word = _WORD.fullmatch(answer.read(_MAX_ANSWER_BYTES).strip())
    return f" ({word[0].decode()})" if word else ""


def _outcome(status: int, wait: str | None, date: str | None, said: str) -> Outcome:
    words = f"HTTP {status}{said}"
    if 200 <= status < 300:
        return Delivered()
    if status == 429:
        return Retry(Reason.RATE_LIMIT, words, retry_after_s(wait, date))
    if status in (408, 425) or status >= 500:
        return Retry(Reason.SERVER, words, retry_after_s(wait, date))
    if status == 407:
        return Retry(Reason.PROXY, f"{words}: the proxy wants a login")
    if status in (401, 403):
        return Refused(Reason.LOGIN, words)
    if 300 <= status < 400:
        return Refused(Reason.MOVED, f"{words}: the receiver has moved; put its new address into the configuration")
    return Refused(Reason.REJECTED, words)


def _failure(error: Exception, *, is_sent: bool, has_proxy: bool) -> Retry:
    match error:
        case gaierror():
            return Retry(Reason.DNS, "the host name is not known here" if not has_proxy else "the proxy's host name is not known here")
        case ssl.SSLCertVerificationError():
            return Retry(Reason.TLS, f"its certificate is not valid: {_plain_reason(error.verify_message)}")
        case ssl.SSLError():
            return Retry(Reason.TLS, "no TLS connection could be made", is_maybe_delivered=is_sent)
        case TimeoutError():
            return Retry(Reason.TIMEOUT, "no answer in time" if is_sent else "no connection in time", is_maybe_delivered=is_sent)
        case http.client.HTTPException() | ConnectionResetError() | BrokenPipeError() if is_sent:
            return Retry(Reason.CONNECTION, "the connection ended without an answer", is_maybe_delivered=True)
    reason = Reason.PROXY if has_proxy else Reason.CONNECTION
    what = "through the proxy" if has_proxy else os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else "it failed"
    return Retry(reason, f"no connection: {what}", is_maybe_delivered=is_sent)


def _plain_reason(text: str) -> str:
    """OpenSSL's reason without the host name that it may quote."""
    return text.partition(",")[0][:80] if "'" not in text.partition(",")[0] else "it belongs to another host"

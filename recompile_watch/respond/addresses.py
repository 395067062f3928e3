"""Addresses of receivers that are posted to: ``json://`` and Slack's webhooks become host, path and headers.

Written by hand because apprise gives neither a status code nor Retry-After back, and takes 150 ms and 30 MB to load.
What apprise's own ``json://`` understands is understood here, but for ``verify=no``: certificates are always checked.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from recompile_watch.core.errors import DeliveryError

_METHODS = frozenset({"POST", "PUT", "PATCH"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~\w-]+", re.ASCII)
_PLAIN = re.compile(r"[\x20-\x7e]*")
_HOST = re.compile(r"[\w.:%-]{1,253}")
_TARGET = re.compile(r"[\x21-\x7e]{1,2000}")
_HOOK_PATH = re.compile(r"/?[\w.~-][\w.~/-]{1,400}", re.ASCII)
# Options of apprise's URLs that change nothing here: what it shows, how it splits, its own time-outs and retries.
_IGNORED = frozenset(
    {"method", "format", "overflow", "rto", "cto", "retry", "wait", "tz", "image", "footer", "emojis", "interpret", "store", "redirect"}
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to post. All of it is secret but for ``is_secure``. fields: extra or renamed fields of a JSON body."""

    is_secure: bool
    host: str = field(repr=False)
    port: int | None = field(repr=False)
    path: str = field(repr=False)
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def json_address(url: str) -> Address:
    """The address in ``json://user:password@host:8080/path?+Header=value&:field=value&-query=value``.

    Raises DeliveryError, which says what is wrong and quotes nothing of it.
    """
    parts = _split(url)
    headers, fields, query = [], [], []
    options = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))
    for name, value in options.items():
        if name.startswith("+"):
            headers.append((name[1:], value))
        elif name.startswith(":"):
            fields.append((name[1:], value))
        elif name.startswith("-"):
            query.append((name[1:], value))
        else:
            _check_option(name, value)
    headers += _login(parts)
    path = quote(unquote(parts.path or "/"), safe="/:@!$&'()*+,;=~-._") + (f"?{urlencode(query)}" if query else "")
    return Address(
        parts.scheme.lower() == "jsons", *_host(parts), path, options.get("method", "POST").upper(), _checked(headers), tuple(fields)
    )  # fmt: skip


def slack_address(url: str) -> Address:
    """The address of an incoming webhook: ``slack://T/B/X``, ``https://hooks.slack.com/services/T/B/X``.

    ``slack+https://host/path`` is a webhook that speaks Slack elsewhere. Raises DeliveryError.
    """
    parts = _split(url)
    if parts.scheme.lower() == "slack":
        tokens = [unquote(word) for word in (parts.netloc.rpartition("@")[2], *parts.path.split("/")) if word]
        if len(tokens) < 3 or not _HOOK_PATH.fullmatch("/".join(tokens[:3])):
            raise DeliveryError("a Slack webhook is written slack://TOKEN_A/TOKEN_B/TOKEN_C")
        named = tokens[3] if len(tokens) > 3 else f"#{unquote(parts.fragment)}" if parts.fragment else ""
        channel = (("channel", named if named[0] in "#@+" else f"#{named}"),) if named else ()
        return Address(True, "hooks.slack.com", None, f"/services/{'/'.join(tokens[:3])}", fields=channel)
    if not _HOOK_PATH.fullmatch(parts.path):
        raise DeliveryError("a Slack webhook has a path such as /services/T000/B000/XXXX")
    return Address(not parts.scheme.lower().endswith("http"), *_host(parts), parts.path)


def ping_address(url: str) -> Address:
    """The address of a dead-man's switch, ``https://host/path?query``, as it stands. Raises DeliveryError."""
    parts = _split(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if parts.scheme.lower() not in ("http", "https") or not _TARGET.fullmatch(target):
        raise DeliveryError("the address of a heartbeat is written https://host/path")
    return Address(parts.scheme.lower() == "https", *_host(parts), target, "GET", _checked(_login(parts)))


def body_of(address: Address, payload: str) -> bytes:
    """A JSON payload with the address's own fields: an empty value drops a field, another one renames it or is added."""
    if not address.fields:
        return payload.encode()
    body = json.loads(payload)
    for name, value in address.fields:
        if name in body:
            held = body.pop(name)
            if value:
                body[value] = held
        else:
            body[name] = value
    return json.dumps(body, ensure_ascii=False).encode()


def secrets_of(url: str) -> tuple[str, ...]:
    """Every part of a URL that must not be told, as written and unquoted, longest first."""
    rest = url.partition("://")[2]
    words = {url, rest, *re.split(r"[/?&=:@+#]", rest)}
    found = {form for word in words for form in (word, unquote(word)) if len(form) >= 6}
    return tuple(sorted(found, key=len, reverse=True))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read here, because it raises
    except ValueError:
        raise DeliveryError("the address is no URL; write one such as json://host:8080/path") from None
    return parts


def _host(parts: SplitResult) -> tuple[str, int | None]:
    host = unquote(parts.hostname or "")
    if not _HOST.fullmatch(host):
        raise DeliveryError("the address names no host; write one such as json://host:8080/path")
    return host, parts.port


def _check_option(name: str, value: str) -> None:
    if name == "method" and value.upper() not in _METHODS:
        raise DeliveryError(f"the address asks for a method that carries no message; use one of {', '.join(sorted(_METHODS))}")
    if name == "verify" and value.lower() not in ("yes", "true", "1", "on"):
        raise DeliveryError("certificates are always checked; leave out verify=no and set SSL_CERT_FILE to the receiver's own authority")
    if name not in _IGNORED and name != "verify":
        raise DeliveryError("the address has an option that is not known; known are method, +Header=, :field= and -query=")


def _login(parts: SplitResult) -> list[tuple[str, str]]:
    if parts.username is None:
        return []
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [("Authorization", "Basic " + base64.b64encode(login.encode()).decode())]


def _checked(headers: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if not all(_TOKEN.fullmatch(name) and _PLAIN.fullmatch(value) for name, value in headers):
        raise DeliveryError("the address has a header that HTTP does not allow")
    return tuple(headers)

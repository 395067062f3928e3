"""Every receiver that apprise knows and that has no code of its own here: plain text, one Apprise object each."""

import logging
import re
from collections.abc import Sequence
from html import escape
from typing import Protocol

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Message, Outcome, Reason, Refused, Retry
from recompile_watch.respond.addresses import secrets_of

TALKATIVE = ("apprise", "urllib3", "requests")
_UNKNOWN = (
    "apprise does not know this kind of address, or something is missing in it; `apprise --details` lists what it knows,"
    " and a web hook of your own is written jsons://host/path"
)
_STATUS = re.compile(r"\berror=(?P<status>[1-5]\d\d)\b")  # the only place where apprise tells an HTTP status is its log


class SecretFilter(logging.Filter):
    """Takes a receiver's secrets out of what libraries log: apprise logs a malformed URL whole."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: the record stays, without the secrets."""
        record.msg, record.args, record.exc_info = self.cleaned(record.getMessage()), (), None
        return True

    def cleaned(self, text: str) -> str:
        """The text with ``***`` for each secret."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def quieten(url: str) -> None:
    """Pins the loggers of apprise and its libraries to INFO and takes the URL's secrets out of them."""
    redaction = SecretFilter(secrets_of(url))
    for name in TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [logging.NullHandler()]
        logger.filters = [redaction]


def check_other(url: str) -> None:
    """Raises DeliveryError for a URL that apprise does not understand, or has no code for."""
    from apprise import Apprise

    if Apprise.instantiate(url) is None:
        raise DeliveryError(_UNKNOWN)


def send_other(message: Message, url: str, timeout_s: float) -> Outcome:
    """Sends plain text through apprise. timeout_s: seconds for all of it."""
    from apprise import Apprise, AppriseAsset, NotifyFormat
    from apprise.result import AppriseResultStatus

    said: list[str] = []
    service = Apprise(asset=AppriseAsset(app_id="recompile-watch", async_mode=False))
    if not service.add(url):
        return Refused(Reason.ADDRESS, _UNKNOWN)
    title, body = fitted(message, service[0])
    result = service.notify(
        body=body, title=title, notify_type=message.tone.value, body_format=NotifyFormat.TEXT, interpret_escapes=False,
        timeout=timeout_s, log_callback=lambda entry, _: said.append(str(getattr(entry, "message", ""))),
    )  # fmt: skip
    match result.status:
        case AppriseResultStatus.SUCCESS:
            return Delivered()
        case AppriseResultStatus.NOMATCH:
            return Refused(Reason.ADDRESS, "apprise finds no receiver in the address")
        case AppriseResultStatus.TIMEOUT:
            return Retry(Reason.TIMEOUT, "no answer in time", is_maybe_delivered=True)
    return _failure(said)


class Limits(Protocol):
    """What an apprise plug-in says of the service it speaks to."""

    title_maxlen: int
    body_maxlen: int

    @property
    def notify_format(self) -> object:
        """``text``, ``html`` or ``markdown``, or several of them."""


def fitted(message: Message, limits: Limits) -> tuple[str, str]:
    """Title and text as long as the service takes them: apprise passes longer ones on, and services drop them."""
    title = message.title if not limits.title_maxlen or len(message.title) <= limits.title_maxlen else message.title[: limits.title_maxlen - 1] + "…"
    room = limits.body_maxlen - (0 if limits.title_maxlen else len(title) + 2)  # a service without titles gets it above the text
    return title, shortened(message.text, message.pointer, room, is_escaped=limits.notify_format != "text")


def shortened(text: str, pointer: str, room: int, *, is_escaped: bool) -> str:
    """The text in at most ``room`` characters, cut between characters, with a pointer to the whole. is_escaped: it goes as HTML."""

    def size(part: str) -> int:
        return len(escape(part)) if is_escaped else len(part)

    def fitting(end: str) -> int:
        """How many characters fit in front of an end."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if size(text[:middle] + end) <= room else (low, middle - 1)
        return low

    if size(text) <= room:
        return text
    end = f"\n… cut; all of it: {pointer}"
    length = fitting(end)
    return text[:length].rstrip() + end if length else text[: fitting("…")] + "…"


def _failure(said: Sequence[str]) -> Outcome:
    """apprise tells no reason: a status is taken from its log, if one stands there."""
    status = next((int(found["status"]) for text in said if (found := _STATUS.search(text))), None)
    if status is None:
        return Retry(Reason.OTHER, "apprise could not deliver it and tells no reason")
    words = f"HTTP {status}"
    if status in (401, 403):
        return Refused(Reason.LOGIN, words)
    if 400 <= status < 500 and status not in (408, 425, 429):
        return Refused(Reason.REJECTED, words)
    return Retry(Reason.RATE_LIMIT if status == 429 else Reason.SERVER, words)

"""Receivers: where messages go, as configured, and which form of a message each takes."""

import re
from dataclasses import dataclass, field

from recompile_watch.core.bounds import at_least, insist
from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Form
from recompile_watch.respond.addresses import json_address, slack_address

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://?\S", re.IGNORECASE)
_SLACK_HOOK = re.compile(r"https://hooks\.slack(?:-gov)?\.com/", re.IGNORECASE)
_SLACK_ELSEWHERE = ("slack+http://", "slack+https://")
NO_APPRISE = "apprise, which speaks to this kind of receiver, is not installed; pip install apprise"
# How long a sender is kept after a message: it holds 20 MB, with apprise 45 MB, with matplotlib 95 MB, and mail is in no hurry.
_WARM_S = {Form.JSON: 600.0, Form.SLACK: 600.0, Form.TEXT: 120.0, Form.MAIL: 5.0}


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """One ``[[receiver]]``.

    name: unique. url: any apprise URL; a secret, which stands in no output. deadline_s: seconds that one attempt to
    deliver may take, all in all (default 30); then the sender is stopped.
    """

    name: str
    url: str = field(repr=False)
    deadline_s: float = 30.0

    def __post_init__(self) -> None:
        insist(at_least(1, deadline=self.deadline_s))

    @property
    def form(self) -> Form:
        """The form of message it takes."""
        return form_of(self.url)

    @property
    def warm_s(self) -> float:
        """How long its sender is kept after a message, in seconds."""
        return _WARM_S[self.form]


def check_own_address(url: str) -> None:
    """Raises DeliveryError for an address that cannot be right, as far as that can be told without apprise; it quotes nothing of it."""
    match form_of(url):
        case Form.JSON:
            json_address(url)
        case Form.SLACK:
            slack_address(url)
        case Form.MAIL | Form.TEXT if not _SCHEME.match(url):
            raise DeliveryError("the address is no URL; write one such as slack://…, mailtos://… or json://host:8080/path")


def form_of(url: str) -> Form:
    """The form that the receiver behind a URL takes. Slack bots (``xoxb-…`` tokens) and all unknown ones take text."""
    scheme = url.partition("://")[0].lower()
    if scheme in ("json", "jsons"):
        return Form.JSON
    if scheme in ("mailto", "mailtos"):
        return Form.MAIL
    if _SLACK_HOOK.match(url) or url.lower().startswith(_SLACK_ELSEWHERE):
        return Form.SLACK
    return Form.SLACK if scheme == "slack" and "xox" not in url.lower() else Form.TEXT

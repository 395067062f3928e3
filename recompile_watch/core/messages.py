"""Messages, and what became of sending one: plain values that the report side makes and the sending side carries.

Imports nothing, so that the program that sends starts in a moment.
"""

from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """The shape of a message that a kind of receiver takes."""

    JSON = "json"  # json://, jsons://
    SLACK = "slack"  # Block Kit through an incoming webhook
    MAIL = "mail"  # text, HTML and pictures
    TEXT = "text"  # every other apprise receiver


class Tone(StrEnum):
    """How a message sounds to a receiver that shows it as a colour or icon; apprise's own four words."""

    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Picture:
    """Events over time, to be drawn. counts: events in equal stretches of ``since`` to ``until`` (epoch seconds)."""

    title: str
    since: float
    until: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message in the form that one receiver takes; all text in it is inert there.

    title: one line. text: plain, lines end in a newline. html: a whole page, for mail only. payload: the JSON to post,
    for ``JSON`` and ``SLACK`` only. pictures: for mail only. pointer: the command that shows all of it, for a receiver
    that takes less than the text.
    """

    form: Form
    tone: Tone
    title: str
    text: str
    html: str = ""
    payload: str = ""
    pictures: tuple[Picture, ...] = ()
    pointer: str = "recompile-watch incidents list"


class Reason(StrEnum):
    """Why a message was not delivered; few enough to be counted by."""

    ADDRESS = "address"  # the receiver's URL cannot be used
    PLUGIN = "plugin"  # nothing here speaks to that kind of receiver
    DNS = "dns"
    CONNECTION = "connection"
    PROXY = "proxy"
    TLS = "tls"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"  # the sender was stopped: it took longer than the receiver's deadline
    SENDER = "sender"  # the sender itself ended or spoke nonsense
    RATE_LIMIT = "rate_limit"
    SERVER = "server"  # the receiver has trouble of its own
    LOGIN = "login"
    MOVED = "moved"
    REJECTED = "rejected"  # the receiver does not take this message
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver has the message. words: what to know all the same, such as a picture that was left out."""

    words: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """It may work later. words: one line for people, without secrets. after_s: how long the receiver asked to wait.

    is_maybe_delivered: the message was on its way when it failed, so that the receiver may have it.
    """

    reason: Reason
    words: str
    after_s: float | None = None
    is_maybe_delivered: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """It will not work, however often it is tried. words: one line for people, without secrets."""

    reason: Reason
    words: str


Outcome = Delivered | Retry | Refused

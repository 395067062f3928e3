"""What the daemon and its senders say to each other: one JSON object a line, over pipes.

Secrets travel here only, so that neither the command line nor the environment of a sender shows them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Message, Outcome, Picture, Reason, Refused, Retry, Tone

MAX_LINE_BYTES = 1 << 16  # an outcome is a few hundred bytes


class Task(StrEnum):
    """What a sender is asked to do."""

    SEND = "send"
    CHECK = "check"  # is the address good, is there code that speaks to it, can it be connected to? Nothing is sent
    PING = "ping"  # a sign of life for a service that raises the alarm when none comes: GET on an http(s) address


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt. id: of the notice. receiver: the name of a configured one. message: for ``SEND`` only."""

    id: str
    receiver: str
    task: Task = Task.SEND
    message: Message | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Order:
    """What a sender reads: a job with its receiver's address, which is secret, and the seconds it may take."""

    id: str
    task: Task
    url: str = field(repr=False)
    deadline_s: float
    message: Message | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first line to a sender. parent: the process id of the daemon. environment: variables that may hold secrets."""

    parent: int
    environment: Mapping[str, str] = field(repr=False)


def greeting_line(greeting: Greeting) -> bytes:
    """The first line to a sender."""
    return _line({"parent": greeting.parent, "environment": dict(greeting.environment)})


def greeting_of(line: bytes) -> Greeting:
    """Raises DeliveryError for anything else."""
    found = _object(line)
    environment, parent = found.get("environment"), found.get("parent")
    if not isinstance(environment, dict) or not isinstance(parent, int):
        raise DeliveryError("the first line to a sender is its greeting")
    return Greeting(parent, {str(name): str(value) for name, value in environment.items()})


def order_line(order: Order) -> bytes:
    """An order as a line."""
    return _line(asdict(order))


def order_of(line: bytes) -> Order:
    """Raises DeliveryError for a line that is no order."""
    found = _object(line)
    try:
        message = found["message"]
        return Order(
            id=_text(found, "id"), task=Task(_text(found, "task")), url=_text(found, "url"), deadline_s=_number(found, "deadline_s"),
            message=None if message is None else _message(_mapping(message)),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise DeliveryError("this line is no order to a sender") from None


def outcome_line(job_id: str, outcome: Outcome) -> bytes:
    """What became of a job, as a line."""
    return _line({"id": job_id, "outcome": type(outcome).__name__, **asdict(outcome)})


def outcome_of(line: bytes) -> tuple[str, Outcome]:
    """The id of the job, and what became of it. Raises DeliveryError for a line that is no outcome."""
    found = _object(line)
    try:
        job_id, words = _text(found, "id"), _text(found, "words")
        match found["outcome"]:
            case "Delivered":
                return job_id, Delivered(words)
            case "Refused":
                return job_id, Refused(Reason(_text(found, "reason")), words)
            case "Retry":
                after_s = None if found["after_s"] is None else _number(found, "after_s")
                return job_id, Retry(Reason(_text(found, "reason")), words, after_s, found["is_maybe_delivered"] is True)
    except (KeyError, TypeError, ValueError):
        pass
    raise DeliveryError("this line is no outcome")


def _message(found: Mapping[str, object]) -> Message:
    pictures = found["pictures"]
    if not isinstance(pictures, list):
        raise TypeError
    return Message(
        form=Form(_text(found, "form")), tone=Tone(_text(found, "tone")), title=_text(found, "title"), text=_text(found, "text"),
        html=_text(found, "html"), payload=_text(found, "payload"), pointer=_text(found, "pointer"),
        pictures=tuple(_picture(_mapping(one)) for one in pictures),
    )  # fmt: skip


def _picture(found: Mapping[str, object]) -> Picture:
    counts = found["counts"]
    if not isinstance(counts, list):
        raise TypeError
    return Picture(_text(found, "title"), _number(found, "since"), _number(found, "until"), tuple(int(count) for count in counts))


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"  # ASCII, so that lone surrogates travel as well


def _object(line: bytes) -> Mapping[str, object]:
    try:
        return _mapping(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        raise DeliveryError("this line is no JSON object") from None


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _text(found: Mapping[str, object], name: str) -> str:
    value = found[name]
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(found: Mapping[str, object], name: str) -> float:
    value = found[name]
    if not isinstance(value, int | float):
        raise TypeError
    return float(value)

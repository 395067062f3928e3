"""Proves receivers: sends each a test message, or only looks whether its address is good. Waits for the outcomes."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Message, Outcome, Refused, Retry
from recompile_watch.core.notices import Notice, NoticeSort
from recompile_watch.report.message import message_of
from recompile_watch.respond.courier import Courier
from recompile_watch.respond.receivers import NO_APPRISE, ReceiverSettings
from recompile_watch.respond.wire import Job, Task

_SPARE_S = 5.0  # above a receiver's own deadline


@dataclass(frozen=True, slots=True)
class Trial:
    """How one receiver did. words: one line, without secrets."""

    receiver: str
    is_good: bool
    words: str


def sender_command() -> tuple[str, ...]:
    """The program that sends, under the same interpreter; ``-P`` keeps it from importing what lies in the folder it starts in."""
    return (sys.executable, "-P", "-m", "recompile_watch.sender")


def send_tests(receivers: Iterable[ReceiverSettings], *, host: str, now: float, environment: Mapping[str, str]) -> list[Trial]:
    """Sends a test message to every receiver at the same time. now: epoch seconds."""

    def notice(settings: ReceiverSettings) -> Notice:
        return Notice(f"test-{now:.3f}-{settings.name}", settings.name, NoticeSort.TEST, "info", now, host, ())

    return send_each(receivers, notice, now=now, environment=environment)


def send_each(
    receivers: Iterable[ReceiverSettings], notice: Callable[[ReceiverSettings], Notice], *, now: float, environment: Mapping[str, str]
) -> list[Trial]:
    """Sends every receiver its notice, at the same time, and without a second attempt. now: epoch seconds."""
    return _tried(receivers, Task.SEND, lambda settings: message_of(notice(settings), settings.form, now=now), environment)


def check_receivers(receivers: Iterable[ReceiverSettings], environment: Mapping[str, str]) -> list[Trial]:
    """Looks at every address, whether there is code that speaks to it, and whether it can be connected to; sends nothing."""
    return _tried(receivers, Task.CHECK, lambda _: None, environment)


def address_mistakes(receivers: Iterable[ReceiverSettings]) -> Iterator[tuple[str, str]]:
    """The names of receivers whose address cannot be right, and why. Touches no network; loads apprise where it reads the address."""
    for settings in receivers:
        if settings.form in (Form.MAIL, Form.TEXT):
            try:
                _read_by_apprise(settings)
            except DeliveryError as error:
                yield settings.name, str(error)
            except ImportError:
                yield settings.name, NO_APPRISE


def _read_by_apprise(settings: ReceiverSettings) -> None:
    from recompile_watch.respond.mail import mail_address
    from recompile_watch.respond.others import check_other, quieten

    quieten(settings.url)
    if settings.form is Form.MAIL:
        mail_address(settings.url)
    else:
        check_other(settings.url)


def outcome_text(outcome: Outcome) -> str:
    """An outcome in words."""
    match outcome:
        case Delivered(words):
            return f"delivered ({words})" if words else "delivered"
        case Refused(_, words):
            return f"not delivered: {words}"
        case Retry(_, words):
            return f"not delivered now: {words}; the daemon would try again"


def _tried(
    receivers: Iterable[ReceiverSettings], task: Task, message: Callable[[ReceiverSettings], Message | None], environment: Mapping[str, str]
) -> list[Trial]:
    known = list(receivers)
    courier = Courier(known, sender_command(), environment)
    for settings in known:
        courier.submit(Job(settings.name, settings.name, task, message(settings)), time.monotonic())
    results = courier.wait(max((settings.deadline_s for settings in known), default=0.0) + _SPARE_S)
    courier.close()
    found = {result.receiver: result.outcome for result in results}
    return [_trial(settings.name, task, found.get(settings.name)) for settings in known]


def _trial(receiver: str, task: Task, outcome: Outcome | None) -> Trial:
    if outcome is None:
        return Trial(receiver, False, "no outcome in time")
    if task is Task.CHECK:
        return Trial(receiver, isinstance(outcome, Delivered), outcome.words)
    return Trial(receiver, isinstance(outcome, Delivered), outcome_text(outcome))

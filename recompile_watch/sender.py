"""The sender: a program of its own that delivers messages, so that a receiver that hangs stalls nothing else.

Reads a greeting and then orders from standard input and answers each with one line; ends when its input ends, or with
the daemon. Loads apprise or matplotlib only for a receiver that needs them: ``json://`` and Slack start in 50 ms.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import BinaryIO

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Message, Outcome, Picture, Reason, Refused, Retry
from recompile_watch.respond.addresses import Address, body_of, json_address, ping_address, secrets_of, slack_address
from recompile_watch.respond.parent import lives_with
from recompile_watch.respond.receivers import NO_APPRISE, form_of
from recompile_watch.respond.wire import Greeting, Order, Task, greeting_of, order_of, outcome_line

_STEPS = 3  # an attempt connects, sends and waits: each may take its share of the deadline


def main() -> int:
    """Answers orders until the input ends; 0 then, 1 when something else than the daemon speaks to it."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # whatever a plug-in prints is no answer
        os.close(nowhere)
        return serve(sys.stdin.buffer, answers)


def serve(orders: BinaryIO, answers: BinaryIO) -> int:
    """Reads the greeting and the orders, writes the outcomes."""
    try:
        _settle_in(greeting_of(orders.readline()))
        for line in orders:
            order = order_of(line)
            answers.write(outcome_line(order.id, deliver(order)))
            answers.flush()
    except (DeliveryError, BrokenPipeError):
        return 1
    return 0


def deliver(order: Order) -> Outcome:
    """Does what the order asks for. No outcome holds a secret of the receiver's address."""
    try:
        outcome = _done(order)
    except DeliveryError as error:
        outcome = Refused(Reason.ADDRESS, str(error))
    except ImportError:
        outcome = Refused(Reason.PLUGIN, NO_APPRISE)
    except Exception as error:  # noqa: BLE001  a plug-in of apprise may raise anything, and its text may hold the address
        outcome = Retry(Reason.OTHER, f"sending failed ({type(error).__name__})", is_maybe_delivered=True)
    return _without(outcome, secrets_of(order.url))


def _done(order: Order) -> Outcome:
    if order.task is Task.PING:
        return _post(ping_address(order.url), b"", order.deadline_s)
    if order.task is Task.CHECK or order.message is None:
        return _check(order)
    return _send(order, order.message)


def _check(order: Order) -> Outcome:
    """Whether the address is good, and where its host is known from it, whether that can be connected to."""
    url, step_s = order.url, _step_s(order.deadline_s)
    match form_of(url):
        case Form.JSON | Form.SLACK as form:
            from recompile_watch.respond.http import reach

            return reach(json_address(url) if form is Form.JSON else slack_address(url), step_s)
        case Form.MAIL:
            _quieten(url)
            from recompile_watch.respond.mail import mail_address, reach_mail

            return reach_mail(mail_address(url), step_s)
        case Form.TEXT:
            _quieten(url)
            from recompile_watch.respond.others import check_other

            check_other(url)
    return Delivered("the address is good")


def _send(order: Order, message: Message) -> Outcome:
    match form_of(order.url):
        case Form.JSON:
            address = json_address(order.url)
            return _post(address, body_of(address, message.payload), order.deadline_s)
        case Form.SLACK:
            address = slack_address(order.url)
            return _post(address, body_of(address, message.payload), order.deadline_s)
        case Form.MAIL:
            return _mail(order, message)
        case Form.TEXT:
            _quieten(order.url)
            from recompile_watch.respond.others import send_other

            return send_other(message, order.url, order.deadline_s)


def _post(address: Address, body: bytes, deadline_s: float) -> Outcome:
    from recompile_watch.respond.http import post

    return post(address, body, _step_s(deadline_s))


def _mail(order: Order, message: Message) -> Outcome:
    _quieten(order.url)
    from recompile_watch.respond.mail import mail_address, mime, send_mail

    address = mail_address(order.url)
    return send_mail(mime(message, order.id, address, _drawn(message.pictures)), address, _step_s(order.deadline_s))


def _step_s(deadline_s: float) -> float:
    return max(1.0, deadline_s / _STEPS)


def _drawn(pictures: Sequence[Picture]) -> list[bytes]:
    """The pictures as PNG; none without matplotlib."""
    if not pictures:
        return []
    try:
        from recompile_watch.report.chart import draw

        return [draw(picture) for picture in pictures]
    except ImportError:
        return []


def _quieten(url: str) -> None:
    from recompile_watch.respond.others import quieten

    quieten(url)


def _without(outcome: Outcome, secrets: Sequence[str]) -> Outcome:
    """The outcome, its words without secrets; a last look, for no words are made of an address."""
    words = outcome.words
    for secret in secrets:
        words = words.replace(secret, "***")
    match outcome:
        case Delivered():
            return Delivered(words)
        case Refused():
            return Refused(outcome.reason, words)
        case Retry():
            return Retry(outcome.reason, words, outcome.after_s, outcome.is_maybe_delivered)


def _settle_in(greeting: Greeting) -> None:
    """Takes over the variables that may hold secrets, and dies with the daemon (on Linux; elsewhere its input ends)."""
    os.environ.update(greeting.environment)
    for stop in (signal.SIGINT, signal.SIGTERM):  # systemd tells every process to stop; an attempt under way is the daemon's to end
        signal.signal(stop, signal.SIG_IGN)
    if not lives_with(greeting.parent, signal.SIGKILL):
        raise DeliveryError("the daemon is gone")


if __name__ == "__main__":
    sys.exit(main())

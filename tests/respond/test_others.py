"""Tests of receivers that apprise speaks to: what its answers mean, what it may not log, how long a text may be."""

from __future__ import annotations

import logging
from dataclasses import replace
from html import escape
from urllib.parse import parse_qs

import pytest
from apprise import Apprise
from apprise.plugins.custom_form import NotifyForm
from hypothesis import example, given
from hypothesis import strategies as st

from recompile_watch import sender
from recompile_watch.core.messages import Delivered, Form, Message, Outcome, Reason, Refused, Retry
from recompile_watch.report.message import message_of
from recompile_watch.respond.others import SecretFilter, fitted, shortened
from recompile_watch.respond.wire import Order, Task
from tests.loopback import answer, receiver
from tests.notices import ALERT, NOW, notice


def sent(url: str, message: Message | None = None, task: Task = Task.SEND) -> Outcome:
    """What becomes of a message through apprise."""
    return sender.deliver(Order("n1", task, url, 10.0, message or message_of(notice(), Form.TEXT, now=NOW)))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Delivered()),
        (429, Retry(Reason.RATE_LIMIT, "HTTP 429")),
        (500, Retry(Reason.SERVER, "HTTP 500")),
        (404, Refused(Reason.REJECTED, "HTTP 404")),
        (401, Refused(Reason.LOGIN, "HTTP 401")),
    ],
)
def test_a_plug_in_of_apprise(status: int, outcome: Outcome) -> None:
    """Any apprise receiver works; a status that apprise only logs decides whether it is tried again (`form://` here)."""
    with receiver(answer(status)) as made:
        assert sent(made.url("form")) == outcome
    assert b"recompile+limit" in made.requests[0].body


def test_nobody_listens() -> None:
    """Without any reason from apprise it is tried again."""
    outcome = sent("form://127.0.0.1:9/")
    assert isinstance(outcome, Retry) and outcome.reason is Reason.OTHER


@pytest.mark.parametrize("url", ["nonsense", "", "nosuchscheme://x", "tgram://", "discord://"])
def test_bad_addresses_are_found_by_a_check(url: str) -> None:
    """An address that apprise does not know is refused at a check, before any message is made (case 91)."""
    outcome = sent(url, task=Task.CHECK)
    assert isinstance(outcome, Refused) and outcome.reason is Reason.ADDRESS


@pytest.mark.parametrize("url", ["form://host", "json://host.invalid", "slack://T000/B000/XXXX", "mailto://host.invalid?from=a@b.org&to=c@d.org"])
def test_good_addresses_pass_a_check(url: str) -> None:
    """A good address of each form is taken for one, though its host may not be there."""
    assert not isinstance(sent(url, task=Task.CHECK), Refused)


def test_a_check_sends_nothing() -> None:
    """Where the host is known from the address, it is connected to and no more."""
    with receiver(answer(200)) as made:
        outcome = sent(made.url("json"), task=Task.CHECK)
    assert isinstance(outcome, Delivered) and made.requests == []


def test_without_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where apprise is missing, a receiver that needs it says so; one that does not works (case 91)."""
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    outcome = sent("form://host", task=Task.CHECK)
    assert isinstance(outcome, Refused) and outcome.reason is Reason.PLUGIN and "pip install apprise" in outcome.words
    with receiver(answer(200)) as made:
        assert isinstance(sent(made.url("json"), task=Task.CHECK), Delivered)


def test_a_plug_in_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a plug-in raises becomes an outcome, without the text of the exception."""

    def broken(*_: object, **__: object) -> bool:
        raise RuntimeError("https://user:CANARYCANARY@host")

    monkeypatch.setattr(NotifyForm, "send", broken)
    outcome = sent("form://user:CANARYCANARY@host")
    assert isinstance(outcome, Retry) and "CANARY" not in outcome.words


def test_text_is_cut_to_what_the_service_takes() -> None:
    """Discord drops more than 2000 characters: the text is cut there, with the command that shows the rest (case 86)."""
    long = message_of(notice(), Form.TEXT, now=NOW)
    long = Message(long.form, long.tone, long.title, long.text * 5, pointer=long.pointer)
    service = Apprise.instantiate("discord://1234567890/abcdefghij")
    assert service is not None
    title, body = fitted(long, service)
    assert len(body) <= 2000 and body.endswith("… cut; all of it: recompile-watch incidents show 17")
    assert title == long.title[: service.title_maxlen]


@given(st.text(max_size=400), st.integers(0, 300), st.booleans())
@example('"', 2, True)  # one character that is six in HTML
def test_a_cut_text_fits(text: str, room: int, is_escaped: bool) -> None:
    """Whatever the text and the room: the result fits, and a text that fits is unchanged."""
    short = shortened(text, "recompile-watch incidents show 17", room, is_escaped=is_escaped)
    size = len(escape(short)) if is_escaped else len(short)
    assert size <= max(room, 1)
    assert short == text or len(text) > 0


def test_loggers_hold_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    """The loggers of apprise and its libraries are pinned to INFO and lose what the address holds (case 98)."""
    url = "nosuch://user:CANARYCANARY@host/CANARYPATH"
    assert isinstance(sent(url), Refused)
    for name in ("apprise", "urllib3", "requests"):
        assert logging.getLogger(name).level == logging.INFO
    record = logging.LogRecord("apprise", logging.WARNING, "", 0, "bad url %s", (url,), None)
    assert logging.getLogger("apprise").filter(record)
    assert "CANARY" not in record.getMessage()
    assert "CANARY" not in caplog.text
    assert SecretFilter(("a%sb",)).cleaned("x a%sb y") == "x *** y"


def test_templates_are_not_evaluated() -> None:
    """What looks like a template or a format in a log stays as it stands (case 96)."""
    hostile = notice().sort, replace(ALERT, what="{{7*7}} %s %(x)s {0} ${HOME} \\n")
    with receiver() as made:
        assert sent(made.url("form"), message_of(notice(*hostile), Form.TEXT, now=NOW)) == Delivered()
    assert "{{7*7}} %s %(x)s {0} ${HOME} \\n" in parse_qs(made.requests[0].body.decode())["message"][0]

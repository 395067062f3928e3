"""Tests of what the daemon and its senders say to each other: it comes over as it was, and nonsense is told as such."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Message, Outcome, Picture, Reason, Refused, Retry, Tone
from recompile_watch.respond.wire import Greeting, Order, Task, greeting_line, greeting_of, order_line, order_of, outcome_line, outcome_of

TEXT = st.text(st.characters(), max_size=20)  # lone surrogates included
NUMBER = st.floats(0, 1e9)
MESSAGES = st.builds(
    Message,
    st.sampled_from(list(Form)),
    st.sampled_from(list(Tone)),
    TEXT,
    TEXT,
    TEXT,
    TEXT,
    st.lists(st.builds(Picture, TEXT, NUMBER, NUMBER, st.lists(st.integers(0, 99), max_size=3).map(tuple)), max_size=2).map(tuple),
    TEXT,
)
ORDERS = st.builds(Order, TEXT, st.sampled_from(list(Task)), TEXT, NUMBER, st.none() | MESSAGES)
REASONS = st.sampled_from(list(Reason))
OUTCOMES = st.one_of(
    st.builds(Delivered, TEXT), st.builds(Refused, REASONS, TEXT), st.builds(Retry, REASONS, TEXT, st.none() | NUMBER, st.booleans())
)  # fmt: skip


@given(ORDERS)
def test_an_order_comes_over_whole(order: Order) -> None:
    """An order is one line, and read as it was written."""
    line = order_line(order)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert order_of(line) == order


@given(TEXT, OUTCOMES)
def test_an_outcome_comes_over_whole(job_id: str, outcome: Outcome) -> None:
    """An outcome is one line, and read as it was written."""
    line = outcome_line(job_id, outcome)
    assert line.count(b"\n") == 1 and outcome_of(line) == (job_id, outcome)


def test_a_greeting_comes_over_whole() -> None:
    """The greeting holds the daemon's process id and the variables that may be secret."""
    greeting = Greeting(4242, {"https_proxy": "http://u:p@proxy"})
    assert greeting_of(greeting_line(greeting)) == greeting


NONSENSE = [
    b"",
    b"\n",
    b"x",
    b"[]",
    b"{}",
    b'{"id": 3}',
    b'{"id": "a", "outcome": "Delivered"}',
    b'{"id": "a", "outcome": "Other", "words": ""}',
    b"\xff",
    b"[" * 100_000,
    b'{"id": "a", "outcome": "Retry", "words": "", "reason": "dns", "after_s": "soon", "is_maybe_delivered": true}',
]


@pytest.mark.parametrize("line", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_told_as_such(line: bytes) -> None:
    """What is no order, outcome or greeting is an error of delivery, never another."""
    for read in (order_of, outcome_of, greeting_of):
        with pytest.raises(DeliveryError):
            read(line)


@given(st.binary(max_size=60))
def test_no_bytes_crash_a_reader(line: bytes) -> None:
    """Any bytes are read or refused."""
    for read in (order_of, outcome_of, greeting_of):
        try:
            read(line)
        except DeliveryError:
            continue


def test_secrets_do_not_stand_in_a_repr() -> None:
    """What ends up in a log by accident shows no address, no message and no environment."""
    message = Message(Form.TEXT, Tone.INFO, "t", "CANARY")
    assert "CANARY" not in repr(Order("a", Task.SEND, "json://CANARY", 1.0, message)) + repr(Greeting(1, {"http_proxy": "CANARY"}))

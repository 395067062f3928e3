"""Tests of what events get from their neighbourhood when several processes write into one log and nothing names them but the carrier."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC

import pytest

from recompile_watch.core.context import Context
from recompile_watch.core.events import Event
from recompile_watch.core.sightings import Sighting
from recompile_watch.core.times import TimeOptions, TimeResolver
from tests.conftest import events_of_bytes

HIT = b"""\
DEBUG:torch._dynamo.guards.__recompiles:Recompiling function step in /srv/bot/model.py:9
    triggered by the following guard failure(s):
    - 0/0: L['n'] == 1
WARNING:torch._dynamo.convert_frame:torch._dynamo hit config.recompile_limit (8)
   function: 'step' (/srv/bot/model.py:9)
   last reason: 0/0: L['n'] == 1
"""
RAISED = b"""\
caught torch._dynamo.exc.RecompileError: Recompiling function step in /srv/bot/model.py:9
    triggered by the following guard failure(s):
    - 1/0: name == 'n'
"""
LIMIT_ERROR = b"""\
torch._dynamo.exc.Unsupported: Dynamo recompile limit exceeded
  Explanation: Dynamo attempted to recompile the code object too many times, exceeding the recompile_limit cache size limit (currently set to 8).

The above exception was the direct cause of the following exception:

torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True
"""
CARRIERS = (b"%d: ", b"[pod/trainer-%d/main] ", b"web-%d  | ", b"(Worker_TP%d pid=7) ")
JOURNAL = (b"Nov 20 10:28:52 host python[%d]: ",)


def in_turn(text: bytes, carrier: bytes) -> bytes:
    """Two processes write the text, a line each in turn, each behind its carrier."""
    lines = text.splitlines(keepends=True)
    return b"".join(itertools.chain.from_iterable((carrier % 1 + line, carrier % 2 + line) for line in lines))


def told(data: bytes, *fields: str) -> Iterator[tuple[object, ...]]:
    return (tuple(event[field] for field in ("kind", *fields)) for event in events_of_bytes(data, "bot.log"))


@pytest.mark.parametrize("carrier", CARRIERS)
def test_each_limit_hit_refuses_its_own_recompile(carrier: bytes) -> None:
    """Also when the other process has recompiled in between."""
    events = sorted(told(in_turn(HIT, carrier), "function"))
    refused = [event["refused"] for event in events_of_bytes(in_turn(HIT, carrier), "bot.log") if event["kind"] == "recompile"]
    assert events == [("recompile", "step")] * 2 + [("recompile_limit_hit", "step")] * 2 and refused == [True, True]


@pytest.mark.parametrize("carrier", CARRIERS + JOURNAL)
def test_the_same_failure_of_two_processes_is_two(carrier: bytes) -> None:
    """A recompile that was raised is another's only when its process is another."""
    assert list(told(in_turn(RAISED, carrier), "function", "raised")) == [("recompile", "step", True)] * 2
    assert list(told(RAISED + RAISED, "function", "raised")) == [("recompile", "step", True)]


@pytest.mark.parametrize("carrier", CARRIERS + JOURNAL)
def test_a_chain_is_one_error_of_each_process(carrier: bytes) -> None:
    """The cause and what it caused are told together, not the cause of the other process."""
    assert list(told(LIMIT_ERROR, "exception", "limit")) == [("recompile_limit_error", "FailOnRecompileLimitHit", 8)]
    assert list(told(in_turn(LIMIT_ERROR, carrier), "exception", "limit")) == [("recompile_limit_error", "FailOnRecompileLimitHit", 8)] * 2


@pytest.mark.parametrize("end", [b"- 0/0:", b"- 0/", b"- 0", b"-"])
def test_a_reason_cut_in_front_of_its_guard_is_none(end: bytes) -> None:
    """What the log's end leaves of it says nothing yet."""
    head = HIT[: HIT.index(b"- 0/0")]
    events = events_of_bytes(head + end, "bot.log")
    assert [(event["kind"], event["reasons"], event["partial"]) for event in events] == [("recompile", [], True)]


def test_a_name_cut_by_the_logs_end_is_unknown() -> None:
    """As long as nothing stands behind it the name may go on."""
    for text, function in ((b"Recompiling function st", None), (b"Recompiling function step in /srv/bot/mo", "step")):
        events = events_of_bytes(b"DEBUG:torch._dynamo.guards.__recompiles:" + text, "bot.log")
        assert [(event["function"], event["partial"]) for event in events] == [(function, True)]


def test_a_state_without_channels_is_read() -> None:
    """A watch that was stopped before events had one goes on with what it holds."""
    [seen] = [Sighting(_recompile(), None, None, "torch.recompile", True)]
    context = Context(TimeResolver(TimeOptions(UTC)))
    assert context.push([seen]) == []
    state = context.state()
    held = state["held"]
    assert isinstance(held, list) and len(held) == 1
    older = Context(TimeResolver(TimeOptions(UTC)))
    older.resume({**state, "held": [entry[:4] for entry in held], "limit_error": None})
    assert [event.kind for event in older.flush() if isinstance(event, Event)] == ["recompile"]


def _recompile() -> Event:
    extra = {"refused": False}
    return Event("recompile", "bot.log", 1, 0, None, None, 7, "0/1", "step", "/srv/bot/model.py", 9, (), False, extra)

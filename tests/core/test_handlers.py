"""Tests of records of torch's that several of logging's handlers printed."""

from __future__ import annotations

from collections import Counter

import pytest

from recompile_watch.core.context import Context
from recompile_watch.core.events import Event
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.sightings import Sighting
from recompile_watch.core.times import TimeOptions, TimeResolver
from tests.conftest import events_of_bytes

RECOMPILE = b"""\
Recompiling function step in /srv/bot/model.py:9
    triggered by the following guard failure(s):
    - 0/0: L['n'] == 1
"""
_STAMP = Stamp("local", "2025-11-20 10:28:52.255")
HIT = b"""\
torch._dynamo hit config.recompile_limit (8)
   function: 'step' (/srv/bot/model.py:9)
   last reason: 0/0: L['n'] == 1
To log all recompilation reasons, use TORCH_LOGS="recompiles".
"""
SKIP = b"skipping cudagraphs due to cpu device (arg0_1)\n"
V = b"V1120 10:28:52.255000 77 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] "
W = b"W1120 10:28:52.300000 77 torch/_dynamo/convert_frame.py:1994] [0/1] "
BREAK = b"""\
Graph break in user code at /srv/bot/model.py:5
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None

User code traceback:
  File "/srv/bot/model.py", line 5, in step
    torch._dynamo.graph_break()

"""
APPLICATIONS = (
    b"%s:torch._dynamo.guards.__recompiles:",
    b"[2025-11-20 10:28:52,255][torch._dynamo.guards][%s] - ",
    b"2025-11-20 05:28:52,255 [%s] [MainThread] torch._dynamo.guards.__recompiles:5396: ",
    b"[2025-11-20 10:28:52,255: %s/ForkPoolWorker-1] ",
    b"",
)


def own(prefix: bytes, record: bytes) -> bytes:
    """The record in torch's own format."""
    return b"".join(prefix + line for line in record.splitlines(keepends=True))


def counted(log: bytes) -> dict[str, int]:
    return Counter(event["kind"] + "!" * bool(event.get("refused")) for event in events_of_bytes(log, "a.log"))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("application", APPLICATIONS)
def test_what_several_handlers_print_happened_once(application: bytes, times: int) -> None:
    """Torch's own handlers print a record once or twice, and behind that the application's; a limit refuses the one recompile."""
    debug, warning = (application.replace(b"%s", level) for level in (b"DEBUG", b"WARNING"))
    log = own(V, RECOMPILE) * times + debug + RECOMPILE + own(W, HIT) * times + warning + HIT + own(W, SKIP) * times + warning + SKIP
    assert counted(log) == {"recompile!": 1, "recompile_limit_hit": 1, "cudagraph_skip": 1}
    later = log.replace(b"10:28:52", b"10:28:59").replace(b"05:28:52", b"05:28:59").replace(b"0/1]", b"3/1]")
    assert counted(log + later) == {"recompile!": 2, "recompile_limit_hit": 2, "cudagraph_skip": 2}


def test_the_copies_of_two_ranks_are_each_ones_own() -> None:
    """Ranks write in turn; the application's format names none of them."""
    log = own(b"[rank0]:" + V, RECOMPILE) + own(b"[rank1]:" + V, RECOMPILE) + (b"DEBUG:torch._dynamo.guards:" + RECOMPILE) * 2
    assert [event["rank"] for event in events_of_bytes(log, "a.log")] == [0, 1]


@pytest.mark.parametrize(
    "other",
    [
        own(V, RECOMPILE),
        own(V, RECOMPILE) + own(V.replace(b"[0/1]", b"[2/0]"), RECOMPILE.replace(b"step", b"move")) + b"Step 4 of 9\n",
        own(V.replace(b"255000", b"256000"), RECOMPILE),
        own(V, RECOMPILE.replace(b"== 1", b"== 2")),
        b"2025-11-20 10:28:55,255 [DEBUG] [MainThread] torch._dynamo.guards.__recompiles:5396: " + RECOMPILE,
        b"DEBUG:torch._dynamo.guards.__recompiles:" + RECOMPILE.replace(b"step", b"move"),
        b"DEBUG:torch._dynamo.guards.__recompiles:" + RECOMPILE * 2,
    ],
)
def test_what_no_other_handler_printed_counts_again(other: bytes) -> None:
    """The same in torch's own format twice is a paste or a benchmark; other words, another time, or one copy too many are others."""
    log = own(V, RECOMPILE) + other
    expected = log.count(b"Recompiling") - (b"MainThread" not in other and b"DEBUG" in other and b"step" in other)
    assert len(events_of_bytes(log, "a.log")) == expected


def test_what_explain_reports_was_logged() -> None:
    """The breaks of its report are those that torch logged in front of it; another one is not."""
    prefix = b"V1120 10:28:52.255000 77 torch/_dynamo/symbolic_convert.py:5124] [0/0] [__graph_breaks] "
    report = (
        b"Graph Count: 2\nGraph Break Count: 1\nOp Count: 2\nBreak Reasons:\n  Break Reason 1:\n    Reason: Call to `torch._dynamo.graph_break()`\n"
        + (
            b"  Explanation: User-inserted graph break. Message: None\n    User Stack:\n      <FrameSummary file /srv/bot/model.py, line 5 in step>\n"
            b"Ops per Graph:\n"
        )
    )
    assert counted(report) == counted(own(prefix, BREAK) + report) == {"graph_break": 1}
    assert counted(own(prefix, BREAK) + report.replace(b"line 5", b"line 7")) == {"graph_break": 2}


@pytest.mark.parametrize("stamp", [_STAMP, None])
def test_a_reading_goes_on_between_the_copies(stamp: Stamp | None) -> None:
    """A watch that was stopped behind the second copy knows the third for one, and which recompile the limit refuses; its year may be unknown."""
    places = [("recompile", 1, "0/1"), ("recompile", 2, "0/1"), ("recompile", 3, None), ("recompile_limit_hit", 4, "0/1")]
    sightings = [_sighting(*place, stamp) for place in places]
    expected = [("recompile", 1, True), ("recompile_limit_hit", 4, None)]
    for stop in range(5):
        first, second = (Context(TimeResolver(TimeOptions())) for _ in range(2))
        done = first.push(sightings[:stop])
        second.resume(first.state())
        done += second.push(sightings[stop:]) + second.flush()
        assert [(one.kind, one.line, one.extra.get("refused")) for one in done if isinstance(one, Event)] == expected


def _sighting(kind: str, line: int, compile_id: str | None, stamp: Stamp | None) -> Sighting:
    extra: dict[str, object] = {"refused": False} if kind == "recompile" else {"limit": 8}
    pid = None if compile_id is None else 77
    event = Event(kind, "a.log", line, 100 * line, None, None, pid, compile_id, "step", "/srv/bot/model.py", 9, (), False, extra)
    return Sighting(event, None if compile_id is None else stamp, None, f"torch.{kind}", compile_id is not None)

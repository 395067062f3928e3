"""Tests of logs that were exported as tables of comma-separated values."""

from __future__ import annotations

import pytest

from recompile_watch.core.cells import columns_of
from tests.conftest import engine_events, events_of_bytes

LOG = b"""\
INFO step 4, loss 0.12
V1120 10:28:52.255000 77 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] Recompiling function step in /srv/bot/model.py:9
V1120 10:28:52.255000 77 torch/_dynamo/guards.py:5396] [0/1] [__recompiles]     triggered by the following guard failure(s):
V1120 10:28:52.255000 77 torch/_dynamo/guards.py:5396] [0/1] [__recompiles]     - 0/0: L['kind'] == "a,b"
Traceback (most recent call last):
  File "/srv/bot/run.py", line 40, in <module>
    step(x)
torch._dynamo.exc.Unsupported: Dynamo recompile limit exceeded
  Explanation: Dynamo attempted to recompile the code object too many times, exceeding the recompile_limit cache size limit (currently set to 8).

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/bot/run.py", line 41, in <module>
    step(x)
torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True
"""
TRACEBACK = LOG.index(b"Traceback")
EXPORTS = {
    "datadog": (b"Date,Host,Service,Message", b'"2025-11-20T10:28:52.300Z","gpu-1","bot","%s"'),
    "splunk": (b'"_raw","_time",host', b'"%s","2025-11-20T10:28:52.300+0000","gpu-1"'),
    "cloudwatch": (b"timestamp,message", b'1763634532300,"%s"'),
    "kibana": (b'"@timestamp",message', b'"Nov 20, 2025 @ 10:28:52.300","%s"'),
    "azure": (b'\xef\xbb\xbf"TimeGenerated [UTC]",LogMessage', b'"11/20/2025, 10:28:52.300 AM","%s"'),
}
TIMED = ("datadog", "splunk", "cloudwatch")


def told(data: bytes) -> list[tuple[object, ...]]:
    names = ("kind", "function", "file", "line_no", "compile_id", "partial")
    return [(*(event[name] for name in names), event.get("limit"), event["reasons"]) for event in events_of_bytes(data, "log.csv")]


def exported(name: str, texts: list[bytes], newline: bytes = b"\n") -> bytes:
    head, row = EXPORTS[name]
    return b"".join(line + newline for line in [head, *(row.replace(b"%s", text.replace(b'"', b'""')) for text in texts)])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_an_exported_log_gives_the_events_of_the_log(name: str, newline: bytes) -> None:
    """With a row for each line, and with one for each record."""
    expected = told(LOG)
    assert [event[0] for event in expected] == ["recompile", "recompile_limit_error"]
    for texts in (LOG.splitlines(), [LOG[:22], LOG[23:TRACEBACK].rstrip(b"\n"), LOG[TRACEBACK:].rstrip(b"\n")]):
        data = exported(name, texts, newline)
        assert told(data) == expected
        times = [event["time"] for event in events_of_bytes(data, "log.csv")]
        assert (str(times[1])[:19] == "2025-11-20T10:28:52") is (name in TIMED)


def test_a_line_of_a_cell_has_its_place() -> None:
    """Line and offset are those of the physical line."""
    data = exported("datadog", [b"started", b"two\nlines", LOG[TRACEBACK:]])
    (at,) = (event["at"] for event in events_of_bytes(data, "log.csv"))
    line = data.split(b"\n")[at["line"] - 1]
    assert line.startswith(b"torch._dynamo.exc.FailOnRecompileLimitHit") and data[at["offset"] :].startswith(line)


def test_where_blocks_end_makes_no_difference() -> None:
    """Read in pieces, too."""
    data = exported("datadog", LOG.splitlines())
    assert engine_events([data[at : at + 7] for at in range(0, len(data), 7)]) == engine_events([data])


@pytest.mark.parametrize(
    "head",
    [
        b"Loading data, message\nfoo, bar\n",
        b"message\n2025-11-20T10:28:52Z\n",
        b"time,level\n2025-11-20T10:28:52Z,INFO\n",
        b'Date,Host,Message\n"2025-11-20T10:28:52Z","gpu-1"\n',
        LOG,
    ],
)
def test_another_text_is_no_table(head: bytes) -> None:
    """Its first line names no message, or the line behind it is no row."""
    assert columns_of(head) is None


def test_a_quote_that_never_closes_hides_little() -> None:
    """What is no row of the table is read as it stands."""
    data = exported("datadog", [b"started"]) + b'2025-11-20T10:28:52.300Z,gpu-1,bot,an inch is 1" long\n' + LOG
    assert [event[0] for event in told(data)] == ["recompile", "recompile_limit_error"]

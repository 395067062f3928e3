"""What carries lines with a structure of its own: a traceback in a field of its own, other names of texts, and times."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import as_json, engine_events
from tests.truth import Event

AT = "2026-11-22T10:00:01.123Z"
LIMIT = """\
Traceback (most recent call last):
  File "/venv/torch/_dynamo/convert_frame.py", line 2024, in _compile
    raise_unimplemented_cache_limit_exceeded()
torch._dynamo.exc.Unsupported: Dynamo recompile limit exceeded
  Explanation: Dynamo attempted to recompile the code object too many times, exceeding the recompile_limit cache size limit (currently set to 3).

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/serve.py", line 3, in go
    model(x)
torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True"""
FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "text": lambda told: {"ts": AT, "message": told},
    "behind the text": lambda told: {"ts": AT, "message": f"inference failed\n{told}"},
    "python-json-logger": lambda told: {"asctime": AT, "levelname": "ERROR", "message": "inference failed", "exc_info": told},
    "structlog": lambda told: {"event": "inference failed", "level": "error", "timestamp": AT, "exception": told},
    "elastic": lambda told: {"@timestamp": AT, "message": "failed", "error": {"type": "X", "message": "y", "stack_trace": told}},
    "elastic, flat": lambda told: {"@timestamp": AT, "message": "failed", "error.stack_trace": told},
    "twice": lambda told: {"time": AT, "msg": "failed", "traceback": told, "stack_trace": f"{told}\n"},
    "in the text too": lambda told: {"time": AT, "msg": f"failed\n{told}", "exc_info": told},
    "google": lambda told: {"severity": "ERROR", "timestamp": AT, "jsonPayload": {"message": "failed", "stack_trace": told}},
    "loguru": lambda told: {"text": f"failed\n{told}\n", "record": {"exception": {"type": "X"}, "message": "failed", "time": {"repr": AT}}},
    "graylog": lambda told: {"timestamp": 1795341601.123, "short_message": "failed", "full_message": f"failed\n{told}"},
    "cloudwatch": lambda told: {"@timestamp": AT, "@message": told},
    "opentelemetry": lambda told: {"timestamp": AT, "body": "failed", "attributes": {"exception.stacktrace": told}},
    "opentelemetry, nested": lambda told: {"timeUnixNano": "1795341601123000000", "body": {"stringValue": f"failed\n{told}"}},
    "pino": lambda told: {"level": 50, "time": 1795341601123, "msg": "failed", "err": {"stack": told}},
    "lines": lambda told: {"ts": AT, "msg": "failed", "exc_info": [f"{line}\n" for line in told.split("\n")]},
    "no text": lambda told: {"ts": AT, "level": "error", "error": {"stack": told}},
}


def told(text: str) -> list[Event]:
    return as_json(engine_events([f"{text}\n".encode()]))


@pytest.mark.parametrize("name", FIELDS)
def test_a_traceback_in_a_field_of_its_own(name: str) -> None:
    """It is one event, the last exception of the chain, with the time of its record."""
    (event,) = told("\n".join(json.dumps(entry) for entry in ({"message": "start"}, FIELDS[name](LIMIT), {"message": "end"})))
    assert (event["kind"], event["exception"], event["limit"], event["at"]["line"]) == ("recompile_limit_error", "FailOnRecompileLimitHit", 3, 2)
    assert event["time"].startswith("2026-11-22T10:00:01.123")


def test_a_terminals_text_with_a_traceback_stands_there_once() -> None:
    """Its own traceback is none of another field."""
    block = "Recompiling function f in /srv/app/model.py:9\n    triggered by the following guard failure(s):\n    - 0/0: n == 4"
    events = told(json.dumps({"ts": AT, "message": f"\x1b[2Kok\x00\n{block}\n{LIMIT}"}))
    assert [event["kind"] for event in events] == ["recompile", "recompile_limit_error"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_programs_own_traceback_is_no_event(name: str) -> None:
    """Whatever field holds it."""
    own = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 3, in go\n    model(x)\nValueError: no such model'
    assert told(json.dumps(FIELDS[name](own))) == []


LINES: dict[str, Callable[[list[str]], str]] = {
    "array": lambda lines: "[" + ",\n".join(json.dumps({"timestamp": AT, "message": line}) for line in lines) + "]",
    "array, indented": lambda lines: "[\n" + ",\n".join("  " + json.dumps({"timestamp": AT, "message": line}) for line in lines) + "\n]",
    "output": lambda lines: "\n".join(json.dumps({"ts": AT, "output": line}) for line in lines),
    "stderr": lambda lines: "\n".join(json.dumps({"ts": AT, "stderr": line}) for line in lines),
    "google": lambda lines: "\n".join(json.dumps({"jsonPayload": {"message": line}, "timestamp": AT}) for line in lines),
    "logfmt": lambda lines: "\n".join(f"time={AT} level=info msg={json.dumps(line)} component=child" for line in lines),
    "logfmt, one record": lambda lines: f'time="{AT}" level=error msg=' + json.dumps("\n".join(lines) + "\n"),
    "structlog's logfmt": lambda lines: f'symbol=EURUSD event="it failed" level=error timestamp={AT} exception=' + json.dumps("\n".join(lines)),
    "structlog's pairs": lambda lines: f"event='it failed' level='error' timestamp='{AT}' whose=bot's exception=" + repr("\n".join(lines)),
    "logfmt, a field": lambda lines: f'ts={AT} level=error msg="it failed" exc_info=' + json.dumps("\n".join(lines)),
}


@pytest.mark.parametrize("name", LINES)
def test_each_line_an_object(name: str) -> None:
    """One object, or one line of pairs, for each line: whatever the text is called."""
    (event,) = told(LINES[name](LIMIT.split("\n")))
    assert (event["kind"], event["exception"], event["limit"]) == ("recompile_limit_error", "FailOnRecompileLimitHit", 3)
    assert event["time"].startswith("2026-11-22T10:00:01.123")


@pytest.mark.parametrize("when", [1795341601.123, 1795341601123, "1795341601123", 1795341601123000, "1795341601123000", "1795341601123000000"])
def test_the_unit_of_a_time_is_told_by_its_size(when: object) -> None:
    """Seconds, milliseconds, microseconds and nanoseconds since 1970."""
    (event,) = told(json.dumps({"time": when, "message": "skipping cudagraphs due to mutated inputs (2 instances)"}))
    assert event["time"].startswith("2026-11-22T10:00:01.123")


def test_a_number_that_is_no_time() -> None:
    """A duration, or seconds since the start of the program."""
    for when in (17, 12.5, 987654, "17953416", True):
        (event,) = told(json.dumps({"time": when, "message": "skipping cudagraphs due to mutated inputs (2 instances)"}))
        assert event["time"] is None

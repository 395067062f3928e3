"""Headers: a message is found behind any format that ``TORCH_LOGS_FORMAT`` or the application's own logging gives it."""

from __future__ import annotations

import logging
import time

import pytest

from tests.conftest import as_json, engine_events
from tests.truth import Event

TIME = "2025-11-07T10:28:52.255+00:00"
# A format, and the time that an event has under it.
FORMATS = (
    ("%(asctime)s %(name)s %(levelname)s %(message)s", TIME),
    ("%(asctime)s %(levelname)s %(name)s %(message)s", TIME),
    ("%(asctime)s %(levelname)s %(name)s: %(message)s", TIME),
    ("%(levelname)s %(asctime)s %(name)s %(message)s", TIME),
    ("[%(asctime)s] %(levelname)s in %(module)s: %(message)s", TIME),
    ("[%(asctime)s][%(name)s][%(levelname)s] - %(message)s", TIME),
    ("%(asctime)s %(filename)s:%(lineno)d %(levelname)s %(message)s", TIME),
    ("%(asctime)s %(levelname)s (%(filename)s:%(lineno)d) %(message)s", TIME),
    ("%(asctime)s %(process)d %(name)s %(levelname)s: %(message)s", TIME),
    ("%(asctime)s %(levelname)-8s %(name)-30s %(message)s", TIME),
    ("%(asctime)s | %(levelname)-8s | %(name)s:%(lineno)d | %(message)s", TIME),
    ("[%(levelname)s|%(filename)s:%(lineno)s] %(asctime)s >> %(message)s", TIME),
    ("%(asctime)s %(levelname)s %(module)s.%(funcName)s:%(lineno)d %(message)s", TIME),
    ("%(created)f %(levelname)s %(message)s", "2025-11-07T10:28:52.255000+00:00"),
    ("%(relativeCreated)d %(levelname)s %(message)s", None),
    ("%(levelname)s %(name)s %(message)s", None),
    ("%(levelname)s %(message)s", None),
    ("[%(levelname)s] %(message)s", None),
    ("%(name)s - %(levelname)s - %(message)s", None),
    ("%(name)s: %(message)s", None),
    ("[%(name)s] %(message)s", None),
    ("%(levelname)s|%(name)s|%(message)s", None),
    ("%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s", None),  # pytest
    ("[%(filename)s:%(lineno)d] %(message)s", None),
    ("%(filename)s:%(lineno)d: %(message)s", None),
    ("%(levelname)s %(filename)s:%(lineno)d] %(message)s", None),
    ("%(asctime)s | %(levelname)-8s | %(name)s | %(message)s", TIME),
    ("%(levelname)s | %(name)s | %(message)s", None),
)
LIMIT = """torch._dynamo hit config.recompile_limit (8)
   function: 'step' (/srv/a.py:9)
   last reason: 6/7: n == 7
To diagnose recompilation issues, see https://x"""
RECORDS = (
    (
        "torch._dynamo.guards.__recompiles", "DEBUG", "guards.py",
        "Recompiling function step in /srv/a.py:9\n    triggered by the following guard failure(s):\n    - 6/0: n == 7", "recompile",
    ),
    (
        "torch._dynamo.convert_frame", "WARNING", "convert_frame.py",
        LIMIT,
        "recompile_limit_hit",
    ),
    (
        "torch._dynamo.symbolic_convert.__graph_breaks", "DEBUG", "symbolic_convert.py",
        "Graph break in user code at /srv/a.py:9\nGraph Break Reason: n == 7\nUser code traceback:\n  File \"/srv/a.py\", line 9, in step\n    x()\n",
        "graph_break",
    ),
    (
        "torch._inductor.cudagraph_utils.__cudagraphs", "WARNING", "cudagraph_utils.py",
        "skipping cudagraphs due to n == 7. Found from : \n   File \"/srv/a.py\", line 9, in step\n    x()\n", "cudagraph_skip",
    ),
)  # fmt: skip


def printed(form: str, record: tuple[str, str, str, str, str]) -> str:
    """The record as a handler with this format prints it."""
    logger, level, file, message, _ = record
    entry = logging.LogRecord(logger, getattr(logging, level), f"/venv/torch/_dynamo/{file}", 1358, message, (), None, func="log")
    entry.created, entry.msecs, entry.process = 1762511332.255, 255, 3989
    formatter = logging.Formatter(form)
    formatter.converter = time.gmtime
    return formatter.format(entry) + "\n"


def events(text: str) -> list[Event]:
    return as_json(engine_events([text.encode()]))


@pytest.mark.parametrize(("form", "when"), FORMATS)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record[-1])
def test_any_format(form: str, when: str | None, record: tuple[str, str, str, str, str]) -> None:
    """Kind, time, place and reason are there under each format."""
    (event,) = events(printed(form, record))
    assert (event["kind"], event["time"], event["at"]["line"]) == (record[-1], when, 1)
    assert (event["function"], event["file"], event["line_no"], event["partial"]) == ("step", "/srv/a.py", 9, False)
    assert [reason["text"] for reason in event["reasons"]] == ["n == 7"]


@pytest.mark.parametrize(
    "text",
    [
        "2025-11-07 10:28:52 <bob> skipping cudagraphs due to mutated inputs, again",
        "2025-11-07 10:28:52,100 WARNING bot: we saw skipping cudagraphs due to mutated inputs",
        "docs/faq.md:12:skipping cudagraphs due to mutated inputs (2 instances)",
        "tests/test_x.py:40:        Recompiling function step in /srv/a.py:9",
        "INFO compiler: Recompiling function cache",
        "alice: Graph break in user code at /srv/a.py:9",
        "warning skipping cudagraphs due to mutated inputs",
        "the WARNING skipping cudagraphs due to mutated inputs",
        "    skipping cudagraphs due to mutated inputs is an info now",
    ],
)
def test_a_quotation_is_no_message(text: str) -> None:
    """Words in front of a message are no header; nor is the place that a search prints in front of a line."""
    assert events(text + "\n") == []

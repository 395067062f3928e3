"""Headers: a message is found behind any format that ``TORCH_LOGS_FORMAT`` or the application's own logging gives it."""

from __future__ import annotations

import logging
import time

import pytest

from recompile_watch.core.shape import HEAD_BYTES
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
ONE_LINE = (
    "torch._inductor.cudagraph_utils.__cudagraphs", "WARNING", "cudagraph_utils.py", "skipping cudagraphs due to mutated inputs (2 instances)",
    "cudagraph_skip",
)  # fmt: skip
PADDING = b"tick\n" * (HEAD_BYTES // 5 + 1)


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


# Formats of which nothing is known: the line behind a record's first one tells where its message begins.
OWN_FORMATS = (
    ("[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s", TIME),  # Airflow
    ("%(asctime)s %(levelname)s [%(name)s] [%(filename)s:%(lineno)d] [trace_id=0 span_id=0] - %(message)s", TIME),  # OpenTelemetry
    ("[%(asctime)s: %(levelname)s/%(processName)s] %(message)s", TIME),  # Celery
    ("%(levelname)s %(asctime)s %(module)s %(process)d %(thread)d %(message)s", TIME),  # Django
    ("%(asctime)s %(process)d %(levelname)s %(name)s [-] %(message)s", TIME),  # OpenStack
    ("%(asctime)s.%(msecs)03d\t%(levelname)s\t%(message)s", TIME),
    ("%(asctime)s,%(levelname)s,%(name)s,%(message)s", TIME),
    ("%(asctime)s::%(levelname)s::%(name)s::%(lineno)d::%(message)s", TIME),
    ("%(asctime)s %(pathname)s:%(lineno)d %(funcName)s() %(levelname)s: %(message)s", TIME),
    ("level=%(levelname)s logger=%(name)s msg=%(message)s", None),
    ("%(created)f %(message)s", "2025-11-07T10:28:52.255000+00:00"),
    ("(%(threadName)-10s) %(message)s", None),
    ("%(asctime)s [rank0] %(levelname)s %(message)s", TIME),
)


@pytest.mark.parametrize(("form", "when"), OWN_FORMATS)
def test_a_format_of_its_own(form: str, when: str | None) -> None:
    """Each record is one event with its time; that of one line too, behind what stands in front of the others."""
    found = events("".join(printed(form, record) for record in (*RECORDS, *RECORDS, ONE_LINE)))
    assert [event["kind"] for event in found] == [record[-1] for record in (*RECORDS, *RECORDS, ONE_LINE)]
    for event in found[:-1]:
        assert (event["function"], event["file"], event["line_no"], event["partial"]) == ("step", "/srv/a.py", 9, False)
        assert [reason["text"] for reason in event["reasons"]] == ["n == 7"]
    assert {event["time"] for event in found} == {when}
    assert {event["rank"] for event in found} == {0 if "rank0" in form else None}
    assert found[-1]["reasons"][0]["text"] == "mutated inputs"


def test_a_format_of_its_own_in_any_blocks() -> None:
    """Such a record is found wherever a block of bytes ends."""
    text = "".join(printed(OWN_FORMATS[0][0], record) for record in RECORDS).encode()
    whole = engine_events([PADDING + text])
    assert len(whole) == len(RECORDS)
    for cut in range(0, len(text), 3):
        assert engine_events([PADDING + text[:cut], text[cut:]]) == whole


def test_only_the_second_line_proves_it() -> None:
    """Words behind which nothing of the record goes on are none; the record that is open is not torn by them."""
    words = "alice: see Recompiling function step in /srv/a.py:9\nbob: why? torch._dynamo hit config.recompile_limit (8)\nalice: yes\n"
    assert events(words) == []
    (event,) = events(words + RECORDS[0][3] + "\n" + words)
    assert (event["at"]["line"], event["function"], event["partial"]) == (4, "step", False)


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


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-26 02:07:59,658 INFO launcher 'gpu-0': W1126 01:59:56.292000 12 torch/_inductor/x.py:1] skipping cudagraphs due to mutated inputs",
        "2026-11-26 02:07:59,658 WARNING serve failed: \"torch._dynamo.exc.InternalTorchDynamoError: 'NoneType' object has none\"",
        'level=INFO worker=0 msg="skipping cudagraphs due to mutated inputs (2 instances)"',
        '{"level": "INFO", "message": "skipping cudagraphs due to mutated inputs (2 instances)"}',
    ],
)
def test_what_a_launcher_hands_on_is_a_message(line: str) -> None:
    """A quote that is closed in front of it, a line that tells of trouble, and carriers that quote whatever they carry."""
    assert len(events(line + "\n")) == 1

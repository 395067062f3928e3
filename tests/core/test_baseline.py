"""Tests of `recompile_watch.core.baseline` and `acceptance`: what changed since an earlier report, and what a person accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest

from recompile_watch.core.acceptance import accepted, parse_acceptances
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts, status_of
from recompile_watch.core.baseline import compared, parse_baseline
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.findings import Finding, Headroom
from recompile_watch.report.json import json_text, report_to_json
from tests.conftest import ROOT, engine_events, rules


def report() -> Report:
    """The report on a real log."""
    analysis = Analysis(rules())
    for event in engine_events([(ROOT / "sample_logs/toto-kv-cache.log").read_bytes()]):
        analysis.add(event)
    return analysis.report(Facts((SourceFacts("bot.log"),)))


REPORT = report()
TEXT = json_text(report_to_json(REPORT, generated_at="", tool_version=""))
FIRST = REPORT.findings[0]


def against(*findings: Finding) -> dict[str, str | None]:
    """What these findings are against the real report, by id."""
    return {one.id: one.baseline for one in compared(findings, parse_baseline(TEXT, "old.json"))}


def test_the_same_log_is_the_same() -> None:
    """Every finding of a report compared with itself is the same; nothing is gone."""
    assert set(against(*REPORT.findings).values()) == {"same"}


def test_new_and_gone() -> None:
    """What only one of the two reports has; what is gone has no severity and does not count."""
    new = replace(FIRST, id="0000000000000000")
    marks = against(new, *REPORT.findings[1:])
    assert (marks["0000000000000000"], marks[FIRST.id]) == ("new", "gone")
    gone = compared((), parse_baseline(TEXT, "old.json"))
    assert len(gone) == len(REPORT.findings) and status_of(gone, ()) == "ok"


@pytest.mark.parametrize(
    ("change", "mark"),
    [
        ({"severity": "warning"}, "better"),
        ({"count": 40}, "worse"),
        ({"count": 2}, "same"),
        ({"headroom": Headroom(6, 8)}, "better"),
        ({"headroom": Headroom(64, 64)}, "worse"),
        ({"headroom": None}, "same"),
    ],
)
def test_worse_and_better(change: dict[str, object], mark: str) -> None:
    """Severity decides first, then the entries in use, then a count that differs by more than a fifth."""
    assert against(replace(FIRST, **change))[FIRST.id] == mark  # type: ignore[arg-type]


def test_what_was_gone_before_stays_out() -> None:
    """A report that was itself compared brings no ghosts along."""
    second = replace(REPORT, findings=compared((), parse_baseline(TEXT, "old.json")))
    again = json_text(report_to_json(second, generated_at="", tool_version=""))
    assert parse_baseline(again, "second.json") == {}


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "{}", '{"schema": "sarif", "findings": []}', '{"schema": "recompile-watch/analysis/1"}', "[" * 100_000]
)
def test_no_report(text: str) -> None:
    """What is no report of ours gets one line that says what to give."""
    with pytest.raises(ConfigError, match="--baseline takes"):
        parse_baseline(text, "old.json")


def test_hostile_reports_are_read_without_harm() -> None:
    """Fields of the wrong type become what is neutral."""
    text = json.dumps({"schema": "recompile-watch/analysis/1", "findings": [7, {"id": "a", "severity": 3, "count": "x", "headroom": []}, {"id": ""}]})
    assert list(parse_baseline(text, "old.json")) == ["a"]


ACCEPT = f"""
[[accept]]
finding = "{FIRST.id}"
who = "anna"
why = "the static cache comes with the next release"
until = 2026-12-31
"""


def test_accepted_until_a_day() -> None:
    """It counts no longer for the status, up to and including that day."""
    given = parse_acceptances(ACCEPT, "accept.toml")
    during = accepted(REPORT.findings, given, date(2026, 12, 31))
    assert (during[0].accepted_until, status_of(during, ())) == ("2026-12-31", "warning")
    after = accepted(REPORT.findings, given, date(2027, 1, 1))
    assert (after[0].accepted_until, status_of(after, ())) == (None, "critical")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "not valid TOML"),
        ("[accept]\nfinding = 'a'", "two brackets"),
        ("[[accepted]]", "unknown table 'accepted'"),
        (ACCEPT.replace("until = 2026-12-31", ""), "key 'until' is missing"),
        (ACCEPT.replace("2026-12-31", "'soon'"), "must be a day"),
        (ACCEPT.replace('"anna"', '" "'), "key 'who' must be a text"),
        (ACCEPT + "note = 'x'", "unknown key 'note'"),
    ],
)
def test_mistakes_in_acceptances(text: str, words: str) -> None:
    """An acceptance names who, why and until when, or it is none."""
    with pytest.raises(ConfigError, match=words):
        parse_acceptances(text, "accept.toml")

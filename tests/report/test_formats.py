"""Tests of the formats for other tools: Markdown, SARIF and workflow annotations. Text of a log is data in each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.findings import Evidence
from recompile_watch.report.github import report_to_github
from recompile_watch.report.json import json_text
from recompile_watch.report.markdown import MAX_FINDINGS, report_to_markdown
from recompile_watch.report.sarif import report_to_sarif
from tests.conftest import ROOT, engine_events, rules

HOSTILE = "x | <script>alert(1)</script> [a](https://evil.example) @everyone `id` **b** #1 \x1b[31m\n::error::forged %0A"


def report(name: str = "sample_logs/bot-2025-10-30.log") -> Report:
    """The report on a real log."""
    analysis = Analysis(rules())
    for event in engine_events([(ROOT / name).read_bytes()], name):
        analysis.add(event)
    return analysis.report(Facts((SourceFacts(name),)), load_catalog())


def hostile() -> Report:
    """A report whose every text from the log is an attack."""
    whole = report()
    finding = replace(whole.findings[0], title=HOSTILE, file=f"/srv/{HOSTILE}.py", function=HOSTILE, model=HOSTILE, consequence=HOSTILE)
    finding = replace(finding, evidence=(Evidence(f"{HOSTILE}.log", 3, f"``` {HOSTILE}"),), advice=())
    return replace(whole, findings=(finding,))


def markdown(of: Report) -> str:
    return report_to_markdown(of, generated_at="2026-11-21T00:00:00+00:00", tool_version="0")


def test_markdown_says_what_to_do() -> None:
    """Each loud finding with its place, evidence and remedies, the first one to do; notes and returns as tables."""
    text = markdown(report())
    assert text.startswith("# torch.compile: critical\n")
    assert "## 🔴 critical: positional\\_embedding hit the recompile limit \\(8\\)" in text
    assert "**Do this: Leave this function out of compilation** (then restart)" in text
    assert "| ETHUSD | MaxDiff | 0.1043 | 18.2400 |" in text


def test_markdown_says_what_may_be_done_about_notes() -> None:
    """The text of a report points here for that: each note has its place and its first remedy; expected ones have none."""
    whole = report()
    note = replace(next(finding for finding in whole.findings if finding.advice), severity="info", count=2, file="/srv/m.py", line_no=7)
    text = markdown(replace(whole, findings=(note,)))
    assert "\n* 2× · " in text and "`/srv/m.py:7`" in text and f"\n  {note.advice[0].apply.splitlines()[0]}\n" in text
    expected = replace(note, advice=(replace(note.advice[0], remedy="none_first_automatic_dynamic"),))
    assert note.advice[0].apply not in markdown(replace(whole, findings=(expected,)))


def test_markdown_keeps_log_text_text() -> None:
    """No tag, link, mention or heading of the log's own; a fence is longer than any in it; a table row stays one row."""
    text = markdown(hostile())
    prose = re.sub(r"^(`{3,})\n.*?\n\1$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)
    for forbidden in ("<script", "](http", "https://", "@everyone", "**b**", "\x1b"):
        assert forbidden not in prose, forbidden
    assert "\n````\n" in text


def test_long_reports_are_cut_with_a_count() -> None:
    """Nothing is left out silently."""
    whole = report()
    many = replace(whole, findings=tuple(replace(whole.findings[0], id=f"{n:016}") for n in range(MAX_FINDINGS + 7)))
    assert f"… and {7} more findings" in markdown(many)


def test_annotations_stand_at_the_users_code() -> None:
    """One workflow command a finding, with file and line, and what to do."""
    lines = report_to_github(report()).splitlines()
    hit = next(line for line in lines if "positional_embedding hit" in line)
    assert hit.startswith("::error file=/nvme0n1-disk/code/stock-prediction/toto/toto/model/attention.py,line=105,title=")
    assert "%0ADo: Leave this function out of compilation%0A@torch.compiler.disable" in hit


def test_annotations_cannot_be_forged() -> None:
    """Text of a log begins no command of its own and ends no property."""
    lines = report_to_github(hostile()).splitlines()
    assert len(lines) == 1 and lines[0].startswith("::error file=")
    assert lines[0].count("::") - lines[0].partition("title=")[2].count("::") == 1
    assert "\x1b" not in lines[0]


def test_problems_are_annotated() -> None:
    """An input that could not be read fails loudly."""
    assert report_to_github(replace(report(), findings=(), problems=("a.log: gone",))) == "::error title=recompile-watch::a.log: gone\n"


@pytest.mark.parametrize("make", [report, hostile])
def test_sarif(make: Callable[[], Report]) -> None:
    """What SARIF 2.1.0 requires is there, with its types; places are URIs; the fingerprint is the finding's id."""
    of = make()
    log = json.loads(json_text(report_to_sarif(of, tool_version="0")))
    assert (log["version"], log["$schema"].endswith("sarif-2.1.0.json"), len(log["runs"])) == ("2.1.0", True, 1)
    run = log["runs"][0]
    driver = run["tool"]["driver"]
    assert driver["name"] == "recompile-watch" and len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    assert len(run["results"]) == len(of.findings)
    for result, finding in zip(run["results"], of.findings, strict=True):
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == finding.kind
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        assert result["partialFingerprints"] == {"recompileWatch/v1": finding.id}
        for location in [*result["locations"], *result["relatedLocations"]]:
            place = location["physicalLocation"]
            assert re.fullmatch(r"[\w.~!$&'()*+,;=:@/%-]+", place["artifactLocation"]["uri"])
            assert place.get("region", {"startLine": 1})["startLine"] >= 1


def test_sarif_tells_the_baseline() -> None:
    """Code scanning shows what is new; what is gone is no result; what is accepted is suppressed."""
    whole = report()
    marked = tuple(replace(finding, baseline=mark) for finding, mark in zip(whole.findings, ("new", "same", "worse", "gone"), strict=False))
    log = report_to_sarif(replace(whole, findings=(*marked, replace(whole.findings[0], accepted_until="2026-12-31"))), tool_version="0")
    results = json.loads(json_text(log))["runs"][0]["results"]
    assert [result.get("baselineState") for result in results] == ["new", "unchanged", "updated", None]
    assert results[-1]["suppressions"] == [{"kind": "external", "justification": "accepted until 2026-12-31"}]


@pytest.mark.parametrize("name", ["markdown", "github", "sarif"])
def test_formats_are_the_same_every_time(name: str) -> None:
    """The same input gives the same bytes."""
    makers: dict[str, Callable[[Report], str]] = {
        "markdown": markdown,
        "github": report_to_github,
        "sarif": lambda of: json_text(report_to_sarif(of, tool_version="0")),
    }
    assert makers[name](report()) == makers[name](report())

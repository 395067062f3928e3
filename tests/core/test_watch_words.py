"""What an incident says is what `analyze` says of the same log."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompile_watch.core.analysis import Analysis, Facts
from recompile_watch.core.findings import Finding
from recompile_watch.core.watch_settings import LifeSettings, Receiver, WatchSettings
from tests.conftest import DATA, SAMPLES, rules
from tests.core.watching import Play, by_record, catalog, events_of, watch

# One analysis looks at a whole log, so nothing ends in between, however long it is.
ENDLESS = WatchSettings(receivers=(Receiver("ops"),), life=LifeSettings(resolve_after_s=1e9, resolve_kinds=(), forget_after_s=1e9))
LOGS = sorted([*SAMPLES.glob("*.log"), SAMPLES / "bot-2025-10-30-files", SAMPLES / "trace", *DATA.rglob("*.log")])
FIELDS = ("title", "consequence", "severity", "cause", "count", "refused", "phase", "advice", "headroom")


def said_by_analyze(log: Path) -> dict[str, Finding]:
    """The findings of a log by id."""
    analysis = Analysis(rules())
    for _, one in events_of(log):
        analysis.add(one)
    return {finding.id: finding for finding in analysis.report(Facts(), catalog()).findings}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log.relative_to(SAMPLES.parent)))
def test_an_incident_says_what_analyze_says(log: Path) -> None:
    """Title, consequence, severity, cause, count, phase, headroom and advice are the same, for every incident."""
    play = Play(watch(ENDLESS), start=next((at for at, _ in events_of(log)), 0.0))
    for at, one in by_record(events_of(log)):
        play.feed([one], at)
    findings = said_by_analyze(log)
    wrong = []
    rows = [row for name in play.rows if (row := play.watch.incident(name)) is not None]
    names = [str(row["fingerprint"]) for row in rows]
    for row, name in zip(rows, names, strict=True):
        finding = findings.get(name)
        if finding is None or names.count(name) > 1:  # a condition, or a finding of several models, each an incident of its own
            continue
        headroom = {"entries": finding.headroom.entries, "limit": finding.headroom.limit} if finding.headroom else None
        shown = {
            "headroom": headroom, "advice": [one.apply for one in finding.advice],
            **{field: getattr(finding, field) for field in FIELDS if field not in ("headroom", "advice")},
        }  # fmt: skip
        row["advice"] = [one["apply"] for one in row["advice"]]  # type: ignore[index, union-attr, call-overload]
        wrong += [(row["kind"], field, row[field], shown[field]) for field in FIELDS if row[field] != shown[field]]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(play.rows) >= len([one for one in findings.values() if one.kind not in ("compile_mode", "profiler_report", "synthetic_quote")])

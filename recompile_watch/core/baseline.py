"""An earlier report as baseline: which findings are new, worse, the same, better, or gone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from recompile_watch.core.errors import ConfigError
from recompile_watch.core.findings import Finding, Headroom
from recompile_watch.core.rules import SEVERITIES
from recompile_watch.core.sightings import text_or_none

SCHEMA = "recompile-watch/analysis/"
NOISE_SHARE = 0.2  # a log is never as long as the one before it: counts that differ by less are the same
NOISE_COUNT = 1


@dataclass(frozen=True, slots=True)
class Before:
    """A finding of the earlier report."""

    id: str
    kind: str
    severity: str
    title: str
    function: str | None
    file: str | None
    count: int
    entries: int


def parse_baseline(text: str, source: str) -> dict[str, Before]:
    """The findings of an earlier JSON report by id. Raises ConfigError when it is none; ``source`` is its name for the message."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(f"{source}: not JSON; --baseline takes a report written with --format json") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith(SCHEMA) or not isinstance(document.get("findings"), list):
        raise ConfigError(f"{source}: no report of recompile-watch; --baseline takes one written with --format json")
    found = [_before(entry) for entry in document["findings"] if isinstance(entry, dict) and entry.get("baseline") != "gone"]
    return {one.id: one for one in found if one.id}


def compared(findings: tuple[Finding, ...], baseline: Mapping[str, Before]) -> tuple[Finding, ...]:
    """The findings, each with what it is against the baseline; those that are gone come last."""
    here = {finding.id for finding in findings}
    marked = [replace(finding, baseline=_mark(finding, baseline.get(finding.id))) for finding in findings]
    return (*marked, *(_gone(before) for before in baseline.values() if before.id not in here))


def _mark(finding: Finding, before: Before | None) -> str:
    if before is None:
        return "new"
    entries = finding.headroom.entries if finding.headroom else 0
    steps = (
        SEVERITIES.index(finding.severity) - SEVERITIES.index(before.severity),
        entries - before.entries if entries and before.entries else 0,
        _beyond_noise(finding.count, before.count),
    )
    step = next((step for step in steps if step), 0)
    return "worse" if step > 0 else "better" if step < 0 else "same"


def _beyond_noise(count: int, before: int) -> int:
    difference = count - before
    return 0 if abs(difference) <= max(NOISE_COUNT, NOISE_SHARE * before) else difference


def _gone(before: Before) -> Finding:
    """A finding of the baseline that this log no longer shows; it has no severity any more."""
    return Finding(
        id=before.id, kind=before.kind, severity="info", title=before.title, model=None, function=before.function, file=before.file, line_no=None,
        cause=None, count=0, refused=0, first_time=None, last_time=None, phase="unknown",
        headroom=Headroom(before.entries, None) if before.entries else None, compile_seconds=None, evidence=(),
        consequence="The log does not show this any more.", ranks=(), processes=(), symbols=(), baseline="gone",
    )  # fmt: skip


def _before(entry: Mapping[str, object]) -> Before:
    headroom = entry.get("headroom")
    entries = headroom.get("entries") if isinstance(headroom, dict) else None
    severity, count = entry.get("severity"), entry.get("count")
    return Before(
        str(entry.get("id") or ""), str(entry.get("kind") or ""), severity if severity in SEVERITIES else "info", str(entry.get("title") or ""),
        text_or_none(entry.get("function")), text_or_none(entry.get("file")),
        count if isinstance(count, int) else 0, entries if isinstance(entries, int) else 0,
    )  # fmt: skip

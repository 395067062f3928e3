"""docs/events.md names every kind of event and every field that the samples show."""

from __future__ import annotations

import re

from recompile_watch.core.events import EXTRA_FIELDS, TORCH_KINDS
from tests.conftest import DATA, ROOT, SAMPLES, events_of_path, rules

PAGE = (ROOT / "docs/events.md").read_text()
ROWS = {match[1]: match[0] for match in re.finditer(r"^\| `(\w+)` \|.*$", PAGE, re.MULTILINE)}
SHARED = frozenset({"kind", "at", "time", "rank", "pid", "compile_id", "function", "file", "line_no", "reasons", "partial", "torch"})


def test_every_kind_has_a_row() -> None:
    """Those of the rules, and those that are made of several lines."""
    kinds = {rule.event for rule in rules().rules} | set(EXTRA_FIELDS) | TORCH_KINDS
    assert sorted(kinds - set(ROWS)) == []
    assert sorted(set(ROWS) - kinds - SHARED) == []


def test_every_field_is_explained() -> None:
    """Each stands in the row of its kind."""
    shown = {(kind, name) for kind, fields in EXTRA_FIELDS.items() for name in fields}
    for log in sorted([*SAMPLES.glob("*.log"), *DATA.rglob("*.log")]):
        for event in events_of_path(log):
            shown |= {(str(event["kind"]), name) for name in event if name not in SHARED}
    assert sorted((kind, name) for kind, name in shown if f"`{name}`" not in ROWS[kind]) == []

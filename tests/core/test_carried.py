"""Excerpts of logs in every form in which people have them, with the events that a reader of each wrote down."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.carried import Excerpt, Facts, excerpts
from tests.conftest import as_json, engine_events
from tests.truth import Event


def with_time(facts: Facts) -> Facts:
    """The facts with their time as `shown` writes it: 52.255 is 52.255000."""
    return {**facts, "time": datetime.fromisoformat(facts["time"]).isoformat()} if facts.get("time") else facts


def shown(event: Event, facts: Facts) -> Facts:
    """The event's facts of these names; of reasons (entry, text, cause), the cause only where one is wanted."""
    found = {name: event.get(name) for name in facts if name != "reasons"}
    if "reasons" in facts:
        wants = [cause is not None for _, _, cause in facts["reasons"]] + [True] * len(event["reasons"])
        found["reasons"] = [(r["entry"], r["text"], r["cause"] if want else None) for r, want in zip(event["reasons"], wants, strict=False)]
    return with_time(found)


@pytest.mark.parametrize("excerpt", list(excerpts()), ids=lambda excerpt: excerpt.name)
def test_events_of_an_excerpt(excerpt: Excerpt) -> None:
    """As many events as are in it, in order, each with its facts."""
    events = as_json(engine_events([excerpt.text.encode()]))
    expected = [with_time(facts) for facts in excerpt.events]
    assert [event["kind"] for event in events] == [facts["kind"] for facts in expected], events
    assert [shown(event, facts) for event, facts in zip(events, expected, strict=True)] == expected

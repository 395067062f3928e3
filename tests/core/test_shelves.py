"""What is remembered goes through JSON and comes back as it was; what is damaged is refused in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recompile_watch.core.codec import from_json, to_json
from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import Event, event_from_json, event_state
from recompile_watch.core.lifecycle import State
from recompile_watch.core.pace import STRETCHES, Pace
from recompile_watch.core.shelves import Shelf
from tests.conftest import SAMPLES
from tests.core.watching import START, Play, events_of, limit_hit, watch


@dataclass(slots=True)
class Part:
    """One of everything."""

    number: float
    name: str | None = None
    state: State = State.OPEN
    at: datetime | None = None
    pairs: tuple[tuple[str, float], ...] = ()
    lists: dict[str, list[int]] = field(default_factory=dict)
    event: Event | None = None


@given(
    st.builds(
        Part, st.floats(allow_nan=False, allow_infinity=False), st.none() | st.text(), st.sampled_from(State),
        st.none() | st.datetimes(timezones=st.just(UTC)), st.lists(st.tuples(st.text(), st.floats(0, 1))).map(tuple),
        st.dictionaries(st.text(), st.lists(st.integers())),
    )
)  # fmt: skip
@settings(deadline=None)
def test_a_dataclass_comes_back(part: Part) -> None:
    """Whatever it holds."""
    assert from_json(Part, json.loads(json.dumps(to_json(part)))) == part


def test_every_event_of_the_sample_logs_comes_back() -> None:
    """An event read from JSON is the event."""
    logs = [*SAMPLES.glob("*.log"), SAMPLES / "trace", SAMPLES / "bot-2025-10-30-files"]
    events = [one for log in logs for _, one in events_of(log)]
    assert len(events) > 200
    assert [event_from_json(json.loads(json.dumps(event_state(one)))) for one in events] == events


@pytest.mark.parametrize(
    "wrong", [None, [], {}, {"number": "many"}, {"number": 1, "state": "odd"}, {"number": 1, "pairs": [["a"]]}, {"number": True}]
)
def test_what_is_no_such_part_is_refused(wrong: object) -> None:
    """With one line that says what to do."""
    with pytest.raises(StoreError, match="move the state directory away"):
        from_json(Part, wrong)


@pytest.mark.parametrize("damage", [7, {}, {"n": 1}, {"n": "x", "is": {}}, {"n": 1, "is": {"wall": "noon"}}])
def test_a_watch_with_a_damaged_memory_does_not_start(damage: object) -> None:
    """It says so, instead of forgetting half of it."""
    parts = Play(watch()).at(START, limit_hit(START)).parts
    for key in [key for key in parts if key.split("/")[0] in ("clock", "incident", "head")]:
        with pytest.raises(StoreError):
            watch(memory={**parts, key: damage})


def test_a_shelf_drops_what_changed_longest_ago() -> None:
    """Also after it came back from JSON; what was dropped is counted and said to be deleted."""
    shelf = Shelf("part", Part, {}, 3)
    for name in "abc":
        shelf.put(name, Part(1.0))
    shelf.put("a", Part(2.0))
    again = Shelf("part", Part, shelf.everything(), 3)
    for one in (shelf, again):
        one.changes()
        one.put("d", Part(3.0))
        assert list(one) == ["c", "a", "d"] and one.dropped == 1
        assert one.changes()["part/b"] is None
        assert one.changes() == {}


@given(st.lists(st.floats(0, 1e8)))
@settings(deadline=None)
def test_a_timeline_keeps_every_event_in_few_stretches(times: list[float]) -> None:
    """However long it lasts."""
    line = Pace(0.0)
    for at in times:
        line.add(at)
    assert sum(line.counts) == len(times) and len(line.counts) <= STRETCHES
    assert not times or line.width_s * len(line.counts) >= max(times)

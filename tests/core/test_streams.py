"""Following gives the events of reading once: however the log arrives, rotates, and whenever the watch is killed."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import Event as CoreEvent
from recompile_watch.core.events import event_from_json, event_state, event_to_json
from recompile_watch.core.streams import Piece, Position, Seen, Stream
from recompile_watch.core.times import TimeOptions
from tests.conftest import DATA, SAMPLES, matcher, only_events, rules
from tests.test_properties import LOGS
from tests.truth import Event

TIMES = TimeOptions(zone=UTC, zone_is_given=True, year=2025)
WHOLE = {name: path.read_bytes() for name, path in LOGS.items()}


def stream(state: object = None) -> Stream:
    """A stream that begins, or goes on from a state that went through JSON."""
    return Stream("bot.log", rules(), matcher(), None if state is None else json.loads(json.dumps(state)))


def read_once(log: bytes) -> list[Event]:
    """What `analyze` sees."""
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES)
    return [event_to_json(event) for event in only_events([*engine.feed(log), *engine.end()])]


def placed(seen: list[Seen]) -> list[tuple[int, CoreEvent]]:
    """The events, each with its generation; a stream that does not read in bulk gives no runs."""
    found = [(item.generation, item.event) for item in seen if isinstance(item.event, CoreEvent)]
    assert len(found) == len(seen)
    return found


def shown(seen: list[Seen]) -> list[Event]:
    return [event_to_json(event) for _, event in placed(seen)]


def lines_of(log: bytes) -> list[bytes]:
    return [line + b"\n" for line in log.removesuffix(b"\n").split(b"\n")]


@pytest.mark.parametrize("name", sorted(LOGS))
def test_following_a_log_gives_the_events_of_reading_it_once(name: str) -> None:
    """A log that is there as a whole, followed: the same events as `events`, each with its place."""
    log = WHOLE[name] if WHOLE[name].endswith(b"\n") else WHOLE[name] + b"\n"
    reading = stream()
    assert shown(reading.feed(Piece(1, 0, 1, log), TIMES) + reading.settle()) == read_once(log)


@given(st.sampled_from(sorted(LOGS)), st.lists(st.tuples(st.integers(1, 400), st.sampled_from(["go on", "forget", "kill"])), max_size=20))
def test_killed_after_any_line_nothing_is_lost_or_repeated(name: str, turns: list[tuple[int, str]]) -> None:
    """Saved, killed and resumed between any two lines, with the unsaved bytes read again: the events of one reading."""
    lines = lines_of(WHOLE[name])
    log = b"".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    reading, found, at, position = stream(), [], 0, Position(1, 0, 0)
    for count, then in [*turns, (len(lines), "go on")]:
        found += shown(reading.feed(Piece(1, starts[at], at + 1, b"".join(lines[at : at + count])), TIMES))
        at = min(at + count, len(lines))
        if then == "kill" and at:
            position = reading.positions().get(1, position)
            assert position.offset == starts[position.lines], "the saved position is the beginning of a line, and names it"
            reading, at = stream(reading.state()), position.lines
        elif then == "forget":
            reading.forget()
    found += shown(reading.settle())
    assert found == read_once(log)


def test_a_record_split_by_a_rotation_is_one_event_at_its_place_in_the_old_file() -> None:
    """The head of a recompile block in the old file, its reasons in the new one: one event, found where it begins."""
    log = (SAMPLES / "kv-cache-torch-2.13.log").read_bytes()
    cut = log.index(b"\n", log.index(b"Recompiling function")) + 1
    reading = stream()
    found = reading.feed(Piece(1, 1000, 11, log[:cut]), TIMES) + reading.feed(Piece(2, 0, 1, log[cut:]), TIMES) + reading.settle()
    whole = read_once(log)
    assert [event["reasons"] for event in shown(found)] == [event["reasons"] for event in whole]
    (generation, first), (next_generation, second) = placed(found)[:2]
    assert (generation, first.offset, first.line) == (1, 1000, 11)
    assert next_generation == 2
    assert log[cut:][second.offset :].split(b"\n")[0].count(b"Recompiling function") == 1


def test_an_unfinished_line_is_not_glued_to_the_next_generation() -> None:
    """The writer died in the middle of a line; the first line of the new file is a line of its own."""
    quote = b"2025-10-30 09:08:42.123 | INFO     | data_curate_daily:x:1 - Populating synthetic bid/ask (0 spread) for %s (ADD_LATEST=False)\n"
    reading = stream()
    found = reading.feed(Piece(1, 0, 1, quote % b"ETHUSD" + b"2025-10-30 09:08:43.000 | INF"), TIMES)
    found += reading.feed(Piece(2, 0, 1, quote % b"BTCUSD"), TIMES)
    assert [(generation, event.line, event.offset, event.extra["symbol"]) for generation, event in placed(found)] == [
        (1, 1, 0, "ETHUSD"), (2, 1, 0, "BTCUSD"),
    ]  # fmt: skip


def test_late_lines_of_the_old_file_keep_their_place() -> None:
    """A writer that goes on in the rotated file: its lines are found there, and both files go on from where they stand."""
    quote = b"2025-10-30 09:08:42.123 | INFO     | data_curate_daily:x:1 - Populating synthetic bid/ask (0 spread) for %s (ADD_LATEST=False)\n"
    old, new = quote % b"ETHUSD", quote % b"BTCUSD"
    reading = stream()
    reading.feed(Piece(1, 0, 1, old), TIMES)
    reading.feed(Piece(2, 0, 1, new), TIMES)
    late = reading.feed(Piece(1, len(old), 2, old), TIMES)
    assert [(generation, event.line, event.offset) for generation, event in placed(late)] == [(1, 2, len(old))]
    assert {p.generation: (p.offset, p.lines) for p in reading.positions().values()} == {1: (2 * len(old), 2), 2: (len(new), 1)}


@pytest.mark.parametrize("path", sorted((SAMPLES / "trace").glob("*.log")), ids=lambda path: path.name)
def test_a_trace_that_grows_gives_each_event_once_over_a_restart(path: Path) -> None:
    """A TORCH_TRACE file is read again from its beginning after a restart, and no event is given twice."""
    log = path.read_bytes()
    cut = log.rindex(b"\n", 0, len(log) // 2) + 1
    reading = stream()
    found = reading.feed(Piece(1, 0, 1, log[:cut]), TIMES)
    position = reading.positions()[1]
    reading = stream(reading.state())
    assert position.offset == 0
    found += reading.feed(Piece(1, 0, 1, log), TIMES) + reading.settle()
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES)
    assert shown(found) == [event_to_json(event) for event in only_events([*engine.feed(log), *engine.end()])]


def test_a_damaged_state_is_refused_in_one_line() -> None:
    """A state that is none names the log and says so; it is no traceback."""
    good = stream()
    good.feed(Piece(1, 0, 1, (SAMPLES / "two-ranks.log").read_bytes()), TIMES)
    state = json.loads(json.dumps(good.state()))
    for broken in ({}, {**state, "end": "x"}, {**state, "reading": {**state["reading"], "context": {}}}):
        with pytest.raises(StoreError, match=r"bot\.log: the saved state"):
            stream(broken).feed(Piece(1, 0, 1, b"x\n"), TIMES)


def test_events_survive_json() -> None:
    """An event that went through JSON is the event."""
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES)
    for path in (SAMPLES / "bot-2025-10-30.log", DATA / "torch" / "2.5.1" / "s10_breaks.log"):
        for event in only_events([*engine.feed(path.read_bytes())]):
            assert event_from_json(json.loads(json.dumps(event_state(event)))) == event

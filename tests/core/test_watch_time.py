"""Clocks that jump, machines that sleep, logs with wrong times."""

from __future__ import annotations

from datetime import datetime

import pytest

from recompile_watch.core.commands import Silence
from recompile_watch.core.heard import Heard, Trouble, TroubleKind
from recompile_watch.core.matchers import parse_matcher
from recompile_watch.core.routing import next_time, quiet_until
from recompile_watch.core.watch_settings import LifeSettings, QuietHours, Receiver, WatchedSource, WatchSettings
from recompile_watch.core.windows import Recent
from tests.core.watching import START, Play, bot_error, heard, iso, limit_hit, watch

HOUR, DAY, YEAR = 3600.0, 86_400.0, 366 * 86_400.0
SETTINGS = WatchSettings(sources=(WatchedSource("bot", silent_after_s=2 * HOUR, schedule=()),), life=LifeSettings(resolve_after_s=2 * HOUR))


def hourly(play: Play, jumped: float) -> None:
    """An event each ten minutes for an hour, by a clock that was set."""
    for n in range(6):
        at = play.now + 600.0 if n else jumped
        play.now = at
        play._take(play.watch.feed([heard(limit_hit(at))], (), at))


@pytest.mark.parametrize("jump", [-HOUR, -DAY, YEAR, 8 * HOUR])
def test_a_jump_of_the_clock_makes_no_storm(jump: float) -> None:
    """Set back an hour, ahead a year, asleep for a night: no repeat, no resolve, no silence of a source is told."""
    play = Play(watch(SETTINGS)).at(START, limit_hit(START)).until(START + 1000)
    hourly(play, START + 1000 + jump)
    hourly(play, START + 8000)
    assert [notice.sort for notice in play.notices] == ["opened"]


def test_a_silence_survives_a_year_and_back() -> None:
    """A clock that is a year ahead for a while ends no silence for good."""
    play = Play(watch())
    play.command(Silence((parse_matcher("kind=recompile_limit_hit"),), START + 4 * HOUR, "ann", "known"))
    play._take(play.watch.tick(START + YEAR))
    play._take(play.watch.tick(START + 60))
    play.now = START + 60
    play.at(START + HOUR, limit_hit(START + HOUR))
    assert play.notices == []
    play.until(START + 5 * HOUR)
    assert [notice.sort for notice in play.notices] == ["opened"]


def test_after_a_jump_back_timers_still_run() -> None:
    """Nothing waits for the time that the clock showed before."""
    play = Play(watch(), start=START + YEAR).at(START + YEAR, bot_error(START + YEAR))
    play._take(play.watch.tick(START))
    play.now = START
    assert play.until(START + 60).told() == [("opened", "bot_error", 1)]


@pytest.mark.parametrize("time", [None, "1970-01-01T00:00:00+00:00", "2031-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00", "yesterday"])
def test_an_event_without_a_time_that_can_be_true_happens_when_it_is_read(time: str | None) -> None:
    """No time, epoch 0, the future: the time of reading stands in."""
    play = Play(watch()).until(START + 500)
    play.feed([heard(limit_hit(START)._replace(time=time))], START + 500)
    assert play.row("recompile_limit_hit")["since"] == START + 500


def test_an_undated_event_happens_at_the_time_of_the_dated_one_before_it() -> None:
    """In the same stream."""
    play = Play(watch()).until(START + 500).feed([heard(bot_error(START + 100), limit_hit(0.0)._replace(time=None))], START + 500)
    assert play.row("recompile_limit_hit")["since"] == START + 100


def test_a_late_event_belongs_to_its_own_time() -> None:
    """An incident begins with its earliest event, in whatever order they are read."""
    play = Play(watch()).at(START + 900, limit_hit(START + 900)).at(START + 901, limit_hit(START + 100))
    row = play.row("recompile_limit_hit")
    assert (row["since"], row["until"], row["count"]) == (START + 100, START + 900, 2)


def test_exactly_n_at_the_edge_of_the_window() -> None:
    """Both ends of the window count; late ones within it, too; one past it does not."""
    edge, past, late = Recent(), Recent(), Recent()
    assert [edge.add(at, 3, 60.0, 100.0) for at in (0.0, 30.0, 60.0)] == [False, False, True]
    assert [past.add(at, 3, 60.0, 100.0) for at in (0.0, 30.0, 60.1)] == [False, False, False]
    assert [late.add(at, 3, 60.0, 100.0) for at in (60.0, 0.0, 30.0)] == [False, False, True]
    assert [past.add(at, 3, 60.0, 100.0) for at in (70.0, 80.0)] == [True, True]


def test_a_window_forgets_times_of_a_clock_that_was_wrong() -> None:
    """A year ahead and back: the next events count."""
    recent = Recent()
    assert [recent.add(YEAR + at, 3, 60.0, YEAR + at) for at in (0.0, 1.0)] == [False, False]
    assert [recent.add(at, 3, 60.0, at) for at in (0.0, 1.0, 2.0)] == [False, False, True]


@pytest.mark.parametrize("day", ["2025-03-09", "2025-11-02"])
def test_quiet_hours_on_a_day_of_a_clock_change(day: str) -> None:
    """Where an hour is missing or comes twice the hours end later than they begin, and within a day."""
    quiet = QuietHours("01:30", "02:30", "America/New_York")
    midnight = datetime.fromisoformat(f"{day}T05:00:00+00:00").timestamp()
    ends = [quiet_until(quiet, midnight + minute * 60) for minute in range(0, 300, 5)]
    found = [(minute * 5, end - (midnight + minute * 300)) for minute, end in enumerate(ends) if end is not None]
    assert found and all(0 < left <= 2 * HOUR for _, left in found)


def test_next_time_is_the_zones_own() -> None:
    """08:00 in New York is 12:00 UTC in summer and 13:00 in winter."""
    assert [iso(next_time("08:00", "America/New_York", START + n * 4 * DAY)) for n in (0, 1)] == [
        "2025-10-30T12:00:00+00:00",
        "2025-11-03T13:00:00+00:00",
    ]


def test_the_receivers_pause_does_not_follow_the_wall_clock() -> None:
    """A clock that is set ahead gives no extra messages at once, one that is set back holds none for hours."""
    play = Play(watch(receivers=(Receiver("ops", burst=1, pause_s=600.0),))).at(START, limit_hit(START))
    play._take(play.watch.tick(START - HOUR))
    play.now = START - HOUR
    play.at(START - HOUR + 1, limit_hit(START - HOUR + 1, function="other")).until(START - HOUR + 1000)
    assert [notice.made_at - (START - HOUR) for notice in play.notices[1:]] == [600.0]


def test_a_fault_of_the_watching_has_the_time_at_which_it_is_seen() -> None:
    """Also while old logs are read by their own time."""
    now = START + 400 * 86_400
    found = watch(WatchSettings())
    found.tick(now)
    old = Heard("bot", "bot.log", (bot_error(START),), 1, is_backlog=True)
    step = found.feed([old], [Trouble(TroubleKind.GAP, "bot.log", "lines were lost")], now)
    (fault,) = [row for row in step.incidents.values() if row["kind"] == "watch_gap"]
    assert fault["since"] == fault["until"] == now

"""However the reading is cut into calls, and wherever the watch is restarted, it decides the same."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from recompile_watch.core.commands import Acknowledge, Silence
from recompile_watch.core.events import Event, Reason
from recompile_watch.core.matchers import parse_matcher
from recompile_watch.core.watch_settings import DeclaredModel, LifeSettings, QuietHours, Receiver, ResolveAfter, WatchSettings
from tests.conftest import SAMPLES
from tests.core.watching import START, Dated, Play, bot_error, by_record, event, events_of, heard, limit_hit, recompile, watch

RECEIVERS = (
    Receiver("ops", escalate_to="chief", escalate_after_s=900.0, repeat_interval_s=1800.0),
    Receiver("chief", only_escalations=True),
    Receiver("night", min_severity="critical", quiet_hours=QuietHours("08:00", "11:00", passes="critical"), digest_at="12:00"),
    Receiver("all", min_severity="info", group_by=("kind",), burst=1, pause_s=300.0, same_kind_wait_s=60.0),
)
LIFE = LifeSettings(resolve_after_s=3000.0, resolve_kinds=(ResolveAfter("bot_error", 400.0),), reload_resolves_after_s=300.0, forget_after_s=9000.0)
SETTINGS = WatchSettings(receivers=RECEIVERS, life=LIFE, models=(DeclaredModel("toto", "eager"), DeclaredModel("kronos", "compiled")))
MAKERS: tuple[Callable[[float, int], Event], ...] = (
    lambda at, n: recompile(at, 2 + n % 7, function=f"f{n % 3}"),
    lambda at, n: limit_hit(at, function=f"f{n % 3}"),
    lambda at, n: bot_error(at, f"Error number {n % 4} of kind {'abcd'[n % 4]}"),
    lambda at, n: event("synthetic_quote", at, symbol=("BTCUSD", "ETHUSD", "AAPL")[n % 3], cause="invalid_quote", spread_bps=0.0),
    lambda at, n: event("quote", at, symbol=("BTCUSD", "ETHUSD")[n % 2], bid=1.0, ask=1.1, spread_bps=10.0),
    lambda at, n: event("model_load", at, model=("toto", "kronos")[n % 2]),
    lambda at, n: event("compile_mode", at, model="toto", compiled=n % 2 == 0, mode="max-autotune"),
    lambda at, n: event("strategy_return", at, symbol="BTCUSD", strategy="MaxDiff", share=0.05 - 0.03 * (n % 4)),
    lambda at, n: event("inference", at, model="toto", milliseconds=100.0 + 50 * n),
    lambda at, n: event("analysis_start", at, analysis="INITIAL"),
    lambda at, n: event("plan", at, plan="INITIAL PLAN", count=n),
    lambda at, n: event("cudagraph_overwritten_error", at, model="kronos"),
    lambda at, n: event("forecast_failure", at, model="kronos", symbol="BTCUSD", message="", cause="assertion"),
    lambda at, n: event("cudagraph_skip", None, reasons=(Reason(None, "mutated inputs", "other"),), instances=n),
)
STEPS_S = (0.0, 0.0, 0.5, 1.0, 20.0, 31.0, 61.0, 500.0, 900.0, 4000.0)
AFTERWARDS_S = 20_000.0
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # an example takes a tenth of a second and its shrinking minutes


@st.composite
def readings(draw: st.DrawFn) -> list[Dated]:
    """A log: records with times that mostly go forward, each read at the latest time that stands in the log until then."""
    at = START
    found: list[Dated] = []
    for _ in range(draw(st.integers(1, 30))):
        is_late = draw(st.sampled_from((False, False, False, True)))
        at += 0.0 if is_late else draw(st.sampled_from(STEPS_S))
        made = draw(st.sampled_from(MAKERS))(at - (draw(st.sampled_from((5.0, 2000.0))) if is_late else 0.0), draw(st.integers(0, 11)))
        if made.time is None or is_late:
            at = found[-1][0] if found else START
        found.append((at, heard(made)))
    return found


def told(play: Play) -> object:
    """All that can be seen from outside: every notice with its time, and the row of each incident that is not forgotten."""
    rows = {name: row for name in play.rows if (row := play.watch.incident(name)) is not None}
    return json.loads(json.dumps([[str(one) for one in play.notices], rows], default=str))


def in_chunks(log: list[Dated], cuts: set[int]) -> Play:
    """The log, read in calls that end at some of its records."""
    play = Play(watch(SETTINGS))
    chunk: list[Dated] = []
    for number, one in enumerate(log):
        chunk.append(one)
        if number in cuts or number == len(log) - 1:
            play.until(chunk[0][0]).feed([piece for _, piece in chunk], chunk[-1][0])
            chunk = []
    return play.until(log[-1][0] + AFTERWARDS_S)


def restarted(log: list[Dated], cuts: set[int]) -> Play:
    """The log, with the watch made anew from its memory after some of its records, and at each second tick after it."""
    play = Play(watch(SETTINGS))
    for number, (at, one) in enumerate(log):
        play.feed([one], at)
        if number in cuts:
            play.watch = watch(SETTINGS, json.loads(json.dumps(play.parts)))
    play.watch = watch(SETTINGS, json.loads(json.dumps(play.watch.memory())))
    return play.until(log[-1][0] + AFTERWARDS_S)


@given(readings(), st.sets(st.integers(0, 40)))
@settings(max_examples=25, deadline=None, phases=UNSHRUNK, suppress_health_check=[HealthCheck.too_slow])
def test_cutting_the_reading_changes_nothing(log: list[Dated], cuts: set[int]) -> None:
    """One call for each record, one for all, or anything between: the same notices at the same times, the same incidents."""
    whole = in_chunks(log, set(range(len(log))))
    assert told(in_chunks(log, cuts)) == told(whole)


@given(readings(), st.sets(st.integers(0, 40)))
@settings(max_examples=25, deadline=None, phases=UNSHRUNK, suppress_health_check=[HealthCheck.too_slow])
def test_a_restart_changes_nothing(log: list[Dated], cuts: set[int]) -> None:
    """The watch can be made anew from its memory, through JSON, at any moment."""
    assert told(restarted(log, cuts)) == told(in_chunks(log, set(range(len(log)))))


@given(readings(), st.integers(0, 40))
@settings(max_examples=15, deadline=None, phases=UNSHRUNK, suppress_health_check=[HealthCheck.too_slow])
def test_the_changed_parts_are_the_memory(log: list[Dated], last: int) -> None:
    """Whoever keeps the changed parts of each step has all that ``memory`` gives."""
    play = Play(watch(SETTINGS))
    for at, one in log[: last + 1]:
        play.feed([one], at)
    play.command(Silence((parse_matcher("kind=bot_error"),), play.now + 100, "me", "known"))
    assert play.parts == json.loads(json.dumps(play.watch.memory()))


@pytest.mark.parametrize("size", [2, 7, 1000])
def test_the_bots_day_in_chunks(size: int) -> None:
    """The bot's own day gives the same notices record by record and in calls of many."""
    log = list(by_record(events_of(SAMPLES / "bot-2025-10-30-files")))
    assert told(in_chunks(log, set(range(0, len(log), size)))) == told(in_chunks(log, set(range(len(log)))))


def test_an_acknowledgement_survives_a_restart() -> None:
    """Who knows, and until when, is remembered."""
    play = Play(watch()).at(START + 1, limit_hit(START + 1))
    name = str(play.row("recompile_limit_hit")["id"])
    play.command(Acknowledge(name, START + 500, "ann", "expected until the release"))
    row = play.restart().watch.incident(name)
    assert row is not None and row["state"] == "acknowledged"
    assert row["acknowledged"] == {"who": "ann", "why": "expected until the release", "until": START + 500}

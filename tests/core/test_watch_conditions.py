"""Conditions beyond single events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from recompile_watch.core.events import Event
from recompile_watch.core.heard import Heard, Trouble, TroubleKind
from recompile_watch.core.symbols import is_crypto
from recompile_watch.core.watch_settings import DeclaredModel, LevelSettings, LifeSettings, Rate, Slot, WatchedSource, WatchSettings
from tests.core.watching import OPS, START, Play, bot_error, event, heard, limit_hit, recompile, watch

HOUR = 3600.0


def always(at: float) -> bool:
    """A market that never closes."""
    return True


def titles(play: Play) -> list[str]:
    """The first sentence of each notice."""
    return [notice.alerts[0].what for notice in play.notices]


def test_headroom_is_told_before_the_limit_is_hit() -> None:
    """At three quarters of the limit, with the advice that the recompile itself gets."""
    play = Play(watch())
    for n in range(2, 7):
        play.at(START + n, recompile(START + n, n))
    play.until(START + 60)
    assert titles(play) == ["step uses 6 of 8 compiled versions"]
    recompiled = next(row for row in play.rows.values() if row["kind"] == "recompile")
    assert [one.name for one in play.notices[0].alerts[0].advice] == [one["remedy"] for one in recompiled["advice"]]  # type: ignore[attr-defined]


def test_headroom_knows_the_limit_that_was_printed() -> None:
    """Where the log says that the limit is 16, six entries are not many."""
    play = Play(watch()).at(START, limit_hit(START, function="other", limit=16))
    for n in range(2, 7):
        play.at(START + n, recompile(START + n, n))
    assert "headroom_low" not in {row["kind"] for row in play.until(START + 60).rows.values()}


def test_headroom_knows_the_default_of_the_version_that_printed_the_line() -> None:
    """torch 2.1 keeps 64 versions, of which six are not many."""
    for version, told in (("2.1", False), ("2.2", True)):
        play = Play(watch())
        for n in range(2, 7):
            one = recompile(START + n, n)
            play.at(START + n, one._replace(extra={**one.extra, "torch": version}))
        assert ("headroom_low" in {row["kind"] for row in play.until(START + 60).rows.values()}) == told


def test_recompiles_after_warm_up_are_told() -> None:
    """Three of one function within an hour, after a minute without compiling."""
    play = Play(watch()).at(START, recompile(START, 2))
    for n in range(1, 4):
        play.at(START + 200 * n, recompile(START + 200 * n, 2, value=n))
    play.until(START + 700)
    assert titles(play)[-1].startswith("step is compiled again after warm-up, 3 times or more within 1 h")


def test_too_many_errors_are_critical_and_over_when_they_stop() -> None:
    """The main loop that fails each minute for hours: one critical message, and one when it is over."""
    settings = WatchSettings(receivers=(OPS,), rates=(Rate("bot_error", 10, 900.0),))
    play = Play(watch(settings))
    for n in range(60):
        play.at(START + 60 * n, bot_error(START + 60 * n, "Error in main loop: connection refused"))
    play.until(START + 60 * 60 + 1200)
    assert [(one.sort, one.severity, one.alerts[0].kind) for one in play.notices] == [
        ("opened", "warning", "bot_error"), ("opened", "critical", "too_many"), ("resolved", "critical", "too_many"),
    ]  # fmt: skip
    assert play.notices[1].alerts[0].what == "10 times 'bot error' within 15 min"


def latencies(play: Play, start: float, values: Sequence[float]) -> Play:
    """One measurement a second."""
    for n, value in enumerate(values):
        play.at(start + n, event("inference", start + n, model="toto", milliseconds=value, derived=False))
    return play


def test_latency_over_its_own_normal_level() -> None:
    """Normally 200 ms; at 400 it is told with both numbers and the count, and again when it is over."""
    play = latencies(Play(watch()), START, [200.0] * 150)
    latencies(play, START + 200, [400.0] * 20)
    play.until(START + 300)
    assert titles(play) == ["toto takes 400 ms (p95), normally about 202 ms (132 measurements)"]
    latencies(play, START + 400, [200.0] * 20)
    assert [one.sort for one in play.until(START + 6000).notices] == ["opened", "resolved"]


def test_latency_that_outlasts_its_explanation_is_told() -> None:
    """The limit hit explains it; once that is over and the latency is not, it is told by itself."""
    settings = WatchSettings(receivers=(OPS,), life=LifeSettings(resolve_after_s=600.0))
    play = latencies(Play(watch(settings)), START, [200.0] * 150)
    play.at(START + 190, limit_hit(START + 190)._replace(file="/srv/toto/model.py"))
    latencies(play, START + 200, [400.0] * 20).until(START + 700)
    assert [notice.alerts[0].kind for notice in play.notices] == ["recompile_limit_hit"]
    assert [notice.alerts[0].kind for notice in play.until(START + 1000).notices if notice.sort == "opened"][1:] == ["latency_high"]


def test_latency_is_not_judged_before_its_normal_level_is_known() -> None:
    """Fifty measurements tell nothing; a bound of the user's does not need them."""
    assert latencies(Play(watch()), START, [200.0] * 40 + [900.0] * 10).until(START + 100).notices == []
    bound = WatchSettings(receivers=(OPS,), latency=LevelSettings(bound=500.0))
    play = latencies(Play(watch(bound)), START, [200.0] * 40 + [900.0] * 10).until(START + 100)
    assert titles(play)[0].startswith("toto takes 900 ms (p95), the bound is 500 ms, its normal level is not known yet")


def test_the_first_inference_after_a_load_does_not_count() -> None:
    """It contains the compiling."""
    play = latencies(Play(watch()), START, [200.0] * 150)
    for n in range(20):
        at = START + 1000 + 10 * n
        play.at(at, event("model_load", at, model="toto"))
        latencies(play, at + 1, [45_000.0, 200.0])
    assert play.until(START + 2000).notices == []


def test_memory_over_its_own_normal_level() -> None:
    """Three peaks in a row, not one."""
    play = Play(watch())
    peaks = [1025.8] * 30 + [1900.0] + [1025.8] * 3 + [1900.0] * 3
    for n, peak in enumerate(peaks):
        play.at(START + n, event("gpu_memory", START + n, model="toto", stage="usage", peak_mb=peak))
    play.until(START + 100)
    assert titles(play) == ["toto usage takes 1900 MB of GPU memory, normally about 1023 MB (33 measurements)"]
    assert play.notices[0].alerts[0].advice[0].name == "reduce_batch"


def returns(values: Sequence[float], strategy: str = "MaxDiff") -> Play:
    """One analysis an hour."""
    play = Play(watch())
    for n, value in enumerate(values):
        play.at(START + n * HOUR, event("strategy_return", START + n * HOUR, symbol="ETHUSD", strategy=strategy, share=value))
    return play.until(START + len(values) * HOUR)


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ([-0.01], "ETHUSD: MaxDiff returns -1.00%, below the bound of +0.00%; normal level not known yet (0 analyses)"),
        ([0.1] * 6 + [-0.05], "ETHUSD: MaxDiff returns -5.00%; normally +10.00% (median of 6 analyses)"),
        ([0.1] * 6 + [0.04], "ETHUSD: MaxDiff returns +4.00%; normally +10.00% (median of 6 analyses)"),
    ],
)
def test_bad_returns_are_told(values: list[float], title: str) -> None:
    """Below the bound, with another sign, or far below what is normal."""
    assert titles(returns(values)) == [title]


@pytest.mark.parametrize("values", [[0.1] * 6 + [0.07], [0.1] * 3 + [0.04], [0.02] * 6 + [0.015]])
def test_ordinary_returns_are_not_told(values: list[float]) -> None:
    """A small drop, too few analyses for a normal level, a drop of nearly nothing."""
    assert titles(returns(values)) == []


def test_other_strategies_are_not_judged() -> None:
    """Most of the bot's strategies lose in simulation all the time; it trades by one."""
    assert titles(returns([-0.3], "Buy & Hold")) == []


def cycle(play: Play, at: float, symbols: str) -> None:
    """One analysis with tables for these symbols (A, B, ...) and a plan at its end."""
    play.at(at, event("analysis_start", at, analysis="INITIAL"))
    for n, name in enumerate(symbols):
        play.at(at + 60 + n, event("strategy_return", at + 60 + n, symbol=name, strategy="MaxDiff", share=0.1))
    play.at(at + 600, event("plan", at + 600, count=1)).until(at + 900)


def test_a_symbol_that_an_analysis_left_out() -> None:
    """It was in the two before. When it comes again, that is told too."""
    play = Play(watch())
    for n, symbols in enumerate(("ABC", "ABC", "AB", "ABC")):
        cycle(play, START + n * HOUR, symbols)
    play.until(START + 6 * HOUR)
    assert titles(play) == ["The initial analysis finished without C, which the ones before had"] * 2
    assert [notice.sort for notice in play.notices] == ["opened", "resolved"]


def test_an_analysis_that_is_still_running_misses_nothing() -> None:
    """Only its plan shows that it is finished."""
    play = Play(watch())
    for n in range(2):
        cycle(play, START + n * HOUR, "ABC")
    play.at(START + 2 * HOUR, event("analysis_start", START + 2 * HOUR, analysis="MARKET OPEN")).until(START + 3 * HOUR)
    assert play.notices == []


@pytest.mark.parametrize(("symbol", "is_open", "is_told"), [("BTCUSD", False, True), ("AAPL", False, False), ("AAPL", True, True)])
def test_made_up_quotes_matter_when_there_is_a_market(symbol: str, is_open: bool, is_told: bool) -> None:
    """Crypto always, stocks while the exchange is open."""
    play = Play(watch(is_open=lambda at: is_open))
    play.at(START, event("synthetic_quote", START, symbol=symbol, cause="invalid_quote", spread_bps=0.0)).until(START + 60)
    assert bool(play.notices) is is_told


def test_a_real_quote_ends_it() -> None:
    """A minute after it, unless another made-up one comes."""
    play = Play(watch()).at(START, event("synthetic_quote", START, symbol="BTCUSD", cause="invalid_quote", spread_bps=0.0))
    play.at(START + 100, event("quote", START + 100, symbol="BTCUSD", bid=100.0, ask=100.2, spread_bps=20.0)).until(START + 200)
    assert play.row("synthetic_quote")["state"] == "resolved"


def test_which_symbols_are_crypto() -> None:
    """Those with a currency."""
    assert [one for one in ("BTCUSD", "ETH/USD", "UNIUSD", "AAPL", "NVDA", "MUSD", "GOOG", "LINKUSDT") if is_crypto(one)] == [
        "BTCUSD", "ETH/USD", "UNIUSD", "LINKUSDT",
    ]  # fmt: skip


def drifting(declared: str, *events: Event) -> Play:
    """A model called toto that is declared so."""
    play = Play(watch(WatchSettings(receivers=(OPS,), models=(DeclaredModel("toto", declared),))))
    for n, one in enumerate(events):
        play.at(START + n, one)
    return play.until(START + 300)


def mode(at: int, *, compiled: bool, mode: str | None = "max-autotune") -> Event:
    """What the loader prints."""
    return event("compile_mode", START + at, model="toto", compiled=compiled, mode=mode)


@pytest.mark.parametrize(
    ("declared", "events", "title"),
    [
        ("eager", [mode(0, compiled=True)], "toto is declared eager, but runs compiled (max-autotune)"),
        ("eager", [recompile(START, 2)._replace(file="/srv/toto/model.py")], "toto is declared eager, but runs compiled"),
        ("compiled", [mode(0, compiled=False)], "toto is declared compiled, but runs in eager mode"),
        ("reduce-overhead", [mode(0, compiled=True)], "toto is declared reduce-overhead, but runs compiled (max-autotune)"),
        ("compiled", [mode(0, compiled=True), event("model_load", START + 1, model="toto")], "toto is declared compiled, but runs in eager mode"),
    ],
)
def test_drift_is_told(declared: str, events: list[Event], title: str) -> None:
    """The declared mode and what the log shows differ; a loader that is known to say when it compiles said nothing."""
    assert title in titles(drifting(declared, *events))


@pytest.mark.parametrize(
    ("declared", "events"),
    [
        ("eager", [mode(0, compiled=False), event("model_load", START + 1, model="toto")]),
        ("compiled", [mode(0, compiled=True)]),
        ("max-autotune", [mode(0, compiled=True)]),
        ("compiled", [event("model_load", START, model="toto")]),
        ("compiled", [event("model_load", START, model="toto"), mode(1, compiled=True)]),
        ("eager", [event(kind, START, model="toto") for kind in ("profiler_report", "flex_attention_eager_fallback")]),
    ],
)
def test_no_drift_without_evidence(declared: str, events: list[Event]) -> None:
    """It runs as declared, or the log does not show how."""
    assert not [title for title in titles(drifting(declared, *events)) if "declared" in title]


def test_drift_names_the_line_to_set_and_ends_with_it() -> None:
    """The switch that the model's own wrapper reads; the next load in eager mode ends the incident."""
    play = drifting("eager", mode(0, compiled=True))
    assert play.notices[0].alerts[0].advice[0].apply == "export TOTO_DISABLE_COMPILE=1"
    play.at(START + 400, mode(400, compiled=False)).until(START + 500)
    assert play.row("mode_drift")["state"] == "resolved"


SOURCE = WatchedSource("bot", silent_after_s=1800.0, schedule=())


def quiet(source: WatchedSource = SOURCE, is_open: Callable[[float], bool] = always, start: float = START) -> Play:
    """A watch of one source in which nothing was heard yet."""
    return Play(watch(WatchSettings(receivers=(OPS,), sources=(source,)), is_open=is_open), start=start)


def test_a_source_that_never_spoke_is_silent() -> None:
    """Without one line before, after the time of watching that was set."""
    play = quiet().until(START + 1900)
    assert titles(play) == ["No line from 'bot' for 30 min, and none before since the watch began"]
    assert play.notices[0].made_at - START == pytest.approx(1800, abs=60)


def test_lines_without_events_are_lines() -> None:
    """What is heard need not mean anything."""
    play = quiet()
    for n in range(20):
        play.until(START + 300 * n).feed([Heard("bot", "bot.log", (), 5)], START + 300 * n)
    assert play.notices == []


def test_time_in_which_nobody_watched_is_not_silence() -> None:
    """The watch was down, or the machine slept: the time begins anew where it was left."""
    play = quiet().until(START + 1200)
    play._take(play.watch.tick(START + 50_000))
    play.now = START + 50_000
    assert play.until(START + 50_300).notices == []
    assert len(play.until(START + 50_900).notices) == 1


def test_a_source_that_cannot_be_read_is_not_silent() -> None:
    """Its trouble is told; that it says nothing cannot be known."""
    play = quiet().feed([heard(lines=3)], START + 10)
    play.feed([], START + 20, [Trouble(TroubleKind.UNREADABLE, "bot.log", "bot.log: permission denied")]).until(START + 9000)
    assert [notice.alerts[0].kind for notice in play.notices] == ["watch_source_unreadable"]


def test_a_line_ends_the_silence() -> None:
    """It is over when it speaks again."""
    play = quiet().until(START + 1900).feed([heard(lines=1)], START + 1910).until(START + 2100)
    assert [notice.sort for notice in play.notices] == ["opened", "resolved"]


MORNING = WatchedSource("bot", silent_after_s=0.0, schedule=(Slot("09:30", "10:00"),), slot_grace_s=900.0)
OPENING = 1_761_831_000.0  # 2025-10-30 09:30 in New York


def test_an_analysis_that_was_due_and_did_not_come() -> None:
    """No line from 09:30 to 10:15 in New York on a trading day."""
    play = quiet(MORNING, start=OPENING - 600).until(OPENING + 2760)
    assert titles(play) == ["No line from 'bot' while its analysis was due (09:30 to 10:00 in New York)"]


@pytest.mark.parametrize("at", [OPENING + 5, OPENING + 2000])
def test_one_line_in_time_is_enough(at: float) -> None:
    """Anywhere in the stretch."""
    assert quiet(MORNING, start=OPENING - 600).feed([heard(lines=1)], at).until(OPENING + 9000).notices == []


def test_no_analysis_is_due_on_a_holiday() -> None:
    """The market's calendar decides."""
    assert quiet(MORNING, is_open=lambda at: False, start=OPENING - 600).until(OPENING + 9000).notices == []


def test_half_of_the_stretch_was_not_watched() -> None:
    """Then nothing is claimed of it."""
    assert quiet(MORNING, start=OPENING + 900).until(OPENING + 9000).notices == []


def test_the_bots_schedule_holds_once_it_is_known_to_be_the_bot() -> None:
    """Without a schedule of its own a source is held to the bot's when it showed an analysis, else to none."""
    plain = WatchedSource("bot", silent_after_s=0.0)
    start = OPENING - 3600
    assert quiet(plain, start=start).feed([heard(lines=1)], start + 1).until(OPENING + 3000).notices == []
    play = quiet(plain, start=start).at(start + 1, event("analysis_start", start + 1, analysis="INITIAL")).until(OPENING + 3000)
    assert len(play.notices) == 1

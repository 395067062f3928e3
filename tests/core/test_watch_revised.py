"""Another configuration while incidents are open: none of them stays open because nothing can end it any more."""

from __future__ import annotations

import pytest

from recompile_watch.core.events import Event
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.core.watch_settings import DeclaredModel, LifeSettings, Rate, ReturnSettings, WatchedSource, WatchSettings
from tests.core.watching import START, Play, bot_error, event, heard, watch

HOUR_S = 3600.0
GONE = "the rule no longer exists"


def ended(play: Play, kind: str) -> tuple[object, object]:
    """State of the only incident of a kind, and why it ended."""
    row = play.row(kind)
    return row["state"], row["ended_because"]


def a_rate() -> tuple[WatchSettings, WatchSettings, list[Event]]:
    settings = WatchSettings(rates=(Rate("bot_error", 3, 900.0),))
    return settings, WatchSettings(rates=(Rate("bot_error", 5, 900.0),)), [bot_error(START + second) for second in range(3)]


def a_model(after: tuple[DeclaredModel, ...]) -> tuple[WatchSettings, WatchSettings, list[Event]]:
    compiled = event("compile_mode", START, model="toto", compiled=True, mode="max-autotune")
    return WatchSettings(models=(DeclaredModel("toto", "eager"),)), WatchSettings(models=after), [compiled]


def a_strategy() -> tuple[WatchSettings, WatchSettings, list[Event]]:
    row = event("strategy_return", START, symbol="BTCUSD", strategy="MaxDiff", share=-0.2)
    return WatchSettings(), WatchSettings(returns=ReturnSettings(strategies=("CI Guard",))), [row]


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("too_many", a_rate()), ("mode_drift", a_model(())), ("mode_drift", a_model((DeclaredModel("toto", "max-autotune"),))),
        ("return_low", a_strategy()),
    ],
    ids=["rate edited", "model removed", "model declared otherwise", "strategy no longer judged"],
)  # fmt: skip
def test_a_condition_that_is_edited_or_removed_ends_its_incident(kind: str, case: tuple[WatchSettings, WatchSettings, list[Event]]) -> None:
    """It ends at the next start, with the reason; that is told once. With the same settings it goes on."""
    settings, other, events = case
    play = Play(watch(settings)).at(START + 3, *events).until(START + 120)
    assert play.row(kind)["state"] == "open"
    play.restart(settings).until(START + 240)
    assert play.row(kind)["state"] == "open"
    play.restart(other).until(START + 300)
    assert ended(play, kind) == ("resolved", GONE)
    play.restart(other).until(START + 6 * HOUR_S)
    told = [alert for notice in play.notices if notice.sort == "resolved" for alert in notice.alerts if alert.kind == kind]
    assert len(told) == 1
    assert told[0].why.endswith(f"it is over: {GONE}")


def test_a_rule_of_the_users_that_is_gone_ends_its_incident() -> None:
    """Events of a kind that no rule makes any more cannot come again; there is no need to wait a day for them."""
    play = Play(watch()).at(START, event("my_own_kind", START, message="disk is full")).until(START + 120)
    assert play.row("my_own_kind")["state"] == "open"
    play.restart().until(START + 240)
    assert ended(play, "my_own_kind") == ("resolved", GONE)


def test_a_source_that_is_gone_is_not_silent() -> None:
    """Nobody expects lines of it any more."""
    settings = WatchSettings(sources=(WatchedSource("bot", silent_after_s=HOUR_S), WatchedSource("other")))
    play = Play(watch(settings)).feed([heard(lines=1)], START).until(START + 2 * HOUR_S)
    assert play.row("source_silent")["state"] == "open"
    play.restart(WatchSettings(sources=(WatchedSource("other"),))).until(START + 2 * HOUR_S + 300)
    assert ended(play, "source_silent") == ("resolved", "its source is no longer watched")


def test_a_receiver_that_is_gone_fails_no_longer() -> None:
    """Its trouble ends with it."""
    play = Play(watch()).feed([], START, [Trouble(TroubleKind.UNDELIVERED, "pager", "Receiver pager did not take a message")]).until(START + 60)
    play.restart().until(START + 120)
    assert ended(play, "watch_undelivered") == ("resolved", "the configuration no longer names the receiver")


@pytest.mark.parametrize("is_said_again", [True, False])
def test_a_fault_that_ended_while_nobody_watched_does_not_stay_open(is_said_again: bool) -> None:
    """A new run does not know of it: unless it says it again, it is over after some minutes."""
    missing = Trouble(TroubleKind.SOURCE_MISSING, "/logs/*.log", "leads to no file")
    settings = WatchSettings(life=LifeSettings(flap_turns=1))
    play = Play(watch(settings)).feed([], START, [missing]).until(START + 120)
    play.restart(settings).until(START + 180)
    if is_said_again:
        play.feed([], START + 185, [missing])
    play.until(START + HOUR_S)
    assert play.row("watch_source_missing")["state"] == ("open" if is_said_again else "resolved")
    assert [notice.sort.value for notice in play.notices] == ["opened"] + ["resolved"] * (not is_said_again)

"""The bot's day of 2025-10-30: a handful of messages that one would want to get."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompile_watch.core.watch_settings import DeclaredModel, Receiver, WatchedSource, WatchSettings
from tests.conftest import DATA, SAMPLES
from tests.core.watching import Play, by_record, events_of, heard, watch

# Ten lines of configuration: a source, a receiver, what is declared.
SETTINGS = WatchSettings(
    receivers=(Receiver("ops"),), sources=(WatchedSource("bot"),), models=(DeclaredModel("toto", "eager"), DeclaredModel("kronos", "eager"))
)


def replayed(*logs: Path, after: float = 7200.0) -> Play:
    """The logs by their own time, and some hours more in which the bot only sleeps."""
    records = list(by_record(events_of(*logs)))
    play = Play(watch(SETTINGS), start=records[0][0])
    for at, one in records:
        play.feed([one], at)
    end = play.now + after
    while play.now < end:
        play.until(play.now + 600).feed([heard(lines=1)], play.now)
    return play


def shown(play: Play) -> list[tuple[str, str, tuple[str, ...]]]:
    """What was told: sort, severity, and the first sentences."""
    return [(one.sort.value, one.severity, tuple(alert.what for alert in one.alerts)) for one in play.notices]


def test_the_bots_day() -> None:
    """Three messages while it happens, one half an hour later with what came since, one when a real quote came."""
    assert shown(replayed(SAMPLES / "bot-2025-10-30-files", after=5400.0)) == [
        (
            "opened", "warning",
            (
                "toto is declared eager, but runs compiled (max-autotune)",
                "The bot reports an error: offline/connection error - Error: not all arguments converted during string formatting",
                "CUDA graphs skipped: mutated inputs (2 instances)",
                "BTCUSD is priced without a real quote (ADD_LATEST off)",
            ),
        ),
        ("opened", "critical", ("positional_embedding hit the recompile limit (8)",)),
        (
            "opened", "critical",
            (
                "A CUDA graph output was overwritten by the next run (made in forward)",
                "toto ran out of GPU memory",
                "kronos is declared eager, but runs compiled",
                "ETHUSD is priced without a real quote (ADD_LATEST off)",
            ),
        ),
        (
            "opened", "warning",
            (
                "The bot reports an error: Error analyzing UNIUSD",
                "The bot reports an error: Error in main loop: HTTPSConnectionPool(host='paper-api.alpaca.markets', port=443): Max r…",
                "The bot reports an error: HTTPSConnectionPool(host='data.alpaca.markets', port=443): Read timed out. (read timeout=…",
                "The bot reports an error: error getting bid price for UNIUSD",
                "The bot reports an error: Failed to download historical data for %s (%s); using cached dataset",
                "UNIUSD is priced without a real quote (invalid quote)",
            ),
        ),
        ("resolved", "warning", ("ETHUSD is priced without a real quote (ADD_LATEST off)",)),
    ]  # fmt: skip


@pytest.mark.parametrize("log", sorted((DATA / "bot").rglob("*.log")), ids=lambda log: log.name)
def test_each_kind_of_trouble_is_few_messages(log: Path) -> None:
    """All lines of a kind that the bot can print at all, in one log: still no more than six messages, without repeats."""
    play = replayed(log)
    told = [alert.incident for notice in play.notices if notice.sort == "opened" for alert in notice.alerts]
    assert len(play.notices) <= 6
    assert len(told) == len(set(told))

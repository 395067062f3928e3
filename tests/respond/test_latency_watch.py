"""Tests of `recompile_watch.respond.latency_watch`: the diagnostic gives way when the bot's own calls become slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompile_watch.core.errors import SourceError
from recompile_watch.respond.latency_watch import LatencyWatch
from tests.conftest import matcher, rules


class Bot:
    """Writes the line after each call that counts it, as the bot does."""

    def __init__(self, path: Path) -> None:
        self.path, self.now, self.count = path, 0.0, 0

    def runs(self, calls: int, call_s: float) -> None:
        with self.path.open("a") as file:
            for _ in range(calls):
                self.now, self.count = self.now + call_s, self.count + 1
                time = f"2025-10-30 {int(self.now // 3600):02}:{int(self.now // 60 % 60):02}:{int(self.now % 60):02}"
                usage = "Toto GPU usage symbol=BTCUSD num_samples=3072 samples_per_batch=384 peak=1025.8 MB delta=416.1 MB"
                file.write(f"{time} UTC | {time} EDT | {time} NZDT | backtest_test3_inline.py:_record:778 DEBUG | {usage} (count={self.count})\n")


def watch_of(bot: Bot) -> LatencyWatch:
    return LatencyWatch(bot.path, rules(), matcher())


def test_slower_calls_stop_it(tmp_path: Path) -> None:
    """As long as calls take what they took before it goes on; twice as long, and it stops with both numbers."""
    bot = Bot(tmp_path / "bot.log")
    bot.runs(40, 2.0)
    watch = watch_of(bot)
    assert watch.look() is None and watch.usual_ms == pytest.approx(2000, rel=0.1)
    bot.runs(40, 2.0)
    assert watch.look() is None
    bot.runs(40, 4.0)
    assert "take 4000 ms now, 2000 ms before" in (watch.look() or "")


def test_a_log_that_says_nothing(tmp_path: Path) -> None:
    """Without latencies to compare with, or without the log, nothing runs beside the bot."""
    (tmp_path / "bot.log").write_text("hello\n" * 100)
    with pytest.raises(SourceError, match="shows 0 calls"):
        watch_of(Bot(tmp_path / "bot.log"))
    with pytest.raises(SourceError, match="cannot be read"):
        watch_of(Bot(tmp_path / "none.log"))


def test_a_log_that_goes_away(tmp_path: Path) -> None:
    """A rotated log is read from its beginning; one that is gone stops the run."""
    bot = Bot(tmp_path / "bot.log")
    bot.runs(40, 2.0)
    watch = watch_of(bot)
    bot.path.write_text("")
    bot.runs(20, 4.0)
    assert "take 4000 ms now" in (watch.look() or "")
    bot.path.unlink()
    assert "cannot be read" in (watch.look() or "")

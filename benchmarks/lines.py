"""What the three mixes share: a clock that only moves forward, and the chunk of log text that a mix yields."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

SYMBOLS = ("BTCUSD", "ETHUSD", "UNIUSD", "SOLUSD", "AAPL", "NVDA", "TSLA", "AMD", "MSFT", "GOOG", "AMZN", "META", "SMH", "COUR", "ADSK", "LINKUSD")
PRICES = (110251.4, 3893.2, 6.031, 186.4, 269.7, 207.04, 440.1, 254.8, 525.76, 281.48, 222.86, 666.47, 361.2, 8.41, 301.5, 17.28)
_NEW_YORK = ZoneInfo("America/New_York")
_AUCKLAND = ZoneInfo("Pacific/Auckland")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole log lines.

    text: the lines, each with its line end.
    line_count: physical lines in `text`.
    relevant_count: how many of them belong to messages of torch or of the bot that a reader wants.
    kinds: event kinds (CONTRACT.md section 3) with the number of events that `text` holds; only kinds with one undisputed count.
    """

    text: str
    line_count: int
    relevant_count: int
    kinds: tuple[tuple[str, int], ...] = ()


def relevant(lines: list[str], *kinds: str) -> Chunk:
    """One record whose lines all matter; each of `kinds` counts as one event."""
    return Chunk("\n".join(lines) + "\n", len(lines), len(lines), tuple((kind, 1) for kind in kinds))


def ordinary(lines: list[str]) -> Chunk:
    """Lines that nobody needs."""
    return Chunk("\n".join(lines) + "\n", len(lines), 0)


@lru_cache(maxsize=4)
def _second_utc(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))


@lru_cache(maxsize=4)
def _second_clf(second: int) -> str:
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(second))


@lru_cache(maxsize=4)
def _second_edt(second: int) -> str:
    utc = datetime.fromtimestamp(second, UTC)
    shape = "%Y-%m-%d %H:%M:%S %Z"
    return f"{utc:{shape}} | {utc.astimezone(_NEW_YORK):{shape}} | {utc.astimezone(_AUCKLAND):{shape}}"


class Clock:
    """The log's own time: milliseconds since the epoch, UTC, moved by whoever writes a line."""

    def __init__(self, start: datetime) -> None:
        self.now_ms = int(start.timestamp() * 1000)

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    def plain(self) -> str:
        """`2025-10-30 09:07:15`"""
        return _second_utc(self.now_ms // 1000)

    def millis(self, mark: str) -> str:
        """`2025-10-30 09:07:14.699`, with `mark` before the milliseconds."""
        return f"{_second_utc(self.now_ms // 1000)}{mark}{self.now_ms % 1000:03d}"

    def access(self) -> str:
        """`30/Oct/2025:09:07:15 +0000`, as web servers write it."""
        return _second_clf(self.now_ms // 1000)

    def three_zones(self) -> str:
        """`2025-10-30 09:07:15 UTC | 2025-10-30 05:07:15 EDT | 2025-10-30 22:07:15 NZDT`, the bot's dialect A."""
        return _second_edt(self.now_ms // 1000)

    def glog(self) -> str:
        """`1030 09:08:09.060000`: no year; torch prints milliseconds and pads them to six digits."""
        second = _second_utc(self.now_ms // 1000)
        return f"{second[5:7]}{second[8:10]} {second[11:]}.{self.now_ms % 1000:03d}000"


def pick_symbol(rng: random.Random) -> tuple[str, float]:
    """A symbol and its price now, within one percent of its usual one."""
    index = int(rng.random() * len(SYMBOLS))
    return SYMBOLS[index], PRICES[index] * (0.99 + rng.random() * 0.02)

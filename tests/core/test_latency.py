"""Tests of the latencies that the bot's call counters tell: a window holds calls of one symbol, and nothing else."""

from __future__ import annotations

import pytest

from tests.conftest import events_of_bytes

LOAD = "Loading Toto pipeline 'Datadog/Toto-Open-Base-1.0' on cuda"
ANALYSIS = "INITIAL ANALYSIS STARTING..."
Step = tuple[int, str]


def at(second: int, text: str) -> bytes:
    """A line of the bot, so many seconds after half past two."""
    hour, minute, rest = 14 + (1800 + second) // 3600, (1800 + second) // 60 % 60, second % 60
    time = f"2026-01-14 {hour}:{minute:02d}:{rest:02d}"
    return f"{time} UTC | {time} EST | {time} NZDT | backtest_test3_inline.py:_record:776 INFO | {text}\n".encode()


def used(second: int, count: int, symbol: str = "AMD") -> Step:
    return second, f"Toto GPU usage symbol={symbol} num_samples=3072 samples_per_batch=384 peak=1025.8 MB delta=416.1 MB (count={count})"


def latencies(*steps: Step) -> list[tuple[object, object, object]]:
    """Symbol, milliseconds and calls of each measurement."""
    events = events_of_bytes(b"".join(at(*step) for step in steps), "bot.log")
    return [(one["symbol"], one["milliseconds"], one["calls"]) for one in events if one["kind"] == "inference"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([used(0, 1), used(10, 51)], [("AMD", 200.0, 50)]),
        ([used(0, 1), used(392, 1961, "NVDA"), used(402, 2011, "NVDA")], [("AMD", 200.0, 1960), ("NVDA", 200.0, 50)]),
        ([used(0, 1), used(1, 6), used(3601, 7), used(3611, 57)], [("AMD", 200.0, 50)]),  # an hour in which nothing was called
        ([used(0, 1), used(8, 40), (60, LOAD), used(120, 41), used(131, 96)], [("AMD", 200.0, 55)]),  # the pipeline was dropped and loaded again
        ([used(0, 1), used(8, 40), (60, LOAD), used(120, 1), used(131, 56)], [("AMD", 200.0, 55)]),  # the process began anew
        ([used(0, 1), used(8, 40), (60, ANALYSIS), used(120, 41), used(130, 91)], [("AMD", 200.0, 50)]),
    ],
)
def test_only_time_in_which_calls_were_made_counts(steps: list[Step], expected: list[tuple[object, object, object]]) -> None:
    """The calls between the line of one symbol and that of the next are those of the first."""
    assert latencies(*steps) == expected

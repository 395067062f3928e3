"""Tests of `recompile_watch.core.counters`: what is left out of the call counters changes no latency."""

from __future__ import annotations

import random

import pytest

from recompile_watch.core.context import Context
from recompile_watch.core.counters import Count, telling
from recompile_watch.core.events import Event
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.sums import Sums
from recompile_watch.core.times import TimeResolver
from tests.conftest import TIMES

INVALID = Stamp("local", "2025-02-30 09:00:00")


def random_counts(seed: int) -> list[Count]:
    """Counters of a bot that changes symbols and settings, starts again, and whose clock jumps now and then."""
    chance = random.Random(seed)
    second, calls = 3600 * 9 + chance.randrange(7200), 0
    found: list[Count] = []
    symbol: str | None = "BTCUSD"
    form = "zoned"
    for number in range(chance.randrange(5, 300)):
        second += chance.choice((0, 0, 0, 1, 1, 2, 5)) if chance.random() < 0.97 else chance.randrange(-60, 4000)
        calls = chance.randrange(3) if chance.random() < 0.02 else calls + chance.randrange(1, 9)
        if chance.random() < 0.1:
            symbol = chance.choice(("BTCUSD", "ETHUSD", None))
        if chance.random() < 0.02:
            form = chance.choice(("zoned", "local"))
        clock = f"2025-10-30 {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        stamp = Stamp(form, f"{clock}+00:00" if form == "zoned" else f"{clock}.{chance.choice((0, 999)):03d}")
        settings = chance.choice(((3072, 384), (3072, 384), (256, None)))
        found.append((number * 200, INVALID if chance.random() < 0.01 else stamp, calls, "toto", symbol, settings))
    return found


def latencies(stretches: list[list[Count]]) -> list[Event]:
    """What the counters prove, stretch by stretch of one log."""
    context = Context(TimeResolver(TIMES))
    found = []
    for counts in stretches:
        stamps = (counts[0][1], counts[-1][1])
        found += context.push([Sums("gpu_memory", "bot.log", len(counts), counts[0][0], counts[-1][0], stamps, [], counts, {}, {}, [])])
    return [item for item in [*found, *context.flush()] if isinstance(item, Event)]


@pytest.mark.parametrize("seed", range(300))
def test_left_out_counters_tell_no_latency(seed: int) -> None:
    """All counters and the telling ones give the same latencies, wherever the log is cut into stretches."""
    counts = random_counts(seed)
    cut = random.Random(seed).randrange(1, len(counts))
    stretches = [counts[:cut], counts[cut:]]
    expected = latencies(stretches)
    assert latencies([telling(counts)]) == expected
    assert latencies([telling(stretch) for stretch in stretches]) == expected


def test_most_counters_are_left_out() -> None:
    """Of a symbol's forecasts within ten seconds only the first and the last can matter."""
    counts: list[Count] = [
        (100 * n, Stamp("zoned", f"2025-10-30 09:07:{n // 5:02d}+00:00"), n, "toto", f"S{n // 20}", (3072, 384)) for n in range(200)
    ]
    assert len(telling(counts)) < 50

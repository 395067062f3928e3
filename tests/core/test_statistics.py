"""Tests of `recompile_watch.core.statistics`: against values known by other means, and against chance."""

from __future__ import annotations

import statistics as standard

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recompile_watch.core.statistics import (
    Pair,
    SplitMix64,
    break_even_calls,
    mad,
    median,
    minimum_detectable_effect,
    percentile,
    run_length,
    sigma,
    speedup,
)
from tests.core.noise import KINDS, pairs_of

TIMES = st.lists(st.floats(0.01, 1e5), min_size=1, max_size=60)


@given(TIMES)
def test_like_the_standard_library(values: list[float]) -> None:
    """Median and sigma agree with the standard library's."""
    assert median(values) == pytest.approx(standard.median(values))
    assert sigma(values) == (pytest.approx(standard.stdev(values), rel=1e-6, abs=1e-6) if len(values) > 1 else None)


def test_splitmix_is_the_published_one() -> None:
    """The first numbers of seed 1234567, as Rosetta Code lists them for every language."""
    random = SplitMix64(1234567)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [random.bits() for _ in range(5)] == expected


def test_an_outlier_does_not_move_the_spread() -> None:
    """MAD of nine equal steps with one huge value."""
    assert mad([1, 2, 3, 4, 5, 6, 7, 8, 10_000]) == 2


@pytest.mark.parametrize(("count", "p95", "p99"), [(19, None, None), (20, 19, None), (99, 95, None), (100, 95, 99)])
def test_percentiles_need_calls(count: int, p95: float | None, p99: float | None) -> None:
    """No percentile is made up where no call lies beyond it."""
    values = [float(number) for number in range(1, count + 1)]
    assert (percentile(values, 95), percentile(values, 99)) == (p95, p99)


def test_break_even() -> None:
    """Twenty seconds of compiling, won back by 5 ms a call; never by nothing."""
    assert break_even_calls(20.0, 15.0, 10.0) == 4000
    assert break_even_calls(20.0, 10.0, 10.0) is None and break_even_calls(20.0, 10.0, 11.0) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_interval(kind: str) -> None:
    """A verdict can be computed again from its record."""
    pairs = pairs_of(kind, 30, 1.0, SplitMix64(5))
    assert speedup(pairs, SplitMix64(7)) == speedup(pairs, SplitMix64(7))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(0.1, 1e3)), min_size=2, max_size=30), st.floats(0.5, 4))
def test_the_unit_does_not_matter(times: list[tuple[float, float]], factor: float) -> None:
    """The ratio is the same in other units, and lies in its own interval."""
    pairs = [Pair(*pair) for pair in times]
    ratio = speedup(pairs, SplitMix64(1), resamples=200)
    scaled = speedup([Pair(a * factor, b * factor) for a, b in pairs], SplitMix64(1), resamples=200)
    assert ratio is not None and scaled is not None and ratio.low <= ratio.value <= ratio.high
    assert scaled.value == pytest.approx(ratio.value) and scaled.low == pytest.approx(ratio.low, rel=1e-3)


def test_too_few_pairs_have_no_interval() -> None:
    """One pair is a number, not a measurement."""
    assert speedup([Pair(2.0, 1.0)], SplitMix64(1)) is None and speedup([], SplitMix64(1)) is None


def test_alike_neighbours_are_drawn_together() -> None:
    """Values that depend on the one before need longer runs than independent ones."""
    random = SplitMix64(3)
    alone = [random.unit() for _ in range(60)]
    walk = [sum(alone[: end + 1]) - end / 2 for end in range(60)]
    assert run_length(alone) < run_length(walk) <= 20


@pytest.mark.parametrize(("kind", "least"), [("plain", 0.93), ("heavy", 0.93), ("drift", 0.97), ("slow", 0.75)])
def test_the_interval_holds_the_truth(kind: str, least: float) -> None:
    """Of 150 measurements of a true 1.3 the interval holds it as often as it says; nearly so where neighbours are very much alike."""
    random = SplitMix64(11)
    held = 0
    for _ in range(150):
        ratio = speedup(pairs_of(kind, 40, 1.3, random), random, resamples=300)
        held += ratio is not None and ratio.low <= 1.3 <= ratio.high
    assert held / 150 >= least


def test_the_effect_covers_both_directions() -> None:
    """A control that is off by a fifth to either side cannot show a gain of less."""
    ratio = speedup([Pair(1.0, 1.25), Pair(1.0, 1.25), Pair(1.0, 1.25)], SplitMix64(1))
    assert ratio is not None and minimum_detectable_effect(ratio) == pytest.approx(0.25)

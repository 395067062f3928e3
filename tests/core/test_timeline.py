"""Tests of `recompile_watch.core.timeline`: what happened when, in bounded memory, whatever the order of the parts."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.timeline import LENGTHS, MAX_DISTINCT, MAX_NAMES, MAX_SLICES, OTHERS, Timeline, TimeSlices

BEGIN = datetime(2025, 10, 30, 9, 7, 13, tzinfo=UTC)


def event(kind: str, **extra: object) -> Event:
    """An event without a place."""
    return Event(kind, "bot.log", 1, 0, None, None, None, None, None, None, None, (), False, {**EXTRA_FIELDS.get(kind, {}), **extra})


def timeline_of(*dated: tuple[float, Event]) -> Timeline:
    """The timeline of events, each so many seconds after the first."""
    slices = TimeSlices()
    for seconds, one in dated:
        slices.add(one, BEGIN + timedelta(seconds=seconds))
    return slices.timeline()


def test_slices_of_ten_seconds() -> None:
    """Events of the same ten seconds of the clock stand together, by kind; a slice without any is left out."""
    timeline = timeline_of(
        (0, event("recompile")), (6, event("recompile")), (6.9, event("graph_break")), (7, event("recompile")), (60, event("order"))
    )
    assert timeline.length_s == 10
    first = int(datetime(2025, 10, 30, 9, 7, 10, tzinfo=UTC).timestamp())
    assert [(one.begin_s - first, dict(one.counts)) for one in timeline.slices] == [
        (0, {"graph_break": 1, "recompile": 2}),
        (10, {"recompile": 1}),
        (60, {"order": 1}),
    ]


def test_zones_are_one_clock() -> None:
    """Two printed times of the same moment fall into the same slice."""
    slices = TimeSlices()
    for text in ("2025-10-30T09:07:13+00:00", "2025-10-30T05:07:14-04:00"):
        slices.add(event("recompile"), datetime.fromisoformat(text))
    assert [dict(one.counts) for one in slices.timeline().slices] == [{"recompile": 2}]


def test_what_a_slice_holds() -> None:
    """The highest memory by model, the latency, and which model was loaded or compiled how often."""
    (one,) = timeline_of(
        (0, event("gpu_memory", model="toto", peak_mb=10.5)), (1, event("gpu_memory", model="toto", peak_mb=9)),
        (1, event("gpu_memory", peak_mb=None)), (1, event("inference", model="toto", milliseconds=200.0)), (2, event("model_load", model="toto")),
        (2, event("compile_mode", model=None)),
    ).slices  # fmt: skip
    assert (dict(one.gpu_peak_mb), one.latency.p50, one.latency.n) == ({"toto": 10.5}, 200.0, 1)
    assert dict(one.marks) == {("compile_mode", "unknown"): 1, ("model_load", "toto"): 1}


def test_printed_latency_wins_over_derived_everywhere() -> None:
    """As in the series: where the program prints what it measured, nothing that was computed is shown, in any slice."""
    printed, derived = event("inference", milliseconds=200.0), event("inference", milliseconds=900.0, derived=True)
    timeline = timeline_of((0, derived), (20, printed))
    assert [one.latency.n for one in timeline.slices] == [0, 1]
    assert timeline_of((0, derived)).slices[0].latency.derived


def test_text_where_a_number_should_be_is_ignored() -> None:
    """A rule of the user's own may capture text without a type."""
    (one,) = timeline_of(
        (0, event("gpu_memory", peak_mb="much")), (0, event("inference", milliseconds="fast")), (0, event("model_load", model=7))
    ).slices
    assert (dict(one.gpu_peak_mb), one.latency.n, dict(one.marks)) == ({}, 0, {("model_load", "unknown"): 1})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_hide_no_others(number: float) -> None:
    """A value that is not finite is counted as an event and nothing else."""
    (one,) = timeline_of(
        (0, event("gpu_memory", model="m", peak_mb=number)),
        (0, event("gpu_memory", model="m", peak_mb=3.0)),
        (0, event("inference", milliseconds=number)),
    ).slices
    assert (dict(one.gpu_peak_mb), one.latency.n, one.counts["gpu_memory"]) == ({"m": 3.0}, 0, 2)


def test_a_long_log_has_few_slices() -> None:
    """A year of events a minute apart needs no more memory than ten minutes; no event is lost."""
    timeline = timeline_of(*((60.0 * n * 100, event("quote")) for n in range(5000)))
    assert len(timeline.slices) <= MAX_SLICES
    assert timeline.length_s in LENGTHS and timeline.length_s > 3600
    assert sum(one.counts["quote"] for one in timeline.slices) == 5000


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_times_of_any_year(year: int) -> None:
    """A torn or hostile date is a slice of its own and harms no other."""
    slices = TimeSlices()
    for minutes in range(3000):
        slices.add(event("quote"), BEGIN + timedelta(minutes=minutes))
    slices.add(event("order"), datetime(year, 1, 1, tzinfo=UTC))
    timeline = slices.timeline()
    assert sum(one.counts.get("quote", 0) for one in timeline.slices) == 3000
    assert 2 < len(timeline.slices) <= MAX_SLICES


def test_names_are_bounded() -> None:
    """A thousand models in one slice do not fill the memory, and none is lost from the count."""
    loads = [(0.0, event("model_load", model=f"m{n}")) for n in range(1000)]
    peaks = [(0.0, event("gpu_memory", model=f"m{n}", peak_mb=float(n))) for n in range(1000)]
    (one,) = timeline_of(*loads, *peaks).slices
    assert sum(one.marks.values()) == 1000 and len(one.marks) <= MAX_NAMES + 1
    assert len(one.gpu_peak_mb) <= MAX_NAMES + 1 and one.gpu_peak_mb[OTHERS] == 999.0


def test_many_latencies_stay_close() -> None:
    """Beyond a number of distinct ones, a slice knows its latencies to two percent."""
    chance = random.Random(3)
    values = [chance.uniform(50, 400) for _ in range(MAX_DISTINCT * 20)]
    (one,) = timeline_of(*((0.0, event("inference", milliseconds=value)) for value in values)).slices
    assert one.latency.p50 == pytest.approx(sorted(values)[len(values) // 2], rel=0.02)
    assert one.latency.n == len(values)


dated_events = st.lists(
    st.tuples(
        st.integers(0, 4000) | st.integers(-(10**10), 10**10),
        st.sampled_from(
            [event("recompile"), event("model_load", model="toto")]
            + [event("gpu_memory", model="toto", peak_mb=float(n)) for n in range(9)]
            + [event("inference", model="toto", milliseconds=n * 0.7, derived=n % 2 == 0) for n in range(9)]
        ),
    ),
    max_size=400,
)


@given(dated_events, st.floats(0, 1), st.randoms(use_true_random=False))
def test_parts_add_up_in_any_order(dated: list[tuple[int, Event]], share: float, chance: random.Random) -> None:
    """Two parts of a log, each in any order, merge into the timeline of the whole."""
    cut = int(len(dated) * share)
    first, second, whole = TimeSlices(), TimeSlices(), TimeSlices()
    for number, (seconds, one) in enumerate(dated):
        (first if number < cut else second).add(one, BEGIN + timedelta(seconds=seconds))
    for seconds, one in chance.sample(dated, len(dated)):
        whole.add(one, BEGIN + timedelta(seconds=seconds))
    second.merge(first)
    assert second.timeline() == whole.timeline()

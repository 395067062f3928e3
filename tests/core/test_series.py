"""Tests of `recompile_watch.core.series`: bulk events become numbers in bounded memory."""

from __future__ import annotations

import random

import pytest

from recompile_watch.config import load_rules
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.scan import LiteralMatcher
from recompile_watch.core.series import MAX_DISTINCT, MAX_ROWS, Histogram, Numbers, Series
from recompile_watch.core.times import TimeOptions

RULES = load_rules()


def event(kind: str, line: int = 1, **extra: object) -> Event:
    """A bulk event without a place in code."""
    fields = {**EXTRA_FIELDS[kind], **{name.rstrip("_"): value for name, value in extra.items()}}
    return Event(kind, "bot.log", line, line * 10, None, None, None, None, None, None, None, (), False, fields)


def numbers_of(*events: Event) -> Numbers:
    series = Series()
    for one in events:
        series.takers[one.kind](one)
    return series.numbers()


def test_percentiles() -> None:
    """Nearest rank; p99 only from 100 measurements on; derived values are marked."""
    latency = numbers_of(*(event("inference", n, model="toto", milliseconds=float(n), derived=True) for n in range(1, 100))).inference
    assert (latency.p50, latency.p95, latency.p99, latency.n, latency.derived) == (50.0, 95.0, None, 99, True)
    more = numbers_of(*(event("inference", n, model="toto", milliseconds=n) for n in range(1, 201))).inference
    assert (more.p50, more.p95, more.p99, more.derived) == (100, 190, 198, False)


def test_printed_latency_wins_over_derived() -> None:
    """A value that the program measured is worth more than one computed from counters."""
    latency = numbers_of(event("inference", milliseconds=900.0, derived=True), event("inference", milliseconds=200.0)).inference
    assert (latency.p50, latency.n, latency.derived) == (200.0, 1, False)


def test_no_latency() -> None:
    """Nothing measured is null, not zero."""
    assert (numbers_of().inference.p50, numbers_of().inference.n) == (None, 0)
    assert numbers_of(event("inference", milliseconds=None)).inference.n == 0


def test_a_histogram_of_many_values_stays_small_and_close() -> None:
    """Beyond the bound values are kept to four digits, however they are spread over parts."""
    chance = random.Random(1)
    values = [chance.uniform(1, 5000) for _ in range(3 * MAX_DISTINCT)]
    whole, first, second = Histogram(), Histogram(), Histogram()
    for value in values:
        whole.add(value)
    for value in values[:MAX_DISTINCT]:
        first.add(value)
    for value in values[MAX_DISTINCT:]:
        second.add(value)
    first.merge(second)
    latency = whole.latency(derived=False)
    assert first.latency(derived=False) == latency
    assert latency.p50 is not None and abs(latency.p50 - sorted(values)[len(values) // 2]) < 1


def test_gpu_memory() -> None:
    """The highest and the last peak of each stage; a line without a peak counts only."""
    stages = numbers_of(
        event("gpu_memory", model="toto", stage="usage", peak_mb=10.0), event("gpu_memory", model="toto", stage="usage", peak_mb=30.0),
        event("gpu_memory", model="toto", stage="usage", peak_mb=20.0), event("gpu_memory", stage="usage"), event("gpu_memory", stage="loaded"),
    ).gpu_memory  # fmt: skip
    assert (stages["usage"].max_peak_mb, stages["usage"].last_peak_mb, stages["usage"].n, stages["usage"].model) == (30.0, 20.0, 4, "toto")
    assert (stages["loaded"].max_peak_mb, stages["loaded"].n) == (None, 1)


def test_text_where_a_number_should_be_is_ignored() -> None:
    """A rule of the user's own may capture text without a type."""
    assert numbers_of(event("gpu_memory", stage="usage", peak_mb="much")).gpu_memory["usage"].max_peak_mb is None
    assert numbers_of(event("inference", milliseconds="fast")).inference.n == 0


def test_quotes_by_symbol() -> None:
    """Real and synthetic quotes are told apart, by symbol."""
    numbers = numbers_of(event("quote", symbol="ETHUSD"), event("synthetic_quote", symbol="BTCUSD"), event("synthetic_quote", symbol="BTCUSD"))
    assert (numbers.real_quotes, numbers.synthetic_quotes) == ({"ETHUSD": 1}, {"BTCUSD": 2})


def test_symbols_are_bounded() -> None:
    """A hostile log with a million symbols does not fill the memory; nothing is lost from the sum."""
    quotes = numbers_of(*(event("quote", n, symbol=f"S{n}") for n in range(5000))).real_quotes
    assert len(quotes) <= 2001 and sum(quotes.values()) == 5000


def test_strategy_rows_are_bounded() -> None:
    """Beyond the bound only the latest row of a symbol and strategy is kept, and the report says how many are not."""
    rows = [event("strategy_return", n, symbol="A", strategy="MaxDiff", return_=n) for n in range(MAX_ROWS + 500)]
    numbers = numbers_of(*rows)
    assert len(numbers.strategy_return) == MAX_ROWS + 1
    assert numbers.strategy_return[-1].values["return"] == MAX_ROWS + 499
    assert numbers.strategy_rows_left_off == 499


def test_strategy_rows_of_parts_add_up() -> None:
    """Two parts of a log keep the same rows as the whole."""
    rows = [event("strategy_return", n, symbol=f"S{n % 7}", strategy="MaxDiff", return_=n) for n in range(MAX_ROWS + 3000)]
    for cut in (1, 5000, MAX_ROWS + 100):
        first, second = Series(), Series()
        for row in rows[:cut]:
            first.takers["strategy_return"](row)
        for row in rows[cut:]:
            second.takers["strategy_return"](row)
        first.merge(second)
        assert first.numbers() == numbers_of(*rows)


def test_latest_daily_return_and_loss() -> None:
    """Of daily returns and validation losses the latest value counts."""
    numbers = numbers_of(
        event("strategy_daily_return", symbol="A", strategy="avg", return_=1.0),
        event("strategy_daily_return", symbol="A", strategy="avg", return_=2.0),
        event("validation_loss", symbol="A", target="close", value=0.5),
    )
    assert numbers.strategy_daily_return == {("A", "avg"): 2.0}
    assert numbers.validation_loss == {("A", "close"): 0.5}


HEADER = b"2025-10-30 09:07:%02d UTC | 2025-10-30 05:07:15 EDT | 2025-10-30 22:07:15 NZDT | backtest_test3_inline.py:f:714 INFO | "


def analysed(text: bytes, bulk: Bulk | None) -> Report:
    """The report on a log, its metric lines read in bulk or one by one."""
    analysis = Analysis(RULES)
    engine = SourceEngine("bot.log", RULES, LiteralMatcher(RULES.literals), TimeOptions(), bulk)
    for item in engine.feed(text) + engine.end():
        analysis.take(item)
    return analysis.report(Facts((SourceFacts("bot.log"),)))


def test_rows_read_in_bulk_count_like_events() -> None:
    """Metric lines read in bulk give the same numbers as the events of the same lines."""
    text = b"".join(
        HEADER % (n % 60)
        + (b"GPU[0] toto_%s alloc=609.7 MB reserved=652.2 MB peak=%d.5 MB\n" % ((b"predict_begin(BTCUSD)", b"predict_end(BTCUSD)")[n % 2], n % 97))
        for n in range(3000)
    )
    one_by_one, in_bulk = analysed(text, None), analysed(text, Bulk.of(RULES))
    assert one_by_one.series.gpu_memory["predict_end"].n == 1500
    assert one_by_one == in_bulk


@pytest.mark.parametrize("number", [b"9" * 5000, b"0" * 30, b"1.2.3", b"."])
def test_absurd_numbers_in_bulk(number: bytes) -> None:
    """A number that is none, or has thousands of digits, is left out; the lines around it count, in bulk or not."""
    usage = b"Toto GPU usage symbol=BTCUSD num_samples=%s samples_per_batch=%s peak=%s MB delta=1.0 MB (count=%s)\n"
    lines = [usage % (b"256", b"64", b"700.0", b"%d" % n) for n in range(40)]
    lines[20] = usage % (number, number, number, number)
    text = b"".join(HEADER % n + line for n, line in enumerate(lines))
    one_by_one, in_bulk = analysed(text, None), analysed(text, Bulk.of(RULES))
    assert one_by_one == in_bulk
    assert one_by_one.series.gpu_memory["usage"].n >= 39
    assert one_by_one.series.gpu_memory["usage"].max_peak_mb == 700.0

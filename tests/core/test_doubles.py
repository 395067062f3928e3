"""Tests of `recompile_watch.core.doubles`: what a bot prints and writes into a log of its own counts once."""

from __future__ import annotations

import pytest

from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.doubles import Doubles
from recompile_watch.core.engine import SourceEngine
from recompile_watch.report.markdown import sources_text
from tests.conftest import TIMES, matcher, rules

TABLE = """2025-10-30 09:08:42 UTC | 2025-10-30 05:08:42 EDT | 2025-10-30 22:08:42 NZDT | backtest_test3_inline.py:_log_table:249 INFO | \n\
Backtest summary for ETHUSD (70 simulations)
  Strategy          Return  Sharpe   FinalDay
  ----------------- ------- -------- --------
  MaxDiff           0.1043  18.2400  nan
"""
LOAD = (
    "2025-10-30 09:08:12 UTC | 2025-10-30 05:08:12 EDT | 2025-10-30 22:08:12 NZDT | backtest_test3_inline.py:load_toto_pipeline:1488 INFO | "
    "Loading Toto pipeline 'Datadog/Toto-Open-Base-1.0' on cuda\n"
)
FAILED = (
    "2025-10-30 09:08:30 UTC | 2025-10-30 05:08:30 EDT | 2025-10-30 22:08:30 NZDT | backtest_test3_inline.py:forecast:12 WARNING | "
    "Toto forecast failed for UNIUSD Close: CUDA error: unspecified launch failure\n"
)
QUOTE = (
    "2025-10-30 09:07:14.699 | INFO     | data_curate_daily:download_exchange_latest_data:288 - "
    "Populating synthetic bid/ask (0 spread) for BTCUSD (ADD_LATEST=False)\n"
)
SKIP = "skipping cudagraphs due to mutated inputs (2 instances)\n"
STEP = "2025-10-30 09:08:30 WARNING torch._dynamo hit config.recompile_limit (8)\n"


def report_of(**logs: str) -> Report:
    """What several logs mean, by their names."""
    analysis = Analysis(rules())
    doubles = Doubles(analysis)
    for name, text in logs.items():
        engine = SourceEngine(name, rules(), matcher(), TIMES, Bulk.of(rules()).uncounted())
        for item in engine.feed(text.encode()) + engine.end():
            doubles.take(item)
    doubles.end()
    return analysis.report(Facts(tuple(map(SourceFacts, logs))))


def test_the_output_and_the_log_of_one_bot() -> None:
    """The same line of one moment happened once, wherever it stands; the report says which source holds it again."""
    own = LOAD + FAILED + TABLE
    for logs in ({"bot": own, "out": QUOTE + own}, {"out": QUOTE + own, "bot": own}):
        report = report_of(**logs)
        assert report.counts == {"model_load": 1, "forecast_failure": 1, "strategy_return": 1, "synthetic_quote": 1}
        assert [dict(source.also_in) for source in report.sources] == [{}, {next(iter(logs)): 3}]
        assert len(report.series.strategy_return) == 1
        assert f"; 3 events also in {next(iter(logs))}, counted there" in sources_text(report)


def test_a_carrier_makes_no_other_line() -> None:
    """The journal names the process that printed a line; the bot's own log does not."""
    out = "".join(f"Oct 30 09:08:13 host python[4711]: {line}\n" for line in (LOAD + FAILED).splitlines())
    assert report_of(bot=LOAD + FAILED, journal=out).counts == {"model_load": 1, "forecast_failure": 1}


def test_lines_without_a_time_go_with_the_others() -> None:
    """A bare line counts once when its source holds the other lines of another, and twice when nothing shows that."""
    assert report_of(err=QUOTE + SKIP, tee=LOAD + QUOTE + SKIP).counts["cudagraph_skip"] == 1
    assert report_of(monday=SKIP, tuesday=SKIP).counts["cudagraph_skip"] == 2


def test_a_line_that_comes_twice_in_one_source_counts_twice() -> None:
    """Two equal lines of one source are two; another source that holds both adds none."""
    assert report_of(bot=FAILED + FAILED, out=FAILED + FAILED).counts["forecast_failure"] == 2
    assert report_of(bot=FAILED, out=FAILED + FAILED).counts["forecast_failure"] == 2


def test_two_bots_that_print_one_line_in_one_second_are_two() -> None:
    """Two processes share a line now and then, not most of them."""
    mine = LOAD + TABLE.replace("09:08:42", "09:10:00") + FAILED.replace("09:08:30", "09:08:31")
    report = report_of(paper=LOAD + FAILED + TABLE, live=mine)
    assert report.counts == {"model_load": 2, "forecast_failure": 2, "strategy_return": 2}


@pytest.mark.parametrize(("line", "count"), [(STEP, 2), (STEP.replace("09:08:30", "09:08:30.120417"), 1)])
def test_ranks_in_step_are_two(line: str, count: int) -> None:
    """Processes that work in step print the same in one second; in one millionth of a second they do not."""
    assert report_of(rank0=line, rank1=line).counts["recompile_limit_hit"] == count


def test_a_load_that_counts_elsewhere_still_begins_a_warm_up() -> None:
    """What torch prints behind a model's load is of its warm-up in the source that holds the same load again, too."""
    [found] = [one for one in report_of(bot=LOAD, out=LOAD + SKIP).findings if one.kind == "cudagraph_skip"]
    assert found.phase == "warmup"

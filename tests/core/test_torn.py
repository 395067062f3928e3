"""Lines that break off where a program was killed: it began again behind them, in the same line."""

from __future__ import annotations

import pytest

from recompile_watch.core.analysis import Analysis, Facts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.context import Item
from recompile_watch.core.engine import SourceEngine
from tests.conftest import TIMES, engine_events, matcher, rules

A = "2025-10-30 09:09:59 UTC | 2025-10-30 05:09:59 EDT | 2025-10-30 22:09:59 NZDT | trade_stock_e2e.py:main:12 INFO | "
B = "2025-10-30 09:09:59.250 | INFO     | data_curate_daily:download_exchange_latest_data:231 - "
BEHIND = f"{A}Entering new buy position for NVDA\n"
TABLE = f"""{A}
Backtest summary for ETHUSD (70 simulations)
  Strategy          Return  Sharpe   FinalDay
  ----------------- ------- -------- --------
  Simple            -0.0977 -12.0700 -0.0102
  MaxDiff           0.1043  18.2"""
TORN = (
    (f"{A}Starting order placement for ETHUSD buy 1.204 @ 3", {"symbol": "ETHUSD", "quantity": 1.204, "price": None}),
    (f"{A}Entering new sell position for NVD", {"symbol": None}),
    (f"{B}Latest BTCUSD bid: 110196.274, ask: 1", {"bid": 110196.274, "ask": None, "spread_bps": None}),
    (f"{B}Invalid bid/ask prices for AAPL after 3 attempts, one is zero - setting both to 26", {"symbol": "AAPL", "price": None}),
    (f"{A}Loading Toto pipeline 'Datadog/Toto-Open-Base-1.0' on cu", {"model": "toto", "device": None}),
    (TABLE, {"strategy": "MaxDiff", "return": 0.1043, "sharpe": None, "final_day": None}),
)


@pytest.mark.parametrize(("torn", "fields"), TORN)
@pytest.mark.parametrize("behind", [BEHIND, f"{B}Populating synthetic bid/ask (0 spread) for NVDA (ADD_LATEST=False)\n"])
def test_a_value_that_ends_where_another_line_begins_is_cut(torn: str, fields: dict[str, object], behind: str) -> None:
    """What is left of it is no number and no name; the line behind it is read as ever."""
    *_, event, after = engine_events([(torn + behind).encode()])
    assert event.partial
    assert {name: event.extra[name] for name in fields} == fields
    assert (after.partial, after.extra["symbol"]) == (False, "NVDA")


def test_a_value_that_ends_its_line_is_whole() -> None:
    """Each line with its own end, and lines that were joined by blanks."""
    for end in ("\n", " "):
        event, _ = engine_events([f"{A}Starting order placement for ETHUSD buy 1.204 @ 3895.5{end}{BEHIND}".encode()])
        assert (event.partial, event.extra["price"]) == (False, 3895.5)


@pytest.mark.parametrize("torn", [torn for torn, _ in TORN])
def test_torn_lines_count_the_same_in_bulk(torn: str) -> None:
    """A metric line that is torn is read the ordinary way."""
    text = ((f"{A}idle\n" * 80) + torn + BEHIND + f"{A}idle\n").encode()
    reports = []
    for bulk in (None, Bulk.of(rules())):
        analysis, engine = Analysis(rules()), SourceEngine("bot.log", rules(), matcher(), TIMES, bulk)
        items: list[Item] = engine.feed(text) + engine.end()
        for item in items:
            analysis.take(item)
        reports.append(analysis.report(Facts()))
    assert reports[0] == reports[1]

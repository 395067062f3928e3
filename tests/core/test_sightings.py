"""Tests of `recompile_watch.core.sightings`: what a log whose last line is cut may say."""

from __future__ import annotations

import pytest

from tests.conftest import engine_events

LOGURU = "2025-12-09 20:01:06.559 | WARNING  | bot:f:280 - "


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("Order placed successfully for ETHUSD: buy 1.204 @ 38", "price", 38.0),
        ("Live drawdown detected for UNIUSD buy: unrealized pnl -6", "pnl", -6.0),
        ("Invalid bid/ask prices for AAPL after 2 attempts, one is zero - setting both to 2", "price", 2.0),
        ("Running command python scripts/alpaca_cli.py ramp_into_position ETHUSD --side=buy --target-qty=1", "quantity", 1.0),
        ("  Close Val Loss: 0.01", "value", 0.01),
    ],
)
def test_a_number_at_the_very_end_of_a_log_may_go_on(line: str, field: str, value: float) -> None:
    """Without the end of its line the number is not told and the event is partial; all others stand."""
    (cut,) = engine_events([(LOGURU + line).encode()])
    (whole,) = engine_events([(LOGURU + line + "\n").encode()])
    assert (cut.extra[field], cut.partial, whole.extra[field], whole.partial) == (None, True, value, False)
    assert {**cut.extra, field: value} == whole.extra


def test_what_stands_in_front_of_a_cut_is_whole() -> None:
    """Where more of the line follows a number, the end of the log does not concern it."""
    (placed,) = engine_events([(LOGURU + "Order placed successfully for ETHUSD: buy 1.204 @ 3895.99, resu").encode()])
    assert (placed.extra["price"], placed.partial) == (3895.99, False)

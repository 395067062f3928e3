"""Tests of `recompile_watch.core.tables`: what is a row of a table, and which value is whose."""

from __future__ import annotations

import pytest

from recompile_watch.core.bulk import Bulk
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.sightings import TableRows
from tests.conftest import TIMES, engine_events, matcher, rules

HEADER = "2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | backtest_test3_inline.py:_log_table:249 INFO | "
TITLE = "Backtest summary for AAPL (70 simulations)"
COLUMNS = "  Strategy          Return  Sharpe  FinalDay"
DASHES = "  ----------------- ------- ------- --------"
SIMPLE = "  Simple            -0.0359 -6.3100 -0.0061 "
NEXT = HEADER + "TRADING PLAN (INITIAL PLAN) - no candidates"
Row = tuple[object, ...]


def returns(*lines: str) -> list[Row]:
    """What the table of these lines says, line by line and read in bulk alike: strategy, return, Sharpe ratio and last day."""
    text = "\n".join([*lines, NEXT, ""]).encode()
    names = ("strategy", "return", "sharpe", "final_day")
    rows = [tuple(event.extra[name] for name in names) for event in engine_events([text]) if event.kind == "strategy_return"]
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES, Bulk.of(rules()))
    padding = b"an ordinary line of the application\n" * 70  # the first lines of a log are not read in bulk
    items = engine.feed(padding + text) + engine.end()
    tables = [item for item in items if isinstance(item, TableRows) and item.kind == "strategy_return"]
    if lines[0] != COLUMNS:
        assert [row for table in tables for row in zip(*map(table.column, names), strict=True)] == rows
    return rows


@pytest.mark.parametrize(
    "line",
    [
        "  saved plot to /tmp/plots/AAPL.png",
        "  edges: move=15.573 expected_pct=0.00400 price_skill=0.01740",
        "  returns: avg=0.006 annual=2.178 simple=-0.006",
        "  Best              by far: ",
    ],
)
def test_an_indented_line_without_values_is_no_row(line: str) -> None:
    """A row has a value, or what stands for none, below a column; a border that runs through a word says that the line is none."""
    assert returns(HEADER, TITLE, COLUMNS, DASHES, SIMPLE, line) == [("Simple", -0.0359, -6.31, -0.0061)]


def test_cells_wider_than_their_column_are_counted_from_the_right() -> None:
    """A format of fixed widths pushes the other cells of the line to the right."""
    wide = "  MaxDiff           -12345.0359 16.2700 0.0021  "
    long_name = "  MaxDiffAlwaysOnTop 2  0.0233  5.0500  -  "
    assert returns(HEADER, TITLE, COLUMNS, DASHES, wide, long_name, SIMPLE) == [
        ("MaxDiff", -12345.0359, 16.27, 0.0021),
        ("MaxDiffAlwaysOnTop 2", 0.0233, 5.05, None),
        ("Simple", -0.0359, -6.31, -0.0061),
    ]


def test_cells_that_were_coloured_before_they_were_padded() -> None:
    """Without the colours two values stand below one column."""
    columns = ("  Strategy Return            Sharpe  FinalDay", "  -------- ---------------- ------- --------")
    assert returns(HEADER, TITLE, *columns, "  Simple   \x1b[31m-0.0359\x1b[0m  -6.3100 -0.0061 ") == [("Simple", -0.0359, -6.31, -0.0061)]


def test_percentages_are_fractions() -> None:
    """A percent sign, and a minus sign as typesetters write it, are part of the number."""
    assert returns(HEADER, TITLE, COLUMNS, DASHES, "  Simple            3.58%   \u22126.3100 -0.10%  ") == [("Simple", 0.0358, -6.31, -0.001)]


def test_a_table_with_another_rule() -> None:
    """The rule below the header may be drawn with equal signs."""
    assert returns(HEADER, TITLE, COLUMNS, DASHES.replace("-", "="), SIMPLE) == [("Simple", -0.0359, -6.31, -0.0061)]


def test_a_table_without_its_title() -> None:
    """Where a log begins in a table, its rows are there; the symbol is not, so they are partial."""
    assert returns(COLUMNS, DASHES, SIMPLE) == [("Simple", -0.0359, -6.31, -0.0061)]
    text = "\n".join([COLUMNS, DASHES, SIMPLE, NEXT, ""]).encode()
    assert [(event.extra["symbol"], event.partial) for event in engine_events([text]) if event.kind == "strategy_return"] == [(None, True)]


def test_a_long_table() -> None:
    """All rows of a table are read."""
    many = [f"  S{number:<16} 0.{number:04} 1.0000  0.0010  " for number in range(400)]
    assert [row[0] for row in returns(HEADER, TITLE, COLUMNS, DASHES, *many)] == [f"S{number}" for number in range(400)]


def test_rows_of_one_shape_keep_their_own_numbers() -> None:
    """Where one row has its cells another of its shape has them; a row of another shape, and one whose values ran together, is read by itself."""
    rows = [
        "  Buy & Hold        -0.0359 -6.3100 -0.0061",
        "  Buy & Hold        -0.1234 -5.6789 -0.4321",
        "  Buy & Hold        0.1234  5.6789  -",
        SIMPLE,
    ]
    assert returns(HEADER, TITLE, COLUMNS, DASHES, *rows) == [
        ("Buy & Hold", -0.0359, -6.31, -0.0061),
        ("Buy & Hold", -0.1234, -5.6789, -0.4321),
        ("Buy & Hold", 0.1234, 5.6789, None),
        ("Simple", -0.0359, -6.31, -0.0061),
    ]

"""A supervisor that logs `line.strip()` takes the blanks in front of a table's lines; others put tabs there."""

from __future__ import annotations

import pytest

from tests.conftest import as_json, engine_events
from tests.truth import Event

HEADER = "2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | backtest_test3_inline.py:_log_table:249 INFO |"
LOG = f"""{HEADER}
Backtest summary for AAPL (70 simulations)
  Strategy          Return  Sharpe  FinalDay
  ----------------- ------- ------- --------
  Simple            -0.0359 -6.3100 -0.0061
  CI Guard          0.0000  0.0000  -
{HEADER} AMD spread 1.0
{HEADER}
Average validation losses
  Metric         Value
  -------------- ------
  Close Val Loss 0.0121
  High Val Loss  0.0131
{HEADER} AAPL analysis strategy=maxdiff side=buy mode=probe blocked=False
  returns: avg=0.006 annual=2.178 simple=-0.006
  edges: move=15.573 expected_pct=0.00400
{HEADER} a
"""
RUNNER = "2025-12-09 20:01:07,123 - runner - INFO - "


def events(text: str) -> list[Event]:
    """The events without their places."""
    return [{name: value for name, value in event.items() if name != "at"} for event in as_json(engine_events([text.encode()]))]


@pytest.mark.parametrize("front", ["", RUNNER, "\t"], ids=["stripped", "a runner", "tabs"])
def test_tables_whose_indent_changed(front: str) -> None:
    """The title, the header and the grammar of a row say everything; what another header stands in front of is no row."""
    changed = "".join(front + (line if front == "\t" else line.strip()) + "\n" for line in LOG.splitlines())
    assert events(changed) == events(LOG)
    assert len(events(LOG)) == 6


def test_prose_below_a_title_is_no_table() -> None:
    """Neither a sentence nor what a program prints with numbers goes on with a title."""
    assert events(f"{HEADER}\nBacktest summary for AAPL (70 simulations)\nStrategy is not known\nsaved 3 4\n") == []
    assert events(f"{HEADER}\nBacktest summary for AAPL (70 simulations)\nworker 3 4\n") == []
    table = LOG.splitlines()[:5]
    stripped = [line.strip() for line in [*table, "saved the plot to /tmp/a.png", "done 3 4"]]
    assert [event["strategy"] for event in events("\n".join(stripped) + "\n")] == ["Simple"]

"""Documents: logs that an exporter, a notebook or a page put into JSON, and headers that lost their newline."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import as_json, engine_events
from tests.truth import Event

LINES = (
    "V1030 09:08:09.060000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles] Recompiling function f in /srv/app/model.py:9",
    "V1030 09:08:09.060000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles]     triggered by the following guard failure(s):",
    "V1030 09:08:09.060000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles]     - 6/0: tensor 'x' rank mismatch. expected 1, actual 2",
    "2025-10-30 09:08:42 UTC | 2025-10-30 05:08:42 EDT | 2025-10-30 22:08:42 NZDT | backtest_test3_inline.py:_log_table:249 INFO | ",
    "Backtest summary for ETHUSD (70 simulations)",
    "  Strategy          Return  Sharpe   FinalDay",
    "  ----------------- ------- -------- --------",
    "  MaxDiff           0.1043  18.2400  0.0133  ",
    "  CI Guard          0.0000  0.0000   -       ",
    "skipping cudagraphs due to mutated inputs (2 instances)",
    "2025-10-30 09:08:43.699 | INFO     | data_curate_daily:run:288 - Populating synthetic bid/ask (0 spread) for ETHUSD (ADD_LATEST=False)",
)
BUILDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "google": lambda line: {"insertId": "ab", "jsonPayload": {"message": line, "logger": "bot"}, "severity": "WARNING"},
    "elastic": lambda line: {"_index": "logs", "_source": {"@timestamp": "2025-10-30T09:08:42Z", "message": line}},
    "datadog": lambda line: {"id": "AQ", "content": {"host": "gpu", "message": line, "attributes": {"a": 1}}},
    "opentelemetry": lambda line: {"timeUnixNano": "1795170532255000000", "body": {"stringValue": line}},
    "splunk": lambda line: {"preview": False, "result": {"_raw": line, "host": "gpu"}},
    "fluent bit": lambda line: {"date": 1795170532.25, "log": line, "stream": "stderr"},
    "azure": lambda line: {"TimeGenerated": "2025-10-30T09:08:42Z", "LogMessage": line, "PodName": "bot-1"},
}


def _events(text: str) -> list[Event]:
    events = as_json(engine_events([text.encode()]))
    return [{name: value for name, value in event.items() if name not in ("at", "time", "pid")} for event in events]


BARE = _events("\n".join(LINES) + "\n")


@pytest.mark.parametrize("name", BUILDS)
def test_a_text_inside_of_an_entry(name: str) -> None:
    """The text may stand in an object of the entry; each line is an entry of its own."""
    assert len(BARE) == 5
    assert _events("".join(json.dumps(BUILDS[name](line)) + "\n" for line in LINES)) == BARE


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("name", ["google", "elastic", "splunk"])
def test_an_array_of_entries(name: str, indent: int | None) -> None:
    """An export is one array, on one line or on many; what stands between two texts is no line of the log."""
    assert _events(json.dumps([BUILDS[name](line) for line in LINES], indent=indent) + "\n") == BARE


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("is_list", [True, False])
def test_a_notebook_ends_its_table(indent: int | None, is_list: bool) -> None:
    """A notebook's output ends with brackets and its source: none of them is a strategy."""
    lines = [line + "\n" for line in LINES[3:9]]
    text: Any = lines if is_list else "".join(lines)
    cell = {"cell_type": "code", "outputs": [{"name": "stdout", "output_type": "stream", "text": text}], "source": ["run()"]}
    events = _events(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}, indent=indent) + "\n")
    assert [event.get("strategy") for event in events] == ["MaxDiff", "CI Guard"]


def test_what_has_no_cell_is_no_row() -> None:
    """Below a table an indented word, or a row cut inside of its name, is no strategy."""
    for rest in ("  }", '  "source": [', "  done", "  Entry+Ta"):
        assert [event.get("strategy") for event in _events("\n".join([*LINES[3:9], rest]) + "\n")] == ["MaxDiff", "CI Guard"]


@pytest.mark.parametrize("bar", [" 12%|█▎        | 12/100 [00:01<00:08, 10.52it/s]", "\rTraining ━━━━━━╸━━━  55% 0:00:12 ", "step 12 loss 0.31 "])
def test_a_header_of_the_bot_behind_a_progress_bar(bar: str) -> None:
    """A bar that printed no newline stands in front of the bot's header; both dialects are found behind it."""
    assert _events("".join((bar if line.startswith("2025") else "") + line + "\n" for line in LINES)) == BARE


def test_lines_of_the_bot_whose_newlines_became_blanks() -> None:
    """Each header on the line begins another message; the returns of a symbol end where its edges begin."""
    analysis = (
        "2025-10-30 09:08:44 UTC | 2025-10-30 05:08:44 EDT | 2025-10-30 22:08:44 NZDT | trade_stock_e2e.py:_log_detail:538 INFO | "
        "ETHUSD analysis strategy=maxdiff side=buy mode=probe blocked=False\n"
        "  returns: avg=0.017 annual=6.345 maxdiff=0.017\n  edges: move=15.573 expected_pct=0.00400\n  prices: pred_close=3908.773\n"
    )
    text = f"{LINES[-1]}\n{analysis}{LINES[-1]}\n"
    assert [event["kind"] for event in _events(text)] == ["synthetic_quote", *["strategy_daily_return"] * 2, "synthetic_quote"]
    assert _events(text.replace("\n", " ").rstrip() + "\n") == _events(text)


@pytest.mark.parametrize("blank", ["\u00a0", "&nbsp;"])
def test_a_page_that_keeps_all_blanks(blank: str) -> None:
    """Each blank may be one that does not break a line; a cut last line is still told from a whole one."""
    log = "\n".join(LINES) + "\n"
    assert _events(log.replace(" ", blank)) == _events(log)
    cut = log[: log.index("rank mismatch") + 8]
    assert _events(cut.replace(" ", blank)) == _events(cut)


def test_the_runtimes_lines_inside_of_entries() -> None:
    """An agent without a parser for the container runtime's format carries its lines as text."""
    raised = ["torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", "RuntimeError: ptxas fatal: no kernel image", ""]
    (event,) = _events("".join(json.dumps({"log": f"2025-10-30T09:08:42.123456789Z stderr F {line}", "stream": "stderr"}) + "\n" for line in raised))
    assert event["message"] == raised[1]


RAISED = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:"


@pytest.mark.parametrize(
    "time", [{"timestamp": "2025-10-30T09:08:42.5Z"}, {"timestamp": 1761815322500}, {"@timestamp": "2025-10-30T09:08:42.5Z", "ptr": "Cl"}]
)
def test_a_time_on_a_line_of_its_own(time: dict[str, Any]) -> None:
    """Entries over several lines: the time in front of a text is its own, not that of the entry before."""
    entries = [{**time, "message": "step 4"}, {**time, "message": RAISED}, {"level": "info", "message": f"{RAISED} again"}]
    first, *others = as_json(engine_events([(json.dumps(entries, indent=2) + "\n").encode()]))
    assert str(first["time"])[:21] == "2025-10-30T09:08:42.5"
    assert [event["time"] for event in others] == [None] * len(others)

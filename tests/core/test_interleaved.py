"""Two bots in one log: what carries a line tells whose it is, so that the rows of one table do not go to the other's symbol."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from recompile_watch.core.analysis import Analysis, Facts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.engine import SourceEngine
from tests.conftest import TIMES, engine_events, matcher, rules

TABLE = """2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | backtest_test3_inline.py:_log_table:249 INFO |\x20
Backtest summary for {symbol} (70 simulations)
  Strategy          Return  Sharpe  FinalDay
  ----------------- ------- ------- --------
  Simple            -0.0359 -6.3100 -0.0061\x20
  MaxDiff           {value}  16.2700 0.0021\x20\x20"""
BOTS = [TABLE.format(symbol="AAPL", value=0.1358).split("\n"), TABLE.format(symbol="NVDA", value=0.9999).split("\n")]
ROWS = [("AAPL", "Simple", -0.0359), ("AAPL", "MaxDiff", 0.1358), ("NVDA", "Simple", -0.0359), ("NVDA", "MaxDiff", 0.9999)]

Carry = Callable[[int, str], str]
CARRIERS: dict[str, Carry] = {
    "compose": lambda bot, line: f"bot-{bot}  | {line}",
    "stern": lambda bot, line: f"bot-{bot} main {line}",
    "a tag": lambda bot, line: f"[bot{bot}] {line}",
    "Fluent Bit": lambda bot, line: json.dumps({"log": line, "stream": "stdout", "kubernetes": {"pod_name": f"bot-{bot}", "container_name": "bot"}}),
    "containers": lambda bot, line: json.dumps({"log": line, "kubernetes": {"pod_name": "bot", "container": {"name": f"bot-{bot}"}}}),
    "hosts": lambda bot, line: json.dumps({"message": line, "host": {"name": f"box{bot}"}}),
    "files": lambda bot, line: json.dumps({"message": line, "log": {"file": {"path": f"/var/log/bot{bot}.log"}}}),
    "Vector": lambda bot, line: json.dumps({"message": line, "host": "box", "file": f"/var/log/bot{bot}.log"}),
    "Google": lambda bot, line: json.dumps({"textPayload": line, "resource": {"labels": {"pod_name": f"bot-{bot}"}}}),
    "around the entry": lambda bot, line: json.dumps({"jsonPayload": {"message": line}, "resource": {"labels": {"pod_name": f"bot-{bot}"}}}),
    "ECS": lambda bot, line: json.dumps({"log": line, "containerName": f"bot{bot}"}),
}


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=list(CARRIERS))
def test_the_tables_of_two_bots_do_not_mix(carry: Carry) -> None:
    """Line by line in turns, each row goes to the symbol of its own bot."""
    lines = [carry(bot, line) for pair in zip(*BOTS, strict=True) for bot, line in enumerate(pair)]
    events = engine_events([("\n".join(lines) + "\n").encode()])
    assert sorted((event.extra["symbol"], event.extra["strategy"], event.extra["return"]) for event in events) == sorted(ROWS)


def test_a_number_that_counts_lines_names_no_stream() -> None:
    """In front of every line of one table, each with its own number, it is still one table."""
    lines = [f"line-{number} {line}" for number, line in enumerate(BOTS[0], 1)]
    events = engine_events([("\n".join(lines) + "\n").encode()])
    assert [event.extra["strategy"] for event in events] == ["Simple", "MaxDiff"]


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=list(CARRIERS))
def test_the_header_is_found_behind_the_lines_of_the_other_bot(carry: Carry) -> None:
    """The line in front of a title is the one of its own stream, so that each table has its time."""
    lines = [carry(bot, line) for pair in zip(*BOTS, strict=True) for bot, line in enumerate(pair)]
    events = engine_events([("\n".join(lines) + "\n").encode()])
    assert {event.time for event in events} == {"2025-12-09T20:01:06+00:00"}


def test_a_line_of_torch_between_header_and_message_is_neither() -> None:
    """torch logs to standard error, the bot to both: in one file its line may stand between."""
    torch = "W1209 20:01:06.559999 4242 torch/_dynamo/convert_frame.py:1358] [6/8] torch._dynamo hit config.recompile_limit (8)"
    events = engine_events(["\n".join([BOTS[0][0], torch, *BOTS[0][1:], ""]).encode()])
    assert {event.time for event in events if event.kind == "strategy_return"} == {"2025-12-09T20:01:06+00:00"}


def test_a_header_with_a_message_dates_no_line_behind_it() -> None:
    """What another line of the stream stands between is not its message."""
    lines = [BOTS[0][0] + "a", *BOTS[0][1:], ""]
    assert {event.time for event in engine_events(["\n".join(lines).encode()])} == {None}


def test_a_failure_that_another_stream_cuts_in_two_is_one() -> None:
    """The rest of its message, behind a line of somebody else's, is no second failure; a log may begin with such a rest."""
    rest = '  File "/srv/module.py", line 265, in forward\n    return output. To prevent overwriting, clone the tensor outside of torch.compile()\n'
    failed = "Kronos forecast failed for ETHUSD Close: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run."
    other = "2025-12-09 20:01:06.559 | INFO     | agent:run:12 - quote"
    text = f"2025-12-09 20:01:06 | WARNING | {failed}\n    x = self.norm(x)\n{other}\n{rest}"
    kinds = [event.kind for event in engine_events([text.encode()])]
    assert kinds == ["forecast_failure", "cudagraph_overwritten_error"]
    assert [event.kind for event in engine_events([rest.encode()])] == ["cudagraph_overwritten_error"]


TORCH = "W1209 20:01:06.559999 42 torch/_dynamo/convert_frame.py:9] [6/8] "
BETWEEN = (
    ["2025-12-09 20:01:06.559 | INFO     | data_curate_daily:fetch:288 - Populating synthetic bid/ask (0 spread) for MSFT (ADD_LATEST=False)"],
    [f"{TORCH}torch._dynamo hit config.recompile_limit (8)", f"{TORCH}   function: 'f' (a.py:1)"],
    ["skipping cudagraphs due to mutated inputs (2 instances)", "20it [00:02, 9.1it/s]"],
)


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("at", [4, 5])
@pytest.mark.parametrize("is_bulk", [False, True])
def test_rows_behind_lines_of_another_stream_are_the_table_s(between: list[str], at: int, is_bulk: bool) -> None:
    """Lines of the standard error between two rows do not end a table; the next table of the same columns does."""
    first, second = BOTS
    idle = ["2025-12-09 20:01:05 | INFO | idle"]
    lines = [*idle * 70, *first[:at], *between, *first[at:], *between, *second, *idle * 20]
    analysis = Analysis(rules())
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES, Bulk.of(rules()) if is_bulk else None)
    for item in engine.feed("\n".join(lines).encode()) + engine.end():
        analysis.take(item)
    rows = analysis.report(Facts()).series.strategy_return
    assert [(row.values["symbol"], row.values["strategy"], row.values["return"]) for row in rows] == ROWS
    assert [row.line - 70 for row in rows if row.values["symbol"] == "AAPL"] == [5 + len(between) * (at == 4), 6 + len(between)]


def test_rows_far_behind_a_table_are_none_of_its_own() -> None:
    """Too many lines stand between, or an indented one that is no row."""
    first = BOTS[0]
    for between in (["2025-12-09 20:01:06 | INFO | idle"] * 9, ["2025-12-09 20:01:06 | INFO | plots", "  saved to /tmp/AAPL.png"]):
        events = engine_events(["\n".join([*first[:5], *between, *first[5:], ""]).encode()])
        assert [event.extra["strategy"] for event in events] == ["Simple"]

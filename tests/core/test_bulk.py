"""Tests of `recompile_watch.core.bulk`: what is read in bulk says the same as the events of the same lines, whatever stands around it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.rows import RowPattern
from recompile_watch.report.json import json_text, report_to_json
from tests.conftest import TIMES, matcher, rules

A = "2025-10-30 09:%02d:%02d UTC | 2025-10-30 05:07:15 EDT | 2025-10-30 22:07:15 NZDT | backtest_test3_inline.py:_log_table:249 INFO | "
COLOURED = "2025-10-30 09:%02d:%02d UTC | 2025-10-30 05:07:15 EDT | 2025-10-30 22:07:15 NZDT | trade.py:f:5 \x1b[32mINFO\x1b[0m | "
B = "2025-10-30 09:%02d:%02d.699 | INFO     | data_curate_daily:download:231 - "
C = "2025-10-30 09:%02d:%02d,699 - src.main - INFO - "
HEADERS = (A, COLOURED, B, C)
PADDING = b"an ordinary line of the application\n" * 70
TABLE = [
    "Backtest summary for ETHUSD (70 simulations)",
    "  Strategy          Return  Sharpe   FinalDay",
    "  ----------------- ------- -------- --------",
    "  Simple            -0.0004 -0.0315  -0.0062 ",
    "  Buy & Hold        0.1043  18.2400  -       ",
    "  MaxDiff           1e999   nan      0.0133  ",
]
LOSSES = ["Average validation losses", "  Metric         Value ", "  -------------- ------", "  Close Val Loss 0.0121", "  High Val Loss  x"]
DETAIL = [
    "ETHUSD analysis strategy=maxdiff side=buy mode=probe blocked=False",
    "  returns: avg=0.017 annual=6.345 simple=-0.016 composite=0.017",
    "  edges: move=15.573 expected_pct=0.00400",
]
# Whole messages, each headed or not; and single lines that come between or inside them.
MESSAGES = [TABLE, LOSSES, DETAIL]
ROWS = [
    "GPU[0] toto_predict_begin(BTCUSD) alloc=609.7 MB reserved=1092.6 MB peak=609.7 MB",
    "GPU[0] toto_pipeline_loaded alloc=609.7 MB reserved=652.2 MB peak=1.2.3 MB",
    "GPU[0] chronos2_predict_end(C2C1) alloc=609.7 MB reserved=1092.6 MB peak=%d.7 MB",
    "GPU[0] chronos3_predict_end(None) alloc=609.7 MB reserved=1092.6 MB peak=%d MB",
    "GPU[1] profile_run_0 alloc=12.0 MB reserved=14.0 MB peak=13.0 MB",
    "Toto GPU usage symbol=BTCUSD num_samples=3072 samples_per_batch=384 peak=1025.8 MB delta=416.1 MB (count=%d)",
    "Toto GPU usage symbol=ETHUSD num_samples=3072 samples_per_batch=384 peak=1025.8 MB delta=416.1 MB (count=%d) MB reserved=7",
    "Latest BTCUSD bid: 110196.274, ask: 110306.526 (attempt 1)",
    "Latest BTCUSD bid: 0.0, ask: 110306.526 (attempt 1)",
    "Loading Toto pipeline 'Datadog/Toto-Open-Base-1.0' on cuda",
    "Using torch.compile for Toto (mode=max-autotune, backend=inductor, cache_dir=/srv/x).",
    "Kronos forecast failed for BTCUSD Close: ",
    "Populating synthetic bid/ask (0 spread) for BTCUSD (ADD_LATEST=False)",
    "the operator wrote: Latest BTCUSD bid: 1.0, ask: 2.0 (attempt 1)",
    "Toto GPU usage symbol=\udcd1 num_samples=3072 samples_per_batch=384 peak=9999.8 MB delta=416.1 MB (count=%d)",
    "2025-10-30 09:08:58 UTC | 0EDT |  NZDT | y:l:8 INFO |ETHUSD analysis strategy=d side=buy returns: avg=0.5 simple=0.7",
    "ETHUSD analysis strategy=a side=buy returns: avg=0.9\r2025-10-30 09:59:59 UTC | Skipping R - no actionable strategy",
    "",
]
BARE = [
    "  Latest BTCUSD bid: 3.0, ask: 4.0 (attempt 1)",
    "  Backtest summary for NESTED (3 simulations)",
    "   three blanks",
    "GPU[0] toto_predict_end(BTCUSD) alloc=609.7 MB reserved=1092.6 MB peak=700.7 MB",
    "Toto forecast OOM (attempt 1/5) with num_samples=3072, samples_per_batch=384: CUDA out of memory. Tried to allocate 1.21 GiB.",
    "V1030 09:08:10.123456 4242 torch/_dynamo/guards.py:2999] [0/1] [__recompiles] Recompiling function f in /srv/m.py:1",
    "V1030 09:08:10.123456 4242 torch/_dynamo/guards.py:2999] [0/1] [__recompiles]     triggered by the following guard failure(s):",
    "V1030 09:08:10.123456 4242 torch/_dynamo/guards.py:2999] [0/1] [__recompiles]     - 0/0: L['x'] == 3",
    '  File "/srv/x.py", line 3, in f',
    "RuntimeError: CUDA error: unspecified launch failure",
    "  - a note & more",
    "2025-10-30 09:07:14,699 - src.main - INFO - main -   indented below a name",
    "",
]


def random_log(seed: int) -> bytes:
    """A log of messages as the bot prints them and of lines that come at the wrong time, torn tables included."""
    chance = random.Random(seed)
    lines: list[str] = []
    count = 0
    while len(lines) < 120:
        count += chance.randrange(3)
        header = chance.choice(HEADERS) % (7 + len(lines) // 60, len(lines) % 60)
        kind = chance.random()
        if kind < 0.45:
            row = chance.choice(ROWS)
            lines.append(header + (row % count if "%d" in row else row))
        elif kind < 0.6:
            lines.append(chance.choice(BARE))
        else:
            lines += table(chance, header)
    return "\n".join(lines).encode("utf-8", "surrogateescape") + (b"\n" if chance.random() < 0.9 else b"")


def table(chance: random.Random, header: str) -> list[str]:
    """A table below its header; now and then something is wrong with it."""
    title, *rows = chance.choice(MESSAGES)
    head = [header + title] if title.startswith("ETHUSD") or chance.random() < 0.1 else [header.rstrip() if chance.random() < 0.2 else header, title]
    damage = chance.random()
    if damage < 0.1:
        rows.insert(chance.randrange(len(rows) + 1), chance.choice(BARE))
    elif damage < 0.2:
        rows = rows[: chance.randrange(len(rows))]
    elif damage < 0.25:
        head = head[-1:]
    elif damage < 0.3:
        head.insert(1, chance.choice(BARE))
    elif damage < 0.4:
        rows = [row.strip() for row in rows]
    elif damage < 0.45:
        return [C % (9, 9) + line.strip() for line in [*head, *rows]]
    return [*head, *rows]


def reported(data: bytes, bulk: Bulk | None, block_bytes: int) -> str:
    """What `analyze --format json` says of a log that comes in blocks of this size."""
    analysis = Analysis(rules())
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES, bulk)
    for begin in range(0, len(data), block_bytes):
        for item in engine.feed(data[begin : begin + block_bytes]):
            analysis.take(item)
    for item in engine.end():
        analysis.take(item)
    return json_text(report_to_json(analysis.report(Facts((SourceFacts("bot.log"),))), generated_at="", tool_version=""))


@pytest.mark.parametrize("seed", range(150))
def test_bulk_says_what_events_say(seed: int) -> None:
    """A log in which tables are torn, quoted, nested and interrupted gives one report, read in bulk or not."""
    data = PADDING + random_log(seed)
    whole = reported(data, None, len(data))
    assert reported(data, Bulk.of(rules()), len(data)) == whole
    assert reported(data, Bulk.of(rules()), 1500) == whole


def test_a_pattern_that_tells_digits_apart_is_not_read_in_bulk() -> None:
    """Lines are told apart by their shape, in which all digits are one."""
    usage = next(rule for rule in rules().rules if rule.id == "bot.gpu_memory.usage")
    assert RowPattern.of(usage) is not None
    assert RowPattern.of(replace(usage, text=usage.text.replace(b"Toto", b"T0to"))) is None
    assert RowPattern.of(replace(usage, text=usage.text.replace(rb"\d+", b"[0-9]+"))) is None


def test_tables_and_rows_are_read_in_bulk() -> None:
    """The plain forms really take the fast way: the joiner never sees them."""
    text = "".join(
        A % (7, n) + "\n" + "\n".join(TABLE) + "\n" + A % (8, n) + "\n".join(DETAIL) + "\n" + A % (9, n) + ROWS[0] + "\n" for n in range(9)
    )
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES, Bulk.of(rules()))
    kinds = [type(item).__name__ for item in engine.feed(PADDING * 60 + text.encode() + PADDING * 10) + engine.end()]
    assert sorted(set(kinds)) == ["Sums", "TableRows"]
    assert kinds.count("TableRows") == 9


@pytest.mark.parametrize(
    "line",
    [
        (
            b"V1120 10:33:47 t:6] [7] [__s] Recompiling function g in v\r2025-11-20T10:28:52.3 Backtest summary for D (0 simulation)"
            b"\r2025-11-20T10:28:52.1 2025-11-20T10:28:52.3   -- --\r2025-11-20T10:28:52   g\r2"
        ),
        (
            b"V1120 10:55:30 5:1] [__s] Recompiling function )\r2025-10-30 09:08:02 UTC | 1EDT |  NZDT | y:_:8 \x1b[mINFO\x1b[m |"
            b"D analysis strategy=s side=returns: g=0"
        ),
    ],
)
def test_events_of_one_line_keep_their_order(line: bytes) -> None:
    """A carriage return makes two messages of one line: a table, and a recompile that another process wrote into it."""
    data = PADDING + line
    assert reported(data, Bulk.of(rules()), len(data)) == reported(data, None, len(data))

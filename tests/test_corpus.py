"""What the product reads in real logs equals what really happened.

Three kinds of truth: torch's own hooks (`tests/data/torch`, compared by `tests.truth`), counters of real models
(`tests/data/models`), and the bot's lines read by a person (`tests/data/bot`, expected values written here by hand).

    python -m tests.test_corpus CORPUS --report docs/corpus.md    # the same comparison over a whole corpus, as a page
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DATA, SAMPLES, events_of_path
from tests.truth import Event, Run, View, compare, corpus_runs, version_of

RUNS = list(corpus_runs(DATA / "torch"))
VIEWS = [(run, view, paths) for run in RUNS for view, paths in run.views()]
KINDS = DATA / "bot" / "kinds_oct30"


def view_id(value: object) -> str | None:
    """Test ids such as `2.13.0/s14_ranks` and `trace`."""
    if isinstance(value, Run):
        return value.label
    return value if isinstance(value, str) else ""


def test_the_data_covers_every_family() -> None:
    """The part of the corpus kept here has runs of three versions and of each scenario, s01 to s24."""
    assert {run.version for run in RUNS} == {"2.5.1", "2.9.1", "2.13.0"}
    families = {run.name[1:3] for run in RUNS}
    assert families == {f"{number:02d}" for number in range(1, 25)} - {"16"}


@pytest.mark.parametrize(("run", "view", "paths"), VIEWS, ids=view_id)
def test_events_equal_what_torch_did(run: Run, view: View, paths: list[Path]) -> None:
    """Recompiles, reasons, limits, graph breaks and limit errors are those that hooks inside dynamo recorded."""
    events = [event for path in paths for event in events_of_path(path)]
    assert compare(events, run.truth(), run.meta, view) == []


QUOTES_TORCH = "s18_mixed_app"  # an application whose own lines quote the message
SKIPPED = [
    path for path in sorted((DATA / "torch").glob("*/*.log")) if b"skipping cudagraph" in path.read_bytes() and not path.name.startswith(QUOTES_TORCH)
]


@pytest.mark.parametrize("path", SKIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_skipped_cudagraph_is_an_event(path: Path) -> None:
    """Every line that says "skipping cudagraph", or that an input moved, is one event, a skip or a graph recorded again."""
    lines = sum(b"skipping cudagraph" in line or line.endswith(b"] static input data pointer changed.") for line in path.read_bytes().splitlines())
    kinds = Counter(event["kind"] for event in events_of_path(path))
    assert kinds["cudagraph_skip"] + kinds["cudagraph_rerecord"] == lines


# --- real models ----------------------------------------------------------------------------


def model_log(name: str) -> Path:
    """The log of a model run; one of them is a sample log."""
    samples = {"toto_botfork_W1": "toto-kv-cache.log"}
    return SAMPLES / samples[name] if name in samples else DATA / "models" / f"{name}.log"


def recompiles(events: list[Event], *, refused: bool) -> Counter[str]:
    """Recompiles by "function:line", as the models' truth names them."""
    found = [event for event in events if event["kind"] == "recompile" and event["refused"] is refused]
    return Counter(f"{event['function']}:{event['line_no']}" for event in found)


@pytest.mark.parametrize("name", ["toto_botfork_W1", "toto_botfork_limit64_W1", "kronos_asis_K2"])
def test_recompiles_of_models(name: str) -> None:
    """Each function of Toto and Kronos recompiled as often as torch's counters say; a refused attempt is marked and belongs to a limit."""
    truth: dict[str, Any] = json.loads((DATA / "models" / f"{name}.truth.json").read_text())
    events = events_of_path(model_log(name))
    assert recompiles(events, refused=False) == Counter(truth["recompiles_by_fn"])
    limits = [event for event in events if event["kind"] == "recompile_limit_hit"]
    assert len(limits) == len(truth["warnings"]) == truth["log_truth"]["limit_warnings"]
    assert recompiles(events, refused=True) == Counter(f"{event['function']}:{event['line_no']}" for event in limits)
    assert sum(event["kind"] == "recompile" for event in events) == truth["log_truth"]["recompile_events_in_log"]


def test_limit_of_toto() -> None:
    """The limit that the whole bot stumbled over: positional_embedding, attention.py:105, limit 8, the cache index as reason."""
    (hit,) = [event for event in events_of_path(SAMPLES / "toto-kv-cache.log") if event["kind"] == "recompile_limit_hit"]
    assert (hit["function"], hit["file"], hit["line_no"]) == ("positional_embedding", "/srv/bot/vendor/toto-0.1.4/toto/model/attention.py", 105)
    assert (hit["limit"], hit["limit_name"]) == (8, "recompile_limit")
    assert hit["reasons"] == [{"entry": "6/7", "text": "kv_cache._current_idx[7] == 0", "cause": "kv_cache_index"}]


def test_limit_of_kronos() -> None:
    """Kronos' rotary cache keeps the last length as an int of the module: a guard on each new length, until the limit."""
    events = events_of_path(DATA / "models" / "kronos_asis_K2.log")
    (hit,) = [event for event in events if event["kind"] == "recompile_limit_hit"]
    assert (hit["function"], hit["line_no"], hit["limit"]) == ("decode_s1", 278, 8)
    assert hit["reasons"][0]["entry"] == "0/7"
    assert hit["reasons"][0]["text"].endswith(".seq_len_cached == 70")
    assert hit["reasons"][0]["cause"] == "module_int_attribute"
    first = next(event for event in events if event["kind"] == "recompile")
    assert first["reasons"][0]["cause"] == "size_mismatch"


# --- the bot, one file a kind ---------------------------------------------------------------

# Symbol, simulations, then the rows as the log prints them: strategy, return, Sharpe, final day.
TABLES = (
    ("BTCUSD", 70, """
     Simple            -0.0359 -6.3100 -0.0061
     All Signals       -0.0151 -4.1200 -0.0050
     Buy & Hold        -0.0214 -3.9000 -0.0072
     Unprofit Shutdown -0.0182 -3.2200 -0.0066
     Entry+Takeprofit  -0.0041 -0.9100 -0.0012
     Highlow           -0.0233 -5.0500 -0.0040
     MaxDiff           0.0358 -6.2700 0.0021
     CI Guard          -0.0358 -6.2700 -"""),
    ("ETHUSD", 70, """
     Simple            -0.0977 -12.0700 -0.0102
     All Signals       -0.0310 -7.7500 -0.0081
     Buy & Hold        -0.0411 -5.8200 -0.0094
     Unprofit Shutdown -0.0389 -5.1100 -0.0090
     Entry+Takeprofit  0.0122 3.3100 0.0009
     Highlow           -0.0197 -4.0400 -0.0033
     MaxDiff           0.1043 18.2400 0.0133
     CI Guard          0.0000 0.0000 -"""),
    ("UNIUSD", 35, """
     Simple            -0.0419 -6.2254 -0.0018
     All Signals       -0.0161 -1.5347 -0.0021
     Buy & Hold        -0.0080 -0.7667 -0.0004
     Unprofit Shutdown 0.0392 3.9670 0.0029
     Entry+Takeprofit  0.0537 7.6257 0.0058
     Highlow           -0.0544 -9.1007 -0.0047
     MaxDiff           0.0041 0.4870 0.0008
     CI Guard          0.0000 0.0000 -"""),
    ("AAPL", 70, """
     Simple            -0.0525 -5.0033 -0.0037
     All Signals       -0.0087 -1.0277 -0.0013
     Buy & Hold        -0.0240 -3.8804 -0.0040
     Unprofit Shutdown 0.0089 1.2259 0.0018
     Entry+Takeprofit  -0.0254 -4.5351 -0.0013
     Highlow           0.0309 3.1992 0.0039
     MaxDiff           0.0702 11.1463 0.0100
     CI Guard          0.0000 0.0000 -"""),
    ("SOLUSD", 1, """
     MaxDiff  0.0000 0.0000 0.0000
     CI Guard 0.0000 0.0000 -"""),
)  # fmt: skip
DAILY = {
    "BTCUSD": "avg=0.016 simple=0.004 all=-0.008 takeprofit=0.008 highlow=-0.002 maxdiff=0.004 ci_guard=0.007 unprofit=-0.013",
    "ETHUSD": "avg=0.005 simple=-0.000 all=-0.005 takeprofit=-0.003 highlow=0.008 maxdiff=-0.000 ci_guard=0.013 unprofit=-0.010",
    "UNIUSD": "avg=0.006 simple=0.004 all=0.015 takeprofit=0.007 highlow=-0.000 maxdiff=-0.004 ci_guard=-0.008 unprofit=-0.031",
    "AAPL": "avg=0.003 simple=0.001 all=0.005 takeprofit=-0.002 highlow=-0.007 maxdiff=0.011 ci_guard=0.014 unprofit=-0.001",
    "NVDA": "avg=0.012 simple=-0.002 all=-0.000 takeprofit=0.002 highlow=0.000 maxdiff=-0.005 ci_guard=0.015 unprofit=-0.014",
}


def bot_events(name: str, *kinds: str) -> list[Event]:
    """The events of one of the bot's files, of these kinds (all if none is named)."""
    events = events_of_path(next(KINDS.glob(f"{name}*.log")))
    assert all(event["rank"] is None and event["compile_id"] is None and not event["partial"] for event in events)
    return [event for event in events if not kinds or event["kind"] in kinds]


def fields(event: Event, *names: str) -> tuple[object, ...]:
    """The line of an event and the values of some of its fields."""
    return (event["at"]["line"], *(event[name] for name in names))


def test_strategy_tables() -> None:
    """Every row of every table is one event with its return, Sharpe and final day; "-" and absent columns are null."""
    expected = []
    for symbol, simulations, rows in TABLES:
        for row in rows.strip().splitlines():
            strategy, value, sharpe, final_day = row.strip().rsplit(maxsplit=3)
            expected.append((symbol, strategy.strip(), float(value), float(sharpe), None if final_day == "-" else float(final_day), simulations))
    found = bot_events("01", "strategy_return")
    assert [fields(event, "symbol", "strategy", "return", "sharpe", "final_day", "simulations")[1:] for event in found] == expected
    assert all(event["annual_return"] is None and event["forecast_return"] is None for event in found)
    assert {event["time"] for event in found if event["symbol"] == "ETHUSD"} == {"2025-10-30T09:07:59+00:00"}


def test_validation_losses() -> None:
    """Each of the five loss tables gives close, high and low; a table names no symbol, so the one it comes with is not guessed."""
    found = bot_events("01", "validation_loss")
    assert [(event["target"], event["value"]) for event in found] == [("close", 0.0121), ("high", 0.0098), ("low", 0.0113)] * 5
    assert len(bot_events("01")) == len(found) + sum(len(rows.strip().splitlines()) for _, _, rows in TABLES)


def test_daily_returns() -> None:
    """The `returns:` line gives average daily returns, a kind of their own; annual and composite are no strategies' daily returns."""
    expected = [(symbol, *pair.split("=")) for symbol, line in DAILY.items() for pair in line.split()]
    found = [(event["symbol"], event["strategy"], event["return"]) for event in bot_events("02", "strategy_daily_return")]
    assert found == [(symbol, strategy, float(value)) for symbol, strategy, value in expected]


def test_quotes() -> None:
    """Each wording of a quote without spread is one kind with its cause; retries and the lines that only announce it add nothing."""
    assert [fields(event, "symbol", "cause") for event in bot_events("03", "synthetic_quote")] == [
        (1, "BTCUSD", "add_latest_off"),
        (4, "ETHUSD", "add_latest_off"),
        (24, "AAPL", "one_side_zero"),
        (34, "ALGOUSD", "invalid_quote"),
        (41, "MATICUSD", "invalid_quote"),
        (46, "ADAUSD", "invalid_quote"),
        (47, "AAPL", "one_side_zero"),
        (49, "UNIUSD", "synthetic_spread"),
    ]
    quotes = bot_events("03", "quote")
    assert [fields(event, "symbol", "bid", "ask") for event in quotes] == [
        (7, "BTCUSD", 110196.274, 110306.526),
        (11, "ETHUSD", 3891.253, 3895.147),
        (15, "UNIUSD", 6.028, 6.034),
    ]
    assert [round(event["spread_bps"]) for event in quotes] == [10, 10, 10]


def test_synthetic_spread_is_zero_or_unknown() -> None:
    """A quote made of one price has spread 0; the old synthetic spread of 1.01 is no zero."""
    spreads = {event["cause"]: event["spread_bps"] for event in bot_events("03", "synthetic_quote")}
    assert spreads == {"add_latest_off": 0, "one_side_zero": 0, "invalid_quote": 0, "synthetic_spread": None}


def test_model_load_and_compile_mode() -> None:
    """What the wrappers say when they load is what is seen: compiled, eager, and null where the log does not say."""
    assert [fields(event, "model", "device") for event in bot_events("04", "model_load")] == [
        (1, "toto", "cuda"), (8, "toto", "cuda"), (10, "toto", "cpu"),
    ]  # fmt: skip
    modes = bot_events("04", "compile_mode")
    assert [fields(event, "model", "compiled", "mode", "backend") for event in modes] == [
        (2, "toto", True, "max-autotune", "inductor"),
        (9, "toto", False, None, None),
        (19, "chronos2", False, None, None),
        (26, "toto", None, "reduce-overhead", "inductor"),
    ]
    assert [fields(event, "model") for event in bot_events("04", "cpu_fallback")] == [(11, "toto")]
    assert [fields(event, "model", "seconds") for event in bot_events("04", "warmup_done")] == [(21, "toto", 38.4)]
    assert [fields(event, "model") for event in bot_events("04", "out_of_memory")] == [(22, "toto")]


def test_gpu_memory() -> None:
    """Megabytes as printed; a value that a line does not print is null. The symbol is null while the pipeline loads."""
    names = ("symbol", "model", "allocated_mb", "reserved_mb", "peak_mb")
    assert [fields(event, *names) for event in bot_events("04", "gpu_memory")] == [
        (4, None, "toto", 609.7, 652.2, 609.7),
        (5, "BTCUSD", "toto", None, None, 1025.8),
        (6, "ETHUSD", "toto", None, None, 1025.8),
        (7, "UNIUSD", "toto", None, None, 1025.8),
    ]


def test_forecast_failures() -> None:
    """Each failure names model, symbol, target and cause; an overwritten cudagraph output is an event of its own as well."""
    assert [fields(event, "model", "symbol", "target", "cause") for event in bot_events("05", "forecast_failure")] == [
        (1, "kronos", "BTCUSD", "Close", "cudagraph_overwritten"),
        (5, "kronos", "ETHUSD", "Close", "cudagraph_overwritten"),
        (9, "kronos", "ETHUSD", "Close", "assertion"),
        (10, "kronos", "ETHUSD", None, "import_error"),
        (11, "toto", "UNIUSD", "Close", "cuda_error"),
        (16, None, "UNIUSD", "Close", "other"),
        (25, "toto", "ETHUSD", "maxdiff_avg_daily_return", "out_of_memory"),
    ]
    module = "/nvme0n1-disk/code/stock-prediction/external/kronos/model/module.py"
    assert [fields(event, "function", "file", "line_no") for event in bot_events("05", "cudagraph_overwritten_error")] == [
        (1, "forward", module, 265),
        (5, "forward", module, 265),
    ]


def test_out_of_memory() -> None:
    """Every out-of-memory line is one event with the attempt it counts; giving up on the GPU is a fall-back to the CPU."""
    assert [fields(event, "model", "symbol", "device", "attempt") for event in bot_events("05", "out_of_memory")] == [
        (17, "toto", "BTCUSD", None, 1),
        (20, "kronos", None, None, None),
        (21, "kronos", None, None, None),
        (26, "toto", None, "GPU 0", 1),
        (28, "kronos", None, "cuda:0", None),
    ]
    assert [fields(event, "model", "symbol") for event in bot_events("05", "cpu_fallback")] == [(18, "toto", "BTCUSD"), (22, "toto", "ETHUSD")]
    assert [fields(event, "exception") for event in bot_events("05", "compile_error")] == [(27, None), (29, None), (30, "AssertionError")]


def test_analyses_plans_and_accounts() -> None:
    """Analyses start, plans have their count, and data made up because the broker was silent is told."""
    starts = ["INITIAL", "MARKET OPEN", "MARKET OPEN HOUR 2", "MARKET CLOSE", "CRYPTO MIDNIGHT REFRESH"]
    assert [event["analysis"] for event in bot_events("06", "analysis_start")] == starts
    assert {event["time"] for event in bot_events("06", "analysis_start")} == {"2025-10-30T09:07:15+00:00"}
    assert [fields(event, "count") for event in bot_events("06", "plan")] == [(11, 0), (12, 2)]
    assert [event["at"]["line"] for event in bot_events("06", "synthetic_account")] == [36, 37, 38]


def test_orders() -> None:
    """An order keeps side, quantity and price as far as its line prints them."""
    found = {event["at"]["line"]: fields(event, "symbol", "side", "quantity", "price")[1:] for event in bot_events("06", "order")}
    assert found[33] == ("ETHUSD", "buy", 1.204, 3895.99)
    assert found[31] == ("ETHUSD", "buy", 1.204, None)
    assert found[34] == ("ETHUSD", None, None, None)
    assert found[19] == ("UNIUSD", "buy", None, None)
    assert 14 not in found and 21 not in found  # a portfolio snapshot and a list of candidates are no orders


def test_bot_errors() -> None:
    """Errors of the bot itself, with the symbol where the line names one; no time where the line has none."""
    assert [fields(event, "symbol", "time") for event in bot_events("07", "bot_error")] == [
        (1, "UNIUSD", "2025-10-30T09:07:22+00:00"),
        (2, "UNIUSD", "2025-10-30T09:07:22+00:00"),
        (3, "UNIUSD", "2025-10-30T09:07:22+00:00"),
        (4, "AAPL", "2025-10-30T09:07:22+00:00"),
        (5, None, "2025-10-30T09:07:22+00:00"),
        (12, None, None),
        (15, None, None),
    ]


# --- the page -------------------------------------------------------------------------------

INTRODUCTION = """# How equal the events are to torch's own truth

The corpus holds raw logs of {versions}: {runs} runs of small programs that make torch recompile, break graphs, hit limits and skip
cudagraphs, under many settings of `TORCH_LOGS` and `TORCH_TRACE`. Beside each log stands what hooks inside dynamo recorded while it ran.
A view is one place that shows a run: its log, its trace folder, the file of `TORCH_LOGS_OUT`. A run is equal when, in each of its views,

* every recompile is there, in order, with function, file, line, the number of its reasons, entry and text of the first two
  (the truth keeps two), and whether a limit refused it;
* every limit hit is there, with its name; every limit error and every refusal by a stance is there;
* every graph break is there, with file and reason, and none is invented
  (torch 2.5 keeps no list of them: there their number and reasons are compared).

`make corpus CORPUS=folder` repeats this; a part of the corpus is in `tests/data/torch` and is compared on every change.

| torch | runs | equal | views | differ in |
|---|---|---|---|---|
"""


@dataclass(slots=True)
class Row:
    """One torch version in the table. differ: the first difference of each view that differs."""

    version: str
    runs: int = 0
    equal: int = 0
    views: int = 0
    differ: list[str] = field(default_factory=list)


def page(root: Path) -> str:
    """The result of the comparison over a whole corpus, as Markdown."""
    rows: dict[tuple[int, int], Row] = {}
    runs = list(corpus_runs(root))
    for run in runs:
        differ = []
        views = 0
        for view, paths in run.views():
            views += 1
            problems = compare([event for path in paths for event in events_of_path(path)], run.truth(), run.meta, view)
            differ += [f"`{run.name}` ({view}): {problem}" for problem in problems[:1]]
        row = rows.setdefault(version_of(run.meta), Row(run.version))
        row.runs += 1
        row.equal += not differ
        row.views += views
        row.differ += differ
    ordered = [rows[version] for version in sorted(rows)]
    lines = [f"| {row.version} | {row.runs} | {row.equal} | {row.views} | {'<br>'.join(row.differ) or 'none'} |\n" for row in ordered]
    versions = ", ".join(row.version for row in ordered)
    return INTRODUCTION.format(versions=f"torch {versions}", runs=len(runs)) + "".join(lines)


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.test_corpus", description=page.__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--report", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    text = page(options.corpus)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

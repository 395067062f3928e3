"""Tests of `recompile_watch.report.text` and `json`: what a report looks like, and what log text cannot do to it."""

from __future__ import annotations

import json
import math

import pytest

from recompile_watch.config import load_catalog, load_rules
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.report.json import json_text, report_to_json
from recompile_watch.report.text import report_text

RULES = load_rules()
EVIL = "\x1b[2J\x1b]0;owned\x07[bold]x[/bold]\u202e\nCRITICAL forged sk-SECRETSECRETSECRET1"


def event(kind: str, line: int = 1, reasons: tuple[Reason, ...] = (), function: str | None = "f", **extra: object) -> Event:
    time = f"2025-10-30T09:08:{line % 60:02d}+00:00"
    return Event(
        kind, "/logs/bot.log", line, line * 10, time, None, 7, "0/3", function, "/srv/m/a.py", 9, reasons, False,
        {**EXTRA_FIELDS.get(kind, {}), **{name.rstrip('_'): value for name, value in extra.items()}},
    )  # fmt: skip


def report_of(*events: Event, facts: Facts | None = None) -> Report:
    analysis = Analysis(RULES)
    for one in events:
        analysis.add(one)
    return analysis.report(facts or Facts((SourceFacts("/logs/bot.log", 1000, 10),)))


def text_of(report: Report, *, width: int = 100, encoding: str = "utf-8", is_terminal: bool = False, has_color: bool = False) -> str:
    return report_text(report, encoding=encoding, width=width, is_terminal=is_terminal, has_color=has_color)


def rows(symbols: int) -> list[Event]:
    return [
        event("strategy_return", n, symbol=f"SYM{n}", strategy=strategy, sharpe=1.5, return_=value)
        for n in range(symbols) for strategy, value in (("MaxDiff", 0.0358), ("Simple", -0.0359))
    ]  # fmt: skip


LONG = "/srv/releases/2025-10-30/app/m/a.py"
LIMIT = event("recompile_limit_hit", 5, (Reason("6/7", "kv_cache._current_idx[7] == 0", "kv_cache_index"),), limit=8, limit_name="recompile_limit")


def test_worst_first() -> None:
    """A critical finding stands above a warning, and that above a note."""
    text = text_of(report_of(event("graph_break"), event("cudagraph_skip", 2, (Reason(None, "mutated inputs", "other"),)), LIMIT))
    words = ("CRITICAL 1 critical", "f hit the recompile limit (8)", "CUDA graphs skipped: mutated inputs", "Graph break")
    order = [text.index(word) for word in words]
    assert order == sorted(order)
    assert "8 of 8 entries" in text and "m/a.py:9" in text and "line 5" in text and "pid 7" in text


def test_the_times_of_a_source_never_run_backwards() -> None:
    """Two services in one journal print by clocks of their own: the last line need not be the latest."""
    late, early = (
        event("graph_break", 1)._replace(time="2025-10-30T09:08:19+00:00"),
        event("graph_break", 2)._replace(time="2025-10-30T09:08:09+00:00"),
    )
    assert "events 09:08:09 – 09:08:19" in text_of(report_of(late, early))


def test_what_is_pasted_is_shown_whole() -> None:
    """A folder that loses its beginning is another folder; in a comment the end of a path is enough."""
    analysis = Analysis(RULES)
    analysis.add(event("compile_error", exception="RuntimeError", message="vLLM failed to compile the model. The most likely reason"))
    analysis.add(
        event("compile_error", 2, exception="TorchRuntimeError", message="expected query and key to have the same dtype")._replace(file=LONG)
    )
    text = text_of(analysis.report(Facts((SourceFacts("/logs/bot.log", 1000, 10),)), load_catalog()), width=200)
    assert "rm -rf ~/.cache/vllm/torch_compile_cache  #" in text
    assert "x = x.to(weight.dtype)  # at …/m/a.py:9" in text


def test_recompiles_of_a_function_are_one_block() -> None:
    """A function at its limit is one story, with the reasons of its recompiles below."""
    recompiles = [event("recompile", n, (Reason(f"0/{n}", f"x == {n}", "int_value"),)) for n in range(1, 8)]
    text = text_of(report_of(*recompiles, LIMIT))
    assert text.count("CRITICAL  ") == 1 and "WARNING" not in text
    assert "7× an integer changed" in text


def test_breaks_that_one_change_takes_away_are_one_block() -> None:
    """A line of the program that leads into a package is told once, with all that breaks behind it; another line is another block."""
    analysis = Analysis(RULES)
    for line in range(21, 28):
        reasons = (Reason(None, "Data-dependent branching", "other"),)
        one = event("graph_break", line, reasons, f"step_{line}", called_from=f"/srv/m/a.py:{30 if line < 26 else 35} in play")
        analysis.add(one._replace(file="/srv/site-packages/gymworld/env.py", line_no=line))
    text = text_of(analysis.report(Facts((SourceFacts("/logs/bot.log", 1000, 10),)), catalog=load_catalog()))
    assert "2 warnings" in text and text.count("in play: torch.compiler.disable") == 2
    assert "Graph break in step_21: Data-dependent branching, and 4 more that the same change takes away" in " ".join(text.split())
    assert "1\u00d7 Graph break in step_22: Data-dependent branching\n" in text


def test_what_to_do_is_said_once() -> None:
    """The same remedy of another function is told by its title, and where it goes there."""
    analysis = Analysis(RULES)
    for line, function in ((5, "f"), (7, "g"), (9, "h")):
        analysis.add(LIMIT._replace(function=function, line=line, reasons=(Reason("0/7", f"task == '{function}'", "str_value"),)))
    text = text_of(analysis.report(Facts((SourceFacts("/logs/bot.log", 1000, 10),)), load_catalog()))
    assert text.count("torch.compile(..., recompile_limit=16)") == 1
    assert text.count("do: as above (Raise the limit of this function to the number of its variants)") == 2
    assert all(f"at the torch.compile call of {function}" in text for function in "fgh")


def test_a_note_says_what_to_do_where_something_is_to_do() -> None:
    """A break at a print has a remedy; torch's first step to a dynamic size is as it should be."""
    analysis = Analysis(RULES)
    analysis.add(event("graph_break", 1, (Reason(None, "Failed to trace builtin operator `print`", "other"),)))
    size = Reason("0/0", "tensor 'x' size mismatch at index 0. expected 8, actual 9", "size_mismatch")
    analysis.add(event("recompile", 2, (size,), function="g")._replace(compile_id="1/1"))
    lines = [line.strip() for line in text_of(analysis.report(Facts((SourceFacts("/logs/bot.log", 1000, 10),)), load_catalog())).splitlines()]
    (told,) = (number for number, line in enumerate(lines) if line.startswith("do: "))
    assert "Graph break in f" in lines[told - 1] and "torch._dynamo.config.reorderable_logging_functions" in lines[told + 1]


def test_symbols_without_quotes_are_one_block() -> None:
    """Three symbols without a real quote are one line, not three findings to scroll past."""
    text = text_of(report_of(*(event("synthetic_quote", n, symbol=s, cause="add_latest_off") for n, s in enumerate("ABC"))))
    assert "3 symbols are priced without a real quote: A, B, C" in text
    assert "synthetic 3 (A 1, B 1, C 1), no real one" in text


@pytest.mark.parametrize("symbols", [1, 2, 20])
@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_fits_the_width(symbols: int, width: int) -> None:
    """No line is wider than the terminal, whatever the number of symbols."""
    report = report_of(*rows(symbols), LIMIT, event("gpu_memory", 3, stage="usage", peak_mb=1025.8), event("inference", 4, milliseconds=200.0))
    text = text_of(report, width=width)
    assert max(map(len, text.split("\n"))) <= width
    assert "0.0358" in text


def test_narrower_than_any_table() -> None:
    """A very narrow terminal is treated as 40 columns."""
    assert "CRITICAL" in text_of(report_of(LIMIT), width=5)


def test_numbers() -> None:
    """Latest returns and Sharpes, memory and latency; derived values say so."""
    text = text_of(report_of(*rows(2), *(event("inference", n, milliseconds=200.0, derived=True) for n in (1, 2))))
    assert "MaxDiff" in text and "-0.0359" in text and "1.50" in text
    assert "p50 200 ms, p95 200 ms (derived from call counters, 2 measurements)" in text


def test_latest_row_wins() -> None:
    """Of several tables of a symbol the last one is shown."""
    tables = [event("strategy_return", line, symbol="A", strategy="S", return_=line / 10) for line in (1, 2)]
    text = text_of(report_of(*tables))
    assert "0.2000" in text and "0.1000" not in text


def test_hostile_text() -> None:
    """Escape codes, markup, line breaks and secrets of a log have no effect in text and JSON."""
    report = report_of(
        event("recompile", 1, (Reason("0/1", EVIL, EVIL),), function=EVIL), event("bot_error", 2, message=EVIL),
        event("synthetic_quote", 3, symbol=EVIL),
        event("strategy_return", 4, symbol=EVIL, strategy=EVIL, return_=1.0), event("gpu_memory", 5, stage=EVIL, peak_mb=1.0),
        event("compile_mode", 6, model=EVIL, compiled=True, mode=EVIL), event("cudagraph_skip", 7, (Reason(None, EVIL, "other"),)),
    )  # fmt: skip
    text = text_of(report)
    value = json_text(report_to_json(report, generated_at="2025-10-30T00:00:00+00:00", tool_version="0"))
    for out in (text, value):
        assert "\x1b" not in out and "\x07" not in out and "\u202e" not in out
        assert "SECRETSECRET" not in out
    assert not [line for line in text.split("\n") if line.startswith("CRITICAL forged")]


def test_colors_only_where_wanted() -> None:
    """A terminal gets colours, NO_COLOR and files do not."""
    report = report_of(LIMIT)
    assert "\x1b[" in text_of(report, is_terminal=True, has_color=True)
    assert "\x1b[3" not in text_of(report, is_terminal=True)
    assert "\x1b" not in text_of(report)


def test_ascii_terminal() -> None:
    """An encoding without block characters gets plain ones."""
    recompiles = [event("recompile", n, (Reason(f"0/{n}", f"x == {n}", "int_value"),)) for n in range(1, 8)]
    text_of(report_of(*recompiles, LIMIT), encoding="ascii").encode("ascii", "strict")


def test_json_follows_the_contract() -> None:
    """Every key of the contract is there, also where nothing was found."""
    value = report_to_json(report_of(LIMIT), generated_at="2025-10-30T00:00:00+00:00", tool_version="1.2")
    assert value["schema"] == "recompile-watch/analysis/1" and value["status"] == "critical" and value["tool_version"] == "1.2"
    assert value["torch_version"] == {"value": None, "from": None}
    assert value["counts"] == {"recompile_limit_hit": 1}
    assert value["decision"] == {"per_model": {}}
    finding = json.loads(json_text(value))["findings"][0]
    assert {
        "id", "kind", "severity", "title", "model", "function", "file", "line_no", "cause", "count", "first_time", "last_time", "phase", "headroom",
        "cost", "evidence", "consequence", "advice", "baseline", "accepted_until",
    } <= finding.keys()  # fmt: skip
    assert finding["headroom"] == {"entries": 8, "limit": 8} and finding["cost"] == {"compile_seconds": None}
    assert finding["evidence"][0].keys() == {"source", "line", "text"}
    assert json.loads(json_text(value))["series"]["inference"]["p50"] is None


def test_json_has_no_nan() -> None:
    """NaN and infinity are no JSON; they become null."""
    report = report_of(event("strategy_return", symbol="A", strategy="S", sharpe=float("inf"), return_=float("nan")))
    text = json_text(report_to_json(report, generated_at="", tool_version=""))
    assert "NaN" not in text and "Infinity" not in text


def test_unknown_says_why() -> None:
    """A report without evidence is UNKNOWN and names the reason."""
    text = text_of(report_of(facts=Facts((SourceFacts("/logs/bot.log", error="/logs/bot.log: no permission"),))))
    assert "UNKNOWN" in text and "no permission" in text


def test_numbers_that_json_does_not_know() -> None:
    """NaN and infinity become null, wherever they stand."""
    assert json_text({"a": [math.inf, 1.5, {"b": math.nan}], "c": (-math.inf,)}) == '{"a": [null, 1.5, {"b": null}], "c": [null]}'


def test_nothing_is_cut_without_a_count() -> None:
    """Errors of one block and decisions beyond what fits are counted."""
    errors = [event("bot_error", n, message=f"{letter * 5} failed") for n, letter in enumerate("abcdefgh", 1)]
    text = text_of(report_of(*errors))
    assert "The bot reports 8 errors" in text and "… and 2 more; --format json has all of them" in text


def test_a_limit_that_nothing_names_has_no_number() -> None:
    """The attempt that a limit refused comes before the line that names the limit."""
    refused = event("recompile", 1, (Reason("0/7", "L['x'] == 8", "int_value"),), refused=True)
    assert "f hit the recompile limit\n" in text_of(report_of(refused))


def test_a_mode_that_is_not_shown_is_not_told() -> None:
    """A line that names the mode only does not say that the model runs in eager mode."""
    text = text_of(report_of(event("compile_mode", model="toto", compiled=None, mode="reduce-overhead", function=None)))
    assert "toto is set up for compiling (reduce-overhead)" in text and "eager" not in text

"""Tables of the HTML report."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import pandas as pd

from recompile_watch.core.analysis import Report
from recompile_watch.core.series import Latency
from recompile_watch.report.frames import NAME_CHARS, TimeTables
from recompile_watch.report.numbers import ms_text, number_text
from recompile_watch.report.page import LONG, NUM, Listing, listing
from recompile_watch.report.safe import safe
from recompile_watch.report.times import Clock, size_text, thousands
from recompile_watch.report.words import doubles_text, kind_words

_MARKS = {"model_load": "model loaded", "compile_mode": "compile mode shown", "warmup_done": "warm-up done"}


def sources_listing(report: Report, clock: Clock) -> Listing:
    """What was read, and what was not."""
    rows = []
    for source in report.sources:
        facts = source.facts
        unread = [f"{kind_words(safe(reason, NAME_CHARS))} ({n})" for reason, n in facts.unread.items()]
        missed = ", ".join([*unread, *([safe(facts.error)] if facts.error else [])])
        span = "; ".join([clock.span_of([(source.first_time, source.last_time)]) or "no times", *doubles_text(source)])
        rows.append((safe(facts.path), thousands(facts.lines), size_text(facts.bytes), span, missed or "nothing"))
    columns = (("Source", LONG), ("Lines", NUM), ("Size", NUM), ("Events from – to", ""), ("Could not be read", LONG))
    passed = ", ".join(f"{kind_words(safe(reason, NAME_CHARS))} ({n})" for reason, n in report.unread.items())
    return listing("Sources" + (f"; passed over in folders: {passed}" if passed else ""), columns, rows, "source")


def counts_listing(report: Report) -> Listing:
    """How many events of each kind there are."""
    ordered = sorted(report.counts.items(), key=lambda item: (-item[1], item[0]))
    return listing("Events by kind", (("Kind", ""), ("Events", NUM)), ((kind_words(kind), thousands(n)) for kind, n in ordered), "kind")


def events_listing(tables: TimeTables) -> Listing:
    """The events of each stretch of time."""
    rows = _cells(tables.events, {"begin": _time, "kind": kind_words, "n": thousands})
    return listing("events over time", ((f"From ({tables.zone})", ""), ("Kind", ""), ("Events", NUM)), rows)


def marks_listing(tables: TimeTables) -> Listing:
    """Model loads, compile modes and finished warm-ups."""
    rows = _cells(tables.marks, {"begin": _time, "kind": _MARKS.__getitem__, "model": str, "n": thousands})
    return listing("Models over time", ((f"From ({tables.zone})", ""), ("What", ""), ("Model", ""), ("Times", NUM)), rows)


def limits_listing(limits: pd.DataFrame) -> Listing:
    """Recompiles and compiled versions of each function."""
    shown: Mapping[str, Callable[..., str]] = {
        "function": str,
        "place": str,
        "recompiles": thousands,
        "refused": thousands,
        "entries": _whole,
        "limit": _whole,
    }
    rows = _cells(limits, shown)
    columns = (("Function", ""), ("Place", LONG), ("Recompiles", NUM), ("Refused", NUM), ("Entries", NUM), ("Limit", NUM))
    return listing("recompiles by function", columns, rows, "function")


def returns_listing(returns: pd.DataFrame) -> Listing:
    """The latest row of each symbol and strategy."""
    shown: Mapping[str, Callable[..., str]] = {"symbol": str, "strategy": str, "return": _four, "sharpe": _two, "final_day": _four, "rows": thousands}
    rows = _cells(returns, shown)
    columns = (("Symbol", ""), ("Strategy", ""), ("Return", NUM), ("Sharpe", NUM), ("Final day", NUM), ("Times printed", NUM))
    return listing("latest returns by symbol and strategy", columns, rows)


def daily_listing(report: Report) -> Listing:
    """The latest average daily returns."""
    values = report.series.strategy_daily_return.items()
    rows = ((_name(symbol), _name(strategy), _number(value, 4)) for (symbol, strategy), value in values)
    return listing("Latest average daily returns", (("Symbol", ""), ("Strategy", ""), ("Return a day", NUM)), rows)


def losses_listing(report: Report) -> Listing:
    """The latest validation losses."""
    values = report.series.validation_loss.items()
    rows = ((_name(symbol), _name(target), _number(value, 4)) for (symbol, target), value in values)
    return listing("Latest validation losses", (("Symbol", ""), ("Target", ""), ("Loss", NUM)), rows)


def latency_listing(report: Report) -> Listing:
    """The latency of each model, and of all."""
    series = report.series
    every = [("all models", series.inference), *((safe(name, NAME_CHARS), one) for name, one in series.inference_by_model.items())]
    caption = "Latency by model" + (
        ", derived from call counters: each measurement is an average over several calls" if series.inference.derived else ""
    )
    columns = (("Model", ""), ("p50", NUM), ("p95", NUM), ("p99", NUM), ("Measurements", NUM))
    return listing(caption, columns, ((name, *_percentiles(one), thousands(one.n)) for name, one in every), "model")


def latency_times_listing(tables: TimeTables) -> Listing:
    """The latency over time."""
    rows = _cells(tables.latency, {"begin": _time, "p50": _ms, "p95": _ms, "p99": _ms, "n": thousands})
    columns = ((f"From ({tables.zone})", ""), ("p50", NUM), ("p95", NUM), ("p99", NUM), ("Measurements", NUM))
    return listing("latency over time", columns, rows)


def stages_listing(report: Report) -> Listing:
    """GPU memory by stage."""
    stages = sorted(report.series.gpu_memory.items(), key=lambda item: (-(item[1].max_peak_mb or 0), item[0]))
    rows = (
        (safe(stage, NAME_CHARS).replace("_", " "), _name(one.model), _number(one.max_peak_mb, 1),
         _number(one.last_peak_mb, 1), thousands(one.n))
        for stage, one in stages
    )  # fmt: skip
    columns = (("Stage", ""), ("Model", ""), ("Highest peak, MB", NUM), ("Last peak, MB", NUM), ("Lines", NUM))
    return listing("GPU memory by stage (1 MB is 1e6 bytes)", columns, rows, "stage")


def memory_times_listing(tables: TimeTables) -> Listing:
    """GPU memory over time."""
    rows = _cells(tables.memory, {"begin": _time, "model": str, "peak_mb": _one})
    return listing("GPU memory over time", ((f"From ({tables.zone})", ""), ("Model", ""), ("Highest, MB", NUM)), rows)


def quotes_listing(quotes: pd.DataFrame) -> Listing:
    """Quotes by symbol."""
    rows = _cells(quotes, {"symbol": str, "synthetic": thousands, "real": thousands})
    return listing("quotes by symbol", (("Symbol", ""), ("Synthetic", NUM), ("Real", NUM)), rows, "symbol")


def baseline_listing(report: Report) -> Listing:
    """What each finding is against the baseline."""
    order = ("new", "worse", "same", "better", "gone")
    marked = sorted((f for f in report.findings if f.baseline in order), key=lambda f: order.index(f.baseline or ""))
    rows = ((f.baseline or "", f.severity, safe(f.title), thousands(f.count), f.accepted_until or "") for f in marked)
    columns = (("Mark", ""), ("Severity", ""), ("Finding", LONG), ("Times now", NUM), ("Accepted until", ""))
    return listing("Findings against the baseline", columns, rows, "finding")


def _percentiles(one: Latency) -> tuple[str, str, str]:
    return _ms(one.p50), _ms(one.p95), _ms(one.p99)


def _ms(value: float | None) -> str:
    return "–" if value is None or value != value else ms_text(value)


def _number(value: object, digits: int) -> str:
    """A number; a dash for none, and for one that is not a number."""
    return "–" if value is None or value != value else number_text(value, digits)


def _whole(value: float) -> str:
    return _number(value, 0)


def _one(value: float) -> str:
    return _number(value, 1)


def _two(value: float) -> str:
    return _number(value, 2)


def _four(value: float) -> str:
    return _number(value, 4)


def _name(value: object) -> str:
    return "–" if value is None else safe(str(value), NAME_CHARS)


def _cells(frame: pd.DataFrame, shown: Mapping[str, Callable[..., str]]) -> Iterable[tuple[str, ...]]:
    """The rows of a frame as text. shown: the columns wanted, each with how a value of it is written."""
    return zip(*([write(value) for value in frame[name].tolist()] for name, write in shown.items()), strict=True)


def _time(begin: datetime) -> str:
    return f"{begin:%Y-%m-%d %H:%M:%S}"

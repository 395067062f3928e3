"""The numbers block of the text report: returns, quotes, latency, memory and compile modes on a few lines."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recompile_watch.core.analysis import Report
from recompile_watch.core.series import Latency, StrategyRow
from recompile_watch.report.safe import safe
from recompile_watch.report.times import count_text

_LABEL = 11
_NAME_CHARS = 18
_PAIR_CHARS = 18  # "-0.0977 -12.07" and its gaps
_MAX_ITEMS = 12
_Cells = dict[str, dict[str, StrategyRow]]


def print_numbers(console: Console, report: Report) -> None:
    """Prints what the series hold; nothing where they hold nothing."""
    series = report.series
    latest = latest_rows(series.strategy_return)
    if latest:
        _print_strategies(console, latest)
    lines = [
        ("quotes", _quotes(series.synthetic_quotes, series.real_quotes)),
        ("latency", _latency(series.inference)),
        ("GPU peak", _memory(report)),
        ("compiled", _modes(report)),
    ]
    shown = [(label, text) for label, text in lines if text]
    if shown and latest:
        console.print()
    for label, text in shown:
        line = Table.grid(padding=(0, 1))
        line.add_column(width=_LABEL)
        line.add_column()
        line.add_row(Text(label, style="bold"), Text(text))
        console.print(line)


def latest_rows(rows: tuple[StrategyRow, ...]) -> _Cells:
    """The last row by symbol and strategy."""
    cells: _Cells = {}
    for row in rows:
        symbol = safe(str(row.values.get("symbol") or "?"), 12)
        cells.setdefault(symbol, {})[safe(str(row.values.get("strategy") or "?"), _NAME_CHARS)] = row
    return cells


def _print_strategies(console: Console, latest: _Cells) -> None:
    fits = max(1, (console.width - _NAME_CHARS - 2) // _PAIR_CHARS)
    if len(latest) <= fits:
        console.print(_wide_table(latest))
    else:
        console.print(_best_and_worst(latest, wide=console.width >= 90))


def _wide_table(latest: _Cells) -> Table:
    """Strategies down, symbols across, each with return and Sharpe."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("latest", width=_NAME_CHARS)
    for symbol in latest:
        table.add_column(Text(symbol), justify="right")
        table.add_column("Sharpe", justify="right", style="dim")
    strategies = list(dict.fromkeys(name for rows in latest.values() for name in rows))
    for strategy in strategies[:20]:
        cells = [Text(strategy)]
        for rows in latest.values():
            row = rows.get(strategy)
            cells += [_return(row), Text(number_text(row and row.values.get("sharpe"), 2))]
        table.add_row(*cells)
    return table


def _best_and_worst(latest: _Cells, *, wide: bool) -> Table:
    """A line a symbol, for a portfolio that is too wide for one table."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for name in ("latest", "best strategy", "Return", "Sharpe", *(("worst strategy", "Return", "Sharpe") if wide else ())):
        table.add_column(name, justify="right" if name in ("Return", "Sharpe") else "left")
    for symbol, rows in list(latest.items())[:25]:
        ranked = sorted(rows.items(), key=lambda item: -float_of(item[1].values.get("return")))
        cells = [Text(symbol)]
        for strategy, row in (ranked[0], ranked[-1]) if wide else (ranked[0],):
            cells += [Text(strategy), _return(row), Text(number_text(row.values.get("sharpe"), 2))]
        table.add_row(*cells)
    if len(latest) > 25:
        table.add_row(Text(f"… and {len(latest) - 25} symbols more"))
    return table


def _return(row: StrategyRow | None) -> Text:
    value = row.values.get("return") if row else None
    text = number_text(value, 4)
    return Text(text, style="red" if text.startswith("-") and len(text) > 1 else "green" if float_of(value) > 0 else "")


def number_text(value: object, digits: int) -> str:
    """A number with so many digits behind the point; a dash for what is none."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "-"


def float_of(value: object) -> float:
    """The number to rank by; what is none ranks last."""
    return float(value) if isinstance(value, int | float) and value == value else float("-inf")


def _quotes(synthetic: Mapping[str, int], real: Mapping[str, int]) -> str:
    parts = []
    for label, counts in (("synthetic", synthetic), ("real", real)):
        if counts:
            parts.append(f"{label} {sum(counts.values())} ({_items(f'{safe(symbol, 12)} {count}' for symbol, count in sorted(counts.items()))})")
    if synthetic and not real:
        parts.append("no real one")
    return ", ".join(parts)


def _items(texts: Iterable[str]) -> str:
    found = list(texts)
    more = len(found) - _MAX_ITEMS
    return ", ".join(found[:_MAX_ITEMS]) + (f", … {more} more" if more > 0 else "")


def _latency(latency: Latency) -> str:
    if not latency.n or latency.p50 is None or latency.p95 is None:
        return ""
    p99 = f", p99 {ms_text(latency.p99)}" if latency.p99 is not None else ""
    how = "derived from call counters, " if latency.derived else ""
    measured = f"({how}{count_text(latency.n, 'measurement')})"
    return f"p50 {ms_text(latency.p50)}, p95 {ms_text(latency.p95)}{p99} {measured}" if latency.n > 1 else f"{ms_text(latency.p50)} a call {measured}"


def ms_text(value: float) -> str:
    """``203 ms``, ``9.46 ms``."""
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _memory(report: Report) -> str:
    stages = [(stage, one) for stage, one in report.series.gpu_memory.items() if one.max_peak_mb is not None]
    stages.sort(key=lambda item: -(item[1].max_peak_mb or 0))
    return _items(f"{one.max_peak_mb:.1f} MB ({safe(stage, 30).replace('_', ' ')})" for stage, one in stages[:4])


def _modes(report: Report) -> str:
    return _items(safe(finding.title, 60) for finding in report.findings if finding.kind == "compile_mode")

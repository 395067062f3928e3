"""The series of a report as tables (pandas), ready to be drawn and listed. Names of a log are made safe here."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import isfinite

import pandas as pd

from recompile_watch.core.analysis import Report
from recompile_watch.core.evidence import shown_function
from recompile_watch.core.findings import Finding
from recompile_watch.core.timeline import LENGTHS, Timeline
from recompile_watch.report.safe import safe
from recompile_watch.report.times import moment_of

NAME_CHARS = 40
_PERCENTILES = ("p50", "p95", "p99")
_WANTED_SLICES = 120  # a bar for each of twice as many is thinner than a pixel on a narrow screen


@dataclass(frozen=True, slots=True)
class TimeTables:
    """The timeline by what it shows; each row begins at ``begin``, a time of the clock in ``zone``.

    length_s: of a slice. events: kind, n. latency: p50, p95, p99 in milliseconds, n. memory: model, peak_mb.
    marks: kind, model, n.
    """

    zone: str
    length_s: int
    events: pd.DataFrame
    latency: pd.DataFrame
    memory: pd.DataFrame
    marks: pd.DataFrame


def time_tables(report: Report) -> TimeTables:
    """The tables of a report's timeline, in the zone of the log where it has one only."""
    zone, name = _zone_of(report)
    timeline = report.timeline
    length_s = _drawn_length(timeline)
    events = [(s.begin_s // length_s * length_s, safe(kind, NAME_CHARS), n) for s in timeline.slices for kind, n in s.counts.items()]
    latency = [(_begin(s.begin_s, zone), s.latency.p50, s.latency.p95, s.latency.p99, s.latency.n) for s in timeline.slices if s.latency.n]
    memory = [
        (_begin(s.begin_s, zone), safe(model, NAME_CHARS), peak) for s in timeline.slices for model, peak in s.gpu_peak_mb.items() if isfinite(peak)
    ]
    marks = [(_begin(s.begin_s, zone), kind, safe(model, NAME_CHARS), n) for s in timeline.slices for (kind, model), n in s.marks.items()]
    counted = pd.DataFrame(events, columns=["begin", "kind", "n"]).groupby(["begin", "kind"], as_index=False).agg({"n": "sum"})
    counted["begin"] = pd.Series([_begin(begin_s, zone) for begin_s in counted["begin"].tolist()], dtype="datetime64[us]")
    return TimeTables(
        name, length_s, counted,
        pd.DataFrame(latency, columns=["begin", *_PERCENTILES, "n"]), pd.DataFrame(memory, columns=["begin", "model", "peak_mb"]),
        pd.DataFrame(marks, columns=["begin", "kind", "model", "n"]),
    )  # fmt: skip


def returns_table(report: Report) -> pd.DataFrame:
    """The latest row of each symbol and strategy in log order: return, sharpe, final_day, and how many rows there were."""
    rows = [
        (safe(str(row.values.get("symbol") or "?"), NAME_CHARS), safe(str(row.values.get("strategy") or "?"), NAME_CHARS),
         *(_number(row.values.get(name)) for name in ("return", "sharpe", "final_day")))
        for row in report.series.strategy_return
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["symbol", "strategy", "return", "sharpe", "final_day"])
    grouped = frame.groupby(["symbol", "strategy"], sort=False)
    return grouped.tail(1).merge(grouped.size().rename("rows").reset_index(), on=["symbol", "strategy"])


def quotes_table(report: Report) -> pd.DataFrame:
    """How many quotes of each symbol are real and synthetic, the symbols with most synthetic ones first."""
    series = report.series
    counted = [(safe(symbol, NAME_CHARS), n, 0) for symbol, n in series.real_quotes.items()]
    counted += [(safe(symbol, NAME_CHARS), 0, n) for symbol, n in series.synthetic_quotes.items()]
    frame = pd.DataFrame(counted, columns=["symbol", "real", "synthetic"]).groupby("symbol", as_index=False).sum()
    return frame.sort_values(["synthetic", "real", "symbol"], ascending=[False, False, True], ignore_index=True)


def limits_table(findings: list[Finding]) -> pd.DataFrame:
    """Functions that were compiled again, fullest first: function, place, recompiles, refused, entries, limit (NaN if unknown)."""
    rows = [
        (safe(shown_function(f.function or "?"), NAME_CHARS), safe(f"{f.file or ''}{'' if f.line_no is None else f':{f.line_no}'}", 200),
         f.count if f.kind == "recompile" else 0, f.refused, f.headroom.entries if f.headroom else None, f.headroom.limit if f.headroom else None)
        for f in findings
    ]  # fmt: skip
    columns = ["function", "place", "recompiles", "refused", "entries", "limit"]
    frame = pd.DataFrame(rows, columns=columns).astype({"entries": "float", "limit": "float"})
    grouped = frame.groupby(["function", "place"], as_index=False, sort=False)
    summed = grouped.agg({"recompiles": "sum", "refused": "sum", "entries": "max", "limit": "max"})
    summed["share"] = (summed["entries"] / summed["limit"]).fillna(-1.0)
    return summed.sort_values(["share", "recompiles", "function"], ascending=[False, False, True], ignore_index=True)


def _drawn_length(timeline: Timeline) -> int:
    """The length of the slices that are drawn: the timeline's own, or longer where there are gaps between many of them."""
    if not timeline.slices:
        return timeline.length_s
    span_s = timeline.slices[-1].begin_s - timeline.slices[0].begin_s
    return next((length_s for length_s in LENGTHS if length_s >= timeline.length_s and span_s <= length_s * _WANTED_SLICES), LENGTHS[-1])


def _zone_of(report: Report) -> tuple[tzinfo, str]:
    """The one zone in which the log's times are printed, else UTC; and its name."""
    times = [time for source in report.sources for time in (source.first_time, source.last_time) if time]
    offsets = {datetime.fromisoformat(time).utcoffset() for time in times}
    offset = next(iter(offsets)) if len(offsets) == 1 else timedelta()
    if not offset:
        return UTC, "UTC"
    return timezone(offset), f"{timezone(offset)}"


def _begin(begin_s: int, zone: tzinfo) -> datetime:
    return moment_of(begin_s, zone).replace(tzinfo=None)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None

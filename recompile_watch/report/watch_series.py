"""What the watch measured in the last 24 hours, beside the 7 days before: a line for each series, and the same as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recompile_watch.core.hourly import HOUR_S, UNKNOWN, Hour, Key
from recompile_watch.report.safe import safe

DAY_HOURS = 24
BEFORE_DAYS = 7
MAX_LINES = 40
_BARS = "▁▂▃▄▅▆▇█"
# What a series is called, how its numbers are written, in the order in which they are shown.
_SORTS: Mapping[str, tuple[str, str]] = {
    "limit_hits": ("recompile limit hits of", "{:.0f}"),
    "recompiles": ("recompiles of", "{:.0f}"),
    "latency_ms": ("latency of", "{:.0f} ms"),
    "memory_mb": ("GPU memory of", "{:.0f} MB"),
    "synthetic_share": ("made-up quotes of", "{:.0%}"),
    "return": ("return of", "{:+.2%}"),
}
_COUNTED = ("limit_hits", "recompiles")


@dataclass(frozen=True, slots=True)
class Line:
    """One series. last: of the last 24 hours, before: of the 7 days before; None where nothing was measured. hours: the last 24,
    the oldest first."""

    what: str
    subject: str
    last: Hour | None
    before: Hour | None
    hours: tuple[Hour | None, ...]


def first_hour(now: float) -> int:
    """The first hour that is shown at a time in epoch seconds."""
    return int(now // HOUR_S) - DAY_HOURS * (BEFORE_DAYS + 1) + 1


def lines_of(hours: Mapping[Key, Hour], *, now: float) -> list[Line]:
    """The series of the stored hours, the most telling first."""
    border = int(now // HOUR_S) - DAY_HOURS + 1
    names = dict.fromkeys((what, subject) for _, what, subject in hours if what in _SORTS)
    found = []
    for what, subject in sorted(names, key=lambda name: (list(_SORTS).index(name[0]), name[1])):
        of_day = tuple(hours.get((hour, what, subject)) for hour in range(border, border + DAY_HOURS))
        of_week = [hours.get((hour, what, subject)) for hour in range(first_hour(now), border)]
        found.append(Line(what, subject, _together(of_day), _together(of_week), of_day))
    return found


def series_to_json(lines: Iterable[Line]) -> list[dict[str, object]]:
    """The series as ``status --json`` has them: units are in the names, ``hours`` has the typical value of each of the last 24."""
    return [
        {
            "what": line.what, "subject": line.subject, "last_24h": _window(line.last), "before_7d": _window(line.before),
            "hours": [None if hour is None else _typical(line.what, hour) for hour in line.hours],
        }
        for line in lines
    ]  # fmt: skip


def series_text(lines: Sequence[Line]) -> str:
    """The series for a person; empty without any."""
    if not lines:
        return ""
    shown = [(f"{_SORTS[line.what][0]} {_subject(line)}", _last_text(line), _before_text(line), _picture(line)) for line in lines[:MAX_LINES]]
    widths = [max(len(row[column]) for row in shown) for column in range(3)]
    text = ["last 24 hours, and the 7 days before:"]
    text += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + f"  {row[3]}" for row in shown]
    text += [f"  and {len(lines) - MAX_LINES} more; see status --json"] if len(lines) > MAX_LINES else []
    return "\n".join(text) + "\n"


def _together(hours: Iterable[Hour | None]) -> Hour | None:
    whole = Hour()
    for hour in hours:
        if hour is not None:
            whole.merge(hour)
    return whole if whole.n else None


def _typical(what: str, hour: Hour) -> float | None:
    """The value that stands for many: how many of what is counted, the median where it is kept, else the mean."""
    return float(hour.n) if what in _COUNTED else hour.median or hour.mean


def _window(hour: Hour | None) -> dict[str, object] | None:
    return None if hour is None else {"n": hour.n, "mean": hour.mean, "median": hour.median, "min": hour.low, "max": hour.high}


def _subject(line: Line) -> str:
    return "an unknown model" if line.subject == UNKNOWN else safe(line.subject, 60)


def _last_text(line: Line) -> str:
    return "none seen" if line.last is None else _number(line.what, _typical(line.what, line.last))


def _before_text(line: Line) -> str:
    if line.before is None:
        return "(before: nothing known)"
    if line.what in _COUNTED:
        return f"(before: {line.before.n / BEFORE_DAYS:.1f} a day)"
    return f"(before: {_number(line.what, _typical(line.what, line.before))})"


def _number(what: str, value: float | None) -> str:
    return "unknown" if value is None else _SORTS[what][1].format(value)


def _picture(line: Line) -> str:
    """A bar for each hour, from the least to the greatest of the day; a blank where nothing was measured."""
    values = [None if hour is None else _typical(line.what, hour) for hour in line.hours]
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, span = (0.0 if line.what in _COUNTED else min(known)), max(known)
    span -= low
    bars = [" " if value is None else _BARS[round((value - low) / span * (len(_BARS) - 1)) if span else 0] for value in values]
    return "".join(bars).rstrip()

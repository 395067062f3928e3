"""Call counters: how many forecasts a process has made, as the bot's usage lines show it, many times a second.

The latency of a forecast comes from two of them that lie ten seconds or more apart (``context`` does that). Most lie
nearer: ``telling`` leaves those out where the lines are read, so that few go on.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.prefix_grammar import Stamp

DERIVE_MIN_S = 10.0  # the bot's clock has seconds: over ten of them a rate is right to 10 %
_HOUR = 13  # as many characters of a time tell its hour, in which a local clock does not change

# Offset, time as printed, calls, model, symbol, (number of samples, samples per batch).
# A plain tuple, of which many go from one process to another.
Count = tuple[int, Stamp, int, str | None, str | None, tuple[int | None, int | None]]


class _Window(NamedTuple):
    """Where a measured window began for certain: form and text of that line's time, the moment it shows, and its calls."""

    stamp: Stamp
    moment: datetime
    calls: int


class _Run:
    """The lines of one counter: the latest one's time and symbol, the window if it is known, the last line left out."""

    __slots__ = ("last", "left_out", "window")

    def __init__(self) -> None:
        self.last: tuple[Stamp, str | None] | None = None
        self.window: _Window | None = None
        self.left_out: Count | None = None

    def leaves_out(self, count: Count) -> bool:
        """True when the line changes nothing but which line is the latest."""
        _, stamp, calls, _, symbol, _ = count
        moment = _moment(stamp.text)
        if moment is None:
            return False
        before, self.last = self.last, (stamp, symbol)
        if before == self.last:  # of the lines that show one second only the first counts
            return True
        if before is None or before[1] != symbol:  # a new symbol always begins a window
            self.window = None if before is None else _Window(stamp, moment, calls)
            self.left_out = None
            return False
        if self.window is None or calls < self.window.calls or not _lies_near(stamp, moment, self.window):
            self.window = None
            return False
        self.left_out = count
        return True


def _lies_near(stamp: Stamp, moment: datetime, window: _Window) -> bool:
    """True when it is certain that less than ten seconds have passed."""
    is_same_hour = stamp.form == window.stamp.form and stamp.text[:_HOUR] == window.stamp.text[:_HOUR]
    return is_same_hour and (moment - window.moment).total_seconds() < DERIVE_MIN_S


def telling(counts: Iterable[Count]) -> list[Count]:
    """The counters, in log order, without those that could never tell a latency."""
    runs: dict[tuple[int | None, int | None], _Run] = {}
    found: list[Count] = []
    for count in counts:
        run = runs.get(count[5]) or runs.setdefault(count[5], _Run())
        if run.leaves_out(count):
            continue
        if run.left_out is not None:  # it is the latest line before this one
            found.append(run.left_out)
            run.left_out = None
        found.append(count)
    return found


def derived_latency(event: Event, elapsed_s: float, calls: int, symbol: object) -> Event:
    """Milliseconds a call, from the process-lifetime call counter in the usage lines."""
    extra = {
        **EXTRA_FIELDS["inference"], "model": event.extra.get("model"), "symbol": symbol,
        "milliseconds": round(elapsed_s * 1000 / calls, 3), "derived": True, "calls": calls,
    }  # fmt: skip
    return event._replace(kind="inference", reasons=(), extra=extra)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None

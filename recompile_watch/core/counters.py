"""Call counters: how many forecasts a process has made, as the bot's usage lines show it, many times a second.

The latency of a forecast comes from two of them that lie ten seconds or more apart (``CallCounters``). Most lie
nearer: ``telling`` leaves those out where the lines are read, so that few go on.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.prefix_grammar import Stamp

DERIVE_MIN_S = 10.0  # the bot's clock has seconds: over ten of them a rate is right to 10 %
DERIVE_MAX_S = 900.0  # the bot's own idle time (MARKETSIM_TOTO_KEEPALIVE_SECONDS): behind it the pipeline is dropped, and nothing was called
DERIVE_MIN_CALLS = 2
DERIVE_MIN_CALLS_BETWEEN = 20
MAX_COUNTERS = 1_024  # processes and settings whose calls are counted: a log of years has seen many processes
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


class _Measured(NamedTuple):
    """Where a call counter stood when the measured window began. last: the time and symbol of its latest line."""

    calls: int
    since: datetime
    symbol: object
    last: tuple[str, object]


class CallCounters:
    """The measured window of each process and its settings."""

    def __init__(self) -> None:
        self._windows: dict[tuple[object, ...], _Measured] = {}

    def state(self) -> list[object]:
        """All windows, as JSON values."""
        return [[list(key), one.calls, one.since.isoformat(), one.symbol, list(one.last)] for key, one in self._windows.items()]

    def resume(self, state: Iterable[Any]) -> None:
        """Goes on where an earlier reading stopped. Raises TypeError or ValueError when it is no such state."""
        for key, calls, since, symbol, last in state:
            self._windows[tuple(key)] = _Measured(calls, datetime.fromisoformat(since), symbol, (last[0], last[1]))

    def drop(self, pid: int | None) -> None:
        """Begins all windows of a process anew: what a load and the time between two analyses take is no latency."""
        self._windows = {key: one for key, one in self._windows.items() if pid is not None and key[0] not in (None, pid)}

    def calls(self, key: tuple[object, ...], count: int, time: str, symbol: object) -> tuple[float, int, object] | None:
        """Seconds, calls and symbol of the window of this counter, once it is long enough; then a new one begins.

        The line with a new symbol ends the window of the one before. Between two symbols the bot does other work, which
        only many calls outweigh. Of the lines that show one second only the first counts.
        """
        first, last = self._windows.get(key), (time, symbol)
        if first is not None and first.last == last:
            return None
        now = datetime.fromisoformat(time)
        if first is None or count < first.calls:
            self._begin(key, _Measured(count, now, symbol, last))
            return None
        elapsed_s, calls = (now - first.since).total_seconds(), count - first.calls
        is_enough = DERIVE_MIN_S <= elapsed_s <= DERIVE_MAX_S and calls >= (DERIVE_MIN_CALLS if symbol == first.symbol else DERIVE_MIN_CALLS_BETWEEN)
        is_over = is_enough or elapsed_s > DERIVE_MAX_S or symbol != first.symbol
        self._begin(key, _Measured(count, now, symbol, last) if is_over else first._replace(last=last))
        return (elapsed_s, calls, first.symbol) if is_enough else None

    def _begin(self, key: tuple[object, ...], window: _Measured) -> None:
        """Keeps a window as the latest; beyond the bound the one that was kept longest ago goes."""
        self._windows.pop(key, None)
        self._windows[key] = window
        if len(self._windows) > MAX_COUNTERS:
            del self._windows[next(iter(self._windows))]


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

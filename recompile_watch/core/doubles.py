"""Events that stand in two sources: what a bot prints, it writes into a log of its own as well, and a service keeps both.

Each of them counts once. That needs more than one line that two sources share, for two programs of a kind may well say the same in one second.
"""

from recompile_watch.core.analysis import Analysis
from recompile_watch.core.context import Item
from recompile_watch.core.events import TORCH_KINDS, Event
from recompile_watch.core.sightings import TableRows

MAX_KNOWN = 100_000  # events that are remembered, of all sources; what comes behind them counts wherever it stands
MAX_HELD = 10_000  # events that wait until it is known whether their source holds the lines of another
SAME_SHARE = 0.8  # of the events of one kind in one hour that two sources could share; clocks at midnight and torn lines take some
_HOUR = len("2025-10-30T09")
_SECOND = len("2025-10-30T09:07:15")

_Hour = tuple[str, str]  # kind and hour


class Doubles:
    """Hands the items of several sources, one source after the other, to an analysis: an event of several sources once.

    An event is the same when all that it says is, and its time. Of equal events in one source the first is the same as the first in the
    other, the second as the second. Only a source that shares most of what both hold of a kind in an hour holds the same lines. An event
    of torch's own tells that only when its time has fractions of a second: processes that work in step share the seconds.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._paths: list[str] = []
        self._known: dict[int, dict[int, int]] = {}
        self._hours: list[dict[_Hour, int]] = []
        self._shared: dict[int, int] = {}
        self._held: list[tuple[Event | TableRows, list[int]]] = []

    def take(self, item: Item) -> None:
        """Takes the next item; metric lines that were added up count wherever they stand."""
        if not isinstance(item, Event | TableRows):
            self._analysis.take(item)
            return
        if not self._paths or self._paths[-1] != item.source:
            self.end()
            self._paths.append(item.source)
            self._hours.append({})
        others = self._others(item)
        if not others:
            self._analysis.take(item)
            return
        if isinstance(item, Event):
            self._analysis.pass_over(item)
        else:
            self._analysis.span(item.source).see(item.time, item.span[0], item.time, item.span[1] - 1)
        self._held.append((item, others))
        if len(self._held) >= MAX_HELD:
            self._settle()

    def end(self) -> None:
        """The source is complete."""
        self._settle()
        self._shared.clear()

    def _others(self, event: Event | TableRows) -> list[int]:
        """The sources before this one that hold the same event or table; remembers it."""
        source, key = len(self._paths) - 1, _key(event)
        counts = self._known.get(key)
        if counts is None:
            if len(self._known) >= MAX_KNOWN:
                return []
            counts = self._known[key] = {}
        n = counts[source] = counts.get(source, 0) + 1
        others = [other for other, count in counts.items() if other != source and count >= n]
        if is_telling(event):
            hour, hours = (event.kind, str(event.time)[:_HOUR]), self._hours[source]
            hours[hour] = hours.get(hour, 0) + 1
            for other in others:
                self._shared[other] = self._shared.get(other, 0) + 1
        return others

    def _settle(self) -> None:
        """Decides about what is held."""
        same = {other for other in self._shared if self._is_same(other)}
        for event, others in self._held:
            other = next((one for one in others if one in same), None)
            if other is None:
                self._analysis.take(event)
            else:
                self._analysis.span(event.source).count_in(self._paths[other], 1 if isinstance(event, Event) else len(event.at))
        self._held.clear()

    def _is_same(self, other: int) -> bool:
        mine, theirs = self._hours[-1], self._hours[other]
        able = sum(min(n, theirs[hour]) for hour, n in mine.items() if hour in theirs)
        return self._shared[other] >= SAME_SHARE * able


def is_telling(event: Event | TableRows) -> bool:
    """True for what two processes hardly share."""
    return event.time is not None and (event.kind not in TORCH_KINDS or _has_fraction(event.time))


def _has_fraction(time: str) -> bool:
    return time[_SECOND : _SECOND + 1] == "."


def _key(event: Event | TableRows) -> int:
    """What is the same for one event or table in two sources; a carrier may name the process in one of them."""
    if isinstance(event, TableRows):
        return hash((event.kind, event.time, repr(event.fixed), repr(event.columns)))
    pid = event.pid if event.kind in TORCH_KINDS and event.time is not None and _has_fraction(event.time) else None
    extra = tuple(None if value != value else value for value in event.extra.values())  # nan is not itself
    return hash((event.kind, event.time, event.rank, pid, *event[7:12], extra))

"""Two clocks, and which moment an event belongs to.

Wall time is what the machine's clock shows; it may jump. Steady time is wall time without its jumps and without the
time in which nobody watched, so that nothing is called over, late or silent because of them.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from recompile_watch.core.events import Event
from recompile_watch.core.runs import Run, Stretch
from recompile_watch.core.shelves import Shelf, always

MAX_STREAMS = 2_000
OLDEST = 946_684_800.0  # 2000-01-01: earlier times come from clocks that were never set
FUTURE_S = 60.0  # how far a log's clock may be ahead
OVERSLEPT_S = 300.0  # so late after what was due, the machine slept or its clock was set
BACK_S = 5.0  # a smaller step back is the ordinary work of a time service


@dataclass(slots=True)
class Clock:
    """wall: epoch seconds. lost: seconds of wall time that were not observed; steady time is the difference."""

    wall: float
    lost: float = 0.0

    @property
    def steady(self) -> float:
        """Seconds on the steady clock."""
        return self.wall - self.lost

    def run_to(self, wall: float) -> None:
        """Time went by while somebody watched; never backwards."""
        self.wall = max(self.wall, wall)

    def jump_to(self, wall: float) -> None:
        """The wall clock shows something else, and the steady clock stands still."""
        self.lost += wall - self.wall
        self.wall = wall


@dataclass(slots=True)
class LastTime:
    """The time of a stream's latest dated event, in epoch seconds."""

    at: float


class DatedRuns(NamedTuple):
    """The runs of a stretch, the one that ends last at the end, each with the moments of its events in epoch seconds."""

    runs: list[tuple[Run, list[float]]]

    def first(self) -> float:
        """The moment of the first event."""
        return min((run.offsets[0], times[0]) for run, times in self.runs)[1]

    def latest(self, offset: int | None = None) -> float:
        """The latest moment of all events, or of those up to an offset, at which one begins."""
        if offset is None:
            return max(max(times) for _, times in self.runs)
        return max(max(times[: bisect_right(run.offsets, offset)], default=0.0) for run, times in self.runs)


class LogTimes:
    """The moment of each event by the log's own time, in epoch seconds."""

    def __init__(self, parts: Mapping[str, object]) -> None:
        self.shelf = Shelf("stream", LastTime, parts, MAX_STREAMS, always)
        self._memo: tuple[str, float | None] = ("", None)

    def of(self, event: Event, stream: str, reading: float, now: float) -> float:
        """The event's own time, else that of the dated event before it in its stream, else the time of reading.

        A time before the year 2000 or in the future is no time.
        """
        at = self.printed(event.time, now)
        last = self.shelf.get(stream)
        if at is None:
            return last.at if last is not None and event.time is None and last.at <= now + FUTURE_S else reading
        if last is None or last.at != at:
            self.shelf.put(stream, LastTime(at))
        return at

    def of_stretch(self, stretch: Stretch, stream: str, now: float) -> DatedRuns | None:
        """The moments of the events of a stretch; None where one of them has no own time."""
        found: list[tuple[Run, list[float]]] = []
        for run in sorted(stretch.runs, key=lambda run: run.offsets[-1]):
            known = {time: self.printed(time, now) for time in dict.fromkeys(run.times)}
            moments = [at for at in map(known.__getitem__, run.times) if at is not None]
            if len(moments) < run.n:
                return None
            found.append((run, moments))
        last, at = self.shelf.get(stream), found[-1][1][-1]
        if last is None or last.at != at:
            self.shelf.put(stream, LastTime(at))
        return DatedRuns(found)

    def printed(self, time: str | None, now: float) -> float | None:
        """The time that the log shows for an event, None where it shows none that can be true."""
        at = self._parsed(time) if time is not None else None
        return at if at is not None and OLDEST <= at <= now + FUTURE_S else None

    def _parsed(self, text: str) -> float | None:
        if self._memo[0] != text:
            self._memo = (text, epoch_of(text))
        return self._memo[1]


def epoch_of(text: str) -> float | None:
    """Epoch seconds of an ISO 8601 time with an offset; None when it is none."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.timestamp() if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None

"""Counts in a window of time, by the log's own time, in bounded memory."""

from bisect import insort
from dataclasses import dataclass, field

from recompile_watch.core.moments import FUTURE_S

MAX_COUNT = 1_000
LATENESS_S = 300.0  # an event so much older than the window's newest one still counts; logs of several writers are a little out of order


@dataclass(slots=True)
class Recent:
    """The times of the newest events, in order, in epoch seconds; never more than are needed to judge."""

    times: list[float] = field(default_factory=list)

    def add(self, at: float, count: int, window_s: float, now: float) -> bool:
        """Takes an event. True when the newest ``count`` events lie within ``window_s``, both ends included.

        Times in the future stem from a clock that was wrong, and are forgotten.
        """
        count = min(count, MAX_COUNT)
        if self.times and self.times[-1] > now + FUTURE_S:
            self.times = [time for time in self.times if time <= now + FUTURE_S]
        newest = self.times[-1] if self.times else at
        if at < newest - window_s - LATENESS_S:
            return False
        insort(self.times, at)
        del self.times[:-count]
        return len(self.times) == count and self.times[-1] - self.times[0] <= window_s

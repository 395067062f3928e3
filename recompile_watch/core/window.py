"""Events between two moments, as ``--since`` and ``--until`` ask for."""

from collections.abc import Sequence
from datetime import datetime

from recompile_watch.core.events import Event


class TimeWindow:
    """Keeps the events of one source from ``since`` on and before ``until``; both aware of their zone, None is open.

    An event without a time happened at the time of the dated event before it; before the first dated one it is kept.
    """

    def __init__(self, since: datetime | None, until: datetime | None) -> None:
        self._since, self._until = since, until
        self._is_inside = True
        self._time = ""
        self.outside = 0

    def inside(self, events: Sequence[Event]) -> list[Event]:
        """Those of ``events``, in log order, that lie inside; the others are counted in ``outside``."""
        kept = [event for event in events if self._keeps(event)]
        self.outside += len(events) - len(kept)
        return kept

    def _keeps(self, event: Event) -> bool:
        if event.time is not None and event.time != self._time:
            self._time = event.time
            at = datetime.fromisoformat(event.time)
            self._is_inside = (self._since is None or at >= self._since) and (self._until is None or at < self._until)
        return self._is_inside

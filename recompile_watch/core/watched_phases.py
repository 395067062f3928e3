"""The phase of each event of the compiler, remembered over restarts."""

from collections.abc import Mapping
from datetime import UTC, datetime

from recompile_watch.core.events import TORCH_KINDS, Event
from recompile_watch.core.phases import MARK_KINDS, Mark, Phases, Progress
from recompile_watch.core.shelves import Shelf, always

MAX_STREAMS = 1_000
HAS_PHASE = TORCH_KINDS | {"forecast_failure", "out_of_memory", "cpu_fallback"}


class WatchedPhases:
    """``Phases`` whose state lies on shelves."""

    def __init__(self, parts: Mapping[str, object]) -> None:
        self.marks = Shelf("mark", Mark, parts, MAX_STREAMS, always)
        self.streams = Shelf("progress", Progress, parts, MAX_STREAMS, always)
        self._phases = Phases()
        self._phases.marks.update(self.marks.items())
        for key, progress in self.streams.items():
            pid, _, source = key.partition("|")
            self._phases.streams[source, int(pid) if pid else None] = progress

    def of(self, event: Event, at: float) -> str | None:
        """The phase of an event, None while it is not known; takes in what it tells of the compiler's work."""
        kind, source = event.kind, event.source
        moment = datetime.fromtimestamp(at, UTC) if event.time is not None else None
        if len(self._phases.marks) + len(self._phases.streams) > len(self.marks) + len(self.streams):
            self._forget_what_faded()
        if kind in MARK_KINDS:
            self._phases.mark(kind, source, moment)
            self.marks.put(source, self._phases.marks[source])
            return None
        if kind not in HAS_PHASE:
            return None
        _, phase = self._phases.phase_at(kind, source, event.pid, moment)
        for pid in {event.pid, None}:
            self._keep(source, pid)
        return phase

    def _forget_what_faded(self) -> None:
        """The shelves decide what is remembered."""
        for source in self._phases.marks.keys() - set(self.marks):
            del self._phases.marks[source]
        for source, pid in list(self._phases.streams):
            if _key(source, pid) not in self.streams:
                del self._phases.streams[source, pid]

    def _keep(self, source: str, pid: int | None) -> None:
        progress = self._phases.streams.get((source, pid))
        if progress is None:
            return
        key = _key(source, pid)
        if key not in self.streams and len(self.streams) >= MAX_STREAMS:
            oldest_pid, _, oldest_source = next(iter(self.streams)).partition("|")
            self._phases.streams.pop((oldest_source, int(oldest_pid) if oldest_pid else None), None)
        self.streams.put(key, progress)


def _key(source: str, pid: int | None) -> str:
    return f"{'' if pid is None else pid}|{source}"

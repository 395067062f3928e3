"""Warm-up or steady state: in which phase of its process an event of the compiler happened.

A model load starts a warm-up; a finished warm-up, or a minute of log time in which nothing was compiled, starts the
steady state. What came before the first of these is unknown.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

Stream = tuple[str, int | None]
QUIET = timedelta(seconds=60)
MAX_STREAMS = 10_000
MARK_KINDS = frozenset({"model_load", "warmup_done"})
# What shows the compiler at work; errors at run time, such as an overwritten output, do not.
ACTIVITY_KINDS = frozenset(
    {"recompile", "recompile_limit_hit", "recompile_limit_error", "graph_break", "cudagraph_skip", "compile_error", "compile_time"}
)


@dataclass(slots=True)
class Mark:
    """The last model load or end of warm-up of a source. number: how many there were."""

    number: int
    phase: str
    at: datetime | None


@dataclass(slots=True)
class Progress:
    """One process of one source. phase: None while only what came before this part of the log could tell.

    first: its first dated event while the phase was None. last: its last sign of compiling. mark: the number of the
    mark already taken in.
    """

    mark: int = 0
    phase: str | None = None
    first: datetime | None = None
    last: datetime | None = None


class Phases:
    """The phases of all processes, fed in log order."""

    def __init__(self) -> None:
        self.marks: dict[str, Mark] = {}
        self.streams: dict[Stream, Progress] = {}
        self._loads: dict[tuple[str, str], int] = {}

    def mark(self, kind: str, source: str, at: datetime | None, model: object = None) -> None:
        """Takes a ``model_load`` or ``warmup_done``. model: its name, where the line has one."""
        before = self.marks.get(source)
        if kind == "model_load" and isinstance(model, str):
            self._add_loads(source, model, 1)
        phase = "warmup" if kind == "model_load" else "steady"
        self.marks[source] = Mark(before.number + 1 if before else 1, phase, at)

    def phase_at(self, kind: str, source: str, pid: int | None, at: datetime | None) -> tuple[Stream, str | None]:
        """The phase of an event, and the stream it belongs to; None while it is not known yet.

        Lines without a process, such as the bot's own, belong to a stream that sees all activity of the source.
        """
        if pid is not None:
            self._step(kind, source, None, at)
        return self._step(kind, source, pid, at)

    def _step(self, kind: str, source: str, pid: int | None, at: datetime | None) -> tuple[Stream, str | None]:
        stream = (source, pid)
        progress = self.streams.get(stream)
        if progress is None:
            if len(self.streams) >= MAX_STREAMS:
                stream = (source, None)
            progress = self.streams.setdefault(stream, Progress())
        if self.marks:
            self._catch_up(source, progress)
        if at is not None:
            if progress.last is not None and at - progress.last >= QUIET:
                progress.phase = "steady"
            if progress.phase is None and progress.first is None:
                progress.first = at
            if kind in ACTIVITY_KINDS:
                progress.last = at
        return stream, progress.phase

    def loads(self) -> dict[str, int]:
        """How often each model was loaded, by the source that shows most of it: a bot prints the same line to several."""
        most: dict[str, int] = {}
        for (_, model), count in self._loads.items():
            most[model] = max(count, most.get(model, 0))
        return most

    def merge(self, later: "Phases") -> dict[Stream, str | None]:
        """Takes in the part of the log that follows; what its undecided streams turn out to be."""
        for (source, model), count in later._loads.items():
            self._add_loads(source, model, count)
        resolved: dict[Stream, str | None] = {}
        for stream, progress in later.streams.items():
            resolved[stream] = self._resolve(stream, progress)
        for source, mark in later.marks.items():
            before = self.marks.get(source)
            self.marks[source] = Mark(mark.number + (before.number if before else 0), mark.phase, mark.at)
        return resolved

    def _add_loads(self, source: str, model: str, count: int) -> None:
        if (source, model) in self._loads or len(self._loads) < MAX_STREAMS:
            self._loads[source, model] = self._loads.get((source, model), 0) + count

    def _resolve(self, stream: Stream, follows: Progress) -> str | None:
        """Continues one stream with what happened to it in the later part."""
        mine = self.streams.setdefault(stream, Progress())
        self._catch_up(stream[0], mine)
        base = mine.phase
        if follows.first is not None and mine.last is not None and follows.first - mine.last >= QUIET:
            base = "steady"
        if base is None and mine.first is None:
            mine.first = follows.first
        mine.phase = follows.phase or base
        mine.last = follows.last or mine.last
        mine.mark += follows.mark
        return base

    def _catch_up(self, source: str, progress: Progress) -> None:
        mark = self.marks.get(source)
        if mark is not None and mark.number != progress.mark:
            progress.mark, progress.phase = mark.number, mark.phase
            progress.last = mark.at or progress.last

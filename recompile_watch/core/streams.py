"""A stream: the generations of one rotated log, read as one.

A record may begin in ``bot.log.1`` and end in the new ``bot.log``, and a writer may go on in the rotated file while the
new one is read. So all bytes of a stream go through one reading, in the order of their arrival, and a table of segments
tells for each byte in which generation, and where in it, it stands.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from recompile_watch.core.bulk import Bulk
from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import Event
from recompile_watch.core.live import LiveLog, LiveTrace, Safe, live_reading
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.runs import Stretch
from recompile_watch.core.scan import Matcher
from recompile_watch.core.times import TimeOptions


class Piece(NamedTuple):
    """Bytes of one generation. offset, line: place in the file of its first byte, which begins a line."""

    generation: int
    offset: int
    line: int
    payload: bytes


class Position(NamedTuple):
    """How far a generation is understood: everything in front of ``offset``. lines: complete lines in front of it."""

    generation: int
    offset: int
    lines: int


class Seen(NamedTuple):
    """An event, or a stretch of them, with its place in the file, and the generation that holds it."""

    event: Event | Stretch
    generation: int


@dataclass(slots=True)
class _Segment:
    """A run of bytes of one generation. start, start_line: its place in the stream; offset, line: its place in the file."""

    start: int
    start_line: int
    generation: int
    offset: int
    line: int
    size: int = 0
    lines: int = 0

    @property
    def end(self) -> int:
        return self.start + self.size

    def understood(self, safe: Safe) -> Position:
        """How far it is understood when everything in front of ``safe`` is."""
        offset, line = safe
        if offset >= self.end:
            return Position(self.generation, self.offset + self.size, self.line - 1 + self.lines)
        return Position(self.generation, self.offset + max(offset - self.start, 0), self.line - 1 + max(line - self.start_line, 0))

    def until(self, safe: Safe) -> "_Segment":
        """The part of it in front of ``safe``."""
        offset, line = safe
        if offset >= self.end:
            return self
        return replace(self, size=max(offset - self.start, 0), lines=max(line - self.start_line, 0))


class Stream:
    """The reading of one stream. A ``Stream`` made of its ``state`` goes on at its ``positions``."""

    def __init__(
        self, source: str, rules: Ruleset, matcher: Matcher | None, state: Mapping[str, Any] | None = None, *, bulk: Bulk | None = None
    ) -> None:
        """bulk: what comes in stretches; None for events only. Raises StoreError when ``state`` is damaged."""
        self._source, self._rules, self._matcher, self._bulk = source, rules, matcher, bulk
        self._reading: LiveLog | LiveTrace | None = None
        self._saved = state
        self._segments: list[_Segment] = []
        self._end: Safe = 0, 1
        self._is_mid_line = False
        if state is not None:
            try:
                self._segments = [_Segment(**segment) for segment in state["segments"]]
                self._end = int(state["end"][0]), int(state["end"][1])
            except (KeyError, TypeError, ValueError, IndexError) as error:
                raise StoreError(f"{source}: the saved state of its reading is damaged ({error!r})") from None

    def feed(self, piece: Piece, options: TimeOptions) -> list[Seen]:
        """Takes the next bytes that arrived, and what their times mean; the events that are certain now."""
        if not piece.payload:
            return []
        if self._reading is None:
            saved = None if self._saved is None else self._saved["reading"]
            self._reading = live_reading(self._source, self._rules, self._matcher, options, piece.payload, saved, self._bulk)
        events = self._begin_segment(piece, self._reading) if self._is_elsewhere(piece) else []
        return self._placed(events + self._fed(piece.payload, self._reading, self._segments[-1]))

    def finish(self, generation: int) -> list[Seen]:
        """Nothing more comes of this generation: a last line without its newline is a whole one."""
        if self._reading is None or not self._is_mid_line or self._segments[-1].generation != generation:
            return []
        return self._placed(self._fed(b"\n", self._reading, None))

    def settle(self) -> list[Seen]:
        """Nothing more comes for now: what was waiting becomes events."""
        return [] if self._reading is None else self._placed(self._reading.settle())

    @property
    def lines(self) -> int:
        """Complete lines that arrived, since some moment before the first of this object."""
        return self._end[1] - 1

    @property
    def is_settled(self) -> bool:
        """True when no record waits for lines to come."""
        return self._reading is None or self._reading.is_settled

    def positions(self) -> dict[int, Position]:
        """How far each generation is understood, of those that ``forget`` has not dropped."""
        safe = self._safe()
        found: dict[int, Position] = {}
        stopped: set[int] = set()
        for segment in self._segments:
            if segment.generation not in stopped:
                found[segment.generation] = segment.understood(safe)
                if safe[0] < segment.end:
                    stopped.add(segment.generation)
        return found

    def state(self) -> Mapping[str, object] | None:
        """What a reading that goes on at ``positions`` must know, as JSON values; None before the first line."""
        if self._reading is None:
            return self._saved
        safe = self._safe()
        parts = [segment.until(safe) for segment in self._segments if segment.end > self._reading.waits_from]
        return {"reading": self._reading.state(), "end": list(safe), "segments": [asdict(part) for part in parts if part.size]}

    def forget(self) -> None:
        """Drops the places of what is understood and given out."""
        if self._reading is not None:
            border = self._reading.waits_from
            self._segments = [segment for segment in self._segments if segment.end > border] or self._segments[-1:]

    def _safe(self) -> Safe:
        return self._end if self._reading is None else self._reading.safe

    def _is_elsewhere(self, piece: Piece) -> bool:
        """True when the bytes do not follow the last ones of the same generation."""
        last = self._segments[-1] if self._segments else None
        return last is None or last.generation != piece.generation or last.offset + last.size != piece.offset or last.end != self._end[0]

    def _begin_segment(self, piece: Piece, reading: LiveLog | LiveTrace) -> list[Event | Stretch]:
        """A new segment; a line that the one before it left unfinished ends there."""
        events: list[Event | Stretch] = []
        if self._is_mid_line:
            events = self._fed(b"\n", reading, None)
        self._segments.append(_Segment(*self._end, piece.generation, piece.offset, piece.line))
        return events

    def _fed(self, payload: bytes, reading: LiveLog | LiveTrace, segment: _Segment | None) -> list[Event | Stretch]:
        """What the next bytes give. segment: where they stand, None for a newline that stands in no file."""
        before = reading.lines
        events = reading.feed(payload)
        lines = reading.lines - before
        self._end = self._end[0] + len(payload), self._end[1] + lines
        self._is_mid_line = not payload.endswith(b"\n")
        if segment is not None:
            segment.size += len(payload)
            segment.lines += lines
        return events

    def _placed(self, events: Iterable[Event | Stretch]) -> list[Seen]:
        """The events with their places in the files; a stretch was read of one piece, so it stands in one segment."""
        starts = [segment.start for segment in self._segments]
        placed: list[Seen] = []
        for event in events:
            begin = event.first if isinstance(event, Stretch) else event.offset
            segment = self._segments[max(bisect_right(starts, begin) - 1, 0)]
            offset, line = segment.offset - segment.start, segment.line - segment.start_line
            if isinstance(event, Stretch):
                placed.append(Seen(event.moved(offset, line), segment.generation))
            else:
                placed.append(Seen(event._replace(line=event.line + line, offset=event.offset + offset), segment.generation))
        return placed

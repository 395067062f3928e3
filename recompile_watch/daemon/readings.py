"""Sources become events: the followers' bytes go through the streams' readings, and what is understood is noted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from recompile_watch.core.bulk import Bulk
from recompile_watch.core.errors import StoreError
from recompile_watch.core.heard import Heard, Trouble, TroubleKind
from recompile_watch.core.notices import Excerpt, Place
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.runs import Stretch
from recompile_watch.core.scan import Matcher
from recompile_watch.core.streams import Piece, Position, Seen, Stream
from recompile_watch.core.times import TimeOptions
from recompile_watch.daemon.followers import Follower
from recompile_watch.daemon.places import Places
from recompile_watch.sources.marks import Chunk, GenerationEnded, GenerationStarted, mark_to_json
from recompile_watch.sources.retirement import Retired
from recompile_watch.store import Changes
from recompile_watch.zones import LocalZone

SETTLE_S = 0.25  # a record is written at once; without a line for so long it is complete
READ_BYTES = 1 << 20  # what a poll takes of a burst: a block of a file
LINES_BEFORE, LINES_AFTER = 1, 5


@dataclass(slots=True)
class _Growing:
    """One stream of a source.

    fed_at: monotonic seconds of its last bytes. started: where new generations begin. given: the offset behind the last byte
    that came of each generation. ended: those of which nothing more comes. released: those of them that are understood and
    noted, while the stream still has a place of theirs. is_dirty: it has something that is not noted yet.
    """

    stream: Stream
    fed_at: float = 0.0
    started: dict[int, Position] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    is_dirty: bool = False


class SourceReading:
    """Reads one source. Its zone is that of lines without one."""

    def __init__(self, name: str, follower: Follower, zone: tzinfo | None, rules: Ruleset, matcher: Matcher, saved: Mapping[str, Any]) -> None:
        """saved: the state of each of its streams."""
        self.name = name
        self.follower = follower
        self._zone, self._rules, self._matcher, self._bulk = zone, rules, matcher, Bulk.of(rules)
        self._growing: dict[str, _Growing] = {}
        self._places = Places()
        self._troubles: list[Trouble] = []
        self._is_new = True
        for stream, state in saved.items():
            self._growing[stream] = _Growing(self._stream(stream, state))

    def poll(self, now: float, monotonic: float) -> tuple[list[Heard], list[Trouble]]:
        """What is new, of a burst its next megabyte: events, and troubles with the reading itself.

        What comes of one is heard before the next is read: it is still in the processor's caches then, and only that much is in memory.
        """
        heard: list[Heard] = []
        troubles, self._troubles = self._troubles, []
        for item in self.follower.poll(now, READ_BYTES):
            match item:
                case Chunk():
                    heard.append(self._chunk(item, now, monotonic))
                case GenerationStarted():
                    growing = self._growing_of(item.stream)
                    growing.started[item.generation] = Position(item.generation, item.position, item.lines)
                    growing.is_dirty = True
                case GenerationEnded():
                    heard += self._ended(item)
                case Trouble():
                    troubles.append(item)
        return heard, troubles

    def settle(self, monotonic: float, *, at_once: bool = False) -> list[Heard]:
        """Gives out what waited for lines that did not come."""
        heard: list[Heard] = []
        for name, growing in self._growing.items():
            if not growing.stream.is_settled and (at_once or monotonic - growing.fed_at >= SETTLE_S):
                growing.is_dirty = True
                heard.append(self._heard(name, growing.stream.settle(), 0))
        return [one for one in heard if one.events]

    def next_settle(self, monotonic: float) -> float | None:
        """Seconds until ``settle`` has work."""
        waits = [growing.fed_at + SETTLE_S - monotonic for growing in self._growing.values() if not growing.stream.is_settled]
        return max(min(waits), 0.0) if waits else None

    def note(self, changes: Changes) -> None:
        """Puts what is understood since the last call into the changes: positions and states."""
        changed = {name for name, growing in self._growing.items() if growing.is_dirty}
        watched = self.follower.watched() if self._is_new or changed else None
        if watched is not None:
            self._is_new = False
            changes.put("facts", (f"watched/{self.name}",), asdict(watched))
        for progress in self.follower.progress() if changed else ():
            if progress.stream in changed:
                changes.put("facts", (f"progress/{self.name}/{progress.stream}",), asdict(progress))
        for name, growing in self._growing.items():
            if not growing.is_dirty:
                continue
            growing.is_dirty = False
            positions = {number: one for number, one in growing.stream.positions().items() if number not in growing.released}
            places = {**growing.started, **positions}
            growing.started.clear()
            marks = [self.follower.mark(name, one.generation, one.offset, one.lines) for one in places.values()]
            for mark in marks:
                if mark is not None:
                    changes.put("marks", (self.name, name, mark.generation), mark_to_json(mark))
            for generation in [*growing.ended]:
                if generation not in positions or positions[generation].offset >= growing.given.get(generation, 0):
                    kept = self.follower.release(name, generation)
                    changes.put("marks", (self.name, name, generation), None if kept is None else mark_to_json(kept))
                    growing.released.add(generation)
                    growing.ended.discard(generation)
                    growing.given.pop(generation, None)
            if None not in marks:  # else there is no place to go on from
                changes.put("readings", (self.name, name), growing.stream.state())
            growing.stream.forget()
            growing.released.intersection_update(growing.stream.positions())

    def retire(self, now: float, keep_s: float) -> Retired:
        """What the store may delete of this source: its files have been gone for so long."""
        retired = self.follower.retire(now, keep_s)
        for stream in retired.streams:
            self._growing.pop(stream, None)
        return retired

    def excerpt(self, place: Place) -> Excerpt | None:
        """The lines around an event of this source, while they can still be read."""
        generation = self._places.generation_of(place.source, place.offset)
        if generation is None:
            return None
        around = self.follower.excerpt(place.source, generation, place.offset, LINES_BEFORE, LINES_AFTER)
        if around is None:
            return None
        lines = tuple(line.decode("utf-8", "backslashreplace") for line in around.lines)
        return Excerpt(place.source, max(1, place.line - around.at), lines, (around.at,))

    def _chunk(self, chunk: Chunk, now: float, monotonic: float) -> Heard:
        growing = self._growing_of(chunk.stream)
        growing.fed_at, growing.is_dirty, growing.given[chunk.generation] = monotonic, True, chunk.end
        piece, before = Piece(chunk.generation, chunk.offset, chunk.line, chunk.payload), growing.stream.lines
        try:
            seen = growing.stream.feed(piece, self._times(now))
        except StoreError as error:  # the saved state is damaged: begin here without it
            self._troubles.append(Trouble(TroubleKind.STATE_CORRUPT, chunk.stream, str(error)))
            growing.stream, before = self._stream(chunk.stream, None), 0
            seen = growing.stream.feed(piece, self._times(now))
        return replace(self._heard(chunk.stream, seen, growing.stream.lines - before), is_backlog=chunk.is_backlog)

    def _ended(self, item: GenerationEnded) -> list[Heard]:
        growing = self._growing_of(item.stream)
        growing.is_dirty = True
        seen = growing.stream.finish(item.generation)
        growing.ended.add(item.generation)
        return [self._heard(item.stream, seen, 0)] if seen else []

    def _heard(self, stream: str, seen: list[Seen], lines: int) -> Heard:
        for item in seen:
            places = [run.offsets for run in item.event.runs] if isinstance(item.event, Stretch) else [(item.event.offset,)]
            for offsets in places:
                self._places.add(stream, offsets, item.generation)
        return Heard(self.name, stream, tuple(item.event for item in seen), lines)

    def _growing_of(self, stream: str) -> _Growing:
        if stream not in self._growing:
            self._growing[stream] = _Growing(self._stream(stream, None))
        return self._growing[stream]

    def _stream(self, name: str, state: Mapping[str, Any] | None) -> Stream:
        try:
            return Stream(name, self._rules, self._matcher, state, bulk=self._bulk)
        except StoreError as error:
            self._troubles.append(Trouble(TroubleKind.STATE_CORRUPT, name, str(error)))
            return Stream(name, self._rules, self._matcher, bulk=self._bulk)

    def _times(self, now: float) -> TimeOptions:
        today: date = datetime.fromtimestamp(now, UTC).date()
        if self._zone is not None:
            return TimeOptions(zone=self._zone, zone_is_given=True, modified_on=today)
        return TimeOptions(zone=LocalZone(), modified_on=today)

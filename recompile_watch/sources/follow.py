"""Files that are being written become chunks of whole lines: nothing lost that still exists, nothing twice, nothing torn.

Polling is the truth: every poll asks each file for its size and each path for its file. Hints (`wake.py`) only make it sooner.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch

from recompile_watch.core.errors import SourceError
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.content import PlainContent
from recompile_watch.sources.copies import TICK_S, lose_name, note_copies
from recompile_watch.sources.discover import Discovery, Found, obstacle
from recompile_watch.sources.follow_settings import FollowSettings
from recompile_watch.sources.generation import Generation, Outcome
from recompile_watch.sources.lineage import Lineage
from recompile_watch.sources.marks import Around, Chunk, GenerationEnded, GenerationStarted, Mark, Progress, Watched
from recompile_watch.sources.opening import shown, source_error
from recompile_watch.sources.retirement import Retired, Retirement
from recompile_watch.sources.roster import Roster
from recompile_watch.sources.rotation import parse_rotated_name
from recompile_watch.sources.stream import Clock, Stream, Troubles

__all__ = ["Around", "Chunk", "FollowSettings", "Follower", "GenerationEnded", "GenerationStarted", "Mark", "News", "Progress", "Retired", "Watched"]

BUDGET_BYTES = 4 << 20  # of a poll: a hostile log costs milliseconds an event, and the loop must give its signs of life

News = Chunk | GenerationStarted | GenerationEnded | Trouble


class Follower:
    """Follows the files of one source.

    marks: what the store holds for this source, ended generations included. watched: what earlier runs watched, None for the
    very first start. Call `poll` again and again; commit a `mark` for what was done with its chunks.
    """

    fd: int | None = None  # no descriptor tells that a file has grown

    def __init__(self, settings: FollowSettings, marks: Sequence[Mark] = (), watched: Watched | None = None) -> None:
        self._settings = settings
        self._discovery = Discovery(settings.paths, settings.excluded)
        self._clock = Clock()
        self._troubles = Troubles()
        self._given: list[News] = []
        self._roster = Roster(settings.max_line_bytes, self._clock)
        self._lineage = Lineage(settings, self._clock, self._troubles, self._roster, self._given.append)
        self._streams = self._lineage.streams
        self._retirement = Retirement(settings, self._streams, self._roster)
        self._watched = watched
        self._looked_at: float | None = None
        self._discover_at = self._check_at = 0.0
        self._missing: dict[str, float] = {}
        self._real_paths: frozenset[str] = frozenset()
        self._turn = 0
        self.has_more = False
        self._restore(marks)

    def poll(self, now: float, budget_bytes: int = BUDGET_BYTES) -> list[News]:
        """What is new, of each generation in order; never waits, and reads about `budget_bytes` at most.

        `now`: epoch seconds; it may jump. Afterwards `has_more` says that the budget ended it and not the files.
        """
        self._clock.advance(now)
        self._lineage.now = now
        if self._clock.seconds >= self._discover_at:
            self._discover(now)
        if self._clock.seconds >= self._check_at:
            self._check_paths()
        self._read(now, budget_bytes)
        note_copies(self._streams.values(), self._settings.rotated_folders, now)
        heard: list[News] = [*self._given, *self._troubles.news()]
        self._given.clear()
        return heard

    def hint(self) -> None:
        """Something changed in a folder: the next poll looks at every path, and for new files."""
        self._discover_at = self._check_at = 0.0

    def watched(self) -> Watched | None:
        """What to hand to the next run, to be stored with every commit; None before the first poll of all."""
        if self._looked_at is None:
            return self._watched
        # A path that never led to a file that could be read is known as it was when it was first seen.
        unread = [stream.last.modified_ns / 1e9 for stream in self._streams.values() if stream.last is not None and not stream.newest]
        return Watched(self._settings.paths, min([self._looked_at, *unread]))

    def mark(self, stream: str, generation: int, position: int, lines: int) -> Mark:
        """The mark for a position at or before what was given of that generation. Raises KeyError for one never given."""
        reading = self._reading(stream, generation) or self._roster.finished.get((stream, generation))
        if reading is not None:
            return reading.mark(position, lines)
        waiting = {mark.generation: mark for mark in self._streams[stream].pending}
        return waiting[generation] if generation in waiting else self._roster.lost[stream, generation]

    def release(self, stream: str, generation: int) -> Mark | None:
        """All of an ended generation was committed: the mark to keep for it, or None where its mark can be deleted.

        A mark that is kept tells, after a restart, that the file was read already; `marks.outlived` says when it has served.
        """
        lost = self._roster.lost.pop((stream, generation), None)
        if lost is not None:  # tells, after a restart, since when nothing is known
            kept = replace(lost, ended_at=self._lineage.now)
            self._roster.miss(kept)
            return kept
        reading = self._roster.finished.pop((stream, generation), None)
        if reading is None or reading.is_void:
            return None
        return reading.mark(reading.position, reading.lines, ended_at=self._lineage.now)

    def retire(self, now: float, keep_s: float) -> Retired:
        """What a store may delete because its files have been gone for so long; looks at a few paths a call."""
        return self._retirement.look(now, keep_s)

    def streams(self) -> list[str]:
        """The paths that are followed."""
        return list(self._streams)

    def excerpt(self, stream: str, generation: int, offset: int, before_lines: int, after_lines: int, max_bytes: int = 16384) -> Around | None:
        """Lines around the one that `offset` stands in; None where they cannot be read any more. Half of `max_bytes` bounds each side."""
        reading = self._reading(stream, generation) or self._roster.finished.get((stream, generation))
        return None if reading is None else reading.excerpt(offset, before_lines, after_lines, max_bytes // 2)

    def progress(self) -> list[Progress]:
        """How far each stream is read."""
        return [_progress(stream) for stream in self._streams.values()]

    def folders(self) -> list[str]:
        """The folders whose changes concern this source, for a waker."""
        own = (os.path.dirname(os.path.realpath(path)) for path in self._streams)
        return list(dict.fromkeys([*self._discovery.folders(), *own]))

    def close(self) -> None:
        """Gives all descriptors back."""
        for stream in self._streams.values():
            for reading in list(stream.generations()):
                self._lineage.drop(stream, reading)

    def concerns(self, path: str) -> bool:
        """A change of `path` may be news: it is a followed log, rotated from one, or matches. Quick, and safe from any thread."""
        folder, name = os.path.split(path)
        is_known = os.path.join(folder, parse_rotated_name(name).stem) in self._real_paths
        return (is_known or any(fnmatch(path, pattern) for pattern in self._settings.paths)) and not self._discovery.is_excluded(path)

    def _restore(self, marks: Sequence[Mark]) -> None:
        for mark in sorted(marks, key=lambda mark: (mark.stream, mark.generation)):
            stream = self._streams.setdefault(mark.stream, Stream(mark.stream))
            stream.newest = max(stream.newest, mark.generation)
            if mark.ended_at is None:
                stream.pending.append(mark)
            else:
                stream.last = mark
                self._roster.remember(mark)

    def _discover(self, now: float) -> None:
        found = self._discovery.look(self._streams)
        if self._looked_at is None and self._watched is not None and self._watched.patterns != self._settings.paths:
            self._leave_out(found)
        for error in found.errors:
            self._troubles.begin(TroubleKind.UNREADABLE, self._settings.name, str(error))
        if not found.errors:
            self._troubles.end(TroubleKind.UNREADABLE, self._settings.name, "all folders can be looked through again")
        for pattern, paths in found.by_pattern.items():
            for path in paths:
                if path not in self._streams:
                    self._add(path, pattern, now)
            self._tell_missing(pattern, any(os.path.exists(path) for path in paths))
        self._real_paths = frozenset(self._streams).union(os.path.realpath(path) for path in self._streams)
        self._looked_at = now
        self._discover_at = self._clock.seconds + self._settings.discovery_s
        self._check_at = 0.0

    def _leave_out(self, found: Found) -> None:
        """Files that an earlier run followed and that the configuration no longer names."""
        named = {path for paths in found.by_pattern.values() for path in paths}
        for path in [path for path in self._streams if path not in named and os.path.lexists(path)]:
            del self._streams[path]

    def _add(self, path: str, pattern: str, now: float) -> None:
        """A path that is followed from now on, from where its file's age demands."""
        if len(self._streams) >= self._settings.max_files and not self._retirement.make_room(now):
            text = f"more than {self._settings.max_files} files match; {shown(path)} and others are not followed; use a narrower pattern"
            self._troubles.begin(TroubleKind.UNREADABLE, pattern, text)
            return
        stream = Stream(path)
        known = self._watched is not None and pattern in self._watched.patterns
        seen_at = self._looked_at if self._looked_at is not None else self._watched.until if self._watched and known else None
        if seen_at is None:
            stream.first_size = _size_of(path)
            seen_at = now if stream.first_size is None else None
        if seen_at is not None:
            # Its rotated siblings that changed since then were never read either.
            stream.last = Mark(path, 0, 0, 0, 0, "", 0, 0, "", 0, modified_ns=int((seen_at - TICK_S) * 1e9))
        self._streams[path] = stream

    def _tell_missing(self, pattern: str, is_there: bool) -> None:
        name = shown(pattern)
        if is_there:
            self._missing.pop(pattern, None)
            self._troubles.end(TroubleKind.SOURCE_MISSING, pattern, f"{name} is there again")
            return
        since = self._missing.setdefault(pattern, self._clock.seconds)
        if self._clock.seconds - since >= self._settings.missing_after_s:
            self._troubles.begin(TroubleKind.SOURCE_MISSING, pattern, f"{name} leads to no file; {obstacle(pattern)}")

    def _check_paths(self) -> None:
        self._check_at = self._clock.seconds + self._settings.path_check_s
        for stream in self._streams.values():
            if self._clock.seconds >= stream.pause.until:
                self._check_path(stream)
        self._park_idle()

    def _check_path(self, stream: Stream) -> None:
        try:
            self._lineage.reconcile(stream)
        except OSError as error:
            self._fail(stream, str(source_error(stream.path, error)))
        except SourceError as error:
            self._fail(stream, str(error))
        else:
            self._recover(stream)

    def _fail(self, stream: Stream, text: str) -> None:
        stream.problem = text
        stream.pause.lengthen(self._clock.seconds)
        self._troubles.begin(TroubleKind.UNREADABLE, stream.path, text)

    def _recover(self, stream: Stream) -> None:
        if stream.problem is not None:
            stream.problem = None
            stream.pause.reset()
            self._troubles.end(TroubleKind.UNREADABLE, stream.path, f"{shown(stream.path)} can be read again")

    def _park_idle(self) -> None:
        """Closes the files that were quiet for longest, when too many are open."""
        surplus = self._roster.open_count - self._settings.max_open
        if surplus <= 0:
            return
        idle = [(reading.quiet_since, stream.path) for stream in self._streams.values() if (reading := stream.current) and reading.is_drained]
        for _, path in sorted(idle)[:surplus]:
            stream = self._streams[path]
            if stream.current is not None and not stream.pending and not stream.older:
                self._lineage.park(stream, stream.current)

    def _read(self, now: float, budget_bytes: int) -> None:
        """One block of each stream after the other, until all are read or the budget is used up."""
        streams = list(self._streams.values())
        self._turn = (self._turn + 1) % max(len(streams), 1)
        busy = streams[self._turn :] + streams[: self._turn]
        left_bytes = budget_bytes
        while busy and left_bytes > 0:
            still: list[Stream] = []
            for stream in busy:
                spent = self._read_block(stream, now) if left_bytes > 0 else 1
                left_bytes -= spent
                if spent:
                    still.append(stream)
            busy = still
        self.has_more = bool(busy)

    def _read_block(self, stream: Stream, now: float) -> int:
        """Bytes of budget spent on the oldest generation that has something new; 0 when none has."""
        for reading in stream.generations():
            try:
                spent = self._look(stream, reading, now)
            except (OSError, SourceError) as error:
                self._lose_touch(stream, reading, error)
                return 0
            if spent:
                return spent
        return 0

    def _look(self, stream: Stream, reading: Generation, now: float) -> int:
        heard = reading.look(now, self._clock.seconds)
        stream.last_growth_at = max(stream.last_growth_at or 0.0, reading.last_growth_at or 0.0) or None
        if isinstance(heard, Chunk):
            self._given.append(heard)
            return len(heard.payload)
        if heard is Outcome.CUT or heard is Outcome.FIRST_BYTES:
            change = self._lineage.cut if heard is Outcome.CUT else self._lineage.refilled
            change(stream, reading)
            self._check_path(stream)  # what lies where by now decides what is read first
            return 1
        if heard is Outcome.NAMELESS:
            lose_name(reading, self._settings.rotated_folders)
            return 1
        if heard is Outcome.WORKED:
            return reading.block_bytes
        is_quiet = self._clock.seconds - reading.quiet_since >= self._settings.grace_s
        if reading.is_drained and not reading.is_current and (reading.is_complete or is_quiet):
            self._lineage.end(stream, reading)
            return 1
        return 0

    def _lose_touch(self, stream: Stream, reading: Generation, error: OSError | SourceError) -> None:
        """A file that fails while it is read (ESTALE, EIO) is found and opened again, as after a restart."""
        text = str(source_error(stream.path, error)) if isinstance(error, OSError) else str(error)
        stream.pending = sorted([*stream.pending, reading.mark(reading.position, reading.lines)], key=lambda mark: mark.generation)
        self._roster.finished[stream.path, reading.number] = reading
        self._lineage.drop(stream, reading)
        self._fail(stream, text)

    def _reading(self, path: str, number: int) -> Generation | None:
        stream = self._streams.get(path)
        return None if stream is None else stream.generation(number)


def _size_of(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _progress(stream: Stream) -> Progress:
    newest = stream.current or (stream.older[-1] if stream.older else None)
    lag = sum(max(0, reading.size_bytes - reading.position) for reading in stream.generations() if isinstance(reading.content, PlainContent))
    holes = stream.hole_bytes + sum(reading.hole_bytes for reading in stream.generations())
    size, position = (newest.size_bytes, newest.position) if newest else (0, 0)
    return Progress(stream.path, size, position, lag, stream.newest, stream.gaps, holes, stream.last_growth_at, stream.problem)

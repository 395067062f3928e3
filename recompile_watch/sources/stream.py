"""One followed path: its generations, and what is known of it between two looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.generation import Generation
from recompile_watch.sources.late import Late
from recompile_watch.sources.marks import FileKey, Mark
from recompile_watch.sources.opening import shown

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
# However far the wall clock jumps between two polls (it was set, the machine slept), timers go on by no more.
_LONGEST_STEP_S = 10.0
_SHORTEST_STEP_S = 1e-6


@dataclass(slots=True)
class Clock:
    """Seconds of watching: follows the wall clock, always forward, and no jump of it by more than ten seconds."""

    seconds: float = 0.0
    _last: float | None = None

    def advance(self, now: float) -> None:
        """The wall clock says `now`."""
        if self._last is not None:
            self.seconds += min(max(now - self._last, _SHORTEST_STEP_S), _LONGEST_STEP_S)
        self._last = now


@dataclass(slots=True)
class Pause:
    """Waiting before the next try of what failed: one second, then twice as long each time, at most half a minute."""

    until: float = 0.0
    _length: float = 0.0

    def lengthen(self, clock: float) -> None:
        """It failed again."""
        self._length = min(max(2 * self._length, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        self.until = clock + self._length

    def reset(self) -> None:
        """It worked."""
        self.until = self._length = 0.0


@dataclass(frozen=True, slots=True)
class Noted:
    """The last look for copies.

    log: of which generation, in what state. sibling: the youngest file beside it. stamps: of the folders; sibling_state: its inode and
    time of change; neither where those times are so young that they may not tell of all.
    """

    log: tuple[int, tuple[int, int, int]] = (0, (-1, 0, 0))
    stamps: tuple[int, ...] = ()
    sibling: str | None = None
    sibling_state: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Stream:
    """One followed path.

    current: what the path leads to. older: rotated away and not at their end, oldest first. pending: stored marks whose files
    were not found again yet, oldest first. last: the newest generation that is read no more, or how the path was last seen
    without one. newest: number of the newest generation. first_size: the size at the very first start, else None.
    resume_at: when to try again those of them that could not be read. unfound: marks whose files are not what they were; what
    came after them may stand in files never read. gap_after: the generation after which a whole file is known to be missing.
    parked: (device, inode, size, change) under which the path's file need not be opened: nothing new is in it.
    late: what was read to its end and may grow. noted: the last look for copies of the current file.
    folder_stamp, catch_up_at: while the path leads nowhere, when its folder changed and when to look there in any case.
    gone_at: epoch seconds, when it was first seen that nothing of it is left on the disk.
    """

    path: str
    current: Generation | None = None
    older: list[Generation] = field(default_factory=list)
    pending: list[Mark] = field(default_factory=list)
    last: Mark | None = None
    newest: int = 0
    first_size: int | None = None
    parked: tuple[int, int, int, int] | None = None
    late: Late = field(default_factory=Late)
    noted: Noted = field(default_factory=Noted)
    pause: Pause = field(default_factory=Pause)
    folder_stamp: int | None = None
    catch_up_at: float = 0.0
    resume_at: float = 0.0
    unfound: list[Mark] = field(default_factory=list)
    gaps: int = 0
    gap_after: int = 0
    hole_bytes: int = 0
    last_growth_at: float | None = None
    gone_at: float | None = None
    problem: str | None = None

    def generations(self) -> Iterator[Generation]:
        """All that are being read, oldest first."""
        yield from list(self.older)
        if self.current is not None:
            yield self.current

    def generation(self, number: int) -> Generation | None:
        """The one with this number, if it is being read."""
        return next((reading for reading in self.generations() if reading.number == number), None)

    def newest_open(self) -> Generation | None:
        """The newest of those being read."""
        return self.current or (self.older[-1] if self.older else None)

    def put_in_order(self, keys: Sequence[FileKey]) -> None:
        """What was rotated away is read in this order of files; one that is not among them stays behind the one before it."""
        places = {key: at for at, key in enumerate(keys)}
        place = -1
        placed: list[tuple[int, int, Generation]] = []
        for reading in self.older:
            place = places.get(reading.file_key, place)
            placed.append((place, len(placed), reading))
        self.older[:] = [reading for _, _, reading in sorted(placed, key=lambda one: one[:2])]

    def reference(self) -> Mark | None:
        """The newest content known, by which younger ones are told."""
        if self.current is not None:
            return self.current.mark(self.current.position, self.current.lines)
        known = [*self.pending[-1:], *([self.last] if self.last is not None else [])]
        known += [reading.mark(reading.position, reading.lines) for reading in self.older[-1:]]
        return max(known, key=lambda mark: mark.generation, default=None)


@dataclass(slots=True)
class Troubles:
    """Faults of the watching: each told once when it begins and once when it is over."""

    _open: set[tuple[TroubleKind, str]] = field(default_factory=set)
    _news: list[Trouble] = field(default_factory=list)

    def begin(self, kind: TroubleKind, subject: str, text: str) -> None:
        """It is so; told if that is new."""
        if (kind, subject) not in self._open:
            self._open.add((kind, subject))
            self._news.append(Trouble(kind, subject, text))

    def end(self, kind: TroubleKind, subject: str, text: str) -> None:
        """It is no longer so; told if it was."""
        if (kind, subject) in self._open:
            self._open.discard((kind, subject))
            self._news.append(Trouble(kind, subject, text, is_over=True))

    def news(self) -> list[Trouble]:
        """What is to be told since the last call."""
        news, self._news = self._news, []
        return news

    def gap(self, stream: Stream, mark: Mark, how: str) -> None:
        """Something of `stream` is lost; how much nobody can know, as more may have been written than was ever seen."""
        stream.gaps += 1
        known = max(0, mark.size_bytes - mark.position)
        amount = f"at least {known} bytes" if known else "what was written since the last look"
        text = f"{shown(stream.path)} {how}; {amount} may be lost; let the log be rotated by renaming, and less often than it is looked at"
        self._news.append(Trouble(TroubleKind.GAP, stream.path, text))

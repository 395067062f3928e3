"""Absence: a source has no lines although it should.

Judged on time in which somebody watched: what happened while the watch was down, the machine slept or a source could
not be read is unknown, and nothing is claimed of it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from recompile_watch.core.events import Event
from recompile_watch.core.heard import Heard, Trouble, TroubleKind
from recompile_watch.core.shelves import Shelf, always
from recompile_watch.core.sight import NO_SOURCE, Unjudged
from recompile_watch.core.signals import Signal
from recompile_watch.core.units import duration_text
from recompile_watch.core.watch_settings import BOT_SCHEDULE, MARKET_ZONE, Slot, WatchedSource

MAX_GAP_S = 150.0  # the watch is called every minute; after a longer gap nobody watched
WATCHED_SHARE = 0.9  # so much of a stretch must have been watched to say that nothing came
MAX_STREAMS = 50
KIND = "source_silent"
_COST = "The program may have stopped, hang or write elsewhere; meanwhile no other problem of it can be seen."
_BLIND = frozenset({TroubleKind.UNREADABLE, TroubleKind.SOURCE_MISSING})


@dataclass(slots=True)
class Ear:
    """What was heard of one source.

    called_at: last call, epoch seconds. quiet_s: watched time since the last line, or since the start. has_spoken: there
    ever was a line. is_bot: it showed an analysis. is_silent: it was said to be. slot: when the stretch that is going on
    began, epoch seconds; slot_watched_s, slot_lines: of it. streams: seen, the latest. blind: what of it cannot be read.
    """

    called_at: float
    quiet_s: float = 0.0
    has_spoken: bool = False
    is_bot: bool = False
    is_silent: bool = False
    slot: float | None = None
    slot_watched_s: float = 0.0
    slot_lines: int = 0
    streams: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """When lines must come, in epoch seconds."""

    start: float
    end: float
    slot: Slot


class Absence:
    """Listens to all sources."""

    def __init__(
        self, sources: Sequence[WatchedSource], parts: Mapping[str, object], is_market_open: Callable[[float], bool], *, looks_s: float = 0.0
    ) -> None:
        self._max_gap_s = MAX_GAP_S + looks_s
        self._sources = {source.name: source for source in sources}
        self._ears = Shelf("ear", Ear, parts, 1_000, always)
        self._is_market_open = is_market_open
        self.shelves = (self._ears,)

    def trouble(self, trouble: Trouble) -> None:
        """Takes that a source, or a stream of it, cannot be read, or can be read again."""
        if trouble.kind not in _BLIND:
            return
        for name, ear in list(self._ears.items()):
            if trouble.subject == name or trouble.subject in ear.streams:
                ear.blind = [one for one in ear.blind if one != trouble.subject] + ([] if trouble.is_over else [trouble.subject])
                self._ears.put(name, ear)

    def revise(self, sources: Collection[str]) -> Iterator[Unjudged]:
        """The sources that were silent and are no longer watched."""
        for name, ear in [item for item in self._ears.items() if sources and item[0] not in sources]:
            self._ears.drop(name)
            if ear.is_silent:
                yield Unjudged(Signal(KIND, name, is_over=True), NO_SOURCE)

    def hear(self, heard: Iterable[Heard], now: float) -> Iterator[Signal]:
        """Takes what was read up to ``now``; what is silent and what speaks again."""
        lines: dict[str, int] = {}
        for one in heard:
            lines[one.source] = lines.get(one.source, 0) + (0 if one.is_backlog else one.lines)
            self._know(one, now)
        for name in sorted({*self._sources, *lines}):
            source = self._sources.get(name) or WatchedSource(name)
            ear = self._ears.get(name) or Ear(now)
            gap = now - ear.called_at
            watched = gap if 0 <= gap <= self._max_gap_s and not ear.blind else 0.0
            yield from self._listen(source, ear, lines.get(name, 0), now, watched)
            ear.called_at = now
            self._ears.put(name, ear)

    def _know(self, one: Heard, now: float) -> None:
        ear = self._ears.get(one.source) or Ear(now)
        if one.stream not in ear.streams:
            ear.streams = [*ear.streams, one.stream][-MAX_STREAMS:]
        ear.is_bot = ear.is_bot or any(isinstance(event, Event) and event.kind == "analysis_start" for event in one.events)
        self._ears.put(one.source, ear)

    def _listen(self, source: WatchedSource, ear: Ear, lines: int, now: float, watched: float) -> Iterator[Signal]:
        ear.quiet_s = 0.0 if lines else ear.quiet_s + watched
        ear.has_spoken = ear.has_spoken or bool(lines)
        missed = self._follow_slot(source, ear, lines, now, watched)
        if lines and ear.is_silent:
            ear.is_silent = False
            yield Signal(KIND, source.name, is_over=True)
        elif not ear.is_silent and missed is not None:
            ear.is_silent = True
            yield _silent(source, f"No line from '{source.name}' while its analysis was due ({missed.start} to {missed.end} in New York)")
        elif not ear.is_silent and source.silent_after_s and ear.quiet_s >= source.silent_after_s:
            ear.is_silent = True
            since = "" if ear.has_spoken else ", and none before since the watch began"
            yield _silent(source, f"No line from '{source.name}' for {duration_text(source.silent_after_s)}{since}")

    def _follow_slot(self, source: WatchedSource, ear: Ear, lines: int, now: float, watched: float) -> Slot | None:
        """Keeps the account of the stretch in which lines must come. The slot that ended without any."""
        stretch = self._stretch(source, ear, now if ear.slot is None else ear.slot)
        if stretch is None:
            return None
        if ear.slot is None:
            ear.slot, ear.slot_watched_s, ear.slot_lines = stretch.start, 0.0, 0
        ear.slot_lines += lines
        ear.slot_watched_s += min(watched, max(0.0, now - stretch.start))
        if stretch.start <= now < stretch.end:
            return None
        ear.slot = None
        was_watched = ear.slot_watched_s >= WATCHED_SHARE * (stretch.end - stretch.start)
        return stretch.slot if was_watched and not ear.slot_lines and now >= stretch.end else None

    def _stretch(self, source: WatchedSource, ear: Ear, at: float) -> _Stretch | None:
        """The stretch of the source's schedule that a moment lies in."""
        slots = source.schedule if source.schedule is not None else (BOT_SCHEDULE if ear.is_bot else ())
        if not slots:
            return None
        zone = ZoneInfo(MARKET_ZONE)
        today = datetime.fromtimestamp(at, zone).date()
        for day in (today - timedelta(days=1), today):
            noon = datetime(day.year, day.month, day.day, 12, tzinfo=zone)
            for slot in slots:
                start, end = (noon.replace(hour=int(text[:2]), minute=int(text[3:])).timestamp() for text in (slot.start, slot.end))
                end += (86_400.0 if end <= start else 0.0) + source.slot_grace_s
                if start <= at < end and self._is_market_open(noon.timestamp()):
                    return _Stretch(start, end, slot)
        return None


def _silent(source: WatchedSource, title: str) -> Signal:
    return Signal(KIND, source.name, "critical", title, _COST)

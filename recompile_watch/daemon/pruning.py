"""What has served is deleted: a few rows a turn, in the turn's own transaction.

Rows go by age slowly, the oldest first, so that a clock that is wrong for a while costs little; what is beyond a bound
goes at once. Nothing that is open, and no position in a file that is still there, is ever deleted.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from recompile_watch.core.hourly import HOUR_S
from recompile_watch.core.parcels import ParcelState
from recompile_watch.core.retention import Archive, RetentionSettings
from recompile_watch.daemon.readings import SourceReading
from recompile_watch.store import Changes, Json, Key, Store

LOOK_S = 60.0
MAX_AGED = 100  # rows of a table that go for their age in one look
MAX_STREAMS = 16  # of which everything goes in one look
LOST = "the watch lost its memory of it"
_FACT = "unwatched"
_WATCHED, _PROGRESS = "watched/", "progress/"
_Pair = tuple[str, str]  # source and stream; the stream is empty for the source itself


class Pruner:
    """Knows which rows are final and which streams are left, since when. ``repairs``: what was found wrong at the start."""

    def __init__(self, settings: RetentionSettings, store: Store, is_remembered: Callable[[str], bool], now: float) -> None:
        """is_remembered: whether the watch still knows an incident."""
        self._settings, self._store = settings, store
        self._look_at = 0.0
        self._incidents = Archive[str](settings.incidents_s, settings.max_incidents)
        self._letters = Archive[Key](settings.dead_letters_s, settings.max_dead_letters)
        self.repairs = Changes()
        self._unwatched: dict[_Pair, float] | None = None
        self._sort_incidents(is_remembered, now)
        self._sort_letters()

    def over(self, incident: str, at: float) -> None:
        """The watch has forgotten an incident, which was over at this time."""
        self._incidents.put(incident, at)

    def buried(self, parcel: Key, at: float) -> None:
        """A message was given up."""
        self._letters.put(parcel, at)

    def prune(self, readings: Collection[SourceReading], now: float, monotonic: float, changes: Changes) -> None:
        """Puts what has served into the changes of a turn."""
        is_look = monotonic >= self._look_at
        for name in self._incidents.served(now, MAX_AGED if is_look else 0):
            changes.put("incidents", (name,), None)
        for key in self._letters.served(now, MAX_AGED if is_look else 0):
            changes.put("outbox", key, None)
        if is_look:
            self._look_at = monotonic + LOOK_S
            for key in self._store.oldest("series", int((now - self._settings.series_s) // HOUR_S), MAX_AGED):
                changes.put("series", key, None)
            for reading in readings:
                self._retire(reading, now, changes)
            self._leave(readings, now, changes)

    def _sort_incidents(self, is_remembered: Callable[[str], bool], now: float) -> None:
        final: list[tuple[float, str]] = []
        for (name,), row in self._store.each("incidents"):
            if is_remembered(str(name)) or not isinstance(row, Mapping):
                continue
            at = row.get("resolved_at")
            if row.get("state") != "resolved" or not isinstance(at, int | float):
                self.repairs.put("incidents", (name,), {**row, "state": "resolved", "resolved_at": now, "ended_because": LOST})
            final.append((float(at) if isinstance(at, int | float) else now, str(name)))
        for at, name in sorted(final):
            self._incidents.put(name, at)

    def _sort_letters(self) -> None:
        final: list[tuple[float, Key]] = []
        for key, row in self._store.each("outbox"):
            if isinstance(row, Mapping) and row.get("state") == ParcelState.DEAD:
                at = row.get("made_at")
                final.append((float(at) if isinstance(at, int | float) else 0.0, key))
        for at, key in sorted(final):
            self._letters.put(key, at)

    def _retire(self, reading: SourceReading, now: float, changes: Changes) -> None:
        retired = reading.retire(now, self._settings.files_s)
        for mark in retired.marks:
            changes.put("marks", (reading.name, mark.stream, mark.generation), None)
        for stream in retired.streams:
            self._delete((reading.name, stream), changes)

    def _leave(self, readings: Iterable[SourceReading], now: float, changes: Changes) -> None:
        """Deletes what is known of files and sources that the configuration has not named for long."""
        if self._unwatched is None:
            self._unwatched = self._left(readings, now)
            changes.put("facts", (_FACT,), self._fact())
            for pair in self._unwatched:
                changes.put("facts", _progress(pair), None)
        old = [pair for pair, since in self._unwatched.items() if now - since > self._settings.files_s][:MAX_STREAMS]
        followed = _followed(readings) if old else set()
        for pair in old:
            del self._unwatched[pair]
            if pair not in followed:  # a file may have come back meanwhile
                self._delete(pair, changes)
        if old:
            changes.put("facts", (_FACT,), self._fact())

    def _left(self, readings: Iterable[SourceReading], now: float) -> dict[_Pair, float]:
        """The streams and sources of which something is stored though nothing follows them, and since when that is so."""
        stored = {(str(source), str(stream)) for table in ("marks", "readings") for source, stream, *_ in self._store.keys(table)}
        facts = self._store.load("facts")
        stored |= {(str(name).removeprefix(_WATCHED), "") for (name,) in facts if str(name).startswith(_WATCHED)}
        known = facts.get((_FACT,))
        since = {(str(source), str(stream)): float(at) for source, stream, at in known} if isinstance(known, list) else {}
        return {pair: since.get(pair, now) for pair in sorted(stored - _followed(readings))}

    def _fact(self) -> Json:
        return [[*pair, since] for pair, since in (self._unwatched or {}).items()] or None

    def _delete(self, pair: _Pair, changes: Changes) -> None:
        source, stream = pair
        if not stream:
            changes.put("facts", (f"{_WATCHED}{source}",), None)
            return
        for key in self._store.keys("marks", source, stream):
            changes.put("marks", key, None)
        changes.put("readings", (source, stream), None)
        changes.put("facts", _progress(pair), None)


def _followed(readings: Iterable[SourceReading]) -> set[_Pair]:
    return {(reading.name, stream) for reading in readings for stream in (*reading.follower.streams(), "")}


def _progress(pair: _Pair) -> Key:
    return (f"{_PROGRESS}{pair[0]}/{pair[1]}",)

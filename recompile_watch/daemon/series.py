"""The hours of all series, as the store keeps them: what a step measured is added, in the step's own transaction."""

from collections.abc import Mapping, Sequence

from recompile_watch.core.codec import to_json
from recompile_watch.core.hourly import HOUR_S, Hour, Key, hour_of
from recompile_watch.core.retention import RetentionSettings
from recompile_watch.store import Changes, Store

MAX_HELD = 1_000  # hours held in memory
NAMED_HOURS = 7 * 24  # a series that had nothing for so long gives its place to another


class Series:
    """Adds to the hours that are stored. left_out: values of series that had no place, since the start."""

    def __init__(self, settings: RetentionSettings, store: Store, now: float) -> None:
        self._settings, self._store = settings, store
        self._held: dict[Key, Hour] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self.left_out = 0
        for hour, what, subject in store.names_since("series", int(now // HOUR_S) - NAMED_HOURS):
            self._latest[str(what), str(subject)] = int(hour)

    def add(self, measured: Mapping[Key, Hour], changes: Changes, unsaved: Changes, now: float) -> None:
        """Puts the hours with what was measured into the changes of a turn. unsaved: what earlier turns could not write."""
        oldest = int((now - self._settings.series_s) // HOUR_S)
        for key, more in measured.items():
            if key[0] >= oldest and self._has_place(key):
                hour = self._hour(key, (changes, unsaved))
                hour.merge(more)
                self._hold(key, hour)
                changes.put("series", key, to_json(hour))

    def _has_place(self, key: Key) -> bool:
        hour, name = key[0], (key[1], key[2])
        if name not in self._latest and len(self._latest) >= self._settings.max_series:
            stale = min(self._latest, key=lambda one: self._latest[one])
            if self._latest[stale] >= hour - NAMED_HOURS:
                self.left_out += 1
                return False
            del self._latest[stale]
        self._latest[name] = max(hour, self._latest.get(name, 0))
        return True

    def _hour(self, key: Key, pending: Sequence[Changes]) -> Hour:
        held = self._held.pop(key, None)
        if held is not None:
            return held
        for changes in pending:
            row = changes.rows.get("series", {}).get(key)
            if row is not None:
                return hour_of(row) or Hour()
        return hour_of(self._store.get("series", key)) or Hour()

    def _hold(self, key: Key, hour: Hour) -> None:
        self._held[key] = hour
        if len(self._held) > MAX_HELD:
            del self._held[next(iter(self._held))]

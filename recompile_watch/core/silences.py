"""Silences: what nobody is told of, until when, by whom and why."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from recompile_watch.core.commands import MAX_TEXT_CHARS, Silence
from recompile_watch.core.matchers import Matcher, Values, all_hold
from recompile_watch.core.moments import Clock
from recompile_watch.core.shelves import Shelf

MAX_SILENCES = 500
KEPT_S = 7 * 86_400.0  # an ended one is kept for so long of observed time: the clock may have been wrong


@dataclass(slots=True)
class KeptSilence:
    """One silence. until, made_at: epoch seconds. number: of all silences. is_active: as it was looked at last.
    ended_at: on the steady clock."""

    id: str
    number: int
    matchers: tuple[Matcher, ...]
    until: float
    who: str
    why: str
    made_at: float
    is_active: bool = True
    ended_at: float | None = None


class Silences:
    """All silences."""

    def __init__(self, parts: Mapping[str, object], clock: Clock) -> None:
        self.shelf = Shelf("silence", KeptSilence, parts, MAX_SILENCES)
        self._clock = clock

    def add(self, silence: Silence) -> KeptSilence:
        """A new silence."""
        number = max((one.number for one in self.shelf.values()), default=0) + 1
        name = hashlib.sha256(f"{number}\0{self._clock.wall!r}\0{silence}".encode("utf-8", "replace")).hexdigest()[:8]
        who, why = silence.who[:MAX_TEXT_CHARS], silence.why[:MAX_TEXT_CHARS]
        kept = KeptSilence(name, number, silence.matchers, silence.until, who, why, self._clock.wall)
        self.shelf.put(name, kept)
        return kept

    def end(self, kept: KeptSilence) -> None:
        """Ends a silence now."""
        kept.until, kept.is_active, kept.ended_at = min(kept.until, self._clock.wall), False, self._clock.steady
        self.shelf.put(kept.id, kept)

    def named(self, start: str) -> list[KeptSilence]:
        """The silences that hold and whose id begins so."""
        return [one for one in self.shelf.values() if start and one.id.startswith(start) and one.until > self._clock.wall]

    def covering(self, values: Values) -> list[str]:
        """The ids of the silences that cover an incident now."""
        return sorted(one.id for one in self.shelf.values() if one.is_active and all_hold(one.matchers, values))

    def due(self, kept: KeptSilence) -> float:
        """When it has to be looked at next, on the steady clock: at its end, and when it is forgotten."""
        return kept.until - self._clock.lost if kept.ended_at is None else kept.ended_at + KEPT_S

    def review(self, kept: KeptSilence) -> bool:
        """Looks whether it holds now. True when that changed: it ended, or a clock that was wrong was set right."""
        holds = kept.until > self._clock.wall
        if not holds and kept.ended_at is not None and self._clock.steady >= kept.ended_at + KEPT_S:
            self.shelf.drop(kept.id)
            return False
        if holds == kept.is_active:
            return False
        kept.is_active, kept.ended_at = holds, None if holds else self._clock.steady
        self.shelf.put(kept.id, kept)
        return True

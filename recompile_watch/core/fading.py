"""Fading: what nothing has touched for months is forgotten, so that memory does not grow with each new name.

A shelf numbers its changes. Where its numbers stood when this period began, and when the one before it began, tells what
was not changed since, without a time on each part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recompile_watch.core.shelves import KeyedParts, Shelf

PERIOD_S = 45 * 86_400.0  # what is forgotten was not touched for one to two of them


@dataclass(slots=True)
class Period:
    """began: epoch seconds. numbers: where each shelf stood then, by its name."""

    began: float
    numbers: dict[str, int] = field(default_factory=dict)


class Fading:
    """Turns the periods over, and forgets what the one before the last touched last."""

    def __init__(self, parts: Mapping[str, object]) -> None:
        self.shelf = Shelf("period", Period, parts, 1)

    def resume(self, shelves: Sequence[KeyedParts]) -> None:
        """Shelves whose latest parts are gone go on with numbers that were never given."""
        period = self.shelf.get("now") or Period(0.0)
        for shelf in shelves:
            shelf.number = max(shelf.number, period.numbers.get(shelf.name, 0))

    def run(self, wall: float, shelves: Sequence[KeyedParts]) -> None:
        """Does what is due at a time in epoch seconds."""
        period = self.shelf.get("now") or Period(wall + 1.0)
        if 0 <= wall - period.began < PERIOD_S:
            return
        for shelf in shelves if wall > period.began else ():  # the first period, and a clock that went back, forget nothing
            shelf.fade(period.numbers.get(shelf.name, 0))
        self.shelf.put("now", Period(wall, {shelf.name: shelf.number for shelf in shelves}))

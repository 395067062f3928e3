"""What a condition is, and what it knows about the moment in which an event is taken in."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from recompile_watch.core.events import Event
from recompile_watch.core.runs import Run
from recompile_watch.core.shelves import KeyedParts
from recompile_watch.core.signals import Signal

NO_RULE = "the rule no longer exists"
NO_SOURCE = "its source is no longer watched"


@dataclass(frozen=True, slots=True)
class Sight:
    """at: epoch seconds by the log's time. wall, steady: of the clocks. phase: of the compiler, None while unknown.

    source: the configured name of the source. model: the one the event is about, None where that is not known.
    """

    at: float
    wall: float
    steady: float
    phase: str | None
    source: str
    model: str | None = None


class Unjudged(NamedTuple):
    """A condition that held and that no setting judges any more. because: why, in words."""

    signal: Signal
    because: str


class Condition(Protocol):
    """Something that may hold: it takes events of some kinds and says when it begins, goes on and is over.

    revise: asked once at a start, for what an earlier run said and these settings no longer judge; it is forgotten there.
    Its sources are those that are watched; empty for all.
    """

    @property
    def kinds(self) -> frozenset[str]: ...
    @property
    def shelves(self) -> tuple[KeyedParts, ...]: ...
    def take(self, event: Event, sight: Sight) -> Iterable[Signal]: ...
    def run(self, steady: float) -> Iterable[Signal]: ...
    def due(self) -> float | None: ...
    def revise(self, sources: Collection[str]) -> Iterable[Unjudged]: ...


@runtime_checkable
class RunCondition(Protocol):
    """A condition that takes many events at once, and says what it would say of each, whatever the time."""

    def take_run(self, run: Run, source: str) -> Iterable[tuple[int, Signal]]:
        """Which events of a run, by index and in their order, make it say what. source: its configured name."""
        ...


class EventCondition:
    """A condition on which time alone has no effect."""

    def run(self, steady: float) -> Iterable[Signal]:
        """Nothing: time alone changes nothing."""
        return ()

    def due(self) -> float | None:
        """Never."""
        return None

    def revise(self, sources: Collection[str]) -> Iterable[Unjudged]:
        """Nothing: what it judges, it judges with any settings."""
        return ()


def number(value: object) -> float | None:
    """A finite number of an event's field; a rule of the user's may capture text."""
    if type(value) is int or type(value) is float:
        return float(value) if math.isfinite(value) else None
    return None

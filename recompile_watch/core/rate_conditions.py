"""Too many events of a kind in a window."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from recompile_watch.core.events import Event
from recompile_watch.core.shelves import Shelf
from recompile_watch.core.sight import NO_RULE, Sight, Unjudged
from recompile_watch.core.signals import Signal
from recompile_watch.core.units import duration_text
from recompile_watch.core.watch_settings import Rate
from recompile_watch.core.windows import Recent


@dataclass(slots=True)
class RateState:
    """recent: of the events. until: when it is over if no more come, on the steady clock; None while it does not hold."""

    recent: Recent = field(default_factory=Recent)
    until: float | None = None


class RateCondition:
    """Holds while the newest events of a kind come too fast."""

    def __init__(self, rates: tuple[Rate, ...], parts: Mapping[str, object]) -> None:
        self._rates: dict[str, list[Rate]] = {}
        for rate in rates:
            self._rates.setdefault(rate.kind, []).append(rate)
        self.kinds = frozenset(self._rates)
        self._states = Shelf("window", RateState, parts, 1_000, lambda state: state.until is None)
        self.shelves = (self._states,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """An event of a kind that is counted."""
        for rate in self._rates[event.kind]:
            key = _key(rate)
            state = self._states.get(key) or RateState()
            is_fast = state.recent.add(sight.at, rate.count, rate.window_s, sight.wall)
            if is_fast and state.until is None:
                yield _signal(rate)
            if is_fast:
                state.until = sight.steady + rate.window_s
            self._states.put(key, state)

    def run(self, steady: float) -> Iterator[Signal]:
        """What is over."""
        for rate in (rate for rates in self._rates.values() for rate in rates):
            state = self._states.get(_key(rate))
            if state is not None and state.until is not None and steady >= state.until:
                state.until = None
                self._states.put(_key(rate), state)
                yield _signal(rate, is_over=True)

    def revise(self, sources: Collection[str]) -> Iterator[Unjudged]:
        """What a rate said that is no longer set."""
        known = {_key(rate) for rates in self._rates.values() for rate in rates}
        for key, state in [item for item in self._states.items() if item[0] not in known]:
            self._states.drop(key)
            if state.until is not None:
                yield Unjudged(Signal("too_many", key.rsplit("/", 2)[0], is_over=True), NO_RULE)

    def due(self) -> float | None:
        """The earliest end."""
        return min((state.until for state in self._states.values() if state.until is not None), default=None)


def _key(rate: Rate) -> str:
    return f"{rate.kind}/{rate.count}/{rate.window_s:g}"


def _signal(rate: Rate, *, is_over: bool = False) -> Signal:
    words = rate.kind.replace("_", " ")
    return Signal(
        "too_many", rate.kind, rate.severity, f"{rate.count} times '{words}' within {duration_text(rate.window_s)}",
        "What fails so often does not mend itself: the bot goes on without it.", cause=_key(rate), is_over=is_over,
    )  # fmt: skip

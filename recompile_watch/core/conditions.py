"""All conditions together: which events each of them takes, and what they say."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter

from recompile_watch.core.absence import Absence
from recompile_watch.core.compile_conditions import HeadroomCondition, LateRecompilesCondition
from recompile_watch.core.events import Event
from recompile_watch.core.heard import Heard, Trouble
from recompile_watch.core.level_conditions import LatencyCondition, MemoryCondition
from recompile_watch.core.mode_conditions import DriftCondition
from recompile_watch.core.quote_conditions import QuoteCondition
from recompile_watch.core.rate_conditions import RateCondition
from recompile_watch.core.return_conditions import MissingSymbolCondition, ReturnCondition
from recompile_watch.core.runs import Run
from recompile_watch.core.shelves import KeyedParts
from recompile_watch.core.sight import Condition, EventCondition, RunCondition, Sight, Unjudged
from recompile_watch.core.signals import Signal
from recompile_watch.core.watch_settings import WatchSettings


class Conditions:
    """Feeds the conditions and gathers what they say."""

    def __init__(self, settings: WatchSettings, parts: Mapping[str, object], is_market_open: Callable[[float], bool]) -> None:
        self._sources = frozenset(source.name for source in settings.sources)
        self._quotes = QuoteCondition(is_market_open)
        self._absence = Absence(settings.sources, parts, is_market_open, looks_s=settings.looks_s)
        self._all: tuple[Condition, ...] = (
            HeadroomCondition(settings.compiling, parts), LateRecompilesCondition(settings.compiling, parts), RateCondition(settings.rates, parts),
            LatencyCondition(settings.latency, parts), MemoryCondition(settings.memory, parts), ReturnCondition(settings.returns, parts),
            MissingSymbolCondition(parts), self._quotes, DriftCondition(settings.models, parts),
        )  # fmt: skip
        self._by_kind: dict[str, list[Condition]] = {}
        for condition in self._all:
            for kind in sorted(condition.kinds):
                self._by_kind.setdefault(kind, []).append(condition)
        self._of_runs = {kind: [one for one in found if isinstance(one, RunCondition)] for kind, found in self._by_kind.items()}
        self.timed = frozenset(kind for condition in self._all if not isinstance(condition, EventCondition) for kind in condition.kinds)

    @property
    def shelves(self) -> Iterator[KeyedParts]:
        """What they remember."""
        yield from self._absence.shelves
        for condition in self._all:
            yield from condition.shelves

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """What an event makes them say."""
        for condition in self._by_kind.get(event.kind, ()):
            yield from condition.take(event, sight)

    def takes(self, kind: str) -> bool:
        """True when one of the conditions looks at events of a kind."""
        return kind in self._by_kind

    def takes_runs(self, kind: str) -> bool:
        """True when none of the conditions must see each event of a kind by itself."""
        return len(self._of_runs.get(kind, ())) == len(self._by_kind.get(kind, ()))

    def take_run(self, run: Run, source: str) -> Iterable[tuple[int, Signal]]:
        """What the events of a run make them say, in their order."""
        found = [condition.take_run(run, source) for condition in self._of_runs.get(run.kind, ())]
        return merge(*found, key=itemgetter(0)) if len(found) > 1 else found[0] if found else ()

    def matters(self, event: Event, sight: Sight) -> bool:
        """False for an event that is no problem at its time."""
        return self._quotes.matters(event, sight)

    def trouble(self, trouble: Trouble) -> None:
        """Takes a fault of the watching itself."""
        self._absence.trouble(trouble)

    def hear(self, heard: Sequence[Heard], now: float) -> Iterator[Signal]:
        """What the lines of sources, or their absence, make them say."""
        yield from self._absence.hear(heard, now)

    def run(self, steady: float) -> Iterator[Signal]:
        """What time alone makes them say."""
        for condition in self._all:
            yield from condition.run(steady)

    def revise(self) -> Iterator[Unjudged]:
        """What an earlier run said and these settings no longer judge."""
        yield from self._absence.revise(self._sources)
        for condition in self._all:
            yield from condition.revise(self._sources)

    def due(self, kinds: Iterable[str] | None = None) -> float | None:
        """When ``run`` has work, on the steady clock; with kinds, work of the conditions that take events of them."""
        some = self._all if kinds is None else [condition for kind in kinds for condition in self._by_kind.get(kind, ())]
        return min((due for condition in some if (due := condition.due()) is not None), default=None)

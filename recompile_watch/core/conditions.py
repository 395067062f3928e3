"""All conditions together: which events each of them takes, and what they say."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from recompile_watch.core.events import Event
from recompile_watch.core.heard import Heard
from recompile_watch.core.shelves import KeyedParts
from recompile_watch.core.sight import Sight
from recompile_watch.core.signals import Signal
from recompile_watch.core.watch_settings import WatchSettings


class Conditions:
    """Feeds the conditions and gathers what they say."""

    def __init__(self, settings: WatchSettings, parts: Mapping[str, object], is_market_open: Callable[[float], bool]) -> None:
        self._is_market_open = is_market_open

    @property
    def shelves(self) -> Iterator[KeyedParts]:
        """What they remember."""
        yield from ()

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """What an event makes them say."""
        yield from ()

    def counts(self, event: Event, sight: Sight) -> bool:
        """False for an event that is no problem at its time, such as a stock without a quote while the market is closed."""
        return True

    def hear(self, heard: Sequence[Heard], now: float) -> Iterator[Signal]:
        """What the lines of sources, or their absence, make them say."""
        yield from ()

    def run(self, steady: float) -> Iterator[Signal]:
        """What time alone makes them say."""
        yield from ()

    def due(self) -> float | None:
        """When ``run`` has work, on the steady clock."""
        return None

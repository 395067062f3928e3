"""Made-up quotes: when they matter, and when a real one ends the matter."""

from collections.abc import Callable, Iterator

from recompile_watch.core.events import Event
from recompile_watch.core.runs import Run
from recompile_watch.core.shelves import KeyedParts
from recompile_watch.core.sight import EventCondition, Sight, number
from recompile_watch.core.signals import Signal
from recompile_watch.core.symbols import is_crypto

KIND = "synthetic_quote"


class QuoteCondition(EventCondition):
    """A real quote of a symbol ends its incident of made-up ones."""

    kinds = frozenset({"quote"})
    shelves: tuple[KeyedParts, ...] = ()

    def __init__(self, is_market_open: Callable[[float], bool]) -> None:
        self._is_market_open = is_market_open

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A quote."""
        if _is_real(event.extra.get("bid"), event.extra.get("ask")):
            yield Signal(KIND, str(event.extra.get("symbol")), is_over=True)

    def take_run(self, run: Run, source: str) -> Iterator[tuple[int, Signal]]:
        """Several quotes."""
        for index, (symbol, bid, ask) in enumerate(zip(run.column("symbol"), run.column("bid"), run.column("ask"), strict=True)):
            if _is_real(bid, ask):
                yield index, Signal(KIND, str(symbol), is_over=True)

    def matters(self, event: Event, sight: Sight) -> bool:
        """False for a stock without a quote while the market is closed: then there is none."""
        if event.kind != KIND:
            return True
        symbol = event.extra.get("symbol")
        return not isinstance(symbol, str) or is_crypto(symbol) or self._is_market_open(sight.at)


def _is_real(bid: object, ask: object) -> bool:
    """False for a quote whose sides are equal or zero."""
    low, high = number(bid), number(ask)
    return low is not None and high is not None and 0 < low < high

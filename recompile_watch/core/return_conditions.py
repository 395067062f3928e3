"""Returns that are bad, and symbols that an analysis left out."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from recompile_watch.core.events import Event
from recompile_watch.core.runs import Run
from recompile_watch.core.shelves import Shelf
from recompile_watch.core.sight import NO_RULE, NO_SOURCE, EventCondition, Sight, Unjudged, number
from recompile_watch.core.signals import Signal
from recompile_watch.core.symbols import is_crypto
from recompile_watch.core.watch_settings import ReturnSettings

MAX_SERIES = 2_000
MAX_SYMBOLS = 200
HISTORY = 3
REGULAR = 2  # in so many of the latest analyses a symbol must have been to be missed
FINISH_S = 120.0  # the plan and the tables stand in different files; so long the last table may come after the plan


@dataclass(slots=True)
class Returns:
    """The returns of one symbol and strategy, in log order, as shares."""

    values: list[float] = field(default_factory=list)
    is_low: bool = False


class ReturnCondition(EventCondition):
    """A strategy's return is below a bound, below its own normal level, or changed its sign."""

    kinds = frozenset({"strategy_return"})

    def __init__(self, settings: ReturnSettings, parts: Mapping[str, object]) -> None:
        self._settings = settings
        self._series = Shelf("returns", Returns, parts, MAX_SERIES, lambda returns: not returns.is_low)
        self.shelves = (self._series,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A row of a strategy table."""
        signal = self._judged(event.extra.get("symbol"), event.extra.get("strategy"), event.extra.get("return"))
        if signal is not None:
            yield signal

    def take_run(self, run: Run, source: str) -> Iterator[tuple[int, Signal]]:
        """A whole table."""
        for index, row in enumerate(zip(run.column("symbol"), run.column("strategy"), run.column("return"), strict=True)):
            signal = self._judged(*row)
            if signal is not None:
                yield index, signal

    def _judged(self, symbol: object, strategy: object, share: object) -> Signal | None:
        """Takes one return; what it says, if it is bad or good again."""
        value = number(share)
        strategy, symbol = str(strategy), str(symbol)
        if value is None or not self._is_judged(strategy):
            return None
        key = f"{symbol} {strategy}"
        series = self._series.get(key) or Returns()
        normal = median(series.values) if len(series.values) >= self._settings.normal_from else None
        cause = self._cause(value, normal)
        is_changed = (cause is not None) != series.is_low
        series.is_low = cause is not None
        signal = self._signal(symbol, strategy, value, normal, cause, len(series.values)) if is_changed else None
        series.values = [*series.values, value][-self._settings.window :]
        self._series.put(key, series)
        return signal

    def revise(self, sources: Collection[str]) -> Iterator[Unjudged]:
        """The returns of strategies that are no longer judged."""
        for key, series in [item for item in self._series.items() if not self._is_judged(item[0].partition(" ")[2])]:
            self._series.drop(key)
            if series.is_low:
                yield Unjudged(Signal("return_low", key, is_over=True), NO_RULE)

    def _is_judged(self, strategy: str) -> bool:
        return "*" in self._settings.strategies or strategy in self._settings.strategies

    def _cause(self, value: float, normal: float | None) -> str | None:
        settings = self._settings
        if normal is not None and value < 0 < normal and normal - value >= settings.margin:
            return "sign_flip"
        if value < settings.bound:
            return "below_bound"
        is_drop = normal is not None and normal > 0 and value < normal * (1 - settings.drop) and normal - value >= settings.margin
        return "below_normal" if is_drop else None

    def _signal(self, symbol: str, strategy: str, value: float, normal: float | None, cause: str | None, n: int) -> Signal:
        usual = f"; normally {normal:+.2%} (median of {n} analyses)" if normal is not None else f"; normal level not known yet ({n} analyses)"
        bound = f", below the bound of {self._settings.bound:+.2%}" if cause == "below_bound" else ""
        return Signal(
            "return_low", f"{symbol} {strategy}", "warning", f"{symbol}: {strategy} returns {value:+.2%}{bound}{usual}",
            "The bot sizes its trades by this simulated return." if cause != "sign_flip" else "What earned now loses in the simulation.",
            symbol=symbol, cause=cause, is_over=cause is None,
        )  # fmt: skip


@dataclass(slots=True)
class Cycle:
    """The analysis of one source that is running. history: symbols of the latest ones. finish_at: on the steady clock."""

    name: str = ""
    symbols: list[str] = field(default_factory=list)
    history: list[list[str]] = field(default_factory=list)
    finish_at: float | None = None
    missing: list[str] = field(default_factory=list)
    is_running: bool = False


class MissingSymbolCondition:
    """An analysis finished without a symbol that the ones before had."""

    kinds = frozenset({"analysis_start", "plan", "strategy_return"})

    def __init__(self, parts: Mapping[str, object]) -> None:
        self._cycles = Shelf("cycle", Cycle, parts, 100, lambda cycle: not cycle.missing)
        self.shelves = (self._cycles,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A part of an analysis."""
        cycle = self._cycles.get(sight.source) or Cycle()
        match event.kind:
            case "analysis_start":
                yield from self._finish(cycle)
                cycle.name, cycle.symbols, cycle.is_running = str(event.extra.get("analysis") or ""), [], True
            case "plan" if cycle.is_running:
                cycle.finish_at = sight.steady + FINISH_S
            case "strategy_return" if not _adds(cycle, event.extra.get("symbol")):
                return
        self._cycles.put(sight.source, cycle)

    def take_run(self, run: Run, source: str) -> Iterator[tuple[int, Signal]]:
        """Tables: they show that their symbols were analysed."""
        cycle = self._cycles.get(source) or Cycle()
        if [symbol for symbol in dict.fromkeys(run.column("symbol")) if _adds(cycle, symbol)]:
            self._cycles.put(source, cycle)
        return iter(())

    def run(self, steady: float) -> Iterator[Signal]:
        """The analyses whose end has come."""
        for source, cycle in list(self._cycles.items()):
            if cycle.finish_at is not None and steady >= cycle.finish_at:
                yield from self._finish(cycle)
                self._cycles.put(source, cycle)

    def revise(self, sources: Collection[str]) -> Iterator[Unjudged]:
        """What was missing in the analyses of sources that are no longer watched."""
        for source, cycle in [item for item in self._cycles.items() if sources and item[0] not in sources]:
            self._cycles.drop(source)
            yield from (Unjudged(Signal("symbol_missing", symbol, is_over=True), NO_SOURCE) for symbol in cycle.missing)

    def due(self) -> float | None:
        """The earliest end."""
        return min((cycle.finish_at for cycle in self._cycles.values() if cycle.finish_at is not None), default=None)

    def _finish(self, cycle: Cycle) -> Iterator[Signal]:
        """Judges the analysis that ended; one that was cut off by the next start counts as well."""
        is_judged = cycle.finish_at is not None
        cycle.finish_at = None
        if not is_judged or not cycle.is_running:
            return
        cycle.is_running = False
        is_crypto_only = cycle.name.upper().startswith("CRYPTO")
        expected = [symbol for symbol in _regular(cycle.history) if is_crypto(symbol) or not is_crypto_only]
        missing = [symbol for symbol in expected if symbol not in cycle.symbols]
        for symbol in sorted({*missing, *cycle.missing}):
            if (symbol in missing) != (symbol in cycle.missing):
                yield _missing(symbol, cycle.name, is_over=symbol not in missing)
        cycle.missing = missing
        if not is_crypto_only and cycle.symbols:
            cycle.history = [*cycle.history, cycle.symbols][-HISTORY:]


def _adds(cycle: Cycle, symbol: object) -> bool:
    """Notes that a symbol was analysed. True when that is new."""
    if not isinstance(symbol, str) or symbol in cycle.symbols or len(cycle.symbols) >= MAX_SYMBOLS:
        return False
    cycle.symbols.append(symbol)
    return True


def _regular(history: list[list[str]]) -> Iterable[str]:
    names = dict.fromkeys(symbol for symbols in history for symbol in symbols)
    return [name for name in names if sum(name in symbols for symbols in history) >= REGULAR]


def _missing(symbol: str, analysis: str, *, is_over: bool) -> Signal:
    name = f"The {analysis.lower()} analysis" if analysis else "An analysis"
    return Signal(
        "symbol_missing", symbol, "warning", f"{name} finished without {symbol}, which the ones before had",
        f"The bot has no new forecast for {symbol}: an open position in it goes unattended.", symbol=symbol, is_over=is_over,
    )  # fmt: skip

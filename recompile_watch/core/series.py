"""Numbers over time: returns, latency, GPU memory and quotes, in bounded memory.

A log may hold hundreds of thousands of such events a second's reading, so each one costs a dictionary update and
no object.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from recompile_watch.core.events import Event
from recompile_watch.core.sightings import TableRows
from recompile_watch.core.sums import Sums

MAX_ROWS = 10_000
MAX_KEYS = 2_000
MAX_DISTINCT = 20_000
P99_FROM = 100

Row = Event | tuple[TableRows, int]  # an event, or a row of a table


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One row of a strategy table. values: the fields of the ``strategy_return`` event."""

    time: str | None
    source: str
    line: int
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one inference. derived: computed from counters, an average over several calls each.

    n: how many measurements. p99 is None below 100 of them.
    """

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    n: int = 0
    derived: bool = False


@dataclass(frozen=True, slots=True)
class StageMemory:
    """GPU memory of one stage of the program, in MB of 1e6 bytes."""

    model: str | None
    max_peak_mb: float | None
    last_peak_mb: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """All series of a report.

    strategy_return: in log order; ``strategy_rows_left_off`` says how many rows stand only for their latest value.
    strategy_daily_return, validation_loss: the latest value by (symbol, strategy or target).
    synthetic_quotes, real_quotes: how many, by symbol.
    """

    strategy_return: tuple[StrategyRow, ...] = ()
    strategy_rows_left_off: int = 0
    strategy_daily_return: Mapping[tuple[str, str], object] = field(default_factory=dict)
    validation_loss: Mapping[tuple[str, str], object] = field(default_factory=dict)
    inference: Latency = Latency()
    inference_by_model: Mapping[str, Latency] = field(default_factory=dict)
    gpu_memory: Mapping[str, StageMemory] = field(default_factory=dict)
    synthetic_quotes: Mapping[str, int] = field(default_factory=dict)
    real_quotes: Mapping[str, int] = field(default_factory=dict)


class Histogram:
    """Counts of values: exact, and from ``max_distinct`` different values on as ``rounded`` makes them (four digits)."""

    def __init__(self, max_distinct: int = MAX_DISTINCT, rounded: Callable[[float], float] | None = None) -> None:
        self._max_distinct, self._rounded = max_distinct, rounded or _four_digits
        self._counts: dict[float, int] = {}
        self._rounds = False

    def add(self, value: float, times: int = 1) -> None:
        """Takes a value."""
        if self._rounds:
            value = self._rounded(value)
        counts = self._counts
        counts[value] = counts.get(value, 0) + times
        if len(counts) > self._max_distinct and not self._rounds:
            self._round()

    def merge(self, other: "Histogram") -> None:
        """Takes all values of another one."""
        if other._rounds and not self._rounds:
            self._round()
        for value, times in other._counts.items():
            self.add(value, times)

    def latency(self, *, derived: bool) -> Latency:
        """The percentiles (nearest rank)."""
        n = sum(self._counts.values())
        if not n:
            return Latency()
        values = sorted(self._counts.items())
        p99 = _rank(values, n, 99) if n >= P99_FROM else None
        return Latency(_rank(values, n, 50), _rank(values, n, 95), p99, n, derived)

    def _round(self) -> None:
        counts, self._counts, self._rounds = self._counts, {}, True
        for value, times in counts.items():
            self.add(value, times)


class Series:
    """Takes the bulk events of a log and gives the numbers at the end. ``takers`` is what to call by event kind."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._latest: dict[tuple[object, object], Row] = {}
        self._left_off = 0
        self._daily: dict[tuple[str, str], object] = {}
        self._losses: dict[tuple[str, str], object] = {}
        self._memory: dict[object, list[object]] = {}
        self._printed: dict[str, Histogram] = {}
        self._derived: dict[str, Histogram] = {}
        self._synthetic: dict[object, int] = {}
        self._real: dict[object, int] = {}
        self.takers: dict[str, Callable[[Event], None]] = {
            "strategy_return": self._strategy,
            "strategy_daily_return": self._daily_return,
            "validation_loss": self._loss,
            "inference": self._inference,
            "gpu_memory": self._gpu_memory,
            "quote": self._quote,
            "synthetic_quote": self._synthetic_quote,
        }

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "takers"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__()  # type: ignore[misc]
        self.__dict__.update(state)

    def add_table(self, table: TableRows) -> None:
        """Takes the rows of a table that were read as one."""
        if table.kind != "strategy_return":
            return
        if len(self._rows) + len(table.at) <= MAX_ROWS:
            self._rows += [(table, number) for number in range(len(table.at))]
            return
        for number, key in enumerate(zip(table.column("symbol"), table.column("strategy"), strict=True)):
            self._keep_row(key, (table, number))

    def add_sums(self, sums: Sums) -> None:
        """Takes metric lines and tables that were added up."""
        for memory in sums.memory:
            self._merge_memory(memory.stage, [memory.model, memory.highest, None, memory.n])
        for memory in sorted(sums.memory, key=attrgetter("last_offset")):  # two models may take turns in one stage
            self._merge_memory(memory.stage, [None, None, memory.last, 0])
        for symbol, times in sums.quotes.items():
            _count(self._real, symbol, times)
        for key, value in sums.latest.items():
            _latest(self._daily if sums.kind == "strategy_daily_return" else self._losses, key, value)

    def merge(self, later: "Series") -> None:
        """Takes in the numbers of the part of the log that follows."""
        for row in later._rows:
            self._keep_row(_row_key(row), row)
        for key, row in later._latest.items():
            self._keep_row(key, row)
        self._left_off += later._left_off - len(later._latest)
        for mine, more in ((self._daily, later._daily), (self._losses, later._losses)):
            for key, value in more.items():
                if key in mine or len(mine) < MAX_KEYS:
                    mine[key] = value
        for counts, adds in ((self._synthetic, later._synthetic), (self._real, later._real)):
            for symbol, times in adds.items():
                _count(counts, symbol, times)
        for histograms, others in ((self._printed, later._printed), (self._derived, later._derived)):
            for model, other in others.items():
                _named(histograms, model).merge(other)
        for stage, memory in later._memory.items():
            self._merge_memory(stage, memory)

    def numbers(self) -> Numbers:
        """Everything so far."""
        measured = self._printed or self._derived
        derived = not self._printed
        whole = Histogram()
        for histogram in measured.values():
            whole.merge(histogram)
        return Numbers(
            strategy_return=tuple(_strategy_row(row) for row in [*self._rows, *self._latest.values()]),
            strategy_rows_left_off=self._left_off - len(self._latest),
            strategy_daily_return=dict(self._daily), validation_loss=dict(self._losses),
            inference=whole.latency(derived=derived),
            inference_by_model={model: one.latency(derived=derived) for model, one in sorted(measured.items())},
            gpu_memory={str(stage or "unknown"): _stage_memory(memory) for stage, memory in self._memory.items()},
            synthetic_quotes=_named_counts(self._synthetic), real_quotes=_named_counts(self._real),
        )  # fmt: skip

    def _strategy(self, event: Event) -> None:
        self._keep_row((event.extra.get("symbol"), event.extra.get("strategy")), event)

    def _keep_row(self, key: tuple[object, object], row: Row) -> None:
        if len(self._rows) < MAX_ROWS:
            self._rows.append(row)
            return
        self._left_off += 1
        if self._latest.pop(key, None) is not None or len(self._latest) < MAX_KEYS:
            self._latest[key] = row

    def _daily_return(self, event: Event) -> None:
        extra = event.extra
        _latest(self._daily, (extra["symbol"], extra["strategy"]), extra["return"])

    def _loss(self, event: Event) -> None:
        extra = event.extra
        _latest(self._losses, (extra["symbol"], extra["target"]), extra["value"])

    def _inference(self, event: Event) -> None:
        extra = event.extra
        value = extra["milliseconds"]
        if type(value) is float or type(value) is int:
            histograms = self._derived if extra["derived"] else self._printed
            model = extra["model"]
            name = model if type(model) is str else "unknown"
            (histograms.get(name) or _named(histograms, name)).add(value)

    def _gpu_memory(self, event: Event) -> None:
        extra = event.extra
        stage = extra["stage"]
        peak = extra["peak_mb"]
        memory = self._memory.get(stage)
        if memory is None:
            if len(self._memory) >= MAX_KEYS:
                return
            memory = self._memory[stage] = [extra["model"], None, None, 0]
        memory[3] += 1  # type: ignore[operator]
        if type(peak) is float or type(peak) is int:  # exact types: a rule of the user's may capture text
            memory[2] = peak
            if memory[1] is None or peak > memory[1]:  # type: ignore[operator]
                memory[1] = peak

    def _merge_memory(self, stage: object, more: list[object]) -> None:
        memory = self._memory.get(stage)
        if memory is None:
            if len(self._memory) < MAX_KEYS:
                self._memory[stage] = list(more)
            return
        model, highest, last, n = more
        memory[0] = memory[0] or model
        memory[3] += n  # type: ignore[operator]
        memory[2] = memory[2] if last is None else last
        if highest is not None and (memory[1] is None or highest > memory[1]):  # type: ignore[operator]
            memory[1] = highest

    def _quote(self, event: Event) -> None:
        _count(self._real, event.extra["symbol"], 1)

    def _synthetic_quote(self, event: Event) -> None:
        _count(self._synthetic, event.extra["symbol"], 1)


def _strategy_row(row: Row) -> StrategyRow:
    if isinstance(row, Event):
        return StrategyRow(row.time, row.source, row.line, row.extra)
    table, number = row
    return StrategyRow(table.time, table.source, table.lines[table.at[number]], table.row(number))


def _row_key(row: Row) -> tuple[object, object]:
    fields = _strategy_row(row).values
    return fields.get("symbol"), fields.get("strategy")


def _latest(values: dict[tuple[str, str], object], key: tuple[object, object], value: object) -> None:
    if key in values or len(values) < MAX_KEYS:
        values[key] = value  # type: ignore[index]


def _count(counts: dict[object, int], key: object, times: int) -> None:
    if key in counts or len(counts) < MAX_KEYS:
        counts[key] = counts.get(key, 0) + times
    else:
        counts["(others)"] = counts.get("(others)", 0) + times


def _named(histograms: dict[str, Histogram], model: str) -> Histogram:
    found = histograms.get(model)
    if found is None:
        if len(histograms) >= 50:
            model = "(others)"
        found = histograms.setdefault(model, Histogram())
    return found


def _named_counts(counts: Mapping[object, int]) -> dict[str, int]:
    return {str(name or "unknown"): count for name, count in counts.items()}


def _stage_memory(memory: list[object]) -> StageMemory:
    model, highest, last, n = memory
    return StageMemory(
        model if isinstance(model, str) else None, highest if isinstance(highest, int | float) else None,
        last if isinstance(last, int | float) else None, n if isinstance(n, int) else 0,
    )  # fmt: skip


def _rank(values: list[tuple[float, int]], n: int, percent: int) -> float:
    """The nearest-rank percentile: the smallest value that ``percent`` of all do not exceed."""
    wanted = -(-n * percent // 100)
    for value, times in values:
        wanted -= times
        if wanted <= 0:
            return value
    return values[-1][0]


def _four_digits(value: float) -> float:
    """Rounds to four digits, ``round`` where it will do: it takes a third of the time of formatting."""
    if 1 <= value < 10_000:
        return round(value, 3 if value < 10 else 2 if value < 100 else 1 if value < 1000 else 0)
    return float(f"{value:.4g}")

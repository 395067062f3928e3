"""Hourly series: what the events of the bot measured, added up by the hour of the log's own time.

The watch gives out what each call measured and remembers nothing of it; whoever keeps the hours adds that to them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from recompile_watch.core.codec import from_json
from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import Event
from recompile_watch.core.findings import LIMIT_KIND
from recompile_watch.core.normals import bucket_of, percentile_of
from recompile_watch.core.runs import Run
from recompile_watch.core.sight import number

HOUR_S = 3600.0
MAX_BUCKETS = 100  # a factor of seven between the highest and the lowest; what lies below counts as the lowest
MAX_SUBJECT_CHARS = 120
UNKNOWN = "unknown"
# What is measured: the kinds of event that hold a value, with the fields that it is taken from; those that are only counted.
MEASURED: Mapping[str, tuple[str, ...]] = {
    "inference": ("model", "milliseconds"),
    "gpu_memory": ("model", "stage", "peak_mb"),
    "strategy_return": ("symbol", "strategy", "return"),
    "synthetic_quote": ("symbol",),
    "quote": ("symbol", "bid", "ask"),
}
COUNTED: Mapping[str, str] = {"recompile": "recompiles", LIMIT_KIND: "limit_hits"}
WITH_MEDIAN = frozenset({"latency_ms", "memory_mb"})
Key = tuple[int, str, str]  # the hour since 1970, what was measured, of what


@dataclass(slots=True)
class Hour:
    """The values of one series in one hour. n: how many. total, low, high: sum, least and greatest.

    counts: values above 0 by the logarithm of their size, as a normal level has them; only where a median is of use.
    """

    n: int = 0
    total: float = 0.0
    low: float = inf
    high: float = -inf
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, values: Sequence[float], *, has_median: bool) -> None:
        """Takes values, at least one."""
        self.n += len(values)
        self.total += sum(values)
        self.low, self.high = min(self.low, *values), max(self.high, *values)
        if has_median:
            for bucket, times in Counter(bucket_of(value) for value in values if value > 0).items():
                self._count(bucket, times)

    def merge(self, other: "Hour") -> None:
        """Takes all values of another one."""
        self.n += other.n
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for bucket, times in other.counts.items():
            self._count(bucket, times)

    @property
    def mean(self) -> float | None:
        """Of all values; None of none."""
        return self.total / self.n if self.n else None

    @property
    def median(self) -> float | None:
        """To about 2 %; None where it is not kept."""
        return percentile_of(self.counts, sum(self.counts.values()), 50) if self.counts else None

    def _count(self, bucket: str, times: int) -> None:
        self.counts[bucket] = self.counts.get(bucket, 0) + times
        if len(self.counts) > MAX_BUCKETS:  # the two lowest become one: what is slow or large is what matters
            lowest, next_lowest = sorted(self.counts, key=int)[:2]
            self.counts[next_lowest] += self.counts.pop(lowest)


class Measured:
    """What was measured since it was asked last. strategies: those whose returns count; ``*`` stands for all."""

    def __init__(self, strategies: tuple[str, ...]) -> None:
        self._strategies = strategies
        self._hours: dict[Key, Hour] = {}
        self._peaks: defaultdict[tuple[int, object, object], list[float | None]] = defaultdict(list)

    def take(self, event: Event, at: float, model_of: Callable[[Event], str | None]) -> None:
        """Takes an event of the hour in which ``at`` lies, in epoch seconds."""
        if event.kind in COUNTED and not event.extra.get("refused"):
            self._add(at, COUNTED[event.kind], model_of(event) or UNKNOWN, 1.0)
        elif event.kind in MEASURED:
            self.take_fields(event.kind, event.extra.get, at)

    def take_run(self, run: Run, times: Sequence[float]) -> None:
        """Takes many events of one kind at once, with the time of each."""
        if run.kind == "gpu_memory":
            self._take_peaks(run, times)
            return
        columns = [run.column(name) for name in MEASURED.get(run.kind, ())]
        if columns:
            for at, row in zip(times, zip(*columns, strict=True), strict=True):
                self.take_fields(run.kind, dict(zip(MEASURED[run.kind], row, strict=True)).get, at)

    def _take_peaks(self, run: Run, times: Sequence[float]) -> None:
        peaks = run.numbers("peak_mb")
        first, last = int(min(times) // HOUR_S), int(max(times) // HOUR_S)
        for stage, indexes in run.stages().items():
            if first == last:
                self._peaks[first, *stage] += map(peaks.__getitem__, indexes)
            else:
                for index in indexes:
                    self._peaks[int(times[index] // HOUR_S), *stage].append(peaks[index])

    def take_fields(self, kind: str, field: Callable[[str], object], at: float) -> None:
        """Takes the fields that ``MEASURED`` names, of an event of such a kind."""
        match kind:
            case "inference":
                self._add(at, "latency_ms", str(field("model") or UNKNOWN), number(field("milliseconds")))
            case "gpu_memory":
                self._add(at, "memory_mb", _memory_of(field("model"), field("stage")), number(field("peak_mb")))
            case "strategy_return" if "*" in self._strategies or field("strategy") in self._strategies:
                self._add(at, "return", f"{field('symbol')} {field('strategy')}", number(field("return")))
            case "synthetic_quote":
                self._add(at, "synthetic_share", str(field("symbol") or UNKNOWN), 1.0)
            case "quote":
                bid, ask = number(field("bid")), number(field("ask"))
                is_real = bid is not None and ask is not None and 0 < bid < ask
                self._add(at, "synthetic_share", str(field("symbol") or UNKNOWN), 0.0 if is_real else None)

    def given(self) -> Mapping[Key, Hour]:
        """What was measured since the last call."""
        for (hour, model, stage), peaks in self._peaks.items():
            self._add(hour * HOUR_S, "memory_mb", _memory_of(model, stage), *peaks)
        self._peaks.clear()
        hours, self._hours = self._hours, {}
        return hours

    def _add(self, at: float, what: str, subject: str, *values: float | None) -> None:
        known = [value for value in values if value is not None]
        if known:
            hour = self._hours.setdefault((int(at // HOUR_S), what, subject[:MAX_SUBJECT_CHARS]), Hour())
            hour.add(known, has_median=what in WITH_MEDIAN)


def _memory_of(model: object, stage: object) -> str:
    return f"{model or UNKNOWN} {stage or UNKNOWN}"


def hour_of(row: object) -> Hour | None:
    """The hour that was stored as JSON; None where there is none, or one of another version."""
    try:
        return None if row is None else from_json(Hour, row)
    except StoreError:
        return None

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
# What is only counted: kinds of event, and how the series of each is called.
COUNTED: Mapping[str, str] = {"recompile": "recompiles", LIMIT_KIND: "limit_hits"}
WITH_MEDIAN = frozenset({"latency_ms", "memory_mb"})
Key = tuple[int, str, str]  # the hour since 1970, what was measured, of what
Value = tuple[str, str, float | None]  # what was measured, of what, and how much


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
            above = values if self.low > 0 else [value for value in values if value > 0]
            for bucket, times in Counter(map(bucket_of, above)).items():
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
        # The kinds of event that hold a value, with the fields that it is taken from.
        self._measured: Mapping[str, tuple[tuple[str, ...], Callable[..., Value]]] = {
            "inference": (("model", "milliseconds"), _latency),
            "gpu_memory": (("model", "stage", "peak_mb"), _memory),
            "strategy_return": (("symbol", "strategy", "return"), self._return),
            "synthetic_quote": (("symbol",), _synthetic_quote),
            "quote": (("symbol", "bid", "ask"), _quote),
        }
        self._hours: dict[Key, Hour] = {}
        self._peaks: defaultdict[tuple[int, object, object], list[float | None]] = defaultdict(list)

    def measures(self, kind: str) -> bool:
        """True when events of a kind hold a value."""
        return kind in COUNTED or kind in self._measured

    def take(self, event: Event, at: float, model_of: Callable[[Event], str | None]) -> None:
        """Takes an event of the hour in which ``at`` lies, in epoch seconds."""
        if event.kind in COUNTED and not event.extra.get("refused"):
            self._add(at, COUNTED[event.kind], model_of(event) or UNKNOWN, 1.0)
        elif event.kind in self._measured:
            names, value_of = self._measured[event.kind]
            self._add(at, *value_of(*map(event.extra.get, names)))

    def take_run(self, run: Run, times: Sequence[float]) -> None:
        """Takes many events of one kind at once, with the time of each."""
        if run.kind == "gpu_memory":
            self._take_peaks(run, times)
        elif run.kind in self._measured:
            names, value_of = self._measured[run.kind]
            for at, row in zip(times, zip(*map(run.column, names), strict=True), strict=True):
                self._add(at, *value_of(*row))

    def _take_peaks(self, run: Run, times: Sequence[float]) -> None:
        peaks = run.numbers("peak_mb")
        first, last = int(min(times) // HOUR_S), int(max(times) // HOUR_S)
        for stage, indexes in run.stages().items():
            if first == last:
                self._peaks[first, *stage] += map(peaks.__getitem__, indexes)
            else:
                for index in indexes:
                    self._peaks[int(times[index] // HOUR_S), *stage].append(peaks[index])

    def _return(self, symbol: object, strategy: object, share: object) -> Value:
        is_wanted = "*" in self._strategies or strategy in self._strategies
        return "return", f"{symbol} {strategy}", number(share) if is_wanted else None

    def given(self) -> Mapping[Key, Hour]:
        """What was measured since the last call."""
        for (hour, model, stage), peaks in self._peaks.items():
            self._add(hour * HOUR_S, *_memory(model, stage, None)[:2], *peaks)
        self._peaks.clear()
        hours, self._hours = self._hours, {}
        return hours

    def _add(self, at: float, what: str, subject: str, *values: float | None) -> None:
        known = [value for value in values if value is not None]
        if known:
            hour = self._hours.setdefault((int(at // HOUR_S), what, subject[:MAX_SUBJECT_CHARS]), Hour())
            hour.add(known, has_median=what in WITH_MEDIAN)


def _latency(model: object, milliseconds: object) -> Value:
    return "latency_ms", str(model or UNKNOWN), number(milliseconds)


def _memory(model: object, stage: object, peak: object) -> Value:
    return "memory_mb", f"{model or UNKNOWN} {stage or UNKNOWN}", number(peak)


def _synthetic_quote(symbol: object) -> Value:
    return "synthetic_share", str(symbol or UNKNOWN), 1.0


def _quote(symbol: object, bid: object, ask: object) -> Value:
    low, high = number(bid), number(ask)
    is_real = low is not None and high is not None and 0 < low < high
    return "synthetic_share", str(symbol or UNKNOWN), 0.0 if is_real else None


def hour_of(row: object) -> Hour | None:
    """The hour that was stored as JSON; None where there is none, or one of another version."""
    try:
        return None if row is None else from_json(Hour, row)
    except StoreError:
        return None

"""What happened when: events, latency and GPU memory by slices of time, in bounded memory.

All slices are equally long and begin at a multiple of their length since 1970 (UTC). A log that needs more than
``MAX_SLICES`` of them gets the next longer ones. How long they end up depends on which of the shortest hold an event and on
nothing else: parts of a log add up exactly, in any order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import frexp, isfinite, ldexp

from recompile_watch.core.events import Event
from recompile_watch.core.series import Histogram, Latency
from recompile_watch.core.sightings import TableRows, text_or_none
from recompile_watch.core.sums import Sums

MAX_SLICES = 240
MAX_NAMES = 50
MAX_DISTINCT = 200  # latencies of one slice that are kept exactly
OTHERS = "(others)"
MARK_KINDS = frozenset({"model_load", "compile_mode", "warmup_done"})
# Seconds; each divides the next, so that slices join without a rest: ten seconds to an hour, six hours, days, then ever longer.
LENGTHS = (10, 60, 300, 900, 3600, 21_600, 86_400, 5 * 86_400, 20 * 86_400, 100 * 86_400, 500 * 86_400, 10_000 * 86_400, 100_000 * 86_400)
_STEPS = 64  # beyond MAX_DISTINCT a latency is known to one part in 64 to 128, and between these powers of two of milliseconds
_MIN_EXPONENT, _MAX_EXPONENT = -7, 24

Mark = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """One slice. begin_s: seconds since 1970. counts: events by kind. marks: events of ``MARK_KINDS`` by kind and model.

    gpu_peak_mb: the highest GPU memory, by model, in MB of 1e6 bytes.
    """

    begin_s: int
    counts: Mapping[str, int]
    marks: Mapping[Mark, int]
    gpu_peak_mb: Mapping[str, float]
    latency: Latency


@dataclass(frozen=True, slots=True)
class Timeline:
    """The slices that hold anything, in order. length_s: of each."""

    length_s: int = LENGTHS[0]
    slices: tuple[TimeSlice, ...] = ()


@dataclass(slots=True)
class _Slice:
    """A slice that is being filled. printed, derived: latencies, as in ``Series``."""

    counts: dict[str, int] = field(default_factory=dict)
    marks: dict[Mark, int] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    printed: Histogram | None = None
    derived: Histogram | None = None

    def merge(self, other: "_Slice") -> None:
        """Takes in another one."""
        for kind, count in other.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + count
        for mark, count in other.marks.items():
            self.add_mark(mark, count)
        for model, peak in other.peaks.items():
            self.add_peak(model, peak)
        self.printed = _joined(self.printed, other.printed)
        self.derived = _joined(self.derived, other.derived)

    def add_mark(self, mark: Mark, count: int) -> None:
        """Counts a mark; all beyond a number of models in one."""
        if mark not in self.marks and len(self.marks) >= MAX_NAMES:
            mark = (mark[0], OTHERS)
        self.marks[mark] = self.marks.get(mark, 0) + count

    def add_peak(self, model: str, peak: float) -> None:
        """Takes a value of GPU memory."""
        if model not in self.peaks and len(self.peaks) >= MAX_NAMES:
            model = OTHERS
        self.peaks[model] = max(peak, self.peaks.get(model, peak))

    def add_latency(self, milliseconds: float, *, derived: bool) -> None:
        """Takes one measurement."""
        histogram = self.derived if derived else self.printed
        if histogram is None:
            histogram = Histogram(MAX_DISTINCT, _coarse)
            if derived:
                self.derived = histogram
            else:
                self.printed = histogram
        histogram.add(milliseconds)


class TimeSlices:
    """Takes what is dated, and gives the timeline at the end."""

    def __init__(self) -> None:
        self._slices: dict[int, _Slice] = {}
        self._level = 0

    def add(self, event: Event, at: datetime) -> None:
        """Takes one event that happened at a moment."""
        kind = event[0]
        one = self._at(int(at.timestamp() // 1))
        one.counts[kind] = one.counts.get(kind, 0) + 1
        if kind == "gpu_memory":
            peak = event.extra["peak_mb"]
            if (type(peak) is float or type(peak) is int) and isfinite(peak):  # exact types: a rule of the user's may capture text
                one.add_peak(text_or_none(event.extra["model"]) or "unknown", peak)
        elif kind == "inference":
            value = event.extra["milliseconds"]
            if (type(value) is float or type(value) is int) and isfinite(value):
                one.add_latency(value, derived=bool(event.extra["derived"]))
        elif kind in MARK_KINDS:
            one.add_mark((kind, text_or_none(event.extra["model"]) or "unknown"), 1)

    def add_table(self, table: TableRows, at: datetime) -> None:
        """Takes the rows of a table."""
        one = self._at(int(at.timestamp() // 1))
        one.counts[table.kind] = one.counts.get(table.kind, 0) + len(table.at)

    def add_sums(self, sums: Sums) -> None:
        """Takes lines that were read in bulk."""
        for time, n, peaks in sums.dated:
            one = self._at(int(datetime.fromisoformat(time).timestamp() // 1))
            one.counts[sums.kind] = one.counts.get(sums.kind, 0) + n
            for model, peak in peaks.items():
                one.add_peak(model or "unknown", peak)

    def merge(self, other: "TimeSlices") -> None:
        """Takes in everything of another one."""
        while self._level < other._level:
            self._lengthen()
        for place, more in other._slices.items():
            self._at(place * LENGTHS[other._level]).merge(more)

    def timeline(self) -> Timeline:
        """Everything so far. Latencies that the program printed are worth more than derived ones."""
        derived = not any(one.printed for one in self._slices.values())
        length_s = LENGTHS[self._level]
        return Timeline(length_s, tuple(_finished(place * length_s, one, derived=derived) for place, one in sorted(self._slices.items())))

    def _at(self, second: int) -> _Slice:
        """The slice of a second since 1970."""
        place = second // LENGTHS[self._level]
        found = self._slices.get(place)
        if found is None:
            found = self._slices[place] = _Slice()
            while len(self._slices) > MAX_SLICES:
                self._lengthen()
                found = self._slices[second // LENGTHS[self._level]]
        return found

    def _lengthen(self) -> None:
        ratio = LENGTHS[self._level + 1] // LENGTHS[self._level]
        slices, self._slices = self._slices, {}
        self._level += 1
        for place, one in slices.items():
            known = self._slices.setdefault(place // ratio, one)
            if known is not one:
                known.merge(one)


def _finished(begin_s: int, one: _Slice, *, derived: bool) -> TimeSlice:
    histogram = one.derived if derived else one.printed
    latency = Latency() if histogram is None else histogram.latency(derived=derived)
    return TimeSlice(begin_s, dict(sorted(one.counts.items())), dict(sorted(one.marks.items())), dict(sorted(one.peaks.items())), latency)


def _joined(one: Histogram | None, other: Histogram | None) -> Histogram | None:
    if one is None or other is None:
        return one or other
    one.merge(other)
    return one


def _coarse(value: float) -> float:
    """The value to one part in 64 to 128, in exact binary steps: the same on every machine."""
    mantissa, exponent = frexp(value)
    if exponent > _MAX_EXPONENT:
        return ldexp(1.0, _MAX_EXPONENT)
    if exponent < _MIN_EXPONENT:
        return 0.0
    return ldexp(round(mantissa * _STEPS * 2), exponent) / (_STEPS * 2)

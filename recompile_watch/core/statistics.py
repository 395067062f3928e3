"""What can honestly be said about a ratio of two noisy series of times.

Calls of two arms come in pairs, measured one right after the other, so that what slows the whole machine slows both.
Calls that follow each other are alike (a governor, a neighbour, an allocator), so resampling draws runs of neighbouring
pairs and not single ones; a plain bootstrap would call chance a gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, log, sqrt
from typing import NamedTuple

RESAMPLES = 2000
LEVEL = 0.95
MIN_CALLS_P95 = 20  # with fewer, no call lies beyond the 95th percentile
MIN_CALLS_P99 = 100
_Z = 1.96  # the normal distribution's quantile that belongs to LEVEL
_USUAL_DRIFT = 0.1  # between two processes that do the same, one after the other
_MASK = (1 << 64) - 1


class Pair(NamedTuple):
    """One call of each arm, right after each other, in milliseconds."""

    eager_ms: float
    candidate_ms: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times faster the candidate is: median of eager over median of candidate, with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} times [{self.low:.2f}, {self.high:.2f}]"


class SplitMix64:
    """Random numbers of our own arithmetic: a seed gives the same ones everywhere (Steele, Lea, Flood 2014)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """64 random bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((self._state ^ (self._state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, end: int) -> int:
        """A number from 0 to ``end`` - 1."""
        return (self.bits() * end) >> 64

    def unit(self) -> float:
        """A number from 0 (included) to 1 (not)."""
        return (self.bits() >> 11) * 2.0**-53


def median(values: Sequence[float]) -> float:
    """The middle value. ``values`` must not be empty."""
    return _middle(sorted(values))


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median: the spread that an outlier does not move."""
    center = median(values)
    return median([abs(value - center) for value in values])


def sigma(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample; None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The 95th or 99th percentile (nearest rank); None where too few calls were measured to know it."""
    if len(values) < (MIN_CALLS_P99 if percent >= 99 else MIN_CALLS_P95):
        return None
    return sorted(values)[ceil(len(values) * percent / 100) - 1]


def speedup(pairs: Sequence[Pair], random: SplitMix64, *, resamples: int = RESAMPLES) -> Ratio | None:
    """The ratio of the medians with its interval, by a bootstrap over runs of pairs; None for fewer than two pairs."""
    if len(pairs) < 2:
        return None
    count = len(pairs)
    length = run_length([log(pair.eager_ms / pair.candidate_ms) for pair in pairs])
    eager = [pair.eager_ms for pair in pairs] * 2  # twice: a run that reaches the end goes on at the beginning
    candidate = [pair.candidate_ms for pair in pairs] * 2
    value = median(eager) / median(candidate)
    draws = sorted(_resampled(eager, candidate, length, random) for _ in range(resamples))
    tail = round(resamples * (1 - LEVEL) / 2)
    wider = _small_sample_factor(count / length)
    low, high = (value * exp(wider * log(draw / value)) for draw in (draws[tail], draws[-1 - tail]))
    return Ratio(value, min(low, value), max(high, value))


def run_length(values: Sequence[float]) -> int:
    """How many neighbouring values to draw together: the cube root of their number, more where neighbours are alike.

    The rule of Politis and White (2004) for a series with one step of memory, at most a third of the series.
    """
    count = len(values)
    seen = _neighbour_correlation(values)
    memory = min(max(seen + (1 + 3 * seen) / count, 0.0), 0.97)  # a short series shows less of it than there is (Kendall 1954)
    cube_root: float = count ** (1 / 3)
    best: float = (sqrt(6) * memory / (1 - memory * memory)) ** (2 / 3) * cube_root
    return max(1, min(round(max(best, cube_root)), count // 3))


def against_baseline(ratio: Ratio, beside_ms: float, alone_ms: float, effect: float) -> Ratio:
    """The ratio against eager by itself, where eager was clearly slower beside the candidate than in a process of its own.

    What the other arm does to memory and caches would otherwise count as its gain. A difference that noise explains (``effect``), or of
    a tenth, changes nothing; nor does an eager that was faster beside the candidate.
    """
    factor = alone_ms / beside_ms
    if factor >= 1 / (1 + max(effect, _USUAL_DRIFT)):
        return ratio
    return Ratio(ratio.value * factor, ratio.low * factor, ratio.high * factor)


def minimum_detectable_effect(control: Ratio) -> float:
    """The gain that two equal arms showed by chance or by bias, as a fraction: nothing smaller can be seen."""
    return max(control.high, 1 / control.low) - 1


def break_even_calls(overhead_s: float, eager_ms: float, candidate_ms: float) -> int | None:
    """Calls until the time spent on compiling is won back; None when it never is."""
    saving_s = (eager_ms - candidate_ms) / 1000
    return ceil(max(overhead_s, 0.0) / saving_s) if saving_s > 0 else None


def _middle(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _resampled(eager: Sequence[float], candidate: Sequence[float], length: int, random: SplitMix64) -> float:
    """The ratio of medians of as many pairs, drawn in runs; both series come doubled."""
    count = len(eager) // 2
    first: list[float] = []
    second: list[float] = []
    while len(first) < count:
        start = random.below(count)
        stop = start + min(length, count - len(first))
        first += eager[start:stop]
        second += candidate[start:stop]
    first.sort()
    second.sort()
    return _middle(first) / _middle(second)


def _small_sample_factor(runs: float) -> float:
    """By how much the interval of so few independent runs is too narrow: Student's quantile over the normal one, to first order."""
    free = max(runs - 1, 1.0)
    return (1 + (_Z * _Z + 1) / (4 * free)) * sqrt(runs / free)


def _neighbour_correlation(values: Sequence[float]) -> float:
    """Correlation of each value's rank with the next one's: ranks, so that one spike does not hide it."""
    ranks = _ranks(values)
    mean = (len(ranks) - 1) / 2
    square = sum((rank - mean) ** 2 for rank in ranks)
    return sum((here - mean) * (then - mean) for here, then in pairwise(ranks)) / square if square else 0.0


def _ranks(values: Sequence[float]) -> list[int]:
    ranks = [0] * len(values)
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        ranks[place] = rank
    return ranks

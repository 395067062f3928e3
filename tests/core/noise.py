"""Times as machines really give them: heavy tails, drift, two speeds, and calls that resemble the one before."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

from recompile_watch.core.statistics import Pair, SplitMix64

_MS = 20.0
_SPREAD = 0.03


class _Machine:
    """What one arm's calls remember of each other."""

    def __init__(self, random: SplitMix64) -> None:
        self.random = random
        self.level = 0.0
        self.is_slow = False

    def normal(self, spread: float) -> float:
        """A normally distributed number (the polar method of Marsaglia)."""
        while True:
            x, y = 2 * self.random.unit() - 1, 2 * self.random.unit() - 1
            square = x * x + y * y
            if 0 < square < 1:
                return spread * x * sqrt(-2 * log(square) / square)

    def plain(self, _: float) -> float:
        return exp(self.normal(_SPREAD))

    def heavy(self, _: float) -> float:
        """One call in ten is held up, some of them for long (a Pareto tail)."""
        late = (1 - self.random.unit()) ** (-1 / 1.5) - 1 if self.random.unit() < 0.1 else 0.0
        return exp(self.normal(_SPREAD)) * (1 + 0.3 * late)

    def drift(self, place: float) -> float:
        """Half as slow again at the end: heat, or a neighbour that grows."""
        return exp(self.normal(_SPREAD) + 0.4 * place)

    def bimodal(self, _: float) -> float:
        """As 50 and 173 ms for the same call in the owner's table."""
        return exp(self.normal(_SPREAD)) * (3.4 if self.random.unit() < 0.25 else 1.0)

    def sticky(self, _: float) -> float:
        """Two speeds, and it stays in one for a while."""
        self.is_slow ^= self.random.unit() < 0.1
        return exp(self.normal(_SPREAD)) * (1.3 if self.is_slow else 1.0)

    def slow(self, _: float) -> float:
        """Each arm wanders by itself, a call being much like the one before."""
        self.level = 0.9 * self.level + self.normal(_SPREAD)
        return exp(self.level)


KINDS = ("plain", "heavy", "drift", "bimodal", "sticky", "slow")


def pairs_of(kind: str, count: int, gain: float, random: SplitMix64) -> tuple[Pair, ...]:
    """Pairs of calls of an arm and one that is ``gain`` times faster."""
    arms: list[Callable[[float], float]] = [getattr(_Machine(random), kind) for _ in range(2)]
    return tuple(Pair(_MS * arms[0](n / count), _MS / gain * arms[1](n / count)) for n in range(count))

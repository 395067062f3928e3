"""The normal level of a quantity, as it was measured, and whether it is above it now."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from recompile_watch.core.watch_settings import LevelSettings

STEP = math.log(1.02)  # how fine levels are told apart: 2 %
AGES_AT = 5_000  # so many measurements; then each counts half, so that the normal level follows slow change


@dataclass(slots=True)
class Level:
    """What is known of one quantity. counts: measurements by the logarithm of their value. n: how many. recent: the
    latest values, which are judged and not yet part of the normal level. is_high: as it was judged last."""

    counts: dict[str, int] = field(default_factory=dict)
    n: int = 0
    recent: list[float] = field(default_factory=list)
    is_high: bool = False
    skips: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """current: percentile of the recent values. normal: of those before; None while it is unknown. n: how many those are."""

    is_high: bool
    current: float
    normal: float | None
    n: int


def bucket_of(value: float) -> str:
    """Under which key a value above 0 is counted."""
    return str(round(math.log(value) / STEP))


def percentile_of(counts: Mapping[str, int], n: int, percent: int) -> float:
    """The nearest-rank percentile of ``n`` counted values, to a bucket; 0 of none."""
    wanted = -(-n * percent // 100)
    for bucket in sorted(counts, key=int):
        wanted -= counts[bucket]
        if wanted <= 0:
            return math.exp(int(bucket) * STEP)
    return 0.0


def judge(level: Level, value: float, settings: LevelSettings, percent: int) -> Judgement | None:
    """Takes a measurement above 0. What the level is when that changed: it became too high, or ceased to be; else None."""
    level.recent.append(value)
    if len(level.recent) > settings.recent:
        _learn(level, level.recent.pop(0))
    if len(level.recent) < settings.recent:
        return None
    current = _percentile(level.recent, percent)
    normal = percentile_of(level.counts, level.n, percent) if level.n >= settings.normal_from else None
    is_high = not (_is_calm if level.is_high else _is_below)(current, normal, settings)
    if is_high == level.is_high:
        return None
    level.is_high = is_high
    return Judgement(is_high, current, normal, level.n)


def _is_below(current: float, normal: float | None, settings: LevelSettings) -> bool:
    """True where nothing says that it is too high."""
    if settings.bound is not None and current > settings.bound:
        return False
    return normal is None or current <= normal * settings.factor or current <= normal + settings.margin


def _is_calm(current: float, normal: float | None, settings: LevelSettings) -> bool:
    if settings.bound is not None and current > settings.bound:
        return False
    return normal is None or current <= normal * settings.calm_factor or current <= normal + settings.margin / 2


def _learn(level: Level, value: float) -> None:
    """Makes a value part of the normal level, unless it stems from a time in which the level was too high."""
    if level.is_high:
        return
    bucket = bucket_of(value)
    level.counts[bucket] = level.counts.get(bucket, 0) + 1
    level.n += 1
    if level.n > AGES_AT:
        level.counts = {name: count // 2 for name, count in level.counts.items() if count > 1}
        level.n = sum(level.counts.values())


def _percentile(values: list[float], percent: int) -> float:
    return sorted(values)[-(-len(values) * percent // 100) - 1]

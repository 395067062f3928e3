"""The normal level of a quantity, as it was measured, and whether it is above it now."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from recompile_watch.core.watch_settings import LevelSettings

STEP = math.log(1.02)  # how fine levels are told apart: 2 %
ONE_BY_ONE = 32  # so many measurements are judged one by one where they may change the level
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


@lru_cache(maxsize=4096)
def bucket_of(value: float) -> str:
    """Under which key a value above 0 is counted."""
    return str(round(math.log(value) / STEP))


def percentile_of(counts: Mapping[str, int], n: int, percent: int) -> float:
    """The nearest-rank percentile of ``n`` counted values, to a bucket; 0 of none."""
    wanted = -(-n * percent // 100)
    for bucket in sorted(counts, key=int):
        wanted -= counts[bucket]
        if wanted <= 0:
            return _value_of(bucket)
    return 0.0


def _value_of(bucket: str) -> float:
    return math.exp(int(bucket) * STEP)


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


def judge_all(level: Level, values: Sequence[float], settings: LevelSettings, percent: int) -> Iterator[tuple[int, Judgement]]:
    """Takes measurements above 0, one after the other. Which of them, by index, changed what the level is, and how."""
    index = 0
    while index < len(values):
        count = _uneventful(level, values[index : index + AGES_AT], settings, percent)
        index += count
        for value in values[index : index + (0 if count else ONE_BY_ONE)]:
            found = judge(level, value, settings, percent)
            if found is not None:
                yield index, found
            index += 1


def _uneventful(level: Level, values: Sequence[float], settings: LevelSettings, percent: int) -> int:
    """Takes as many of the measurements at once as certainly change nothing but the normal level; how many.

    What is learned are values as high as these, so the normal level does not fall below the lowest of them, or below what it was.
    """
    values = values[: AGES_AT - level.n]
    if level.is_high or level.n < settings.normal_from or not values:
        return 0
    seen = [*level.recent, *values]
    normal = min(percentile_of(level.counts, level.n, percent), _value_of(bucket_of(min(seen))))
    if not _is_below(max(seen), normal, settings):
        return 0
    learned, level.recent = seen[: -settings.recent], seen[-settings.recent :]
    for bucket, times in Counter(map(bucket_of, learned)).items():
        level.counts[bucket] = level.counts.get(bucket, 0) + times
    level.n += len(learned)
    return len(values)


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

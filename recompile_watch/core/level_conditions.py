"""Latency and GPU memory above a bound or above their own normal level."""

from collections.abc import Iterator, Mapping

from recompile_watch.core.events import Event
from recompile_watch.core.normals import Judgement, Level, judge
from recompile_watch.core.shelves import Shelf
from recompile_watch.core.sight import EventCondition, Sight, number
from recompile_watch.core.signals import Signal
from recompile_watch.core.watch_settings import LevelSettings

MAX_LEVELS = 500


class LatencyCondition(EventCondition):
    """The 95th percentile of a model's inference time."""

    kinds = frozenset({"inference", "model_load"})

    def __init__(self, settings: LevelSettings, parts: Mapping[str, object]) -> None:
        self._settings = settings
        self._levels = Shelf("latency", Level, parts, MAX_LEVELS, _is_calm)
        self.shelves = (self._levels,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A measurement; the first one after a model was loaded contains the compiling and does not count."""
        model = str(event.extra.get("model") or "unknown")
        level = self._levels.get(model) or Level()
        value = number(event.extra.get("milliseconds"))
        if event.kind == "model_load":
            level.skips = 1
        elif level.skips:
            level.skips = 0
        elif value is not None and value > 0:
            found = judge(level, value, self._settings, 95)
            if found is not None:
                yield self._signal(model, found)
        self._levels.put(model, level)

    def _signal(self, model: str, found: Judgement) -> Signal:
        return Signal(
            "latency_high", model, "warning", f"{model} takes {found.current:.0f} ms (p95), {_normally(found, 'ms', self._settings)}",
            "Forecasts come late; each analysis takes longer.", model=None if model == "unknown" else model, is_over=not found.is_high,
        )  # fmt: skip


class MemoryCondition(EventCondition):
    """The peak of GPU memory of a stage of a model."""

    kinds = frozenset({"gpu_memory"})

    def __init__(self, settings: LevelSettings, parts: Mapping[str, object]) -> None:
        self._settings = settings
        self._levels = Shelf("memory", Level, parts, MAX_LEVELS, _is_calm)
        self.shelves = (self._levels,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A measurement."""
        peak = number(event.extra.get("peak_mb"))
        if peak is None or peak <= 0:
            return
        model, stage = event.extra.get("model"), str(event.extra.get("stage") or "unknown stage").replace("_", " ")
        key = f"{model or 'unknown'} {stage}"
        level = self._levels.get(key) or Level()
        found = judge(level, peak, self._settings, 50)
        self._levels.put(key, level)
        if found is not None:
            yield Signal(
                "memory_high", key, "warning", f"{key} takes {found.current:.0f} MB of GPU memory, {_normally(found, 'MB', self._settings)}",
                "The next larger batch, or another program on the GPU, may run out of memory.", model=model if isinstance(model, str) else None,
                is_over=not found.is_high, remedies=("reduce_batch",),
            )  # fmt: skip


def _is_calm(level: Level) -> bool:
    return not level.is_high


def _normally(found: Judgement, unit: str, settings: LevelSettings) -> str:
    bound = f"the bound is {settings.bound:g} {unit}, " if settings.bound is not None else ""
    if found.normal is None:
        return f"{bound}its normal level is not known yet ({found.n} measurements)"
    return f"{bound}normally about {found.normal:.0f} {unit} ({found.n} measurements)"

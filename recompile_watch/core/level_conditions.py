"""Latency and GPU memory above a bound or above their own normal level."""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from recompile_watch.core.events import Event
from recompile_watch.core.normals import Judgement, Level, judge, judge_all
from recompile_watch.core.runs import Run
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
        if peak is not None and peak > 0:
            model = event.extra.get("model")
            for _, found in self._judged(key := _stage(model, event.extra.get("stage")), [peak]):
                yield self._signal(key, model, found)

    def take_run(self, run: Run, source: str) -> Iterator[tuple[int, Signal]]:
        """Many measurements: those of each stage of a model are judged together, as nothing connects them with others."""
        peaks = run.numbers("peak_mb")
        of_key: dict[str, list[int]] = {}
        for stage, indexes in run.stages().items():
            key, known = _stage(*stage), [index for index in indexes if (peak := peaks[index]) is not None and peak > 0]
            of_key[key] = sorted(of_key.get(key, []) + known)
        signals: list[tuple[int, Signal]] = []
        for key, indexes in _in_order(of_key, has_room=len(self._levels) + len(of_key) <= MAX_LEVELS):
            judged = self._judged(key, [peaks[index] or 0.0 for index in indexes])
            signals += [(indexes[place], self._signal(key, run.column("model")[indexes[place]], found)) for place, found in judged]
        return iter(sorted(signals, key=itemgetter(0)))

    def _judged(self, key: str, peaks: Sequence[float]) -> Iterator[tuple[int, Judgement]]:
        """Takes the peaks of one stage; which of them, by index, changed what is thought of it."""
        level = self._levels.get(key) or Level()
        yield from judge_all(level, peaks, self._settings, 50)
        self._levels.put(key, level)

    def _signal(self, key: str, model: object, found: Judgement) -> Signal:
        return Signal(
            "memory_high", key, "warning", f"{key} takes {found.current:.0f} MB of GPU memory, {_normally(found, 'MB', self._settings)}",
            "The next larger batch, or another program on the GPU, may run out of memory.", model=model if isinstance(model, str) else None,
            is_over=not found.is_high, remedies=("reduce_batch",),
        )  # fmt: skip


def _stage(model: object, stage: object) -> str:
    """A stage of a model, as it is shown."""
    return f"{model or 'unknown'} {str(stage or 'unknown stage').replace('_', ' ')}"


def _in_order(of_key: Mapping[str, list[int]], *, has_room: bool) -> list[tuple[str, list[int]]]:
    """The measurements by stage, the stage that was measured last at the end; one by one where a level might be dropped meanwhile."""
    if has_room:
        return sorted(((key, indexes) for key, indexes in of_key.items() if indexes), key=lambda item: item[1][-1])
    return sorted(((key, [index]) for key, indexes in of_key.items() for index in indexes), key=itemgetter(1))


def _is_calm(level: Level) -> bool:
    return not level.is_high


def _normally(found: Judgement, unit: str, settings: LevelSettings) -> str:
    bound = f"the bound is {settings.bound:g} {unit}, " if settings.bound is not None else ""
    if found.normal is None:
        return f"{bound}its normal level is not known yet ({found.n} measurements)"
    return f"{bound}normally about {found.normal:.0f} {unit} ({found.n} measurements)"

"""What a worker said becomes a trial. A worker is a foreign process: a number that is none makes its result unreadable, not the program fail."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isnan

from recompile_watch.core.candidates import Candidate
from recompile_watch.core.statistics import Pair, median, sigma
from recompile_watch.core.trials import MAX_CALLS, Accuracy, Status, Structure, Timing, Trial
from recompile_watch.respond.worker_process import Ending

_ROUNDS = 5  # parts of the pairs whose medians show how steady the time is
_MAX_REASON = 500
_MAX_LOG_LINES = 12
_MAX_READ_BACK = 20
_STOPPED = {"timeout": Status.TIMEOUT, "guard": Status.SKIPPED}
_WORTH_SHOWING = re.compile(
    r"torch\._dynamo hit config\.|^.*\]\s+function: '|last reason: |CUDAGraphs|skipping cudagraphs|out of memory", re.IGNORECASE
)


class UnreadableError(Exception):
    """A worker's result does not have the form it should."""


@dataclass(frozen=True, slots=True)
class Call:
    """What one call took, by the clock and of the processor, in milliseconds; waits: how often it gave the processor up."""

    clock_ms: float
    cpu_ms: float
    waits: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One worker's run.

    trial: without its pairs. calls: eager's and the candidate's, in turn. overhead_cpu_s: of the processor. fault: ``workload`` or
    ``interpreter``, where no candidate can run; ``guard``, where it was stopped from outside. eager_calls: that succeeded before.
    """

    trial: Trial
    calls: tuple[tuple[Call, Call], ...] = ()
    overhead_cpu_s: float = 0.0
    torch_version: str | None = None
    python_version: str | None = None
    device: str | None = None
    variants: tuple[str, ...] = ()
    fault: str | None = None
    log: str = ""
    eager_calls: int = 0


def reading_of(candidate: Candidate, ending: Ending) -> Reading:
    """The reading of one ended run."""
    hello = ending.hello or {}
    names = hello.get("variants")
    lines = tuple(line for line in ending.log.splitlines() if _WORTH_SHOWING.search(line))[:_MAX_LOG_LINES]
    reading = _outcome(candidate, ending)
    return replace(
        reading, trial=replace(reading.trial, log=lines, seconds=ending.seconds), torch_version=_text(hello.get("torch")),
        python_version=_text(hello.get("python")), device=_text(hello.get("device")), log=ending.log, eager_calls=ending.eager_calls,
        variants=tuple(str(name) for name in names) if isinstance(names, list) else (),
    )  # fmt: skip


def _outcome(candidate: Candidate, ending: Ending) -> Reading:
    """What was measured, or why it was not."""
    if ending.outcome is None:
        status = _STOPPED.get(ending.stopped, Status.CRASHED)
        is_unusable = not ending.has_begun and not ending.stopped
        fault = "guard" if ending.stopped == "guard" else "interpreter" if is_unusable else None
        return Reading(Trial(candidate, status, ending.failure[:_MAX_REASON]), fault=fault)
    try:
        return _read(candidate, ending.outcome)
    except UnreadableError as error:
        return Reading(Trial(candidate, Status.CRASHED, f"its result cannot be read: {error}"))


def timed(readings: Iterable[Reading], *, by_processor: bool) -> list[Trial]:
    """The trials with their pairs and overheads, by the processor's time or the clock's."""
    return [_with_pairs(reading, by_processor=by_processor) for reading in readings]


def computes_only(readings: Iterable[Reading]) -> bool:
    """True when no arm waits for anything as a rule: then the processor's time is what a call takes, whatever else runs on the machine."""
    arms = [[pair[arm] for pair in reading.calls] for reading in readings if reading.calls for arm in (0, 1)]
    return bool(arms) and all(median([call.waits for call in arm]) == 0 for arm in arms)


def _with_pairs(reading: Reading, *, by_processor: bool) -> Trial:
    trial, floor = reading.trial, 1e-6  # a clock too coarse for the call must not give a ratio of nothing
    if trial.timing is None:
        return trial

    def time_of(call: Call) -> float:
        return max(call.cpu_ms if by_processor else call.clock_ms, floor)

    pairs = tuple(Pair(time_of(eager), time_of(candidate)) for eager, candidate in reading.calls)
    size = len(pairs) // _ROUNDS
    medians = [median([pair.candidate_ms for pair in pairs[start : start + size]]) for start in range(0, size * _ROUNDS, size)] if size > 1 else []
    overhead_s = reading.overhead_cpu_s if by_processor else trial.timing.overhead_s
    return replace(trial, timing=replace(trial.timing, pairs=pairs, sigma_ms=sigma(medians), overhead_s=overhead_s))


def _read(candidate: Candidate, outcome: Mapping[str, object]) -> Reading:
    try:
        status = Status(str(outcome.get("status")))
    except ValueError:
        raise UnreadableError(f"status {outcome.get('status')!r}"[:80]) from None
    structure, accuracy = outcome.get("structure"), outcome.get("accuracy")
    rows = _list(outcome.get("pairs") or [])
    if len(rows) > MAX_CALLS:
        raise UnreadableError(f"{len(rows)} pairs of calls; {MAX_CALLS} at most are asked for")
    memory = outcome.get("peak_memory_mb")
    trial = Trial(
        candidate, status, str(outcome.get("reason") or "")[:_MAX_REASON],
        _structure(structure, outcome) if isinstance(structure, dict) else None, _timing(outcome) if "first_call_s" in outcome else None,
        _accuracy(accuracy) if isinstance(accuracy, dict) else None, None if memory is None else _number(memory),
        _whole(outcome.get("calls", 0)), _whole(outcome.get("calls_ok", 0)), read_back=_read_back(outcome.get("read_back")),
    )  # fmt: skip
    fault = outcome.get("fault")
    return Reading(
        trial, tuple(_pair(row) for row in rows), _number(outcome.get("overhead_cpu_s", 0.0)),
        fault=str(fault) if fault in ("workload", "interpreter") else None,
    )  # fmt: skip


def _structure(seen: Mapping[str, object], outcome: Mapping[str, object]) -> Structure:
    names = ("recompiles", "late_recompiles", "graph_breaks", "limit_hits", "frames_compiled", "cudagraph_skips")
    watched = _list(outcome.get("warmup") or [])
    warmup_calls = _warmup_calls(outcome)
    late = _list(outcome.get("compiles") or []) or [_parts(row, 3)[2] for row in watched[warmup_calls:]]
    compiles = [*(_parts(row, 3)[2] for row in watched[:warmup_calls]), *late]
    counts = Structure(*(_whole(seen.get(name)) for name in names))
    return replace(counts, compiles_by_call=tuple(map(_whole, compiles[:MAX_CALLS])), calls=len(compiles), warmup_calls=warmup_calls)


def _warmup_calls(outcome: Mapping[str, object]) -> int:
    """How many of the calls listed were made to warm up: those behind them looked for late recompiles, or for memory."""
    return _whole(outcome.get("warmup_calls", len(_list(outcome.get("warmup") or []))))


def _read_back(value: object) -> tuple[tuple[str, str], ...]:
    """Settings by name, as text."""
    items = list(value.items())[:_MAX_READ_BACK] if isinstance(value, dict) else []
    return tuple((str(name)[:100], str(found)[:_MAX_REASON]) for name, found in items)


def _timing(outcome: Mapping[str, object]) -> Timing:
    compile_s = outcome.get("compile_s")
    return Timing(
        (), _number(outcome.get("first_call_s")), _number(outcome.get("overhead_s")), compile_s=None if compile_s is None else _number(compile_s),
        compiles=tuple(_whole(one) for one in _list(outcome.get("compiles") or [])),
        warmup=tuple(_warm(row) for row in _list(outcome.get("warmup") or [])[: min(_warmup_calls(outcome), MAX_CALLS)]),
    )  # fmt: skip


def _accuracy(seen: Mapping[str, object]) -> Accuracy:
    def optional(name: str) -> float | None:
        return None if seen.get(name) is None else _number(seen[name])

    def number(name: str) -> float:
        return _number(seen.get(name))

    by_seed = [_number(one) for one in _list(seen.get("mae_pct_by_seed") or [])]
    return Accuracy(
        number("max_abs"), number("mae"), number("mae_pct"), number("noise_floor_pct"), number("same_seed_delta"), seen.get("is_close") is True,
        optional("rmse_eager"), optional("rmse_candidate"), number("multiplier"), optional("metric_pct"), sigma(by_seed),
    )  # fmt: skip


def _pair(row: object) -> tuple[Call, Call]:
    eager, candidate = _parts(row, 2)
    return _call(eager), _call(candidate)


def _call(value: object) -> Call:
    clock, cpu, waits = _parts(value, 3)
    return Call(_time(clock), _time(cpu), _whole(waits))


def _warm(row: object) -> tuple[float, int]:
    seconds, _, compiles = _parts(row, 3)
    return _number(seconds), _whole(compiles)


def _list(value: object) -> list[object]:
    if not isinstance(value, list) or len(value) > 1_000_000:
        raise UnreadableError("a list is missing")
    return value


def _parts(value: object, number: int) -> list[object]:
    row = _list(value)
    if len(row) != number:
        raise UnreadableError(f"a row has not {number} parts")
    return row


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError(f"{str(value)[:40]!r} is no number")
    return float(value)


def _time(value: object) -> float:
    number = _number(value)
    if not 0 <= number < 1e12:
        raise UnreadableError(f"{number} ms is no time")
    return number


def _whole(value: object) -> int:
    number = _number(value)
    if isnan(number) or number < 0 or number != int(min(number, 1e15)):
        raise UnreadableError(f"{number} is no count")
    return int(number)


def _text(value: object) -> str | None:
    return value[:100] if isinstance(value, str) else None

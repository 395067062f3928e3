"""The gates that a candidate must pass before it may replace eager, in order; each says in words what it saw.

What was not measured does not pass. The bounds and their order are those of the profile and of torch's own benchmarks
(``benchmarks/dynamo/common.py``: reference in double precision, a multiple of eager's own error).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from recompile_watch.core.profiles import MAX_MEMORY_RATIO, MAX_RECOMPILES, Profile
from recompile_watch.core.revisit import Condition
from recompile_watch.core.statistics import Ratio, break_even_calls, median
from recompile_watch.core.trials import Accuracy, Status, Trial

MIN_PAIRS = 10
COMPILER_MB = 256  # what the compiler's own modules take of a process, whatever the model: 130 to 180 MB seen with torch 2.9 and 2.13
_TOLERANCE = 1e-4  # as torch's benchmarks add it to the multiple of eager's own error
_TOO_LITTLE = 0.001  # percent of eager's size: below it a difference is one of rounding, whatever the noise floor


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: its name, whether it was passed, and why in words."""

    gate: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the gates compare with. effect: the smallest gain that can be seen at all; None where eager was not timed against itself."""

    profile: Profile
    effect: float | None
    eager_memory_mb: float | None
    on_cpu: bool = True

    @property
    def min_speedup(self) -> float:
        """For the lower end of the interval."""
        return max(self.profile.min_speedup, 1 + (self.effect or 0.0))


@dataclass(frozen=True, slots=True)
class Measured:
    """A trial with the statistics of its times. baseline_ms: a call of eager, as the candidate is compared with it."""

    trial: Trial
    speedup: Ratio | None
    baseline_ms: float = 0.0

    @property
    def break_even_calls(self) -> int | None:
        """Calls after which compiling has paid for itself; None when never, or not timed."""
        timing = self.trial.timing
        if timing is None or not timing.pairs:
            return None
        return break_even_calls(timing.overhead_s, self.baseline_ms, median([pair.candidate_ms for pair in timing.pairs]))


def hard_gates(trial: Trial) -> tuple[Gate, ...]:
    """The gates that no stopwatch is needed for. After one that says the candidate did not run at all, nothing more is judged."""
    gates = [_effective(trial), _success(trial)]
    if trial.status is Status.INEFFECTIVE:
        return (gates[0],)
    if not gates[1].passed:
        return (*gates, *(gate for gate in _structure(trial) if not gate.passed and trial.structure is not None))
    return (*gates, *_structure(trial))


def timed_gates(measured: Measured, bounds: Bounds) -> tuple[Gate, ...]:
    """The gates that need the timed stage."""
    return (*_error(measured.trial.accuracy, bounds.profile), _memory(measured.trial, bounds), _speed(measured, bounds), _pays(measured, bounds))


def has_enough_pairs(trial: Trial) -> bool:
    """True when enough calls were timed for an interval that means anything."""
    return trial.timing is not None and len(trial.timing.pairs) >= MIN_PAIRS


def wanted(gate: str, profile: Profile) -> Condition | None:
    """What must be seen before a candidate that failed at this gate is worth another look."""
    make = _WANTED.get(gate)
    return make(profile) if make else None


_WANTED: dict[str, Callable[[Profile], Condition]] = {
    "success": lambda _: Condition("success_rate", ">=", 1.0, "every call succeeds"),
    "limit": lambda _: Condition("recompile_limit_hits", "<", 1, "no limit is hit"),
    "recompiles": lambda _: Condition("recompiles_per_load", "<", MAX_RECOMPILES, f"fewer than {MAX_RECOMPILES} recompiles per model load"),
    "late_recompiles": lambda _: Condition("late_recompiles", "<", 1, "no recompile after warm-up"),
    "error": lambda profile: Condition(
        "mae_percent", "<", profile.max_error_percent, f"the error against eager stays below {profile.max_error_percent:g} %"
    ),
    "memory": lambda _: Condition("memory_ratio", "<", MAX_MEMORY_RATIO, f"memory stays below {MAX_MEMORY_RATIO:g} times eager's"),
    "speedup": lambda profile: Condition(
        "speedup_ci_low", ">=", profile.min_speedup,
        f"measured at least {profile.min_speedup:g} times faster than eager, lower end of the interval",
    ),
    "break_even": lambda profile: Condition(
        "break_even_calls", "<", profile.expected_calls, f"compiling pays for itself within {profile.expected_calls} calls of a process"
    ),
}  # fmt: skip


def _effective(trial: Trial) -> Gate:
    passed = trial.status is not Status.INEFFECTIVE
    return Gate("effective", passed, "the setting took effect" if passed else trial.reason or "the setting did not take effect")


def _success(trial: Trial) -> Gate:
    if trial.has_succeeded:
        return Gate("success", True, f"{trial.calls_ok} of {trial.calls} calls succeeded")
    why = f": {trial.reason}" if trial.reason else ""
    match trial.status:
        case Status.TIMEOUT:
            return Gate("success", False, f"it did not end in time{why}")
        case Status.CRASHED:
            return Gate("success", False, f"it crashed{why}")
    return Gate("success", False, f"{trial.calls_ok} of {trial.calls} calls succeeded{why}" if trial.calls else f"no call was made{why}")


def _structure(trial: Trial) -> Iterator[Gate]:
    seen = trial.structure
    if seen is None:
        yield Gate("recompiles", False, "recompiles, limit hits and graph breaks were not recorded")
        return
    frames = seen.frames_compiled
    yield Gate("compiled", frames > 0, f"{_count(frames, 'frame')} compiled" if frames else "nothing was compiled: it measures eager against eager")
    hits = f"the recompile limit was hit {_times(seen.limit_hits)}: what does not fit an entry runs in eager mode anyway"
    yield Gate("limit", seen.limit_hits == 0, hits if seen.limit_hits else "no recompile limit was hit")
    is_calm = seen.recompiles < MAX_RECOMPILES
    yield Gate("recompiles", is_calm, f"{_count(seen.recompiles, 'recompile')}; fewer than {MAX_RECOMPILES} are allowed")
    late = f"{_count(seen.late_recompiles, 'recompile')} after warm-up, while calls waited"
    yield Gate("late_recompiles", seen.late_recompiles == 0, late if seen.late_recompiles else "no recompile after warm-up")


def _error(seen: Accuracy | None, profile: Profile) -> Iterator[Gate]:
    if seen is None:
        yield Gate("error", False, "the outputs were not compared")
        return
    bound = profile.max_error_percent
    errors = [seen.mae_pct] if seen.metric_pct is None else [seen.mae_pct, seen.metric_pct]
    worst = next((one for one in errors if one != one), max(errors))
    if not worst < bound:  # not a number counts as too large
        yield Gate("error", False, f"the error against eager is {worst:.3g} %; less than {bound:g} % is allowed")
    elif seen.noise_floor_pct > 0:
        within = seen.mae_pct <= max(seen.noise_floor_pct, _TOO_LITTLE)
        relation = "within" if within else "over"
        yield Gate("error", within, f"the error is {seen.mae_pct:.3g} %, {relation} the {seen.noise_floor_pct:.3g} % that another seed makes")
    else:
        yield _exact(seen)


def _exact(seen: Accuracy) -> Gate:
    """A model that draws nothing must give the same numbers, as close as its data type allows."""
    if seen.same_seed_delta > 0 and not seen.is_close:
        return Gate("error", False, f"eager does not repeat its own result (by {seen.same_seed_delta:.3g}), so no difference can be judged")
    if seen.is_close:
        return Gate("error", True, f"outputs equal eager's within rounding ({seen.mae_pct:.3g} %)")
    if seen.rmse_eager is None or seen.rmse_candidate is None:
        return Gate("error", False, f"outputs differ from eager's by {seen.max_abs:.3g}, and no reference in double precision tells which is right")
    within = seen.rmse_candidate <= seen.multiplier * seen.rmse_eager + _TOLERANCE
    relation = "within" if within else "more than"
    words = f"{seen.rmse_candidate:.3g} from a reference in double precision, {relation} {seen.multiplier:g} times eager's own {seen.rmse_eager:.3g}"
    return Gate("error", within, words)


def _memory(trial: Trial, bounds: Bounds) -> Gate:
    used, eager = trial.peak_memory_mb, bounds.eager_memory_mb
    if used is None or not eager:
        return Gate("memory", False, "memory was not measured")
    ratio = used / eager
    passed = ratio <= MAX_MEMORY_RATIO or (bounds.on_cpu and used - eager <= COMPILER_MB)
    return Gate("memory", passed, f"{used:.0f} MB at most, {ratio:.2f} times eager's; {MAX_MEMORY_RATIO:g} times is allowed")


def _speed(measured: Measured, bounds: Bounds) -> Gate:
    if measured.speedup is None or not has_enough_pairs(measured.trial):
        pairs = len(measured.trial.timing.pairs) if measured.trial.timing else 0
        return Gate("speedup", False, f"{_count(pairs, 'pair')} of calls timed; {MIN_PAIRS} are needed")
    passed = measured.speedup.low >= bounds.min_speedup
    if bounds.min_speedup > bounds.profile.min_speedup:
        asked = f"{bounds.min_speedup:.2f}: a smaller gain cannot be told from chance here"
    else:
        asked = f"{bounds.min_speedup:.2f}, as the {bounds.profile.name} profile asks"
    return Gate("speedup", passed, f"{measured.speedup} as fast as eager; the lower end must reach {asked}")


def _pays(measured: Measured, bounds: Bounds) -> Gate:
    calls, expected = measured.break_even_calls, bounds.profile.expected_calls
    if calls is None:
        return Gate("break_even", False, "compiling never pays for itself: a call is no faster than eager's")
    return Gate("break_even", calls <= expected, f"compiling pays for itself after {_count(calls, 'call')}; {expected} are expected of a process")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"

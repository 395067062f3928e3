"""Eager or which compiled candidate: a verdict from measurements, with its reasons, or *inconclusive*.

A candidate that fails, or is missing, is rejected and the rest is still judged; only what is wrong with eager's own
measurement (the control), or too few pairs, makes a verdict impossible. No survivor means eager: the safe setting wins
every doubt that is about a candidate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from recompile_watch.core.candidates import EAGER, WITHOUT_CUDAGRAPHS, Candidate
from recompile_watch.core.gates import (
    MIN_PAIRS,
    Bounds,
    Gate,
    Measured,
    hard_gates,
    has_enough_pairs,
    timed_gates,
    wanted,
)
from recompile_watch.core.profiles import Pick, Profile
from recompile_watch.core.revisit import Condition, newer_torch
from recompile_watch.core.statistics import Ratio, SplitMix64, against_baseline, mad, median, minimum_detectable_effect, speedup
from recompile_watch.core.trials import Status, Trial
from recompile_watch.core.versions import version_of

MAX_EFFECT = 0.25  # a control that differs from itself by more tells nothing about a candidate
_CLEAR = 1.1  # how far over its bound the interval must lie to be called clear
_EAGER_WORKS = (Condition("eager_success_rate", ">=", 1.0, "every call of eager succeeds"),)
_QUIET = (
    Condition("control_effect", "<", MAX_EFFECT, f"eager differs from itself by less than {100 * MAX_EFFECT:.0f} %"),
    Condition("pairs", ">=", MIN_PAIRS, f"at least {MIN_PAIRS} pairs of calls were timed of each arm"),
)
_KEEP = "keep the safe setting, eager, until a measurement decides"


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with its statistics and gates. gates is empty for one that was not run."""

    trial: Trial
    speedup: Ratio | None
    break_even_calls: int | None
    gates: tuple[Gate, ...]

    @property
    def is_rejected(self) -> bool:
        """True when a gate was not passed."""
        return any(not gate.passed for gate in self.gates)

    @property
    def failures(self) -> tuple[Gate, ...]:
        """The gates that were not passed."""
        return tuple(gate for gate in self.gates if not gate.passed)


@dataclass(frozen=True, slots=True)
class Verdict:
    """status: ``decided`` or ``inconclusive``. choose: the candidate's name; None when inconclusive. settings: exact lines."""

    status: str
    choose: str | None
    settings: tuple[str, ...]
    confidence: str
    because: tuple[str, ...]
    against: tuple[str, ...]
    revisit_when: tuple[Condition, ...]

    @property
    def is_decided(self) -> bool:
        """True when there is a choice."""
        return self.status == "decided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """All of it. control: eager against itself; None where that was not timed. effect: the smallest gain that can be seen."""

    control: Ratio | None
    effect: float | None
    candidates: tuple[Judged, ...]
    verdict: Verdict


def judge(
    eager: Trial | None, trials: Sequence[Trial], profile: Profile, random: SplitMix64, *, torch_version: str | None = None, on_cpu: bool = True
) -> Judgement:  # fmt: skip
    """The verdict on candidates. eager: the control, eager timed against itself; None where it is missing."""
    control = speedup(eager.timing.pairs, random) if eager is not None and eager.timing is not None else None
    effect = None if control is None else minimum_detectable_effect(control)
    bounds = Bounds(profile, effect, eager.peak_memory_mb if eager is not None else None, on_cpu)
    alone_ms = median([time for pair in eager.timing.pairs for time in pair]) if control is not None and eager is not None and eager.timing else None
    candidates = tuple(_judged(trial, bounds, alone_ms, random) for trial in trials)
    verdict = _verdict(eager, effect, candidates, profile)
    if verdict.is_decided:
        verdict = replace(verdict, revisit_when=(*verdict.revisit_when, *newer_torch(version_of(torch_version))))
    return Judgement(control, effect, candidates, verdict)


def _judged(trial: Trial, bounds: Bounds, alone_ms: float | None, random: SplitMix64) -> Judged:
    if trial.status is Status.SKIPPED:
        return Judged(trial, None, None, ())
    measured = _measured(trial, bounds.effect or 0.0, alone_ms, random)
    gates = hard_gates(trial)
    if trial.timing is not None and trial.has_succeeded:
        gates += timed_gates(measured, bounds)
    return Judged(trial, measured.speedup, measured.break_even_calls, gates)


def _measured(trial: Trial, effect: float, alone_ms: float | None, random: SplitMix64) -> Measured:
    """The trial with its speed-up; alone_ms: a call of eager in a process without the candidate."""
    ratio = speedup(trial.timing.pairs, random) if trial.timing is not None else None
    if trial.timing is None or ratio is None:
        return Measured(trial, None)
    beside_ms = median([pair.eager_ms for pair in trial.timing.pairs])
    if alone_ms is None:
        return Measured(trial, ratio, beside_ms)
    fair = against_baseline(ratio, beside_ms, alone_ms, effect)
    return Measured(trial, fair, beside_ms if fair is ratio else alone_ms)


def _verdict(eager: Trial | None, effect: float | None, candidates: tuple[Judged, ...], profile: Profile) -> Verdict:
    tried = [one for one in candidates if one.gates]
    if eager is not None and eager.status is Status.SKIPPED:
        return _inconclusive(f"the measurement may not run: {eager.reason}", candidates)
    if eager is None or not eager.has_succeeded:
        why = f": {eager.reason}" if eager is not None and eager.reason else ""
        return _inconclusive(f"eager itself was not measured{why}", candidates, _EAGER_WORKS)
    if profile.pick is Pick.NONE:
        return _eager("high: the profile says so", [f"the {profile.name} profile always runs eager: nothing may differ between runs"], tried, profile)
    if not tried:
        return _inconclusive("no candidate was run", candidates)
    open_ = [one for one in tried if not _is_hopeless(one)]
    if not open_:
        return _eager("high: no candidate runs as it should, whatever its speed", _reasons(tried), tried, profile)
    if eager.timing is None:
        names = ", ".join(one.trial.name for one in open_)
        return _inconclusive(f"nothing was timed: whether {names} would be faster than eager, the timed stage can say", candidates)
    if not has_enough_pairs(eager):
        pairs = len(eager.timing.pairs)
        return _inconclusive(f"eager was timed against itself in {pairs} pairs of calls; {MIN_PAIRS} are needed", candidates)
    if effect is None or effect > MAX_EFFECT:
        noise = f"eager differs from itself by up to {100 * (effect or 0):.0f} %"
        return _inconclusive(f"{noise}: the machine is too noisy to tell a gain; measure when it is idle, or for longer", candidates)
    survivors = [one for one in open_ if not one.is_rejected and one.speedup is not None]
    if survivors:
        return _winner(_best(survivors, profile), survivors, tried, effect, profile)
    untimed = [one.trial.name for one in open_ if not has_enough_pairs(one.trial)]
    if untimed:
        return _inconclusive(f"fewer than {MIN_PAIRS} pairs of calls were timed of {', '.join(untimed)}", candidates)
    return _eager("high: every candidate was measured, and none passed every gate", _reasons(tried), tried, profile)


def _is_hopeless(one: Judged) -> bool:
    """True when a gate that needs no stopwatch rejects it."""
    return any(not gate.passed for gate in hard_gates(one.trial))


def _best(survivors: Sequence[Judged], profile: Profile) -> Judged:
    """The steadiest or the fastest; of those that cannot be told apart from it, the simplest."""
    if profile.pick is Pick.STEADIEST:
        return min(survivors, key=lambda one: (_spread(one), one.trial.candidate.rank))
    fastest = max(survivors, key=_value)
    equal = [one for one in survivors if one.speedup is not None and fastest.speedup is not None and one.speedup.high >= fastest.speedup.low]
    return min(equal, key=lambda one: (one.trial.candidate.rank, -_value(one)))


def _value(one: Judged) -> float:
    return one.speedup.value if one.speedup is not None else 0.0


def _spread(one: Judged) -> float:
    """Relative spread of the candidate's calls."""
    times = [pair.candidate_ms for pair in one.trial.timing.pairs] if one.trial.timing is not None else []
    return mad(times) / median(times) if times else float("inf")


def _winner(best: Judged, survivors: Sequence[Judged], tried: Sequence[Judged], effect: float, profile: Profile) -> Verdict:
    assert best.speedup is not None and best.trial.timing is not None
    pairs, name = len(best.trial.timing.pairs), best.trial.name
    bound = max(profile.min_speedup, 1 + effect)
    is_clear = best.speedup.low >= _CLEAR * bound and pairs >= 3 * MIN_PAIRS
    confidence = "high: the whole interval lies clearly over the bound" if is_clear else "medium: the interval lies over the bound, but not by much"
    because = [f"{name} is {best.speedup} as fast as eager, in {pairs} pairs of calls; eager differs from itself by up to {100 * effect:.1f} %"]
    because += [f"{gate.gate}: {gate.detail}" for gate in best.gates if gate.gate in ("recompiles", "error", "break_even")]
    others = [one.trial.name for one in survivors if one is not best and _value(one) > _value(best)]
    if others and profile.pick is Pick.FASTEST:
        because.append(f"{', '.join(others)} cannot be told apart from it, and is less simple")
    against = [f"the first call takes {best.trial.timing.first_call_s:.1f} s", *_skips(best.trial), *_slower_beside(best)]
    against += [f"rejected: {reason}" for reason in _reasons([one for one in tried if one.is_rejected])]
    return Verdict("decided", name, best.trial.candidate.lines(), confidence, tuple(because), tuple(against), _regrets(profile))


def _eager(confidence: str, because: Sequence[str], tried: Iterable[Judged], profile: Profile) -> Verdict:
    against = [f"{one.trial.name} is {one.speedup} as fast" for one in tried if one.speedup is not None and one.speedup.low > 1]
    against += _only_cudagraphs(tried)
    gates = dict.fromkeys(gate.gate for one in tried for gate in one.failures)
    conditions = dict.fromkeys(condition for gate in (*gates, "speedup") if (condition := wanted(gate, profile)) is not None)
    return Verdict("decided", EAGER, Candidate(EAGER).lines(), confidence, tuple(because), tuple(against), tuple(conditions))


def _inconclusive(why: str, candidates: Iterable[Judged], wanted: tuple[Condition, ...] | None = None) -> Verdict:
    """wanted: what has to be seen first; without it a control that is quiet and long enough."""
    sure = [replace(one, gates=hard_gates(one.trial)) for one in candidates if one.gates]  # what a stopwatch says is in doubt
    against = tuple(f"rejected: {reason}" for reason in _reasons(sure))
    return Verdict("inconclusive", None, (), "none: the evidence does not decide", (why, _KEEP), against, wanted or _QUIET)


def _reasons(rejected: Iterable[Judged]) -> list[str]:
    """Every failed gate as a line; candidates that failed for the same reason share one."""
    names: dict[str, list[str]] = {}
    for one in rejected:
        for gate in one.failures:
            names.setdefault(gate.detail, []).append(one.trial.name)
    return [f"{', '.join(who)}: {detail}" for detail, who in names.items()]


def _skips(trial: Trial) -> list[str]:
    skips = trial.structure.cudagraph_skips if trial.structure is not None else 0
    return [f"CUDA graphs were skipped {skips} times: what they save is not there"] if skips else []


def _slower_beside(best: Judged) -> list[str]:
    """Says that the speed-up is less than that of the pairs, and why."""
    pairs = best.trial.timing.pairs if best.trial.timing is not None else ()
    raw = median([pair.eager_ms for pair in pairs]) / median([pair.candidate_ms for pair in pairs])
    if best.speedup is None or raw <= best.speedup.value * (1 + 1e-9):
        return []
    return [f"eager was {raw / best.speedup.value:.2f} times slower beside it than by itself; the speed-up is against eager by itself"]


def _only_cudagraphs(tried: Iterable[Judged]) -> list[str]:
    """What failed may be CUDA graphs alone: then compiling without them has not been refuted."""
    names = {one.trial.name for one in tried}
    found = []
    for one in tried:
        instead = WITHOUT_CUDAGRAPHS.get(one.trial.name)
        if "CUDAGraphs" in one.trial.reason and not one.trial.has_succeeded and instead is not None and instead not in names:
            found.append(
                f"{one.trial.name} failed by its CUDA graphs alone: try {instead}, or clone the tensor that one compiled step hands to the next"
            )
    return found


def _regrets(profile: Profile) -> tuple[Condition, ...]:
    """What would take a decision for a compiled candidate back."""
    return (
        Condition("success_rate", "<", 1.0, "a compiled call fails"),
        Condition("recompile_limit_hits", ">=", 1, "a recompile limit is hit"),
        Condition("late_recompiles", ">=", 1, "it recompiles after warm-up"),
        Condition("speedup_ci_low", "<", profile.min_speedup, f"it is measured less than {profile.min_speedup:g} times faster than eager"),
        Condition("mae_percent", ">=", profile.max_error_percent, f"the error against eager reaches {profile.max_error_percent:g} %"),
    )

"""The arms of a diagnosis as pictures and tables show them: eager first, then each candidate that was run; and why one was not timed."""

from dataclasses import dataclass

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.profiles import PROFILES
from recompile_watch.core.statistics import Ratio, median
from recompile_watch.core.trials import Status, Timing, Trial
from recompile_watch.core.verdict import Judged
from recompile_watch.report.safe import safe

NAME_CHARS = 80
STRUCTURAL_ONLY = "structural stage only"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the model. ratio: how many times faster than eager; eager's own is against itself. reason: why it was not timed."""

    name: str
    trial: Trial
    ratio: Ratio | None
    is_eager: bool
    is_chosen: bool
    reason: str = ""

    @property
    def timing(self) -> Timing | None:
        """Its timing; None unless pairs of calls were timed."""
        return self.trial.timing if self.trial.timing is not None and self.trial.timing.pairs else None

    @property
    def times_ms(self) -> tuple[float, ...]:
        """Its timed calls, in order."""
        return tuple(pair.candidate_ms for pair in self.timing.pairs) if self.timing is not None else ()


@dataclass(frozen=True, slots=True)
class Spread:
    """Where calls lie, in milliseconds. low, high: what 5 of 100 calls fall below, and exceed."""

    low: float
    quarter: float
    middle: float
    three_quarters: float
    high: float


def arms_of(diagnosis: Diagnosis) -> list[Arm]:
    """Eager, where it was measured, and every candidate that was run."""
    choose, eager = diagnosis.judgement.verdict.choose, diagnosis.eager
    ran = [one for one in diagnosis.judgement.candidates if one.trial.status is not Status.SKIPPED]
    first = [] if eager is None else [Arm("eager", eager, diagnosis.judgement.control, True, choose == "eager", unmeasured(diagnosis))]
    return first + [
        Arm(safe(one.trial.name, NAME_CHARS), one.trial, one.speedup, False, one.trial.name == choose, _untimed(diagnosis, one)) for one in ran
    ]


def unmeasured(diagnosis: Diagnosis) -> str:
    """Why nothing was timed, in a few words; empty where eager was."""
    eager = diagnosis.eager
    if eager is not None and eager.timing is not None and eager.timing.pairs:
        return ""
    if diagnosis.problems:
        return safe(diagnosis.problems[0])
    if diagnosis.stage == "structural":
        return STRUCTURAL_ONLY
    return safe(f"eager itself was not timed: {eager.reason}") if eager is not None and eager.reason else "eager itself was not timed"


def asked_of(diagnosis: Diagnosis) -> float:
    """What the profile asks of an interval's lower end; 1 for a profile that is not known."""
    profile = PROFILES.get(diagnosis.profile)
    return profile.min_speedup if profile is not None else 1.0


def spread_of(times_ms: tuple[float, ...]) -> Spread:
    """The spread of some calls, of at least one."""
    ordered = sorted(times_ms)
    low, quarter, three_quarters, high = (ordered[round((len(ordered) - 1) * share)] for share in (0.05, 0.25, 0.75, 0.95))
    return Spread(low, quarter, median(ordered), three_quarters, high)


def _untimed(diagnosis: Diagnosis, one: Judged) -> str:
    if one.speedup is not None:
        return ""
    if one.trial.status is not Status.OK:
        return f"{one.trial.status.value}: {safe(one.trial.reason)}" if one.trial.reason else one.trial.status.value
    if diagnosis.stage == "structural":
        return STRUCTURAL_ONLY
    failed = ", ".join(safe(gate.gate, 40) for gate in one.failures)
    return f"rejected before it was timed: {failed}" if failed else "not timed"

"""Diagnoses to be shown: every way in which one can end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recompile_watch.core.candidates import parse_candidate
from recompile_watch.core.diagnosis import Diagnosis, Provenance
from recompile_watch.core.profiles import BALANCED, PROFILES, Profile
from recompile_watch.core.statistics import Pair, SplitMix64
from recompile_watch.core.trials import Status, Structure, Trial
from recompile_watch.core.verdict import judge
from recompile_watch.report.diagnosis_html import diagnosis_to_html
from recompile_watch.respond.diagnose import Plan, not_run
from tests.core.test_verdict import CALM, EAGER, EQUAL, STORM, timing, trial

HOSTILE = "\x1b[31mred\x07 </title></style></script><script>alert(1)</script> <b>&amp;\"'</b> $x^{2}$ api_key=abcdef0123456789 \u202egnp"
MADE = Provenance("/srv/bot/.venv/bin/python", "3.11.2", 1, "2026-11-21T09:00:00+00:00", 81.5)
_WARMUP = ((9.0, 3), (0.6, 1), *((0.021, 0),) * 6)
_READ_BACK = (("recompile_limit", "8"), ("threads", "1"))


def courses(seen: Structure, compiles: tuple[int, ...], warmup_calls: int) -> Structure:
    return replace(seen, compiles_by_call=compiles, calls=len(compiles), warmup_calls=warmup_calls)


CALM_COURSE = courses(CALM, (3, 1, *(0,) * 46), 8)
STORM_COURSE = courses(STORM, (12, 9, 8, 7, 6, 3, 1, *(0,) * 9), 8)


def timed(name: str, gain: float, **changes: object) -> Trial:
    """A candidate with warm-up and pairs, a recompile among them where its structure has a late one."""
    whole = replace(timing(gain, seed=len(name)), warmup=_WARMUP, compiles=(0,) * 40, compile_s=8.5, sigma_ms=0.2)
    return trial(name, gain, timing=whole, structure=CALM_COURSE, read_back=_READ_BACK, seconds=14.25, **changes)


def diagnosis(*trials: Trial, eager: Trial | None = EAGER, profile: Profile = BALANCED, stage: str = "both", **changes: object) -> Diagnosis:
    judgement = judge(eager, trials, profile, SplitMix64(42), torch_version="2.13.0")
    whole = Diagnosis("bot:make", "cpu", "2.13.0", profile.name, "quick", stage, True, 0, eager, judgement, provenance=MADE)
    return replace(whole, **changes)  # type: ignore[arg-type]


def measured() -> Diagnosis:
    """One is chosen; others are rejected in every way."""
    late = timed("reduce-overhead", 1.3)
    assert late.timing is not None
    compiles = (*(0,) * 20, 2, *(0,) * 19)
    late_course = courses(replace(CALM, recompiles=2, late_recompiles=2), (3, 1, *(0,) * 6, *compiles), 8)
    return diagnosis(
        timed("default", 1.7, accuracy=replace(EQUAL, mae_pct=0.5, noise_floor_pct=3.0)),
        replace(late, timing=replace(late.timing, compiles=compiles), structure=late_course),
        timed("max-autotune", 1.02),
        trial("dynamic", status=Status.OK, timing=None, structure=STORM_COURSE),
        trial("exclude=embed", status=Status.CRASHED, reason="killed by SIGKILL", timing=None, structure=None, accuracy=None, calls=3, calls_ok=1),
        trial("recompile_limit=64", status=Status.SKIPPED, reason="nothing to mend", timing=None, structure=None, accuracy=None),
    )  # fmt: skip


def storm() -> Diagnosis:
    """Every candidate is rejected by its structure: eager, and only eager was timed."""
    names = ("default", "dynamic", "recompile_limit=64")
    logged = "torch._dynamo hit config.recompile_limit (8)"
    return diagnosis(*(trial(name, timing=None, accuracy=None, peak_memory_mb=None, structure=STORM_COURSE, log=(logged,)) for name in names))


def structural() -> Diagnosis:
    """Nothing was timed, and nothing was rejected."""
    eager = Trial(EAGER.candidate, Status.OK, calls=4, calls_ok=4)
    course = courses(CALM, (3, 1, *(0,) * 14), 8)
    quiet = trial("default", timing=None, accuracy=None, peak_memory_mb=None, structure=course)
    return diagnosis(quiet, eager=eager, stage="structural")


def noisy() -> Diagnosis:
    """Eager differs from itself by far too much."""
    shaken = tuple(Pair(20.0 * (1 + n % 3), 20.0 * (1 + n % 2)) for n in range(40))
    assert EAGER.timing is not None
    return diagnosis(timed("default", 1.7), eager=replace(EAGER, timing=replace(EAGER.timing, pairs=shaken)))


def crashed() -> Diagnosis:
    """Every candidate crashed; eager did not."""
    names = ("default", "dynamic", "reduce-overhead")
    dead = [trial(name, status=Status.CRASHED, reason="killed by SIGSEGV", timing=None, structure=None, accuracy=None, calls=0) for name in names]
    return diagnosis(*dead)


def without_torch() -> Diagnosis:
    """The interpreter has no torch: eager was never run."""
    why = "torch cannot be imported (ModuleNotFoundError: No module named 'torch'); --python names the interpreter"
    eager = Trial(EAGER.candidate, Status.CRASHED, why)
    missing = Trial(parse_candidate("default"), Status.CRASHED, why)
    return diagnosis(missing, eager=eager, problems=(why,), torch_version=None, device="unknown")


def refused() -> Diagnosis:
    """The guard did not let it begin."""
    return not_run(Plan("bot:make", "bot:make", "both", "quick", BALANCED), "GPU 0 is busy: 3 processes compute on it")


def hostile() -> Diagnosis:
    """A diagnosis in which every text that a worker or a workload can choose is an attack."""
    evil = replace(parse_candidate("variant:x"), value=HOSTILE)
    won = replace(timed("variant:x", 1.7), candidate=evil, log=(HOSTILE,), read_back=((HOSTILE, HOSTILE),))
    bad = trial("dynamic", status=Status.FAILED, reason=HOSTILE, calls_ok=0, timing=None, structure=None, accuracy=None, log=(HOSTILE,))
    made = replace(MADE, python=HOSTILE, python_version=HOSTILE)
    return diagnosis(won, bad, workload=HOSTILE, device=HOSTILE, torch_version=HOSTILE, problems=(HOSTILE,), provenance=made)


DIAGNOSES: dict[str, Callable[[], Diagnosis]] = {
    "measured": measured, "storm": storm, "structural": structural, "noisy": noisy, "crashed": crashed, "without-torch": without_torch,
    "refused": refused, "research": lambda: diagnosis(timed("default", 1.7), profile=PROFILES["research"]),
}  # fmt: skip


def page_of_diagnosis(of: Diagnosis, generated_at: str = "2026-11-21T00:00:00+00:00") -> str:
    return diagnosis_to_html(of, generated_at=generated_at, tool_version="0.0")

"""Tests of `recompile_watch.core.verdict` and its gates: what is chosen, what is rejected and why, and what chance may not do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recompile_watch.core.candidates import parse_candidate
from recompile_watch.core.profiles import ACCURACY, BALANCED, MAX_PERFORMANCE, PRODUCTION, RESEARCH, Profile
from recompile_watch.core.statistics import SplitMix64
from recompile_watch.core.trials import Accuracy, Status, Structure, Timing, Trial
from recompile_watch.core.verdict import Judgement, judge
from tests.core.noise import KINDS, pairs_of

CALM = Structure(recompiles=0, late_recompiles=0, graph_breaks=0, limit_hits=0, frames_compiled=1, cudagraph_skips=0)
STORM = Structure(recompiles=31, late_recompiles=0, graph_breaks=22, limit_hits=1, frames_compiled=45, cudagraph_skips=0)
EQUAL = Accuracy(max_abs=0.0, mae=0.0, mae_pct=0.0, noise_floor_pct=0.0, same_seed_delta=0.0, is_close=True)


def timing(gain: float, *, kind: str = "plain", count: int = 40, overhead_s: float = 10.0, seed: int = 1) -> Timing:
    """Calls of eager and of something ``gain`` times faster; a call of eager takes 20 ms."""
    return Timing(pairs_of(kind, count, gain, SplitMix64(seed)), first_call_s=9.0, overhead_s=overhead_s)


def trial(name: str = "default", gain: float = 1.5, **changes: object) -> Trial:
    """A candidate that passes every gate of the balanced profile, changed as said."""
    good = Trial(parse_candidate(name), Status.OK, "", CALM, timing(gain, seed=len(name)), EQUAL, 400.0, 50, 50)
    return replace(good, **changes)  # type: ignore[arg-type]


EAGER = trial("eager", 1.0, structure=None, accuracy=None)


def judged(*trials: Trial, profile: Profile = BALANCED, eager: Trial | None = EAGER) -> Judgement:
    return judge(eager, trials, profile, SplitMix64(42), torch_version="2.13.0")


def gates_failed(*trials: Trial, profile: Profile = BALANCED) -> list[list[str]]:
    return [[gate.gate for gate in one.failures] for one in judged(*trials, profile=profile).candidates]


def test_a_clear_gain_is_chosen() -> None:
    """With its interval, its settings, the price, and what would take the decision back."""
    verdict = judged(trial(gain=1.5)).verdict
    assert (verdict.status, verdict.choose, verdict.settings) == ("decided", "default", ("model = torch.compile(model)",))
    assert verdict.confidence.startswith("high") and "default is 1.48 times [1.45, 1.49] as fast as eager" in verdict.because[0]
    assert "the first call takes 9.0 s" in verdict.against
    assert {"late_recompiles", "recompile_limit_hits", "torch_version"} <= {one.check for one in verdict.revisit_when}


@pytest.mark.parametrize(
    ("changes", "gate", "words"),
    [
        ({"status": Status.INEFFECTIVE, "reason": "recompile_limit reads 8"}, "effective", "reads 8"),
        ({"calls_ok": 49, "reason": "IndexError"}, "success", "49 of 50 calls succeeded: IndexError"),
        ({"status": Status.CRASHED, "reason": "killed by signal 9"}, "success", "it crashed: killed by signal 9"),
        ({"status": Status.TIMEOUT}, "success", "did not end in time"),
        ({"structure": replace(CALM, frames_compiled=0)}, "compiled", "nothing was compiled"),
        ({"structure": replace(CALM, limit_hits=1)}, "limit", "limit was hit once"),
        ({"structure": replace(CALM, recompiles=10)}, "recompiles", "10 recompiles; fewer than 10"),
        ({"structure": replace(CALM, late_recompiles=1, recompiles=1)}, "late_recompiles", "1 recompile after warm-up"),
        ({"structure": None}, "recompiles", "not recorded"),
        ({"accuracy": None}, "error", "not compared"),
        ({"accuracy": replace(EQUAL, mae_pct=6.18)}, "error", "6.18 %; less than 5 %"),
        ({"accuracy": replace(EQUAL, mae_pct=float("nan"))}, "error", "nan"),
        ({"accuracy": replace(EQUAL, mae_pct=2.0, noise_floor_pct=1.0)}, "error", "over the 1 %"),
        ({"accuracy": replace(EQUAL, metric_pct=7.0)}, "error", "7 %"),
        ({"accuracy": replace(EQUAL, mae_pct=1.0, is_close=False)}, "error", "no reference"),
        ({"accuracy": replace(EQUAL, mae_pct=1.0, is_close=False, rmse_eager=0.1, rmse_candidate=0.3)}, "error", "more than 2 times"),
        ({"accuracy": replace(EQUAL, mae_pct=1.0, is_close=False, same_seed_delta=0.2)}, "error", "does not repeat"),
        ({"peak_memory_mb": 1000.0}, "memory", "2.50 times"),
        ({"peak_memory_mb": None}, "memory", "not measured"),
        ({"timing": timing(1.0)}, "speedup", "the lower end must reach 1.10"),
        ({"timing": timing(1.5, overhead_s=5000)}, "break_even", "10000 are expected"),
    ],
)
def test_each_gate_rejects(changes: dict[str, object], gate: str, words: str) -> None:
    """What is wrong with a candidate stands in its gate and in the verdict, which is eager."""
    found = judged(trial(**changes))  # type: ignore[arg-type]
    failures = {one.gate: one.detail for one in found.candidates[0].failures}
    assert gate in failures and words in failures[gate]
    assert found.verdict.choose == "eager" and found.verdict.settings == ("export TORCHDYNAMO_DISABLE=1",)
    assert any(words in reason for reason in found.verdict.because)


def test_gates_come_in_order() -> None:
    """A bad candidate lists all that is wrong, from what matters first."""
    worst = trial(gain=0.75, structure=STORM, accuracy=replace(EQUAL, mae_pct=9.0), peak_memory_mb=900.0)
    assert gates_failed(worst) == [["limit", "recompiles", "error", "memory", "speedup", "break_even"]]


@pytest.mark.parametrize(
    "accuracy",
    [
        replace(EQUAL, mae_pct=0.5, is_close=False, noise_floor_pct=3.0),
        replace(EQUAL, mae_pct=1.0, is_close=False, rmse_eager=0.2, rmse_candidate=0.3),
        replace(EQUAL, mae_pct=3e-5, is_close=False, noise_floor_pct=1e-9),
    ],
)
def test_errors_that_are_none(accuracy: Accuracy) -> None:
    """Within what another seed makes, within twice eager's own distance from the truth, or rounding alone."""
    assert gates_failed(trial(accuracy=accuracy)) == [[]]


def test_an_own_measure_that_is_no_number_is_no_pass() -> None:
    """Nor one that is endless; one that got better is no error."""
    for value, failed in ((float("nan"), ["error"]), (float("inf"), ["error"]), (-20.0, [])):
        assert gates_failed(trial(accuracy=replace(EQUAL, metric_pct=value))) == [failed]


def test_the_compiler_itself_takes_memory() -> None:
    """A tiny model on a CPU: 130 MB more are the compiler's modules, not the model's."""
    tiny = trial(peak_memory_mb=473.0)
    eager = replace(EAGER, peak_memory_mb=309.0)
    assert judge(eager, [tiny], BALANCED, SplitMix64(1)).verdict.choose == "default"
    assert judge(eager, [tiny], BALANCED, SplitMix64(1), on_cpu=False).verdict.choose == "eager"


def test_a_missing_candidate_never_makes_it_inconclusive() -> None:
    """One crashed, one timed out, one took no effect: the rest is judged."""
    others = [
        trial("reduce-overhead", status=Status.CRASHED),
        trial("dynamic", status=Status.TIMEOUT),
        trial("max-autotune", status=Status.INEFFECTIVE),
    ]
    assert judged(*others, trial()).verdict.choose == "default"
    assert judged(*others).verdict.choose == "eager"


@pytest.mark.parametrize(
    ("eager", "words"),
    [
        (None, "eager itself was not measured"),
        (replace(EAGER, status=Status.CRASHED, reason="no torch"), "not measured: no torch"),
        (replace(EAGER, calls_ok=49), "not measured"),
        (replace(EAGER, timing=None), "nothing was timed"),
        (replace(EAGER, timing=timing(1.0, count=9)), "in 9 pairs"),
        (replace(EAGER, timing=timing(1.4)), "too noisy"),
        (replace(EAGER, timing=timing(1.0, kind="bimodal", count=12, seed=2)), "too noisy"),
    ],
    ids=["missing", "crashed", "failed", "not timed", "few", "biased", "noisy"],
)
def test_without_a_control_nothing_is_decided(eager: Trial | None, words: str) -> None:
    """The safe setting stays, and nothing is chosen."""
    verdict = judged(trial(gain=3.0), eager=eager).verdict
    assert (verdict.status, verdict.choose, verdict.settings) == ("inconclusive", None, ())
    assert words in verdict.because[0] and "keep the safe setting" in verdict.because[1]


def test_what_fails_without_a_stopwatch_needs_none() -> None:
    """All candidates hit the limit: eager, whatever the noise; one that does not keeps it open."""
    noisy = replace(EAGER, timing=timing(1.4))
    storm = trial(structure=STORM, timing=None)
    assert judged(storm, eager=noisy).verdict.choose == "eager"
    assert judged(storm, trial("dynamic"), eager=noisy).verdict.choose is None


def test_too_few_pairs_of_the_only_hope() -> None:
    """The only candidate that runs well was timed too little: open; beside a winner it does not matter."""
    few = trial("dynamic", timing=timing(3.0, count=5))
    assert judged(few).verdict.status == "inconclusive"
    assert judged(few, trial()).verdict.choose == "default"


def test_the_structural_stage_alone_chooses_no_compiled_mode() -> None:
    """Nothing was timed: a candidate that runs well is no decision."""
    verdict = judged(trial(timing=None, accuracy=None, peak_memory_mb=None), eager=replace(EAGER, timing=None)).verdict
    assert verdict.status == "inconclusive"


def test_ties_go_to_the_simpler() -> None:
    """1.50 and 1.51 cannot be told apart, their intervals overlap; 1.5 and 1.8 can."""
    assert judged(trial("max-autotune", timing=timing(1.51, seed=7)), trial()).verdict.choose == "default"
    assert judged(trial(), trial("max-autotune", 1.8)).verdict.choose == "max-autotune"


@pytest.mark.parametrize(
    ("profile", "choice"), [(PRODUCTION, "eager"), (BALANCED, "default"), (ACCURACY, "default"), (RESEARCH, "eager"), (MAX_PERFORMANCE, "default")]
)
def test_profiles(profile: Profile, choice: str) -> None:
    """1.49 times, as Toto without its cache: enough for some uses and not for others."""
    assert judged(trial(gain=1.49), profile=profile).verdict.choose == choice


def test_the_accuracy_profile_asks_for_more_and_takes_the_steadiest() -> None:
    """0.5 % of error is too much for it; of two, the one with the smaller spread is taken, not the faster one."""
    assert judged(trial(accuracy=replace(EQUAL, mae_pct=0.5, noise_floor_pct=1.0)), profile=ACCURACY).verdict.choose == "eager"
    wild = trial("reduce-overhead", timing=timing(2.5, kind="slow"))
    assert judged(wild, trial(), profile=ACCURACY).verdict.choose == "default"
    assert judged(wild, trial(), profile=BALANCED).verdict.choose == "reduce-overhead"


def test_eager_by_itself_is_the_baseline() -> None:
    """Where eager is twice as slow beside the candidate as in its own process, half of the gain is no gain; a tenth is noise."""
    pairs = timing(3.0).pairs
    slow = trial(
        timing=replace(timing(3.0), pairs=tuple(pair._replace(eager_ms=2 * pair.eager_ms, candidate_ms=2 * pair.candidate_ms) for pair in pairs))
    )
    found = judged(slow)
    ratio = found.candidates[0].speedup
    assert ratio is not None and 1.4 < ratio.value < 1.6 and ratio.low < ratio.value < ratio.high
    assert any("2.0" in text and "beside it" in text for text in found.verdict.against)
    assert judged(slow, profile=PRODUCTION).verdict.choose == "eager"
    near = trial(timing=replace(timing(3.0), pairs=tuple(pair._replace(eager_ms=1.05 * pair.eager_ms) for pair in pairs)))
    assert (judged(near).candidates[0].speedup or ratio).value > 3


def test_failed_cudagraphs_are_not_failed_compiling() -> None:
    """As Kronos: the mode without CUDA graphs has not been refuted."""
    reason = "accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run"
    crashed = trial("max-autotune", status=Status.FAILED, calls=5, calls_ok=0, reason=reason, timing=None)
    assert "try max-autotune-no-cudagraphs" in judged(crashed).verdict.against[0]


def test_a_skipped_candidate_counts_for_nothing() -> None:
    """It was not run: neither rejected nor chosen."""
    skipped = trial("reduce-overhead", status=Status.SKIPPED, reason="without a GPU it is the default mode")
    assert judged(skipped, trial()).candidates[0].gates == () and judged(skipped).verdict.status == "inconclusive"


def test_chance_alone_never_wins() -> None:
    """Of 200 sets of equal arms with the noise of real machines, fewer than 2 % yield a winner, in the profile that asks least."""
    winners = 0
    for number in range(200):
        random = SplitMix64(1000 + number)
        kind, count = KINDS[number % len(KINDS)], (12, 20, 30, 60)[number % 4]
        arms = [replace(trial(name), timing=Timing(pairs_of(kind, count, 1.0, random), 0.0, 0.0)) for name in ("default", "reduce-overhead")]
        eager = replace(EAGER, timing=Timing(pairs_of(kind, count, 1.0, random), 0.0, 0.0))
        winners += judge(eager, arms, MAX_PERFORMANCE, random).verdict.choose not in (None, "eager")
    assert winners < 4


@pytest.mark.parametrize(("kind", "least"), [("plain", 40), ("heavy", 40), ("drift", 40), ("slow", 10)])
def test_a_true_gain_is_found(kind: str, least: int) -> None:
    """A true 1.2 in 40 pairs: found in 40 of 40 sets, and in a quarter of those where each call resembles the one before."""
    found = 0
    for number in range(40):
        random = SplitMix64(number)
        eager = replace(EAGER, timing=Timing(pairs_of(kind, 40, 1.0, random), 0.0, 0.0))
        one = replace(trial(), timing=Timing(pairs_of(kind, 40, 1.2, random), 9.0, 10.0))
        found += judge(eager, [one], MAX_PERFORMANCE, random).verdict.choose == "default"
    assert found >= least


def test_a_verdict_can_be_computed_again() -> None:
    """The same trials and seed give the same judgement."""
    assert judged(trial(), trial("dynamic", 1.2)) == judged(trial(), trial("dynamic", 1.2))

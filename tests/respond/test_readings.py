"""Tests of `recompile_watch.respond.readings`: a result is checked number by number before anything is concluded from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.candidates import Candidate
from recompile_watch.core.trials import MAX_CALLS, Status
from recompile_watch.respond.readings import Reading, computes_only, reading_of, timed
from recompile_watch.respond.worker_process import Ending
from tests.respond.fake import CALM, EQUAL

OUTCOME: dict[str, object] = {
    "status": "ok", "reason": "", "calls": 8, "calls_ok": 8, "warmup": [[9.0, 8.0, 1], [0.1, 0.1, 0]], "structure": CALM, "accuracy": EQUAL,
    "pairs": [[[20.0, 10.0, 0], [10.0, 5.0, 0]]] * 25, "compiles": [0] * 25, "first_call_s": 9.0, "overhead_s": 9.0, "overhead_cpu_s": 8.0,
    "compile_s": None, "peak_memory_mb": 400.0, "warmup_calls": 2, "read_back": {"recompile_limit": 8},
}  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=6
)


def reading(**changes: object) -> Reading:
    return reading_of(Candidate("default"), Ending(outcome={**OUTCOME, **changes}, hello={"torch": "2.13.0", "device": "cpu", "variants": ["a"]}))


def test_a_good_result() -> None:
    """Everything arrives, by the clock that is asked for."""
    found = reading()
    assert found.trial.has_succeeded and found.torch_version == "2.13.0" and found.variants == ("a",)
    by_clock, by_processor = timed([found], by_processor=False)[0].timing, timed([found], by_processor=True)[0].timing
    assert by_clock is not None and by_clock.pairs[0] == (20.0, 10.0) and by_clock.overhead_s == 9.0 and by_clock.sigma_ms == 0.0
    assert by_processor is not None and by_processor.pairs[0] == (10.0, 5.0) and by_processor.overhead_s == 8.0


def test_calls_one_by_one() -> None:
    """What each call compiled, the warm-up first; calls behind it belong to no warm-up; settings and the process's time come along."""
    warm = [[9.0, 8.0, 3], [0.1, 0.1, 1], [0.1, 0.1, 0], [0.2, 0.2, 2]]
    timed_one = reading(warmup=warm, warmup_calls=3, compiles=[0] * 24 + [1]).trial
    assert timed_one.structure is not None and timed_one.timing is not None
    assert timed_one.structure.compiles_by_call == (3, 1, 0, *(0,) * 24, 1) and timed_one.structure.warmup_calls == 3
    assert timed_one.timing.warmup == ((9.0, 3), (0.1, 1), (0.1, 0)) and timed_one.read_back == (("recompile_limit", "8"),)
    counted = reading(warmup=warm, warmup_calls=3, compiles=[], pairs=[]).trial.structure
    assert counted is not None and counted.compiles_by_call == (3, 1, 0, 2) and counted.calls == 4
    assert reading_of(Candidate("default"), Ending(failure="dead", seconds=1.5)).trial.seconds == 1.5


def test_many_calls_are_cut_with_their_number() -> None:
    """A workload with thousands of inputs: the first calls are kept one by one, of the others the number."""
    seen = reading(warmup=[[0.1, 0.1, 0]] * (MAX_CALLS + 7), warmup_calls=MAX_CALLS + 7).trial
    assert seen.structure is not None and seen.timing is not None
    assert len(seen.structure.compiles_by_call) == len(seen.timing.warmup) == MAX_CALLS
    assert (seen.structure.calls, seen.structure.warmup_calls) == (MAX_CALLS + 32, MAX_CALLS + 7)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "splendid"}, {"calls": "many"}, {"calls": -1}, {"calls": 1.5}, {"calls": float("nan")}, {"calls": True}, {"pairs": [[1, 2]]},
        {"pairs": [[[1, 2, 0], [1, float("inf"), 0]]]}, {"pairs": [[[1, -2, 0], [1, 1, 0]]]}, {"pairs": "x"}, {"first_call_s": None},
        {"structure": {"recompiles": 1}}, {"accuracy": {"mae": 1}}, {"peak_memory_mb": "1 GB"}, {"warmup": [[1]]},
        {"warmup_calls": -1}, {"warmup_calls": "2"}, {"compiles": ["a"]}, {"pairs": [[[20.0, 10.0, 0], [10.0, 5.0, 0]]] * (MAX_CALLS + 1)},
    ],
)  # fmt: skip
def test_a_result_that_cannot_be_read(changes: dict[str, object]) -> None:
    """It is a crash of that candidate, with what was wrong."""
    trial = reading(**changes).trial
    assert trial.status is Status.CRASHED and "cannot be read" in trial.reason and not trial.has_succeeded


@given(st.sampled_from(sorted(OUTCOME)), JSON)
def test_no_result_breaks_the_program(name: str, value: object) -> None:
    """Whatever stands in a field, there is a trial."""
    found = reading(**{name: value})
    assert found.trial.status in Status and timed([found], by_processor=True)


def test_waiting_is_not_computing() -> None:
    """The processor's time stands for a call only where calls do not wait as a rule."""
    waiting = reading(pairs=[[[20.0, 10.0, 0], [10.0, 5.0, 3]]] * 20)
    assert computes_only([reading()]) and not computes_only([reading(), waiting]) and not computes_only([])


def test_lines_worth_showing() -> None:
    """Of a long log, what torch says about limits and CUDA graphs."""
    log = "noise\nW1 x.py:1] [6/8] torch._dynamo hit config.recompile_limit (8)\nW1 x.py:1] [6/8]    function: 'f' (a.py:1)\nmore noise\n"
    trial = reading_of(Candidate("default"), Ending(outcome=OUTCOME, log=log)).trial
    assert len(trial.log) == 2 and "hit config.recompile_limit (8)" in trial.log[0]

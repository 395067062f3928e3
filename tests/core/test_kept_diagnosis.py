"""Tests of `recompile_watch.core.kept_diagnosis`: a JSON report read back is the diagnosis that it was made from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import cast

import pytest

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.kept_diagnosis import read_diagnosis
from recompile_watch.core.trials import MAX_CALLS, Accuracy
from recompile_watch.report.diagnosis_json import diagnosis_to_json
from recompile_watch.report.json import json_text
from tests.report.diagnoses import DIAGNOSES, measured

Json = dict[str, object]


def written(diagnosis: Diagnosis) -> str:
    return json_text(diagnosis_to_json(diagnosis, generated_at="2026-11-21T00:00:00+00:00", tool_version="0"))


@pytest.mark.parametrize("name", sorted(DIAGNOSES))
def test_nothing_is_lost(name: str) -> None:
    """Written, read and written again, a report says the same: every picture and table can be made from a kept one."""
    text = written(DIAGNOSES[name]())
    assert json.loads(written(read_diagnosis(text, "d.json"))) == json.loads(text)


def test_calls_stay_calls() -> None:
    """Each pair of calls, what it compiled, and the warm-up come back as they were."""
    before, after = measured(), read_diagnosis(written(measured()), "d.json")
    for one, other in zip(before.judgement.candidates, after.judgement.candidates, strict=True):
        assert (one.trial.timing, one.speedup, one.break_even_calls, one.gates) == (
            other.trial.timing, other.speedup, other.break_even_calls, other.gates,
        )  # fmt: skip
        assert one.trial.structure is None or one.trial.structure.compiles_by_call == other.trial.structure.compiles_by_call  # type: ignore[union-attr]
    assert before.eager is not None and after.eager is not None and before.eager.timing is not None and after.eager.timing is not None
    assert before.eager.timing.pairs == after.eager.timing.pairs and before.provenance == after.provenance


def test_an_endless_error() -> None:
    """Outputs of another shape are infinitely far off; JSON has no such number, and it comes back all the same."""
    whole = measured()
    first = whole.judgement.candidates[0]
    far = replace(first, trial=replace(first.trial, accuracy=Accuracy(inf, inf, inf, 0.0, 0.0, is_close=False)))
    after = read_diagnosis(written(replace(whole, judgement=replace(whole.judgement, candidates=(far,)))), "d.json")
    assert after.judgement.candidates[0].trial.accuracy == far.trial.accuracy


def test_a_report_of_an_earlier_version() -> None:
    """What reports did not hold at first is unknown, and the rest is read."""
    report = cast(Json, json.loads(written(measured())))
    del report["provenance"]
    for one in (report["eager"], *cast(list[Json], report["candidates"])):
        cast(Json, one).pop("read_back"), cast(Json, one).pop("process_s")
    for one in cast(list[Json], report["candidates"]):
        for name in ("calls", "warmup_calls", "compiles_by_call") if one["structural"] else ():
            cast(Json, one["structural"]).pop(name)
    after = read_diagnosis(json.dumps(report), "d.json")
    assert after.provenance is None and after.eager is not None and after.eager.seconds is None
    assert after.judgement.verdict == measured().judgement.verdict


def _without(*path: str) -> Callable[[Json], None]:
    def change(report: Json) -> None:
        for name in path[:-1]:
            report = cast(Json, report[name])
        del report[path[-1]]

    return change


def _first(**values: object) -> Callable[[Json], None]:
    return lambda report: cast(list[Json], report["candidates"])[0].update(values)


def _call(**values: object) -> Callable[[Json], None]:
    return lambda report: cast(Json, cast(list[Json], report["candidates"])[0]["timing"]).update(values)


@pytest.mark.parametrize(
    "change",
    [
        _without("verdict"), _without("control", "ci_low"), _without("eager", "per_call"), _first(name="fast"), _first(status="fine"),
        _first(success="all"), _first(gates=[{"gate": 1}]), _first(structural=[]),
        _call(per_call=[{"eager_ms": 0, "candidate_ms": 1, "compiles": 0}]),
        _call(per_call=[{"eager_ms": "1", "candidate_ms": 1, "compiles": 0}]), _call(ci_low=-1.0), _call(ci_high=None), _call(warmup={}),
        _call(ci_high=1e300), _call(warmup=[{"seconds": -1.0, "compiles": 0}]), _call(warmup=[{"seconds": 1.0, "compiles": 10**400}]),
        _call(per_call=[{"eager_ms": 1, "candidate_ms": 1, "compiles": 0}] * (MAX_CALLS + 1)),
        lambda report: report.update(schema="recompile-watch/analysis/1"), lambda report: report.update(control=3),
    ],
)  # fmt: skip
def test_damaged_reports(change: Callable[[Json], None]) -> None:
    """One line that says how to get a right one, whatever is wrong."""
    report = cast(Json, json.loads(written(measured())))
    change(report)
    with pytest.raises(ConfigError, match=r"d\.json: no report of diagnose; write one with"):
        read_diagnosis(json.dumps(report), "d.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '"x"', '{"schema": "recompile-watch/diagnosis/1"}', "[" * 100_000, "NaN"])
def test_other_files(text: str) -> None:
    """So it is for what is no report at all."""
    with pytest.raises(ConfigError, match="no report of diagnose"):
        read_diagnosis(text, "d.json")

"""Tests of `recompile_watch.core.measured`: a diagnosis read back, beside what a log says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.decision import Decision
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.measured import parse_diagnosis, with_measured
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.revisit import Condition

VERDICT = {
    "status": "decided", "choose": "reduce-overhead", "settings": ["x = 1"], "confidence": "high", "because": ["fast"], "against": ["slow start"],
    "revisit_when": [{"check": "torch_version", "relation": ">=", "value": "2.14", "text": "newer"}],
}  # fmt: skip
LOG = Decision("toto", "eager", "medium", ("the limit was hit",), ("measure",), ("export TORCHDYNAMO_DISABLE=1",), ())


def parsed(**changes: object) -> Decision:
    report = {"schema": "recompile-watch/diagnosis/1", "verdict": {**VERDICT, **changes}}
    return parse_diagnosis(json.dumps(report), "d.json", "toto")


@pytest.mark.parametrize(
    ("choose", "mode"),
    [("eager", "eager"), ("reduce-overhead", "reduce-overhead"), ("dynamic", "default"), ("variant:no-cache", "default"), (None, "undecided")],
)
def test_the_mode(choose: str | None, mode: str) -> None:
    """A candidate that is no mode of its own runs in the default one, with its own lines."""
    assert parsed(choose=choose).mode == mode and parsed(choose=choose).settings == ("x = 1",)


def test_a_measurement_outweighs_the_log() -> None:
    """It decides, with the log's concerns against it; one that did not decide is only a reason more."""
    (won,) = with_measured([LOG], {"toto": parsed()}, Catalog())
    assert won.mode == "reduce-overhead" and won.against == ("slow start", "the log: the limit was hit")
    assert won.revisit_when == (Condition("torch_version", ">=", "2.14", "newer"),)
    (open_,) = with_measured([LOG], {"toto": parsed(choose=None, because=["too noisy"])}, Catalog())
    assert open_.mode == "eager" and open_.against[-1] == "a diagnosis did not decide: too noisy"
    assert [one.model for one in with_measured([LOG], {"kronos": replace(parsed(), model="kronos")}, Catalog())] == ["kronos", "toto"]


def test_a_mode_is_set_by_the_models_own_switches() -> None:
    """Eager for one model must not be eager for the whole process; what is no mode stands as it was measured."""
    catalog = load_catalog()
    (eager,) = with_measured([], {"toto": parsed(choose="eager", settings=["export TORCHDYNAMO_DISABLE=1"])}, catalog)
    assert eager.settings == ("export TOTO_DISABLE_COMPILE=1",)
    (mode,) = with_measured([], {"toto": parsed(settings=['model = torch.compile(model, mode="reduce-overhead")'])}, catalog)
    assert mode.settings[-1] == "export TOTO_COMPILE_MODE=reduce-overhead"
    (other,) = with_measured([], {"toto": parsed(choose="dynamic", settings=["model = torch.compile(model, dynamic=True)"])}, catalog)
    assert other.settings == ("model = torch.compile(model, dynamic=True)",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "recompile-watch/diagnosis/1"}', '{"schema": "x", "verdict": {}}', "[" * 100_000])
def test_other_files(text: str) -> None:
    """One line that says how to get a right one."""
    with pytest.raises(ConfigError, match="no report of diagnose"):
        parse_diagnosis(text, "d.json", "toto")

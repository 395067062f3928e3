"""Tests of `recompile_watch.core.decision`: what a log proves about a mode, and what it does not."""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.decision import Decision
from recompile_watch.core.events import EXTRA_FIELDS, Event
from tests.conftest import ROOT, engine_events, rules

CATALOG = load_catalog()


def event(kind: str, line: int = 1, *, function: str | None = None, file: str | None = None, **extra: object) -> Event:
    """An event of one model."""
    fields = {**EXTRA_FIELDS.get(kind, {}), **extra}
    return Event(kind, "bot.log", line, line * 10, None, None, None, None, function, file, 9 if file else None, (), False, fields)


def decisions(*events: Event) -> dict[str, Decision]:
    """The decisions on these events, by model."""
    analysis = Analysis(rules())
    for one in events:
        analysis.add(one)
    return {one.model: one for one in analysis.report(Facts((SourceFacts("bot.log"),)), CATALOG).decisions}


COMPILED = event("compile_mode", model="toto", compiled=True, mode="max-autotune")
EAGER = event("compile_mode", model="toto", compiled=False)
HIT = event("recompile_limit_hit", 2, function="f", file="/srv/toto/a.py", limit=8, limit_name="recompile_limit")


def test_the_real_log_of_2025_10_30() -> None:
    """Both models in eager mode, as their owner decided in the end: one failed, the other hit the limit."""
    found = decisions(*engine_events([(ROOT / "sample_logs/bot-2025-10-30.log").read_bytes()]))
    assert {model: one.mode for model, one in found.items()} == {"kronos": "eager", "toto": "eager"}
    assert found["kronos"].confidence.startswith("high") and found["kronos"].because == ("compiled calls failed once",)
    assert found["toto"].confidence.startswith("medium") and found["toto"].settings == ("export TOTO_DISABLE_COMPILE=1",)
    assert {one.check for one in found["toto"].revisit_when} == {"recompile_limit_hits", "speedup_ci_low", "mae_percent", "torch_version"}


def test_no_trouble_is_no_proof() -> None:
    """A compiled model without trouble, or one that ran in eager mode, is undecided; nothing is decided of nothing."""
    assert decisions(COMPILED)["toto"].mode == "undecided" and not decisions(COMPILED)["toto"].settings
    assert decisions(EAGER)["toto"].mode == "undecided"
    assert decisions() == {}


def test_a_compiled_mode_is_never_chosen_by_a_log() -> None:
    """No log holds the time that the other mode would have taken."""
    assert {one.mode for events in ((COMPILED,), (EAGER,), (COMPILED, HIT)) for one in decisions(*events).values()} <= {"eager", "undecided"}


@pytest.mark.parametrize(("count", "mode"), [(9, "undecided"), (10, "eager")])
def test_ten_recompiles(count: int, mode: str) -> None:
    """The bound of the owner's own gate."""
    recompiles = [event("recompile", n + 2, function="f", file="/srv/toto/a.py") for n in range(count)]
    assert decisions(COMPILED, *recompiles)["toto"].mode == mode


def test_troubles_without_a_name_belong_to_the_only_model() -> None:
    """torch names no model; with two of them in the log nobody can tell."""
    anonymous = event("recompile_limit_hit", 2, function="f", file="/srv/a.py", limit=8, limit_name="recompile_limit")
    assert decisions(COMPILED, anonymous)["toto"].mode == "eager"
    other = event("compile_mode", 3, model="kronos", compiled=True)
    assert {one.mode for one in decisions(COMPILED, other, anonymous).values()} == {"undecided"}


def test_skipped_graphs_speak_against_compiling() -> None:
    """They decide nothing alone."""
    found = decisions(COMPILED, event("cudagraph_skip", 2, instances=2))["toto"]
    assert found.mode == "undecided" and "CUDA graphs were skipped" in found.against[0]


def test_what_is_not_shown_is_not_said() -> None:
    """Recompiles show that it ran compiled; a log that shows neither mode says so."""
    recompile = event("recompile", 2, function="f", file="/srv/toto/a.py")
    assert "it ran compiled" in decisions(recompile)["toto"].because[0]
    assert decisions(event("compile_mode", model="toto", compiled=None, mode="default"))["toto"].because == (
        "the log does not say whether it ran compiled",
    )


def test_compiling_that_failed_is_a_reason() -> None:
    """The model is compiled in vain: eager, until compiling succeeds."""
    found = decisions(COMPILED, event("compile_error", 2, model="toto", message="backend='inductr' raised"))["toto"]
    assert found.mode == "eager" and found.because == ("compiling it failed once",)
    assert found.revisit_when[0].is_met({"compile_errors": 0}) and any("may cure it" in text for text in found.against)


def test_recompiles_count_by_load() -> None:
    """Nine in each of two loads are what the condition allows; the load that two logs print counts once."""
    loads = [
        event("model_load", 1, model="toto"),
        event("model_load", 5, model="toto"),
        event("model_load", 1, model="toto")._replace(source="b.log"),
    ]
    recompiles = [event("recompile", n + 9, function="f", file="/srv/toto/a.py") for n in range(18)]
    assert decisions(*loads, *recompiles)["toto"].mode == "undecided"
    more = decisions(*loads, *recompiles, *recompiles[:2])["toto"]
    assert more.mode == "eager" and more.because[0] == "it was compiled again 20 times in 2 loads"


def test_late_recompiles_are_told_where_they_do_not_decide() -> None:
    """Too few for a decision, but no log "without trouble"."""
    late = event("recompile", 3, function="f", file="/srv/toto/a.py")
    found = decisions(COMPILED, event("warmup_done", 2), late)["toto"]
    assert found.mode == "undecided" and "after warm-up" in found.against[0] and "no trouble with it" not in found.because[0]


def test_a_newer_torch_is_a_reason_to_look_again() -> None:
    """Where the version is known, the next one is a condition."""
    analysis = Analysis(rules())
    for one in (COMPILED, HIT):
        analysis.add(one)
    (found,) = analysis.report(Facts((SourceFacts("bot.log"),), torch_version="2.9.1"), CATALOG).decisions
    assert found.revisit_when[-1].is_met({"torch_version": "2.10.0"}) and not found.revisit_when[-1].is_met({"torch_version": "2.9.1"})

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
    assert {one.check for one in found["toto"].revisit_when} == {"recompile_limit_hits", "speedup_ci_low", "mae_percent"}


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

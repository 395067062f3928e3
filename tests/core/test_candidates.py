"""Tests of `recompile_watch.core.candidates` and `conditions`: names in, settings and lines out; when to look again."""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.candidates import Candidate, advised_candidate, parse_candidate, parse_candidates
from recompile_watch.core.errors import UsageError
from recompile_watch.core.revisit import Condition
from tests.conftest import SAMPLES, engine_events, rules

SOURCES = "dynamic_sources=L['kv_cache']._current_idx[7],L['x']"


def test_names_come_back() -> None:
    """A list is cut at the candidates, not at the commas inside one's value."""
    text = f"eager,default,reduce-overhead, {SOURCES},recompile_limit=32,exclude=Layer.embed,variant:no-cache,dynamic=True"
    names = [one.name for one in parse_candidates(text)]
    assert names == ["eager", "default", "reduce-overhead", SOURCES, "recompile_limit=32", "exclude=Layer.embed", "variant:no-cache", "dynamic"]
    assert [parse_candidate(name).name for name in names] == names
    assert len({parse_candidate(name).rank for name in names}) == len(names)


@pytest.mark.parametrize(
    "name", ["fast", "default=1", "recompile_limit=x", "recompile_limit=0", "exclude", "dynamic_sources=", "variant:", "dynamic=2"]
)
def test_unknown_names(name: str) -> None:
    """One line that says what there is."""
    with pytest.raises(UsageError, match="--candidates"):
        parse_candidate(name)


def test_a_source_is_quoted_for_the_shell() -> None:
    """Nothing in a value is run by the shell it is pasted into."""
    assert Candidate("dynamic_sources", 'L["x"]$(id)`id`').lines() == ('export TORCH_COMPILE_DYNAMIC_SOURCES="L[\\"x\\"]\\$(id)\\`id\\`"',)


@pytest.mark.parametrize(
    ("condition", "known", "is_met"),
    [
        (Condition("late_recompiles", "<", 1, ""), {"late_recompiles": 0}, True),
        (Condition("late_recompiles", "<", 1, ""), {"late_recompiles": 1}, False),
        (Condition("success_rate", ">=", 1.0, ""), {"success_rate": 1.0}, True),
        (Condition("speedup_ci_low", ">=", 2.0, ""), {}, None),
        (Condition("speedup_ci_low", ">=", 2.0, ""), {"speedup_ci_low": float("nan")}, None),
        (Condition("torch_version", ">=", "2.14", ""), {"torch_version": "2.9.1"}, False),
        (Condition("torch_version", ">=", "2.14", ""), {"torch_version": "2.14.0+cu128"}, True),
        (Condition("torch_version", ">=", "2.14", ""), {"torch_version": "main"}, None),
    ],
)
def test_conditions(condition: Condition, known: dict[str, float | str], is_met: bool | None) -> None:
    """A machine can check them; what is not known is neither met nor not."""
    assert condition.is_met(known) is is_met


@pytest.mark.parametrize(
    ("remedy", "apply", "name"),
    [
        (
            "dynamic_sources_env",
            "export TORCH_COMPILE_DYNAMIC_SOURCES=\"L['kv_cache']._current_idx[7]\"",
            "dynamic_sources=L['kv_cache']._current_idx[7]",
        ),
        ("exclude_from_compile", "@torch.compiler.disable  # on embed", "exclude=embed"),
        ("recompile_limit_kwarg", "torch.compile(model, recompile_limit=24)", "recompile_limit=24"),
        ("raise_recompile_limit", "torch._dynamo.config.recompile_limit = 24", "recompile_limit=24"),
        ("capture_scalar_outputs", "export TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1", "capture_scalar_outputs"),
        ("mode_without_cudagraphs", "mode=...", "max-autotune-no-cudagraphs"),
        ("static_cache", "anything", None),
        ("leave_package_out", "torch.compiler.disable(f)(...)", None),  # a form of what leaves out the function itself, which is another
        ("dynamic_sources_env", "an 'unclosed quote", None),
        ("recompile_limit_kwarg", "no number", None),
    ],
)
def test_advice_becomes_a_candidate(remedy: str, apply: str, name: str | None) -> None:
    """What a setting can carry out is measured; other advice is not."""
    found = advised_candidate(remedy, apply, "embed")
    assert (found and found.name) == name


def test_the_real_advice_on_the_real_log() -> None:
    """The first advice on the bot's limit hit is one that can be measured."""
    analysis = Analysis(rules())
    for event in engine_events([(SAMPLES / "bot-2025-10-30.log").read_bytes()]):
        analysis.add(event)
    findings = analysis.report(Facts((SourceFacts("bot.log"),), torch_version="2.9.1"), load_catalog()).findings
    hit = next(finding for finding in findings if finding.kind == "recompile_limit_hit")
    assert advised_candidate(hit.advice[0].name, hit.advice[0].apply, hit.function) is not None

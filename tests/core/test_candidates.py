"""Tests of `recompile_watch.core.candidates` and `conditions`: names in, settings and lines out; when to look again."""

from __future__ import annotations

import pytest

from recompile_watch.core.candidates import Candidate, parse_candidate, parse_candidates
from recompile_watch.core.conditions import Condition
from recompile_watch.core.errors import UsageError

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

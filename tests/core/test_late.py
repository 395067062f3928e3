"""Patterns that are compiled when they are first used."""

import importlib
import pkgutil
import re

import pytest

import recompile_watch
from recompile_watch.core.late import Late, pattern


def test_a_late_pattern_does_what_a_pattern_does() -> None:
    late, real = pattern(r"(?P<key>a+)b", re.IGNORECASE), re.compile(r"(?P<key>a+)b", re.IGNORECASE)
    for text in ("xAab", "aab aB", "c"):
        assert [match.groupdict() for match in late.finditer(text)] == [match.groupdict() for match in real.finditer(text)]
        assert late.sub("-", text) == real.sub("-", text)
        assert (late.match(text) is None) == (real.match(text) is None)
    assert (late.pattern, late.groupindex) == (real.pattern, real.groupindex)


def test_what_a_pattern_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError):
        pattern("a").nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_wrong_pattern_is_said_when_it_is_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")


def test_every_late_pattern_compiles() -> None:
    """A mistake in a pattern would show only in the run that needs it."""
    found = []
    for module in pkgutil.walk_packages(recompile_watch.__path__, "recompile_watch."):
        if module.name.startswith(("recompile_watch.core.", "recompile_watch.report.")):
            found += _late_in(list(vars(importlib.import_module(module.name)).values()))
    assert len(found) > 50
    for one in found:
        assert callable(one.match)


def _late_in(value: object) -> list[Late]:
    if isinstance(value, tuple | list):
        return [one for part in value for one in _late_in(part)]
    return [value] if isinstance(value, Late) else []

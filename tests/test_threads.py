"""Logs that people pasted into public threads: what is in them is found, and the remedy that the thread confirmed is advised."""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog
from tests.conftest import ROOT
from tests.threads import CONFIRMED, Case, cases, outcome, page


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.source)
def test_a_pasted_log_gets_its_remedy(case: Case) -> None:
    """Its events are exact, an expected remedy is among the advice, and none that it forbids; of some the program says nothing, on purpose."""
    result = outcome(case)
    assert (result.mistakes, result.wrong) == ((), ())
    assert bool(case.expected & set(result.advised)) is not bool(case.silent)


def test_every_case_is_told_apart_and_has_a_basis() -> None:
    """No source stands twice, and each says who vouches for its remedies."""
    sources = [case.source for case in cases()]
    assert len(set(sources)) == len(sources)
    assert {case.basis for case in cases()} <= {*CONFIRMED, "documentation"}


def test_no_case_expects_what_it_forbids() -> None:
    """What is expected is not forbidden, and something is expected that can be advised."""
    keys = {name for remedy in load_catalog().remedies for name in (remedy.key, remedy.name)}
    assert [case.source for case in cases() if case.expected & case.forbidden or not case.expected & keys] == []


def test_the_page_says_what_is_measured() -> None:
    """docs/threads.md is what the program says now."""
    assert (ROOT / "docs/threads.md").read_text() == page()

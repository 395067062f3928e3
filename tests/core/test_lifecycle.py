"""The life of an incident as a table."""

from __future__ import annotations

import pytest

from recompile_watch.core.lifecycle import TABLE, Happening, State, after, table_markdown
from tests.conftest import ROOT

DOCS = ROOT / "docs" / "incidents.md"


def test_the_table_is_complete() -> None:
    """Everything can happen in every state, and leads to a state."""
    assert set(TABLE) == {(state, happening) for state in State for happening in Happening}


@pytest.mark.parametrize("happening", Happening)
def test_what_is_over_begins_again_only_when_it_is_seen(happening: Happening) -> None:
    """Nobody can acknowledge, silence or worsen what is over."""
    assert (after(State.RESOLVED, happening) is State.OPEN) == (happening is Happening.SEEN)


@pytest.mark.parametrize("state", State)
def test_everything_can_end(state: State) -> None:
    """No state holds an incident for ever."""
    assert after(state, Happening.ENDED) is State.RESOLVED


@pytest.mark.parametrize(("state", "happening"), TABLE)
def test_only_a_person_hides_an_incident(state: State, happening: Happening) -> None:
    """An open incident is hidden by an acknowledgement or a silence, by nothing else."""
    if state is State.OPEN and after(state, happening) in (State.ACKNOWLEDGED, State.SILENCED):
        assert happening in (Happening.ACKNOWLEDGED, Happening.SILENCED)


def test_the_docs_show_the_table() -> None:
    """docs/incidents.md holds it as it is in the code."""
    assert table_markdown() in DOCS.read_text()

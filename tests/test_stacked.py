"""A log that passed two or three hands tells the same events: a sample of the stacks; `make stacked` tries all of them."""

from __future__ import annotations

import random

import pytest

from tests.conftest import DATA, events_of_bytes
from tests.stacked import LOGS, failures

SHARE = 0.004  # of some 25,000 stacks


@pytest.mark.parametrize("label", LOGS)
def test_facts_survive_two_and_three_changes(label: str) -> None:
    """Every sampled stack keeps the facts that all of its changes keep, and invents none."""
    rng = random.Random(3)
    data = (DATA / "torch" / f"{label}.log").read_bytes()
    assert list(failures(events_of_bytes, label, data, lambda: rng.random() < SHARE)) == []

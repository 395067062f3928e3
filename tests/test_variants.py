"""Whatever carried, wrapped, prefixed or cut a log: the events stay the same.

Each cell mangles one log in one way (`tests.variants`), reads it in this process and compares the facts that must survive.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.conftest import DATA, SAMPLES, events_of_bytes
from tests.truth import Event
from tests.variants import SELECTED, VARIANTS, Variant, differences

BOT = "bot-2025-10-30"
NO_BORDER = "the record's last line and the application's next line (`[app] rank 1 done`) stand on one line: no border is left to see"
# Cells that cannot be as before, or are not yet: (variant, log) -> why.
KNOWN: dict[tuple[str, str], str] = {
    ("newlines_to_spaces", "2.5.1/s14_ranks"): NO_BORDER,
    ("whitespace_collapsed", "2.5.1/s14_ranks"): NO_BORDER,
    ("wrap_words_80", "2.5.1/s14_ranks"): "`[app]` would have fitted on the line before, so it began a line of its own; the unwrapper joins it",
}


@functools.cache
def log(label: str) -> bytes:
    """The content of a log of the corpus, or of the bot's day."""
    path = SAMPLES / f"{BOT}.log" if label == BOT else DATA / "torch" / f"{label}.log"
    return path.read_bytes()


@functools.cache
def original(label: str) -> list[Event]:
    """The events of the log as it is."""
    return events_of_bytes(log(label), "bot.log")


def cells() -> Sequence[object]:
    """Every log with every variant that suits it."""
    found = []
    for label in (*SELECTED, BOT):
        for variant in VARIANTS.values():
            if variant.suits(log(label)):
                reason = KNOWN.get((variant.name, label))
                marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
                found.append(pytest.param(label, variant, marks=marks, id=f"{variant.name}-{label}"))
    return found


@pytest.mark.parametrize(("label", "variant"), cells())
def test_facts_survive(label: str, variant: Variant) -> None:
    """The events of the mangled log have every fact that the variant says it keeps, and none is invented."""
    mangled = events_of_bytes(variant.apply(log(label)), "bot.log")
    if label == BOT:  # the carriers' stamps are of another day, so that zone and time follow them
        variant = replace(variant, keeps=variant.keeps - {"time"})
    assert differences(variant, original(label), mangled) == []


def test_the_selection_has_events() -> None:
    """Every selected log holds events, so that equal does not mean empty."""
    assert all(original(label) for label in (*SELECTED, BOT))

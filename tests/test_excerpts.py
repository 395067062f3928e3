"""Other days and modes of the bot, other versions of torch, in the shapes logs come in: each excerpt says exactly what was written down."""

from __future__ import annotations

import pytest

from tests.excerpts import FILES, Excerpt, excerpts, problems

TOLD = "a sentence that tells of a failure or a setting in torch's own words is read as evidence, as in a thread"
# What is not as written down, and why.
KNOWN = {
    "bot-none-chat": TOLD,
    "torch-none-told": TOLD,
}


def cases() -> list[object]:
    """Every excerpt of every file."""
    found: list[object] = []
    for excerpt in (excerpt for file in FILES for excerpt in excerpts(file)):
        reason = KNOWN.get(excerpt.label)
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        found.append(pytest.param(excerpt, marks=marks, id=excerpt.label))
    return found


@pytest.mark.parametrize("excerpt", cases())
def test_each_excerpt(excerpt: Excerpt) -> None:
    """No event is missing or invented, and every field of the contract is the one that the log shows."""
    assert problems(excerpt) == []

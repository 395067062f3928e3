"""Tests of `recompile_watch.sources.rotation`: names of rotated logs."""

from __future__ import annotations

import random

import pytest

from recompile_watch.sources.rotation import oldest_first, parse_rotated_name

NUMBERED = ["bot.log.10.gz", "bot.log.9.gz", "bot.log.2.zst", "bot.log.1", "bot.log.0", "bot.log"]
DATED = [
    "bot.log-20251029.gz",
    "bot.log-20251030",
    "bot.log-20251030.1",
    "bot.log-20251030-14",
    "bot.log-20251030-150102",
    "bot.log-20251031.gz",
    "bot.log",
]
PYTHON_DATED = ["bot.log.2025-10-29", "bot.log.2025-10-30_14-05-01", "bot.log.2025-10-30T15-00-00", "bot.log"]
EPOCHS = ["bot.log-1761832800.gz", "bot.log-1761836400", "bot.log"]


@pytest.mark.parametrize("family", [NUMBERED, DATED, PYTHON_DATED, EPOCHS])
def test_a_family_is_ordered_oldest_first(family: list[str]) -> None:
    """logrotate's numbers and dates, Python's handlers and mongod's names, from any order."""
    shuffled = random.Random(3).sample(family, len(family))
    assert {parse_rotated_name(name).stem for name in family} == {"bot.log"}
    assert oldest_first(shuffled) == family


@pytest.mark.parametrize("name", ["bot.log", "2025-10-30.log", "bot-2025-10-30.log", "a.2025", "20251030", ".1", "x.log.old", "a\nb.log"])
def test_other_names_stand_alone(name: str) -> None:
    """A name that only looks a little rotated is the live log of its own family."""
    assert parse_rotated_name(name).stem == name


def test_the_packed_twin_is_left_out() -> None:
    """While logrotate packs bot.log.1, the unpacked file is the whole one."""
    assert oldest_first(["bot.log", "bot.log.1.gz", "bot.log.1"]) == ["bot.log.1", "bot.log"]


def test_a_live_log_packed_by_hand_is_older_than_the_live_log() -> None:
    """`gzip bot.log`, after which the bot began a new bot.log: both are read."""
    assert oldest_first(["bot.log", "bot.log.gz", "bot.log.1"]) == ["bot.log.1", "bot.log.gz", "bot.log"]

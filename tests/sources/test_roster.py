"""Which file is known by which mark."""

from __future__ import annotations

from dataclasses import replace

from recompile_watch.sources.marks import Mark
from recompile_watch.sources.roster import Roster
from recompile_watch.sources.stream import Clock

READ = Mark("bot.log", 3, 8, 827, 30, "ab" * 32, 30, 3, "cd" * 32, 30, ended_at=99.0)


def test_a_lost_generation_stands_for_no_file() -> None:
    """Its inode is another file's by now: that one is known by what was read of it, and may grow."""
    roster = Roster(1 << 20, Clock())
    lost = replace(READ, generation=1, position=1854)
    roster.remember(READ)
    roster.miss(lost)
    assert roster.elders("bot.log") == {READ.file_key: READ}
    assert roster.ended("bot.log") == [READ, lost]
    roster.forget(lost)
    roster.forget(READ)
    assert roster.ended("bot.log") == [] and roster.elders("bot.log") == {}

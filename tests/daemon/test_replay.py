"""`replay` tells what `watch` would have told: the same engine, the same messages at the same times (P3).

What it tells of the bot's day is kept whole, to be read as a person gets it: python -m tests.daemon.test_replay writes it anew.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from recompile_watch.daemon.replay import Replay
from recompile_watch.sources.find import find_sources
from recompile_watch.sources.read import read_blocks
from recompile_watch.watch_config import read_config
from tests.conftest import DATA, ROOT, SAMPLES
from tests.daemon.world import World

BOT_DAY = SAMPLES / "bot-2025-10-30.log"
GOLDEN = DATA / "replay" / "bot-2025-10-30.txt"
OWN_RULE = """
[[rule]]
id = "own.margin_call"
event = "margin_call"
title = "A margin call"
severity = "critical"
why = "The broker closes positions."
literal = "margin call"
pattern = '''the margin call of (?P<symbol>\\w+) came'''
match = [{ line = "the margin call of BTCUSD came", fields = { symbol = "BTCUSD" } }]
no_match = ["no margin call"]
"""
TIME = re.compile(rb"^(2025-10-30 \d\d:\d\d:\d\d)")


def bot_day() -> str:
    """What a person reads who replays the bot's day, on a machine called bot-host."""
    command = [sys.executable, "-m", "recompile_watch", "replay", "--tz", "UTC", str(BOT_DAY.relative_to(ROOT))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.replace(f"({socket.gethostname()})", "(bot-host)")


def replayed(world: World, log: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Sort and titles of what would have been sent."""
    config = read_config(world.file, {})
    sources, errors = find_sources([str(log)])
    assert not errors
    notices = Replay(config.watch, "bot").notices([(source, read_blocks(source)) for source in sources], UTC)
    return [(notice.sort.value, tuple(alert.what for alert in notice.alerts)) for notice in notices]


def test_the_bots_day_replayed_is_the_bots_day_watched(tmp_path: Path) -> None:
    """The log written line by line at its own times, and the same log replayed: the same messages in the same order."""
    world = World(tmp_path)
    told: list[tuple[str, tuple[str, ...]]] = []
    add = world.loop._parts.outbox.add

    def noted(notices, now):  # type: ignore[no-untyped-def]
        told.extend((notice.sort.value, tuple(alert.what for alert in notice.alerts)) for notice in notices)
        add(notices, now)

    world.loop._parts.outbox.add = noted  # type: ignore[method-assign]
    world.log().touch()
    lines = BOT_DAY.read_bytes().splitlines(keepends=True)
    found = TIME.match(lines[0])
    assert found is not None
    world.now = datetime.strptime(found[1].decode(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() - 60
    world.turn(3, step_s=1.0)
    for line in lines:
        found = TIME.match(line)
        if found is not None:
            at = datetime.strptime(found[1].decode(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
            while world.now < at:
                world.turn(step_s=min(1.0, at - world.now))
        world.write(line)
        world.turn(step_s=0.0)
    world.turn(300)
    assert told
    assert replayed(world, BOT_DAY) == told


def test_the_bots_day_reads_as_it_should() -> None:
    """A handful of messages, each word of them, with their times: what a person would want to get that day."""
    assert bot_day() == GOLDEN.read_text(encoding="utf-8")


def test_replay_prints_messages_and_their_number() -> None:
    """The command: what would have been sent, with the log's own times; nothing recognisable is status 3."""
    command = [sys.executable, "-m", "recompile_watch", "replay", "--tz", "UTC"]
    done = subprocess.run([*command, str(BOT_DAY)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0
    assert "=== 2025-10-30 09:08:09 UTC to replay: Critical: positional_embedding hit the recompile limit (8)" in done.stdout
    assert done.stdout.rstrip().endswith("messages for 69 events")
    nothing = subprocess.run([*command, str(ROOT / "LICENSE")], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (nothing.returncode, nothing.stdout, nothing.stderr.count("\n")) == (3, "", 1)


def test_replay_knows_the_rules_and_the_kinds_of_a_configuration(tmp_path: Path) -> None:
    """A rule of the user's own makes the same alert as in the watch."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "own.toml").write_text(OWN_RULE)
    (tmp_path / "bot.log").write_text("2025-10-30 09:07:14 the margin call of BTCUSD came\n")
    config = tmp_path / "watch.toml"
    config.write_text(f'[rules]\npaths = ["{tmp_path}/rules"]\n[[source]]\nname = "bot"\npath = "{tmp_path}/bot.log"\n')
    command = [sys.executable, "-m", "recompile_watch", "replay", "--config", str(config), str(tmp_path / "bot.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "A margin call" in done.stdout and done.stdout.rstrip().endswith("1 message for 1 event")


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(bot_day(), encoding="utf-8")

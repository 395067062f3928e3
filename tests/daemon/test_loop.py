"""The loop as a whole, killed wherever it can be: nothing is lost, nothing counts twice, every incident is told (P4)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recompile_watch.core.errors import StoreError
from recompile_watch.core.messages import Delivered, Reason, Retry
from recompile_watch.store import Changes
from tests.daemon.world import CONFIG, World, limit_hit, quote

SYMBOLS = ("BTCUSD", "ETHUSD")
POINTS = ("read", "committed", "sending", "sent")
ACTIONS = st.one_of(
    st.tuples(st.just("quote"), st.sampled_from(SYMBOLS)),
    st.tuples(st.just("limit"), st.sampled_from(("attend", "decode"))),
    st.tuples(st.just("half"), st.sampled_from(SYMBOLS)),
    st.tuples(st.just("rotate"), st.just("")),
    st.tuples(st.just("turn"), st.just("")),
    st.tuples(st.just("kill"), st.sampled_from(POINTS)),
)


def play(world: World, actions: list[tuple[str, str]]) -> dict[str, int]:
    """The bot writes, its log rotates, the watch turns and is killed; how many events there were of each."""
    written: dict[str, int] = {}
    half, rotations = b"", 0
    world.write(b"the bot starts\n")
    world.turn()
    for second, (action, what) in enumerate(actions):
        if half and action in ("quote", "limit", "half"):
            world.write(half)
            half = b""
        match action:
            case "quote":
                world.write(quote(what, second))
                written[f"synthetic_quote {what}"] = written.get(f"synthetic_quote {what}", 0) + 1
            case "limit":
                world.write(limit_hit(what, second))
                written[f"recompile_limit_hit {what}"] = written.get(f"recompile_limit_hit {what}", 0) + 1
            case "half":
                line = quote(what, second)
                world.write(line[:60])
                half = line[60:]
                written[f"synthetic_quote {what}"] = written.get(f"synthetic_quote {what}", 0) + 1
            case "rotate" if not half and world.log().exists():
                rotations += 1
                os.rename(world.log(), world.folder / "logs" / f"bot.log.{1000 - rotations}")
            case "turn":
                world.turn()
            case "kill":
                world.kill_at = (what, 0)
    world.write(half)
    world.kill_at = None
    world.turn(times=150)
    return written


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(st.lists(ACTIONS, max_size=25))
def test_killed_anywhere_each_event_counts_once_and_each_incident_is_told(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str]]
) -> None:
    """Random writing, rotating, turning and killing at labelled points: counts equal to what was written, all of it told."""
    world = World(tmp_path_factory.mktemp("world"))
    written = play(world, actions)
    counts = {name: row["count"] for name, row in world.incidents().items() if not name.startswith("watch_")}
    assert counts == written
    told = world.told()
    for name in written:
        kind, _, what = name.partition(" ")
        assert what in told, f"nobody was told of {kind} {what}"
    ids = [job.id for job in world.post.jobs]
    repeated = {one for one in ids if ids.count(one) > 1}
    marked = {job.id for job in world.post.jobs if job.message is not None and "Possible duplicate" in job.message.text}
    assert repeated <= marked, "a message goes out twice only when the watch was killed while it was under way, and says so"


def test_a_rotated_log_that_was_read_is_no_loss_when_it_is_deleted(tmp_path: Path) -> None:
    """Rotated thrice, each file read to its end and given up, then deleted: a restart asks for none of them."""
    world = World(tmp_path)
    for number in range(3):
        world.write(quote("BTCUSD", number))
        world.turn(3)
        os.rename(world.log(), world.log(f"bot.log-2025103{number}"))
        world.write(quote("ETHUSD", number))
        world.turn(90)
    for number in range(3):
        world.log(f"bot.log-2025103{number}").unlink()
    world.restart()
    world.turn(10)
    assert "watch_gap" not in " ".join(world.incidents())
    world.now += 31 * 86_400
    world.restart()
    world.turn(2)
    assert len(world.store.load("marks")) == 1, "the marks of files that ended a month ago have served"


def test_a_log_that_was_found_and_not_read_is_known_after_a_restart(tmp_path: Path) -> None:
    """Killed when a log had been found and nothing of it understood: deleted meanwhile, it is missed."""
    world = World(tmp_path)
    world.turn(2)
    world.write(b"half a line")
    world.turn(8)
    world.log().unlink()
    world.restart()
    world.turn(2)
    assert "watch_gap" in " ".join(world.incidents())


def test_a_record_is_told_within_its_turn_once_it_is_complete(tmp_path: Path) -> None:
    """A critical event of one line is told in the very turn that reads it."""
    world = World(tmp_path)
    world.write(b"the bot starts\n")
    world.turn(2)
    world.write(limit_hit("attend", 1) + quote("BTCUSD", 2))
    world.turn(2, step_s=0.5)
    assert "attend hit the recompile limit" in world.told()


def test_a_state_that_cannot_be_written_stops_neither_reading_nor_telling(tmp_path: Path) -> None:
    """A full disk: messages go out, the fault itself is told, and all is written down once there is room."""
    world = World(tmp_path)
    world.turn(2)
    is_full = True
    commit = world.store.commit

    def full(changes: Changes) -> None:
        if is_full:
            raise StoreError("state.db: cannot be written (database or disk is full)")
        commit(changes)

    world.store.commit = full  # type: ignore[method-assign]
    world.write(limit_hit("attend", 1))
    world.turn(40)
    told = world.told()
    assert "attend hit the recompile limit" in told
    assert "state cannot be written" in told
    assert "recompile_limit_hit attend" not in world.incidents()
    is_full = False
    world.turn(20)
    assert world.incidents()["recompile_limit_hit attend"]["count"] == 1
    before = len(world.post.jobs)
    world.restart()
    world.turn(40)
    assert not [job for job in world.post.jobs[before:] if job.message and job.message.title.startswith("Critical")]


def test_a_receiver_that_fails_gets_everything_in_the_end(tmp_path: Path) -> None:
    """Messages wait in the outbox over a restart, and go out when the receiver answers again."""
    world = World(tmp_path)
    world.turn(2)
    world.post.outcome = Retry(Reason.SERVER, "503")
    world.write(limit_hit("attend", 1))
    world.turn(10)
    world.restart()
    assert world.incidents()["recompile_limit_hit attend"]["count"] == 1
    world.post.outcome = Delivered("200")
    world.post.jobs.clear()
    world.turn(60)
    assert "attend hit the recompile limit" in world.told()
    assert not [row for row in world.store.load("outbox").values() if cast(dict[str, object], row)["state"] != "dead"]


def test_first_start_on_a_large_backlog_gives_one_summary(tmp_path: Path) -> None:
    """A log of a thousand problems that was there before: one message, and the incidents are known."""
    world = World(tmp_path)
    world.write(b"".join(quote(f"SYM{index % 40:02d}USD", index) + limit_hit(f"f{index % 30}", index) for index in range(600)))
    world.turn(60)
    assert len(world.post.jobs) == 1
    assert "70 problems in the logs already" in world.told()
    assert len(world.incidents()) == 70


def test_a_log_that_never_had_a_line_is_told_as_silent(tmp_path: Path) -> None:
    """The bot was dead before the watch began, so that it reads not one line: silence is judged all the same."""
    world = World(tmp_path, CONFIG.replace('start = "begin"', 'start = "end"\nsilent_after = "10m"'), before=quote("BTCUSD", 1))
    world.turn(9, step_s=60.0)
    assert not world.incidents()
    world.turn(3, step_s=60.0)
    assert "No line from 'bot' for 10 min, and none before since the watch began" in world.told()


def test_a_rotated_file_that_is_read_is_noted_as_ended(tmp_path: Path) -> None:
    """Whether or not a new file follows soon: the old one's mark says that it was read, and nothing of it is held."""
    world = World(tmp_path)
    world.write(b"the bot starts\n")
    world.turn(2)
    for rotation, pause_turns in enumerate((0, 80), 1):
        world.write(quote("BTCUSD", rotation))
        world.turn(2)
        os.rename(world.log(), world.folder / "logs" / f"bot.log-2025103{rotation}")
        world.turn(pause_turns)
        world.write(quote("BTCUSD", 10 * rotation))
        world.turn(80)
    marks = {key[2]: cast(dict[str, object], mark)["ended_at"] is not None for key, mark in world.store.load("marks").items()}
    assert marks == {1: True, 2: True, 3: False}
    assert world.incidents()["synthetic_quote BTCUSD"]["count"] == 4
    world.restart()
    world.turn(80)
    assert "watch_gap" not in world.incidents()


def test_a_quiet_log_is_not_read_from_its_beginning_after_a_restart(tmp_path: Path) -> None:
    """Nothing was written since the very first start at the log's end: where that was is remembered all the same."""
    world = World(tmp_path, CONFIG.replace('start = "begin"', 'start = "end"'), before=limit_hit("attend", 1))
    world.turn(5)
    world.restart()
    world.turn(5)
    assert not world.incidents()
    world.write(limit_hit("decode", 2))
    world.turn(5)
    assert list(world.incidents()) == ["recompile_limit_hit decode"]


def test_messages_for_a_receiver_that_was_renamed_are_not_silently_lost(tmp_path: Path) -> None:
    """They are kept as not delivered, and the receivers that there are now hear of it, once."""
    world = World(tmp_path)
    world.turn(2)
    world.post.outcome = Retry(Reason.SERVER, "503")
    world.write(limit_hit("attend", 1))
    world.turn(10)
    world.post.jobs.clear()
    world.post.outcome = Delivered("200")
    world.file.write_text(world.file.read_text().replace('name = "ops"', 'name = "team"'))
    for _ in range(2):
        world.restart()
        world.turn(60)
    about = [job for job in world.post.jobs if job.message and "the receiver ops, which the configuration no longer names" in job.message.text]
    assert [job.receiver for job in about] == ["team"]
    states = [(key[1], cast(dict[str, object], row)["state"]) for key, row in world.store.load("outbox").items()]
    assert states == [("ops", "dead")]

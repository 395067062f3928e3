"""The watch after years: what is over is deleted, nothing grows, and what was deleted is not told again."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from recompile_watch.core import casebook, times
from recompile_watch.core.messages import Delivered, Reason, Refused
from recompile_watch.daemon import places, series
from recompile_watch.store import TABLES
from tests.daemon.world import CONFIG, START, World, limit_hit

DAY_S = 86_400.0
# Short lives, so that a simulated day needs few turns; what is kept of them is kept for the times of the defaults.
LIVES = CONFIG + '[watch.life]\nresolve_after = "4m"\nforget_after = "8m"\n'


def quote(at: float, symbol: str) -> bytes:
    """A quote that the bot made up at a moment."""
    clock = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}.123"
    return f"{clock} | INFO     | data_curate_daily:x:288 - Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=False)\n".encode()


def rotate(world: World) -> None:
    """logrotate with three old files, and a bot that writes a new one."""
    for number in (3, 2, 1):
        old = Path(f"{world.log()}.{number}")
        if old.exists():
            old.unlink() if number == 3 else old.rename(f"{world.log()}.{number + 1}")
    world.log().rename(f"{world.log()}.1")
    world.write(b"the bot goes on\n")


def days(world: World, count: int, every: int) -> Iterator[int]:
    """So many days of a bot, of which the watch sees twenty minutes each: new symbols, a new process, a new log each time."""
    world.store._database.execute("PRAGMA synchronous=OFF")  # the disk's own time is not what is tried here
    for day in range(0, count, every):
        world.now = START + day * DAY_S
        for number in range(3):
            world.write(quote(world.now, f"S{day}{number}USD"))
            world.write(quote(world.now, f"R{day}{number}USD"), f"run-{day}.log")
        stamp = datetime.fromtimestamp(world.now, UTC).strftime("%m%d %H:%M:%S")
        world.write(limit_hit(f"step{day}", 0).replace(b"1030 09:04:00", stamp.encode()).replace(b"101341", str(day).encode()))
        world.post.outcome = Refused(Reason.REJECTED, "413") if day % 2 else Delivered("200")
        world.turn(2, 60.0)
        rotate(world)
        (world.folder / "logs" / f"run-{day - 2 * every}.log").unlink(missing_ok=True)
        world.turn(5, 240.0)
        world.post.jobs.clear()
        yield day


def stored(world: World) -> Counter[str]:
    """Rows by table, and by shelf."""
    found = Counter({table: len(world.store.keys(table)) for table in TABLES if table != "memory"})
    return found + Counter(f"memory {str(name).partition('/')[0]}" for (name,) in world.store.keys("memory"))


def held(thing: object, seen: set[int], depth: int = 0) -> int:
    """Things in all containers that can be reached from an object of ours."""
    if id(thing) in seen or depth > 60:
        return 0
    seen.add(id(thing))
    inside: list[object] = []
    if isinstance(thing, Mapping):
        inside = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        inside = list(thing)
    elif type(thing).__module__.startswith("recompile_watch"):
        names = [*getattr(thing, "__dict__", {}), *(name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()))]
        return sum(held(getattr(thing, name, None), seen, depth + 1) for name in names)
    return len(inside) + sum(held(one, seen, depth + 1) for one in inside)


def test_after_two_years_nothing_is_larger_than_after_three_months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new log name, new symbols, functions and processes each day, and messages that nobody took."""
    for module, name in ((casebook, "MAX_RAW"), (places, "MAX_PLACES"), (series, "MAX_HELD"), (times, "_KNOWN_TIMES"), (times, "_KNOWN_HOURS")):
        monkeypatch.setattr(module, name, 50)  # what spares work is bounded by these, and would go on growing up to them
    world = World(tmp_path, LIVES + "[retention]\nmax_series = 50\n")
    sizes: dict[int, tuple[Counter[str], int, int]] = {}
    for day in days(world, 735, 5):
        if day in (100, 730):
            sizes[day] = stored(world), held(world.loop, set()), world.store.size_bytes
    (rows, things, size), (rows_then, things_then, size_then) = sizes[100], sizes[730]
    grown = {name: (rows[name], count) for name, count in rows_then.items() if count > max(rows[name], 5) * 1.1}
    assert not grown
    assert things_then <= things * 1.1
    assert size_then <= size * 1.1
    assert rows["incidents"] > 100, "what is over is kept for its time"


def test_what_was_deleted_is_not_told_again(tmp_path: Path) -> None:
    """Files that have been there, unchanged, for months are not read again, also when their marks' time is long past."""
    world = World(tmp_path, LIVES)
    world.write(quote(world.now, "BTCUSD"))
    world.turn(2)
    world.log().rename(world.folder / "logs" / "bot-old.log")  # matches the pattern under its new name
    world.write(quote(world.now, "ETHUSD"))
    world.turn(5, 60.0)
    for day in range(1, 200, 10):
        world.now = START + day * DAY_S
        world.write(b"nothing new\n")
        world.turn(4, 60.0)
        world.restart()
        world.post.jobs.clear()
        world.turn(4, 60.0)
        assert not [job for job in world.post.jobs if job.message and "BTCUSD" in job.message.text]
    assert not [name for name in world.incidents() if name.startswith("synthetic_quote")], "their rows are long gone"


def test_a_pattern_with_more_names_than_can_be_followed_goes_on(tmp_path: Path) -> None:
    """Files that are gone make room for new ones; no new log is left unread."""
    world = World(tmp_path, LIVES.replace('start = "begin"', 'start = "begin"\nmax_files = 5'))
    world.turn(1)
    for day in range(12):
        world.now = START + day * DAY_S
        world.write(quote(world.now, f"S{day:02d}USD"), f"run-{day}.log")
        world.turn(4, 60.0)
        (world.folder / "logs" / f"run-{day}.log").unlink()
        world.turn(2, 60.0)
    assert sorted(name for name in world.incidents() if name.startswith("synthetic_quote")) == [f"synthetic_quote S{day:02d}USD" for day in range(12)]
    assert "watch_source_unreadable" not in world.incidents()
    assert len({key[1] for key in world.store.keys("marks")}) <= 5


def test_a_source_that_is_taken_away_keeps_its_positions_for_a_while(tmp_path: Path) -> None:
    """Put back within a month it goes on where it was; later it is as new, and nothing of it is left."""
    config = CONFIG + '[[source]]\nname = "other"\npath = "{folder}/other/app.log"\ntimezone = "UTC"\n'
    (tmp_path / "other").mkdir()
    log = tmp_path / "other" / "app.log"
    log.write_bytes(b"begins\n")
    world = World(tmp_path, config)
    world.turn(2)
    positions = world.store.keys("marks", "other")
    assert positions

    def reload(text: str) -> None:
        world.file.write_text(text.replace("{folder}", str(tmp_path)))
        world.restart()
        world.turn(2, 60.0)

    reload(CONFIG)
    log.write_bytes(b"begins\n" + limit_hit("attend", 1))
    world.now += 20 * DAY_S
    world.turn(2, 60.0)
    reload(config)
    assert "recompile_limit_hit attend" in world.incidents(), "it went on where it was"
    reload(CONFIG)
    world.now += 20 * DAY_S
    world.turn(2, 60.0)
    assert world.store.keys("marks", "other") == positions
    world.now += 11 * DAY_S
    world.turn(2, 60.0)
    assert not [key for table in ("marks", "readings", "facts") for key in world.store.keys(table) if "other" in str(key)]


def test_the_bound_holds_under_attack(tmp_path: Path) -> None:
    """More different problems at once than may be kept: rows beyond the bound go, those that are open stay."""
    world = World(tmp_path, LIVES + "[retention]\nmax_incidents = 20\n")
    world.turn(1)
    for round_ in range(5):
        world.write(b"".join(quote(world.now, f"A{round_}{index}USD") for index in range(30)))
        world.turn(4, 240.0)
        rows = [cast(dict[str, object], row) for row in world.store.load("incidents").values()]
        assert sum(row["state"] == "open" for row in rows) <= 30
        assert len(rows) <= 50 + 1
    world.turn(6, 240.0)
    assert len(world.store.keys("incidents")) == 20


def test_incidents_of_a_lost_memory_do_not_stay_open(tmp_path: Path) -> None:
    """A memory that cannot be read is told once and begun anew; what it held as open is closed, with the reason."""
    world = World(tmp_path, CONFIG)
    world.turn(1)
    world.write(limit_hit("attend", 1))
    world.turn(10)
    world.store._database.execute('UPDATE memory SET value=\'{"n":1,"is":{"broken":1}}\' WHERE name LIKE \'incident/%\'')
    world.restart()
    world.turn(10)
    row = world.incidents()["recompile_limit_hit attend"]
    assert (row["state"], row["ended_because"]) == ("resolved", "the watch lost its memory of it")
    assert "watch_state_corrupt" in world.incidents()
    world.restart()
    world.turn(3)
    assert world.incidents()["watch_state_corrupt"]["count"] == 1


def test_rotated_files_that_stay_are_never_read_twice(tmp_path: Path) -> None:
    """More rotations than a path's marks are usually kept for, all files still there, under names that the pattern matches."""
    world = World(tmp_path, CONFIG)
    world.turn(1)
    for number in range(68):
        world.write(quote(world.now, "BTCUSD"), "app.log")
        world.turn(2, 10.0)
        os.rename(world.log("app.log"), world.folder / "logs" / f"app-{20_000_101 + number}.log")
        world.turn(8, 10.0)
    world.turn(5, 60.0)
    assert world.incidents()["synthetic_quote BTCUSD"]["count"] == 68
    world.restart()
    world.turn(5, 60.0)
    assert world.incidents()["synthetic_quote BTCUSD"]["count"] == 68

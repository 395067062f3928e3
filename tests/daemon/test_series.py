"""What the watch measured, by the hour: counted once whatever happens, bounded, and shown beside the week before."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from recompile_watch.cli import main, status
from recompile_watch.core.hourly import HOUR_S, Hour, Key, hour_of
from recompile_watch.report.watch_series import lines_of, series_text, series_to_json
from tests.daemon.world import CONFIG, START, World, limit_hit

HOUR = int(START // HOUR_S)


def made_up(at: float, symbol: str) -> bytes:
    """A quote that the bot made up."""
    return f"{_clock(at)} | INFO     | data_curate_daily:x:288 - Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=False)\n".encode()


def quote(at: float, symbol: str) -> bytes:
    """A real quote."""
    return f"{_clock(at)} | INFO     | data_curate_daily:x:231 - Latest {symbol} bid: 110196.274, ask: 110306.526 (attempt 1)\n".encode()


def memory(at: float, peak_mb: float) -> bytes:
    """A line about the GPU's memory."""
    return f"{_clock(at)} | INFO     | x:y:1 - GPU[0] toto_predict_end(BTCUSD) alloc=12.0 MB reserved=14.0 MB peak={peak_mb} MB\n".encode()


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}.123"


def hours(world: World) -> dict[Key, Hour]:
    """The hours that are stored."""
    found = {(int(hour), str(what), str(subject)): hour_of(row) for (hour, what, subject), row in world.store.load("series").items()}
    return {key: hour for key, hour in found.items() if hour is not None}


@pytest.mark.parametrize("point", ["read", "committed", "sending", "sent", None])
def test_each_value_counts_once(tmp_path: Path, point: str | None) -> None:
    """Killed anywhere, values that go on in the same hour after the restart are added to it."""
    world = World(tmp_path)
    world.turn(2)
    for number in range(12):
        world.kill_at = (point, 0) if point is not None and number in (3, 7) else None
        world.write(made_up(world.now, "BTCUSD") if number % 4 == 0 else quote(world.now, "BTCUSD"))
        world.turn(10, 60.0)
    world.turn(5)
    found = {hour: one for (hour, what, subject), one in hours(world).items() if (what, subject) == ("synthetic_share", "BTCUSD")}
    assert list(found) == [HOUR, HOUR + 1]
    assert (sum(one.n for one in found.values()), sum(one.total for one in found.values())) == (12, 3.0)
    assert all((one.low, one.high) == (0.0, 1.0) for one in found.values())
    assert world.kills == (2 if point in ("read", "committed") else world.kills)


def test_what_cannot_be_written_is_added_up_and_written_later(tmp_path: Path) -> None:
    """A full disk: the hours go on in memory, and nothing is lost or counted twice."""
    world = World(tmp_path)
    world.turn(2)
    world.write(quote(world.now, "BTCUSD"))
    world.turn(8)
    world.store._database.execute("PRAGMA query_only=ON")
    for _ in range(3):
        world.write(quote(world.now, "BTCUSD"))
        world.turn(8)
    assert hours(world)[HOUR, "synthetic_share", "BTCUSD"].n == 1
    world.store._database.execute("PRAGMA query_only=OFF")
    world.turn(3)
    assert hours(world)[HOUR, "synthetic_share", "BTCUSD"].n == 4


def test_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    """A further one is not kept, until one had nothing for a week."""
    world = World(tmp_path, CONFIG + "[retention]\nmax_series = 3\nseries = '30d'\n")
    world.turn(2)
    for number in range(6):
        world.write(quote(world.now, f"S{number}USD"))
    world.turn(8)
    assert {subject for _, _, subject in hours(world)} == {"S0USD", "S1USD", "S2USD"}
    world.now += 8 * 86_400
    world.write(quote(world.now, "S9USD"))
    world.turn(8, 10.0)
    assert {subject for _, _, subject in hours(world)} == {"S0USD", "S1USD", "S2USD", "S9USD"}
    world.now += 25 * 86_400
    world.turn(8, 60.0)
    assert {subject for _, _, subject in hours(world)} == {"S9USD"}, "hours older than their time are gone"


def test_status_shows_the_day_beside_the_week_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each series with a bar for each hour; the same numbers as JSON."""
    world = World(tmp_path)
    world.turn(2)
    for hour in range(72):
        world.now = START + hour * HOUR_S
        world.write(quote(world.now, "BTCUSD") + memory(world.now, 800.0 if hour < 48 else 1200.0))
        if hour >= 70:
            world.write(made_up(world.now, "BTCUSD"))
        world.turn(1, 10.0)
    stamp = datetime.fromtimestamp(world.now, UTC).strftime("%m%d %H:%M:%S")
    world.write(limit_hit("attend", 0).replace(b"1030 09:04:00", stamp.encode()))
    world.turn(8, 10.0)
    monkeypatch.setattr(status, "time", SimpleNamespace(time=lambda: world.now))
    assert main(["status", "--state-dir", str(tmp_path / "state"), "--json"]) == 0
    found = {(one["what"], one["subject"]): one for one in json.loads(capsys.readouterr().out)["series"]}
    share = found["synthetic_share", "BTCUSD"]
    assert share["last_24h"] == {"n": 26, "mean": 2 / 26, "median": None, "min": 0.0, "max": 1.0}
    assert share["before_7d"]["n"] == 48
    assert share["hours"] == [0.0] * 22 + [0.5, 0.5]
    used = found["memory_mb", "toto predict_end"]
    assert used["last_24h"]["median"] == pytest.approx(1200, rel=0.011)
    assert used["before_7d"]["median"] == pytest.approx(800, rel=0.011)
    assert [one["last_24h"]["n"] for (what, _), one in found.items() if what == "limit_hits"] == [1]
    assert main(["status", "--state-dir", str(tmp_path / "state")]) == 0
    text = capsys.readouterr().out
    assert "made-up quotes of BTCUSD 8% (before: 0%)" in " ".join(text.split())
    assert "▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁██" in text
    assert "(before: 0.0 a day)" not in text, "nothing known of the week before is not nothing"


def test_a_subject_is_shown_as_data() -> None:
    """Names come from the log: no control character of theirs reaches the terminal."""
    hour = Hour()
    hour.add([2.0], has_median=False)
    text = series_text(lines_of({(HOUR, "return", "A\x1b[2J\nB"): hour}, now=START))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2
    assert series_to_json(lines_of({}, now=START)) == []


def test_the_median_survives_adding_up() -> None:
    """Hours that are added give the median of all their values, to about 2 %, in bounded room."""
    whole = Hour()
    for start in range(0, 1000, 100):
        part = Hour()
        for value in range(start + 1, start + 101):
            part.add([float(value)], has_median=True)
        whole.merge(part)
    assert whole.median == pytest.approx(500, rel=0.02)
    assert len(whole.counts) <= 100
    assert (whole.n, whole.low, whole.high, whole.mean) == (1000, 1.0, 1000.0, 500.5)

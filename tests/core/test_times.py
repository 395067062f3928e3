"""Tests of `recompile_watch.core.times`: local times get the offset that the log itself proves, whatever carries its lines."""

from __future__ import annotations

import json
from datetime import UTC, date

import pytest

from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.times import TimeOptions, TimeResolver
from tests.conftest import engine_events

# A host in New Zealand: the bot's columns, a quote in the host's local time, and the time that the bot prints after every quote.
COLUMNS = "2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | trade_stock_e2e.py:main:1 INFO | a"
QUOTE = (
    "2025-12-10 09:01:06.800 | INFO     | data_curate_daily:download_exchange_latest_data:288 - "
    "Populating synthetic bid/ask (0 spread) for AMD (ADD_LATEST=False)"
)
CURRENT = "2025-12-10 09:01:06.800 | INFO     | data_curate_daily:download_exchange_latest_data:295 - Current time: 2025-12-09 20:01:06.800000+00:00"
COLOURED = QUOTE.replace(QUOTE[:35], "\x1b[32m2025-12-10 09:01:06.800\x1b[0m | \x1b[1mINFO    \x1b[0m ")
CARRIERS = {
    "nothing": "{}",
    "compose": "trader-1  | {}",
    "a quotation": "> {}",
    "four blanks": "    {}",
    "pm2": "0|trader  | {}",
    "Ray": "(Trader pid=4242) {}",
    "an unknown front": "trainer main {}",
    "syslog": "Dec 10 09:01:06 box bot[4242]: {}",
}


def times(lines: list[str]) -> list[str | None]:
    """The times of the events."""
    return [event.time for event in engine_events([("\n".join(lines) + "\n").encode()])]


def docker(line: str, at: str) -> str:
    """A line of Docker's json-file."""
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": at})


@pytest.mark.parametrize("log", [[COLUMNS, QUOTE], [COLOURED, COLUMNS], [QUOTE, CURRENT]], ids=["columns", "colours", "current time"])
@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=list(CARRIERS))
def test_the_offset_is_found_behind_any_carrier(carrier: str, log: list[str]) -> None:
    """The UTC time in the text or on the line beside it tells the host's zone, whatever stands in front of both."""
    assert times([carrier.format(line) for line in log]) == ["2025-12-10T09:01:06.800+13:00"]


@pytest.mark.parametrize("log", [[COLUMNS, QUOTE], [QUOTE, CURRENT]], ids=["columns", "current time"])
def test_the_offset_is_found_inside_json(log: list[str]) -> None:
    """A JSON log whose own time has no zone carries the same evidence."""
    assert times([json.dumps({"time": "2025-12-10 09:01:06", "message": line}) for line in log]) == ["2025-12-10T09:01:06.800+13:00"]


def test_most_pairs_of_times_decide() -> None:
    """A pause of a quarter of an hour between two lines is no zone."""
    late = COLUMNS.replace("20:01:06", "20:16:06")
    assert times([late, QUOTE, COLUMNS, QUOTE, COLUMNS, QUOTE])[0] == "2025-12-10T09:01:06.800+13:00"


def test_a_carrier_that_prints_utc_proves_the_offset() -> None:
    """Docker's time of a line is the moment at which it was printed."""
    assert times([docker(QUOTE, "2025-12-09T20:01:06.812345678Z")]) == ["2025-12-10T09:01:06.800+13:00"]


def test_the_time_that_a_line_was_on_its_way_is_no_zone() -> None:
    """No clock on earth is a quarter of an hour behind UTC: a shipper took so long."""
    line = QUOTE.replace("2025-12-10 09:01", "2025-12-09 19:46")
    assert times([docker(line, "2025-12-09T20:01:06.9Z")]) == ["2025-12-09T19:46:06.800+00:00"]


def test_a_change_of_the_clock_shows_in_the_carriers_times() -> None:
    """In the hour that comes twice, and behind it, each line has the offset of its own moment."""
    quotes = [QUOTE.replace("2025-12-10 09:01", at) for at in ("2025-11-02 01:30", "2025-11-02 01:31", "2025-11-03 10:00")]
    carried = ("2025-11-02T05:30:06.9Z", "2025-11-02T06:31:06.9Z", "2025-11-03T15:00:06.9Z")
    found = times([docker(quote, at) for quote, at in zip(quotes, carried, strict=True)])
    assert found == ["2025-11-02T01:30:06.800-04:00", "2025-11-02T01:31:06.800-05:00", "2025-11-03T10:00:06.800-05:00"]


def test_the_time_at_which_an_old_log_was_read_is_no_evidence() -> None:
    """A shipper that reads an old log again prints its own time; what the log itself says stands."""
    assert times([docker(line, "2025-12-10T03:01:07Z") for line in (COLUMNS, QUOTE)]) == ["2025-12-10T09:01:06.800+13:00"]


def _quote(clock: str) -> str:
    return f"{clock}.500 | INFO     | data_curate_daily:fetch:288 - Populating synthetic bid/ask (0 spread) for AMD (ADD_LATEST=False)\n"


def _order(utc: str, eastern: str) -> str:
    return f"{utc} UTC | {eastern} EST | 2025-11-03 05:00:00 NZDT | x.py:f:1 INFO | Entering new buy position for AMD\n"


def test_a_change_of_the_clock_shows_between_two_times_with_a_zone() -> None:
    """What one time without a zone proves, between two with one, holds from there on; before it the log's first offset does."""
    before = (
        _order("2025-11-01 13:00:00", "2025-11-01 08:00:00") + _quote("2025-11-01 09:00:00") + _order("2025-11-01 13:00:02", "2025-11-01 08:00:02")
    )
    after = before.replace("11-01 13", "11-03 14").replace("11-01 09", "11-03 09")
    later = _quote("2025-11-04 09:00:00")
    times = [event.time for event in engine_events([(before + _quote("2025-11-01 10:00:00") + after + later).encode()]) if "quote" in event.kind]
    assert times == [
        "2025-11-01T09:00:00.500-04:00", "2025-11-01T10:00:00.500-04:00",
        "2025-11-03T09:00:00.500-04:00", "2025-11-04T09:00:00.500-05:00",
    ]  # fmt: skip


def test_times_that_are_far_from_each_other_prove_no_offset() -> None:
    """Two logs that were put together one behind the other: the last of the one and the first of the other say nothing."""
    first = _order("2025-11-01 13:00:00", "2025-11-01 08:00:00") + _quote("2025-11-01 09:00:00")
    second = _quote("2025-11-01 12:00:00") + _order("2025-11-01 20:00:00", "2025-11-01 15:00:00") + _quote("2025-11-01 17:00:00")
    quotes = [event.time for event in engine_events([(first + second).encode()]) if "quote" in event.kind]
    assert [time[19:] for time in quotes if time] == [".500-04:00"] * 3


@pytest.mark.parametrize(
    ("neighbour", "modified", "year"),
    [
        ("2026-03-02", date(2026, 11, 23), 2026),
        ("2025-11-20", date(2026, 11, 23), 2025),
        ("2026-03-02", None, 2025),
        ("2026-03-02", date(2026, 3, 4), 2025),
    ],
    ids=["a forecast's date", "an old log, copied", "no file", "an old log of many months"],
)  # fmt: skip
def test_a_date_months_away_is_no_neighbour(neighbour: str, modified: date | None, year: int) -> None:
    """torch's prefix has no year: a date nearby tells it, unless the file was changed nearer to the day than that lies."""
    resolver = TimeResolver(TimeOptions(UTC, modified_on=modified))
    resolver.resolve(Stamp("local", f"{neighbour}T00:00:00"))
    assert str(resolver.resolve(Stamp("glog", "1123 03:16:42.420000"))).startswith(f"{year}-11-23T03:16:42")

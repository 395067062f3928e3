"""When New York trades."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recompile_watch import market
from recompile_watch.market import is_market_open


@pytest.mark.parametrize(
    ("utc", "is_open"),
    [
        ("2025-10-30T13:29:59", False),  # summer time: the bell rings at 13:30 UTC
        ("2025-10-30T13:30:00", True),
        ("2025-10-30T19:59:59", True),
        ("2025-10-30T20:00:00", False),
        ("2025-11-03T13:45:00", False),  # winter time since the day before
        ("2025-11-03T14:30:00", True),
        ("2025-11-01T15:00:00", False),  # a Saturday
        ("2025-11-27T15:00:00", False),  # Thanksgiving
        ("2025-11-28T17:59:59", True),  # the day after it is a half day
        ("2025-11-28T18:00:00", False),
        ("2025-01-09T15:00:00", False),  # a day of mourning, known some days before
        ("2024-03-29T15:00:00", False),  # Good Friday, which is no federal holiday
        ("2026-07-03T15:00:00", False),  # Independence Day on a Saturday is observed on the Friday
    ],
)
def test_trading_hours(utc: str, is_open: bool) -> None:
    """Summer time, weekends, holidays and half days are those of the exchange."""
    assert is_market_open(datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()) is is_open


def test_the_calendar_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later program takes the days of a year from what was kept, and they are the same; of another year they are made."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    made = [market._days.__wrapped__(2025), market._days.__wrapped__(2026)]
    monkeypatch.setattr(market, "_days_anew", lambda year: {})
    assert [market._days.__wrapped__(2025), market._days.__wrapped__(2026)] == made
    assert market._days.__wrapped__(2027) == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null"])
def test_a_broken_calendar_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """What was kept and cannot be read counts as not there."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    made = market._days.__wrapped__(2025)
    (file,) = tmp_path.glob("market-2025*.json")
    file.write_bytes(file.read_bytes().partition(b"\n")[0] + b"\n" + content)
    assert market._days.__wrapped__(2025) == made != {}

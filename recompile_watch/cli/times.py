"""What the user writes for a time or a zone becomes a moment or a ``tzinfo``."""

import re
from contextlib import suppress
from datetime import datetime, time, timedelta, tzinfo

from recompile_watch.core.errors import UsageError
from recompile_watch.core.units import parse_duration
from recompile_watch.zones import LocalZone, parse_zone

_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d)?")


def zone_of(text: str | None) -> tuple[tzinfo, bool]:
    """The zone, and whether the user named it. Raises UsageError."""
    if text is None:
        return LocalZone(), False
    try:
        return parse_zone(text), True
    except ValueError as error:
        raise UsageError(f"--tz: {error}") from None


def moment_of(option: str, text: str | None, zone: tzinfo, now: datetime) -> datetime | None:
    """The moment that an ISO 8601 date or time, a clock time of today, or an age such as ``2h`` names. Raises UsageError."""
    if text is None:
        return None
    with suppress(ValueError):
        return now - timedelta(seconds=parse_duration(text.strip().removesuffix(" ago").removeprefix("-")))
    try:
        if _CLOCK.fullmatch(text):
            clock = time.fromisoformat(text if text[1] != ":" else f"0{text}")
            return datetime.combine(now.astimezone(zone).date(), clock, zone)
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        raise UsageError(f"{option}: '{text}' is no time; write 2025-10-30, 2025-10-30T09:08:09, 09:08, or an age such as 2h") from None


def year_of(text: str | None) -> int | None:
    """A year of four digits. Raises UsageError."""
    if text is None:
        return None
    if not re.fullmatch(r"(?:19|20)\d\d", text):
        raise UsageError(f"--year: '{text}' is no year; write four digits such as 2025")
    return int(text)

"""What the user writes for a time or a zone becomes a moment or a ``tzinfo``."""

import re
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo

from recompile_watch.core.errors import UsageError

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.IGNORECASE)
_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d)?")


class LocalZone(tzinfo):
    """The zone of this machine (TZ or /etc/localtime) with its summer times; can be sent to another process."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """The offset at a local time."""
        if moment is None:
            return timedelta(0)
        try:
            return moment.replace(tzinfo=None).astimezone().utcoffset() or timedelta(0)
        except (OverflowError, ValueError, OSError):  # outside what the C library knows
            return timedelta(0)

    def fromutc(self, moment: datetime) -> datetime:
        """The local time of a moment in UTC."""
        return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)

    def dst(self, moment: datetime | None) -> timedelta:
        """Not told apart; nothing here needs it."""
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        """``local``."""
        return "local"


def zone_of(text: str | None) -> tuple[tzinfo, bool]:
    """The zone, and whether the user named it. Raises UsageError."""
    if text is None:
        return LocalZone(), False
    if text.upper() in ("UTC", "Z", "GMT"):
        return UTC, True
    offset = _OFFSET.fullmatch(text)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        if minutes >= 24 * 60:
            raise UsageError(f"--tz: {text} is no offset; write one such as +02:00")
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes)), True
    return _named_zone(text), True


def moment_of(option: str, text: str | None, zone: tzinfo, now: datetime) -> datetime | None:
    """The moment that an ISO 8601 date or time, a clock time of today, or an age such as ``2h`` names. Raises UsageError."""
    if text is None:
        return None
    age = _AGO.fullmatch(text.strip().removesuffix(" ago").removeprefix("-"))
    try:
        if age:
            return now - timedelta(seconds=int(age[1]) * _SECONDS[age[2]])
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


def _named_zone(text: str) -> tzinfo:
    import zoneinfo  # costs 5 ms, and only a named zone needs it

    try:
        return zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"--tz: no zone '{text}' here; write one such as UTC, Europe/Berlin or +02:00") from None

"""Time zones as people write them: ``UTC``, ``Europe/Berlin``, ``+02:00``, or the machine's own."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.IGNORECASE)


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


def parse_zone(text: str) -> tzinfo:
    """The zone of that name or offset. Raises ValueError, which says what to write."""
    if text.upper() in ("UTC", "Z", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        return _named_zone(text)
    minutes = int(offset[2]) * 60 + int(offset[3] or 0)
    if minutes >= 24 * 60:
        raise ValueError(f"{text} is no offset; write one such as +02:00")
    return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))


def _named_zone(text: str) -> tzinfo:
    import zoneinfo  # costs 5 ms, and only a named zone needs it

    try:
        return zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no zone '{text}' here; write one such as UTC, Europe/Berlin or +02:00") from None

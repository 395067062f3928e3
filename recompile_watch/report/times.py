"""Times, sizes and counts as a person reads them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo

from recompile_watch.core.units import duration_text


class Clock:
    """Shows the times of one report: without date and zone where all of them share these."""

    def __init__(self, times: list[str | None]) -> None:
        known = [moment for moment in map(_moment, times) if moment is not None]
        self.zone = _shared([_zone(moment) for moment in known])
        self.date = _shared([moment.date().isoformat() for moment in known])

    def shown(self, time: str | None) -> str:
        """``09:08:09``, with the date and zone that the report's head does not name."""
        moment = _moment(time)
        if moment is None:
            return "?"
        date = "" if self.date else f"{moment.date().isoformat()} "
        zone = "" if self.zone else f" {_zone(moment)}"
        return f"{date}{moment:%H:%M:%S}{zone}"

    def span_of(self, spans: Iterable[tuple[str | None, str | None]]) -> str:
        """``09:08:09 – 09:09:14``, from the earliest to the latest of several; one time when both are the same second; empty without times.

        What clocks of several services print may run backwards, within one span too.
        """
        times = [(moment, time) for span in spans for time in span if (moment := _moment(time)) is not None]
        if not times:
            return ""
        begin, end = self.shown(min(times)[1]), self.shown(max(times)[1])
        return begin if begin == end else f"{begin} – {end}"

    def head(self) -> str:
        """What all times have in common, ``2025-10-30 UTC``."""
        return " ".join(part for part in (self.date, self.zone) if part)


def moment_of(second: int, zone: tzinfo = UTC) -> datetime:
    """The moment that many seconds after 1970 began (UTC); one that no calendar has becomes the nearest that it has."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    day = timedelta(days=1)  # room for any zone
    return min(max(second, (first + day - epoch).total_seconds()), (last - day - epoch).total_seconds()) * timedelta(seconds=1) + epoch.astimezone(
        zone
    )


def size_text(size_bytes: int) -> str:
    """``17.8 kB``, powers of 1000."""
    value, unit = float(size_bytes), "B"
    for bigger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, bigger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def thousands(count: int) -> str:
    """``12 345``."""
    return f"{count:,}".replace(",", " ")


def count_text(count: int, noun: str) -> str:
    """``1 line``, ``12 345 lines``."""
    return f"{thousands(count)} {noun}" + ("" if count == 1 else "s")


def time_text(moment: float) -> str:
    """``2025-10-30 09:08:09 UTC``; ``an unknown time`` for what no calendar holds."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"


def iso_text(moment: float) -> str | None:
    """``2025-10-30T09:08:09+00:00``; None for what no calendar holds."""
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


def ago_text(moment: float, now: float) -> str:
    """``4 min ago``; empty for what lies ahead or more than ten years back, where a clock is wrong."""
    passed_s = now - moment
    if not 0 <= passed_s < 10 * 366 * 86_400:
        return ""
    return "just now" if passed_s < 1 else f"{duration_text(passed_s)} ago"


def _moment(time: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(time) if time else None
    except ValueError:
        return None


def _zone(moment: datetime) -> str:
    offset = moment.strftime("%z")
    return "UTC" if offset in ("+0000", "") else f"UTC{offset[:3]}:{offset[3:5]}"


def _shared(values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else ""

"""Printed times become ISO 8601 with offset.

torch's prefix has neither year nor zone, and most application logs have no zone. Both are taken from evidence:
an option, a dated or zoned time printed nearby, and only then the file's last change and the local zone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from recompile_watch.core.prefix_grammar import Stamp

_QUARTER_S = 900
# The offsets that clocks have somewhere: whole hours, and these. Anything else is the time that a line was on its way.
_ODD_OFFSETS_S = frozenset({-34200, -12600, -9000, 12600, 16200, 19800, 20700, 23400, 31500, 34200, 37800, 45900, 49500})
_OFFSETS_S = _ODD_OFFSETS_S | {hours * 3600 for hours in range(-12, 15)}
_KNOWN_TIMES = 20_000
_KNOWN_HOURS = 1_000
_FAR_DAYS = 31  # dated neighbours of a line lie days from it, not months
_NEAR_S = 60  # two clocks that differ from a quarter of an hour's multiple by more show different moments
_CARRIED_S = 15  # so soon a carrier takes over what a program has printed
_SUMMER_S = 3600  # by which clocks are changed for summer
_SECONDS = frozenset(f"{second:02d}" for second in range(60))
_FRACTION = re.compile(r"\.(\d+)")


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """What the user or the file says about times.

    zone: for lines without one. zone_is_given: the user named it, so no evidence overrides it.
    year: for lines without one. modified_on: the date of the file's last change, the latest day it can hold.
    """

    zone: tzinfo = UTC
    zone_is_given: bool = False
    year: int | None = None
    modified_on: date | None = None


class TimeResolver:
    """Resolves the times of one source in log order, learning year and zone as it goes."""

    def __init__(self, options: TimeOptions, first_date: date | None = None, offset_s: int | None = None) -> None:
        self._options = options
        self._near = first_date
        self._offset_s = None if options.zone_is_given else offset_s
        self._zones: dict[str, str] = {}
        self._known: dict[Stamp, str] = {}
        self._last = (Stamp("", ""), "")
        self._beside: tuple[str, str | None] | None = None  # the last time with a zone, and the last one without behind it

    def learn_offset(self, offset_s: int) -> None:
        """Takes a zone offset that the log itself proves, seconds east of UTC."""
        if not self._options.zone_is_given:
            self._offset_s = offset_s
            self._zones.clear()
            self._known.clear()
            self._last = (Stamp("", ""), "")

    def learn_beside(self, stamp: Stamp | None, time: str | None) -> None:
        """Takes the next event's time, resolved: one without a zone between two with one, within a minute, proves the offset anew.

        So the clock's change for summer or winter shows, and a second host behind the first one in the same file.
        """
        if stamp is None or time is None:
            return
        if stamp.form != "zoned":
            self._beside = (self._beside[0], time) if self._beside is not None else None
            return
        if self._beside is not None and self._beside[1] is not None and self._beside[1][19:] != time[19:]:
            local, (before, behind) = datetime.fromisoformat(self._beside[1][:19]), map(datetime.fromisoformat, (self._beside[0], time))
            offset = _offset_between(local, behind)
            is_near = 0 <= (behind - before).total_seconds() <= _NEAR_S and offset == _offset_between(local, before)
            if is_near and offset is not None and offset != self._offset_s:
                self.learn_offset(offset)
        self._beside = (time, None)

    def state(self) -> dict[str, object]:
        """What the log has taught so far, for ``resume``."""
        return {"near": None if self._near is None else self._near.isoformat(), "offset_s": self._offset_s, "beside": self._beside}

    def resume(self, state: Mapping[str, object]) -> None:
        """Goes on where an earlier reading of the same log stopped. Raises ValueError when it is no such state."""
        near, offset_s = state.get("near"), state.get("offset_s")
        self._near = date.fromisoformat(near) if isinstance(near, str) else None
        if isinstance(offset_s, int):
            self.learn_offset(offset_s)
        match state.get("beside"):
            case [str(zoned), str() | None as local]:
                self._beside = (zoned, local)

    def resolve(self, stamp: Stamp | None, outer: Stamp | None = None) -> str | None:
        """The time as ISO 8601 with offset; None when the log carries none."""
        if stamp is None:
            return None
        known = self._known.get(stamp)
        if known is not None:
            self._near = _date(known[:10])
            return known
        found = self._in_same_minute(stamp)
        if found is not None:
            return found
        try:
            found = self._resolved(stamp, outer)
        except (ValueError, OverflowError):
            return None
        if found is not None and stamp.form in ("zoned", "local"):
            if len(self._known) >= _KNOWN_TIMES:
                self._known.clear()
            self._known[stamp] = found
            self._last = stamp, found
        return found

    def _in_same_minute(self, stamp: Stamp) -> str | None:
        """The time of a stamp that differs from the dated one before it in its seconds only."""
        (form, text), found = self._last
        if stamp.form != form or stamp.text[:17] != text[:17] or stamp.text[19:] != text[19:] or stamp.text[17:19] not in _SECONDS:
            return None
        self._near = _date(found[:10])
        return found[:17] + stamp.text[17:19] + found[19:]

    def _resolved(self, stamp: Stamp, outer: Stamp | None) -> str | None:
        match stamp.form:
            case "zoned":
                text = _iso(stamp.text)
                self._near = _date(text[:10])
                return text
            case "epoch":
                moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(stamp.text))
                self._near = moment.date()
                return moment.isoformat()
            case "local":
                text = _iso(stamp.text)
                self._learn_of_carrier(text, outer)
                self._near = _date(text[:10])
                return text + self._zone(text)
            case "glog":
                return self._glog(stamp.text, outer)
        return None

    def _zone(self, text: str) -> str:
        """The offset ``+HH:MM`` of a local time."""
        hour = text[:13]
        found = self._zones.get(hour)
        if found is None:
            if self._offset_s is not None:
                zone: tzinfo = timezone(timedelta(seconds=self._offset_s))
            else:
                zone = self._options.zone
            found = datetime.fromisoformat(text[:19]).replace(tzinfo=zone).isoformat()[19:]
            if len(self._zones) >= _KNOWN_HOURS:
                self._zones.clear()
            self._zones[hour] = found
        return found

    def _glog(self, text: str, outer: Stamp | None) -> str | None:
        month, day, clock = int(text[:2]), int(text[2:4]), text[5:]
        carried = self._carried(outer)
        near = carried.date() if carried is not None else self._near
        year = self._year(month, day, near)
        if year is None:
            return None
        local = _iso(f"{year:04d}-{month:02d}-{day:02d} {clock}")
        if carried is not None:
            offset = _offset_between(datetime.fromisoformat(local[:19]), carried)
            if offset is not None:
                self.learn_offset(offset)
        self._near = _date(local[:10])
        return local + self._zone(local)

    def _learn_of_carrier(self, local: str, outer: Stamp | None) -> None:
        """Takes the offset that a carrier's zoned time proves; where one is known already, only a change of the clock for summer or winter.

        A carrier that reads an old log again prints the time of reading.
        """
        if outer is None or outer.form not in ("zoned", "epoch") or self._options.zone_is_given:
            return
        carried = self._carried(outer)
        offset = None if carried is None else _offset_between(datetime.fromisoformat(local[:19]), carried, _CARRIED_S)
        if offset is not None and offset != self._offset_s and (self._offset_s is None or abs(offset - self._offset_s) <= _SUMMER_S):
            self.learn_offset(offset)

    def _carried(self, outer: Stamp | None) -> datetime | None:
        if outer is None or outer.form not in ("zoned", "epoch"):
            if outer is not None and outer.form == "local":
                self._near = date.fromisoformat(_iso(outer.text)[:10])
            return None
        text = TimeResolver(self._options).resolve(outer)
        return datetime.fromisoformat(text) if text else None

    def _year(self, month: int, day: int, near: date | None) -> int | None:
        """The year that puts the day nearest to a dated neighbour, else not after the file's last change.

        A date that lies far away may be the program's data, a forecast's: the file's last change may lie nearer.
        """
        if self._options.year is not None:
            return self._options.year
        last = self._options.modified_on
        of_file = None if last is None else last.year - (_day(last.year, month, day) > last + timedelta(days=1))
        if near is None:
            return of_file
        apart, year = min((abs((_day(year, month, day) - near).days), year) for year in (near.year - 1, near.year, near.year + 1))
        if last is None or of_file is None or apart <= _FAR_DAYS or abs((_day(of_file, month, day) - last).days) >= apart:
            return year
        return of_file


@lru_cache(maxsize=64)
def _date(text: str) -> date:
    """The day, remembered: a log stays on one for long."""
    return date.fromisoformat(text)


def _day(year: int, month: int, day: int) -> date:
    if month == 2 and day == 29:
        return date(year, 3, 1)
    return date(year, month, day)


def _iso(text: str) -> str:
    """``2025-10-30 09:07:15.1234567+00:00`` as valid ISO 8601 with microseconds; ValueError when it is no time."""
    fraction = _FRACTION.search(text)
    if fraction and len(fraction[1]) not in (3, 6):
        text = text[: fraction.start()] + "." + fraction[1][:6].ljust(6, "0") + text[fraction.end() :]
    text = text.replace(" ", "T", 1)
    datetime.fromisoformat(text)
    return text


def moment_of(time: str) -> datetime | None:
    """The moment of an event's time; None for what is none."""
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None


def offset_between(local: str, utc: str) -> int | None:
    """Seconds east of UTC that a clock showing ``local`` has, when the same moment is ``utc``; None if they differ."""
    try:
        return _offset_between(datetime.fromisoformat(_iso(local)[:19]), datetime.fromisoformat(_iso(utc)[:19]).replace(tzinfo=UTC))
    except ValueError:
        return None


def _offset_between(local: datetime, moment: datetime, near_s: float = _NEAR_S) -> int | None:
    difference = (local.replace(tzinfo=UTC) - moment).total_seconds()
    offset_s = round(difference / _QUARTER_S) * _QUARTER_S
    return offset_s if abs(difference - offset_s) <= near_s and offset_s in _OFFSETS_S else None

"""Who is told what, and when: which incidents a receiver takes, its quiet hours and the time of its digest."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from recompile_watch.core.incidents import Incident, Told
from recompile_watch.core.lifecycle import State
from recompile_watch.core.matchers import all_hold
from recompile_watch.core.notices import NoticeSort
from recompile_watch.core.rules import SEVERITIES
from recompile_watch.core.watch_settings import QuietHours, Receiver


def rank(severity: str) -> int:
    """0 for ``info`` and higher for worse."""
    return SEVERITIES.index(severity)


def takes(receiver: Receiver, incident: Incident, host: str) -> bool:
    """True when an incident is severe enough for a receiver and fits its matchers."""
    return rank(incident.severity) >= rank(receiver.min_severity) and all_hold(receiver.matchers, incident.values(host))


def is_held(incident: Incident, *, warms_up: bool) -> bool:
    """True for an incident that nobody is told of now: a person knows, another one explains it, or it is expected."""
    return incident.state in (State.ACKNOWLEDGED, State.SILENCED) or incident.explained_by is not None or warms_up or incident.is_backlog


def wanted(receiver: Receiver, incident: Incident, steady: float, *, is_held: bool, is_taken: bool) -> NoticeSort | None:
    """What a receiver should be told of an incident now; None for nothing new."""
    told = incident.told.get(receiver.name)
    if incident.state is State.RESOLVED:
        return NoticeSort.RESOLVED if told is not None and not told.is_over and receiver.tells_resolved else None
    if is_held or (told is None and (receiver.only_escalations or not is_taken)):
        return None
    if told is None:
        return NoticeSort.OPENED
    if incident.is_flapping:
        return None if told.is_flapping else NoticeSort.FLAPPING
    if told.is_over:
        return NoticeSort.OPENED if is_taken and not receiver.only_escalations else None
    if rank(incident.severity) > rank(told.severity):
        return NoticeSort.WORSE
    return NoticeSort.REPEATED if _is_to_repeat(receiver, incident, told, steady) else None


def repeat_due(receiver: Receiver, incident: Incident) -> float | None:
    """When it may be told again that an incident goes on, on the steady clock."""
    told = incident.told.get(receiver.name)
    if told is None or told.is_over or not receiver.repeat_interval_s or incident.state is State.RESOLVED:
        return None
    return told.at + receiver.repeat_interval_s


def escalation_due(receiver: Receiver, incident: Incident) -> float | None:
    """When nobody will have acknowledged it for too long, on the steady clock."""
    told = incident.told.get(receiver.name)
    if receiver.escalate_to is None or told is None or told.is_over or told.is_escalated or told.severity != "critical":
        return None
    return told.at + receiver.escalate_after_s


def wait_s(receiver: Receiver, incident: Incident, sort: NoticeSort) -> float:
    """How long to wait for more before telling."""
    if sort is NoticeSort.MEASURED:
        return 0.0
    if sort is NoticeSort.RESOLVED:
        return receiver.resolve_wait_s if incident.severity == "critical" else max(receiver.resolve_wait_s, receiver.same_kind_wait_s)
    return receiver.critical_wait_s if incident.severity == "critical" else receiver.warning_wait_s


def quiet_until(quiet: QuietHours | None, wall: float) -> float | None:
    """The end of the quiet hours that hold at a moment, in epoch seconds; None outside of them.

    The hours are those of the zone's clocks: on the days of a change they are an hour longer or shorter.
    """
    if quiet is None or quiet.start == quiet.end:
        return None
    start, end = next_time(quiet.start, quiet.timezone, wall), next_time(quiet.end, quiet.timezone, wall)
    return end if end < start else None


def next_time(clock: str, timezone: str, wall: float) -> float:
    """When a zone's clocks show ``HH:MM`` next after a moment, both in epoch seconds."""
    zone = ZoneInfo(timezone)
    here = datetime.fromtimestamp(wall, zone)
    hour, _, minute = clock.partition(":")
    for days in range(4):
        day = here.date() + timedelta(days=days)
        found = datetime(day.year, day.month, day.day, int(hour), int(minute or 0), tzinfo=zone).timestamp()
        if found > wall:
            return found
    return wall + 86_400.0


def _is_to_repeat(receiver: Receiver, incident: Incident, told: Told, steady: float) -> bool:
    due = repeat_due(receiver, incident)
    return due is not None and steady >= due and (incident.is_lasting or incident.seen > told.at)

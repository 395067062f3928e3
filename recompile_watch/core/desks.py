"""Desks: what lies ready to be told to each receiver, and when it goes out.

A receiver gets few messages: what comes within a short wait goes out together, more of the same kind waits longer,
and beyond a few messages at once there is a pause between them. A critical incident goes out at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from recompile_watch.core.agenda import Agenda
from recompile_watch.core.alerts import alert_of, notice_id, places_of, why_told
from recompile_watch.core.casebook import Casebook
from recompile_watch.core.findings import KIND_ORDER
from recompile_watch.core.incidents import Incident, Told
from recompile_watch.core.inhibition import is_warm_up
from recompile_watch.core.lifecycle import State
from recompile_watch.core.moments import Clock
from recompile_watch.core.notices import MAX_ALERTS, Alert, Notice, NoticeSort
from recompile_watch.core.routing import escalation_due, is_held, next_time, quiet_until, rank, repeat_due, takes, wait_s, wanted
from recompile_watch.core.shelves import Shelf
from recompile_watch.core.watch_settings import Receiver

MAX_WAITING = 1_000
MAX_KINDS = 200
_ALARMS = frozenset({NoticeSort.OPENED, NoticeSort.WORSE, NoticeSort.REPEATED, NoticeSort.FLAPPING, NoticeSort.ESCALATED})


@dataclass(slots=True)
class Waiting:
    """An incident that a receiver will be told of. due: on the steady clock. sort: what was to be told when it came here."""

    due: float
    sort: NoticeSort


@dataclass(slots=True)
class Desk:
    """What one receiver waits for.

    waiting: by incident. crowd: further incidents that only count, by sort. kinds: when each kind of milder incident was
    told last. left: messages that may go out without a pause, at the time ``filled_at``. notices: made so far. All times
    on the steady clock, but digest_due and digested_at in epoch seconds.
    """

    waiting: dict[str, Waiting] = field(default_factory=dict)
    crowd: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, float] = field(default_factory=dict)
    left: float = 0.0
    filled_at: float = 0.0
    notices: int = 0
    digest_due: float | None = None
    digested_at: float = 0.0


class Desks:
    """The desks of all receivers."""

    def __init__(
        self, receivers: Iterable[Receiver], parts: Mapping[str, object], casebook: Casebook, clock: Clock, agenda: Agenda, host: str
    ) -> None:
        self._receivers = {receiver.name: receiver for receiver in receivers}
        self.shelf = Shelf("receiver", Desk, parts, 1_000)
        self._casebook, self._clock, self._agenda, self._host = casebook, clock, agenda, host
        self.made: list[Notice] = []
        for name in set(self.shelf) - set(self._receivers):
            self.shelf.drop(name)

    def consider(self, incident: Incident) -> None:
        """Lays an incident on the desks of those who should be told something new of it."""
        held = is_held(incident, warms_up=is_warm_up(incident))
        for receiver in self._receivers.values():
            sort = wanted(receiver, incident, self._clock.steady, is_held=held, is_taken=takes(receiver, incident, self._host))
            if sort is not None:
                self._lay(receiver, incident, sort)

    def review(self, incident: Incident) -> None:
        """Does what time brings: repeats and escalations that are due."""
        self.consider(incident)
        if incident.state is not State.OPEN or is_held(incident, warms_up=is_warm_up(incident)):
            return
        for receiver in self._receivers.values():
            due = escalation_due(receiver, incident)
            target = self._receivers.get(receiver.escalate_to or "")
            if due is not None and self._clock.steady >= due:
                incident.told[receiver.name].is_escalated = True
                self._casebook.touch(incident)
                if target is not None:
                    self._lay(target, incident, NoticeSort.ESCALATED)

    def measured(self, incident: Incident) -> None:
        """Tells those who were told of an incident what was measured; whom a message of it waits for anyway reads it there."""
        waited_for = self._on_desk(incident)
        for receiver in self._receivers.values():
            if receiver.name in incident.told and receiver.name not in waited_for:
                self._lay(receiver, incident, NoticeSort.MEASURED)

    def due(self, incident: Incident) -> float | None:
        """When ``review`` has work, on the steady clock; never while it could tell nobody, or it would be due again and again."""
        if incident.state is not State.OPEN or is_held(incident, warms_up=is_warm_up(incident)):
            return None
        found = [escalation_due(receiver, incident) for receiver in self._receivers.values()]
        for receiver in self._receivers.values():
            due = repeat_due(receiver, incident)
            if due is not None and incident.is_lasting and not incident.is_flapping and receiver.name not in self._on_desk(incident):
                found.append(due)
        return min((due for due in found if due is not None), default=None)

    def repeat_due(self, incident: Incident) -> float | None:
        """When another event of it may be told again, on the steady clock."""
        found = (repeat_due(receiver, incident) for receiver in self._receivers.values())
        return min((due for due in found if due is not None), default=None)

    def schedule(self) -> None:
        """Sets the agenda anew, after a start or a jump of the wall clock."""
        for receiver in self._receivers.values():
            desk = self._desk(receiver)
            if receiver.digest_at is not None:
                desk.digest_due = next_time(receiver.digest_at, receiver.digest_timezone, max(self._clock.wall, desk.digested_at))
                desk.digest_due = min(desk.digest_due, self._clock.wall + 2 * 86_400.0)
                self.shelf.put(receiver.name, desk)
            self._set(receiver, desk)

    def run(self, name: str) -> None:
        """Does what is due at a desk."""
        receiver = self._receivers.get(name)
        if receiver is None:
            return
        desk = self._desk(receiver)
        if desk.digest_due is not None and self._clock.wall >= desk.digest_due:
            self._digest(receiver, desk)
        ready = {_tray(waiting.sort) for waiting in desk.waiting.values() if waiting.due <= self._clock.steady}
        for tray in sorted(ready):
            self._send(receiver, desk, sorted(key for key, waiting in desk.waiting.items() if _tray(waiting.sort) == tray))
        self.shelf.put(name, desk)
        self._set(receiver, desk)

    def hurry(self) -> None:
        """Nothing more comes for a while: what waits only for company goes out now. Quiet hours and pauses still hold."""
        for name, receiver in self._receivers.items():
            for waiting in self._desk(receiver).waiting.values():
                waiting.due = min(waiting.due, self._clock.steady)
            self.run(name)

    def summarise(self, incidents: list[Incident]) -> None:
        """One notice to each receiver of what the logs held before the watch began; from now on these are known."""
        for receiver in self._receivers.values():
            if receiver.only_escalations:
                continue
            found = [one for one in incidents if takes(receiver, one, self._host) and not is_held(one, warms_up=is_warm_up(one))]
            if found:
                self._make(receiver, self._desk(receiver), found, dict.fromkeys((one.id for one in found), NoticeSort.BACKLOG))

    def _lay(self, receiver: Receiver, incident: Incident, sort: NoticeSort) -> None:
        desk = self._desk(receiver)
        steady = self._clock.steady
        known = desk.waiting.get(incident.id)
        due = steady + wait_s(receiver, incident, sort)
        last = desk.kinds.get(_kind(incident, sort))
        if last is not None and sort in (NoticeSort.OPENED, NoticeSort.RESOLVED) and incident.severity != "critical":
            due = max(due, last + receiver.same_kind_wait_s)
        due = max(due, self._free_at(receiver, desk, [incident]) or due)
        if known is not None and known.sort is not NoticeSort.RESOLVED:
            due = min(due, known.due)
        if known is not None and known.due == due and known.sort is sort:
            return
        if known is None and len(desk.waiting) >= MAX_WAITING:
            desk.crowd[sort.value] = desk.crowd.get(sort.value, 0) + 1
            self._mark(receiver, incident, sort)
        else:
            desk.waiting[incident.id] = Waiting(due, known.sort if known is not None and known.sort is NoticeSort.ESCALATED else sort)
        self.shelf.put(receiver.name, desk)
        self._set(receiver, desk)

    def _send(self, receiver: Receiver, desk: Desk, names: list[str]) -> None:
        """Sends what lies on a desk, unless the receiver is to be left alone; what became void is taken off."""
        sorts: dict[str, NoticeSort] = {}
        found: list[Incident] = []
        for name in names:
            incident = self._casebook.get(name)
            sort = self._still(receiver, incident, desk.waiting[name].sort) if incident is not None else None
            if incident is None or sort is None:
                del desk.waiting[name]
            else:
                sorts[name] = sort
                found.append(incident)
        if not found or self._is_put_off(receiver, desk, found):
            return
        for name in sorts:
            del desk.waiting[name]
        for group in _groups(receiver, found, self._host):
            self._make(receiver, desk, group, sorts)

    def _still(self, receiver: Receiver, incident: Incident, sort: NoticeSort) -> NoticeSort | None:
        """What is to be told now of what was laid on the desk before."""
        held = is_held(incident, warms_up=is_warm_up(incident))
        if sort is NoticeSort.ESCALATED and incident.state is State.OPEN and not held:
            return sort
        if sort is NoticeSort.MEASURED:
            return None if incident.state is State.SILENCED else sort
        return wanted(receiver, incident, self._clock.steady, is_held=held, is_taken=takes(receiver, incident, self._host))

    def _is_put_off(self, receiver: Receiver, desk: Desk, found: list[Incident]) -> bool:
        """True when the receiver is to be left alone: everything that was ready waits until then."""
        until = self._free_at(receiver, desk, found)
        if until is not None:
            for one in found:
                desk.waiting[one.id].due = max(until, desk.waiting[one.id].due)
        return until is not None

    def _free_at(self, receiver: Receiver, desk: Desk, found: list[Incident]) -> float | None:
        """When a message of these may go out, on the steady clock: after quiet hours or a pause; None for now."""
        if receiver.quiet_hours is not None and all(rank(one.severity) < rank(receiver.quiet_hours.passes) for one in found):
            quiet = quiet_until(receiver.quiet_hours, self._clock.wall)
            if quiet is not None:
                return quiet - self._clock.lost
        left, filled_at = self._filled(receiver, desk)
        return filled_at + (1 - left) * receiver.pause_s if left < 1 else None

    def _filled(self, receiver: Receiver, desk: Desk) -> tuple[float, float]:
        """``left`` and ``filled_at`` of a desk as they are now. Whole messages only, so that it does not matter how often this is asked."""
        gained = int((self._clock.steady - desk.filled_at) // receiver.pause_s) if receiver.pause_s else receiver.burst
        if desk.left + gained >= receiver.burst:
            return float(receiver.burst), self._clock.steady
        return desk.left + gained, desk.filled_at + gained * receiver.pause_s

    def _make(self, receiver: Receiver, desk: Desk, incidents: list[Incident], sorts: Mapping[str, NoticeSort]) -> None:
        incidents = sorted(incidents, key=_worst_first)
        sort = sorts[incidents[0].id]
        left, desk.filled_at = self._filled(receiver, desk)
        desk.left = left - 1
        desk.notices += 1
        crowd = sum(desk.crowd.values()) if sort in _ALARMS else 0
        if crowd:
            desk.crowd.clear()
        alerts = tuple(self._alert(receiver, one, sorts[one.id]) for one in incidents[:MAX_ALERTS])
        number = notice_id(self._host, receiver.name, desk.notices, self._clock.wall)
        self.made.append(
            Notice(number, receiver.name, sort, incidents[0].severity, self._clock.wall, self._host, alerts, len(incidents) - len(alerts) + crowd)
        )
        for incident in incidents:
            self._mark(receiver, incident, sorts[incident.id])
            kind = _kind(incident, sorts[incident.id])
            if len(desk.kinds) < MAX_KINDS or kind in desk.kinds:
                desk.kinds[kind] = self._clock.steady
        self.shelf.put(receiver.name, desk)

    def _alert(self, receiver: Receiver, incident: Incident, sort: NoticeSort) -> Alert:
        shown = replace(incident, words=self._casebook.words(incident))
        explained = (self._casebook.get(name) for name in incident.explains)
        titles = [one.words.title for one in explained if one is not None and one.words.title]
        return alert_of(shown, places_of(self._casebook.events_of(incident)), titles, why_told(receiver, incident, sort))

    def _mark(self, receiver: Receiver, incident: Incident, sort: NoticeSort) -> None:
        """Remembers what a receiver was told."""
        if sort in (NoticeSort.DIGEST, NoticeSort.MEASURED):
            return
        before = incident.told.get(receiver.name)
        is_flapping = sort is NoticeSort.FLAPPING or (before is not None and before.is_flapping and sort is not NoticeSort.RESOLVED)
        is_escalated = before is not None and before.is_escalated and sort is not NoticeSort.OPENED
        incident.told[receiver.name] = Told(incident.severity, self._clock.steady, sort is NoticeSort.RESOLVED, is_flapping, is_escalated)
        self._casebook.touch(incident)
        self._agenda.set(f"incident/{incident.id}", self._clock.steady)

    def _digest(self, receiver: Receiver, desk: Desk) -> None:
        found = [one for one in self._casebook if self._is_for_digest(receiver, desk, one)]
        desk.digested_at = self._clock.wall
        desk.digest_due = next_time(receiver.digest_at or "00:00", receiver.digest_timezone, self._clock.wall)
        if found:
            self._make(receiver, desk, found, dict.fromkeys((one.id for one in found), NoticeSort.DIGEST))

    def _is_for_digest(self, receiver: Receiver, desk: Desk, incident: Incident) -> bool:
        """Open and told, or not severe enough to be told and seen since the last digest."""
        if incident.state in (State.RESOLVED, State.SILENCED) or incident.explained_by is not None:
            return False
        told = incident.told.get(receiver.name)
        return (told is not None and not told.is_over) or incident.seen + self._clock.lost >= desk.digested_at

    def _desk(self, receiver: Receiver) -> Desk:
        desk = self.shelf.get(receiver.name)
        if desk is None:
            desk = Desk(left=float(receiver.burst), filled_at=self._clock.steady, digested_at=self._clock.wall)
            self.shelf.put(receiver.name, desk)
        return desk

    def _set(self, receiver: Receiver, desk: Desk) -> None:
        dues = [waiting.due for waiting in desk.waiting.values()]
        if desk.digest_due is not None:
            dues.append(desk.digest_due - self._clock.lost)
        self._agenda.set(f"receiver/{receiver.name}", min(dues, default=None))

    def _on_desk(self, incident: Incident) -> set[str]:
        return {name for name, desk in self.shelf.items() if incident.id in desk.waiting}


def _tray(sort: NoticeSort) -> int:
    """What may share a message, in the order in which messages go out: alarms, what was measured, what is over."""
    return 0 if sort in _ALARMS else 1 if sort is NoticeSort.MEASURED else 2


def _kind(incident: Incident, sort: NoticeSort) -> str:
    """What further ones of wait for: beginnings and endings apart."""
    return incident.kind if sort in _ALARMS else f"{incident.kind}/{sort}"


def _worst_first(incident: Incident) -> tuple[int, int, int, int]:
    order = KIND_ORDER.index(incident.kind) if incident.kind in KIND_ORDER else -1  # conditions say more than single events
    return (-rank(incident.severity), order, -incident.count, incident.number)


def _groups(receiver: Receiver, incidents: list[Incident], host: str) -> list[list[Incident]]:
    """The incidents of each message: all in one, or one for each value of the fields to group by."""
    groups: dict[tuple[str, ...], list[Incident]] = {}
    for incident in incidents:
        values = incident.values(host)
        groups.setdefault(tuple(",".join(values.get(name, ())) for name in receiver.group_by), []).append(incident)
    return list(groups.values())

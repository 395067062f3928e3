"""The watch: events and time go in, incidents and notices come out.

It has no clock of its own. ``now`` is the wall time in epoch seconds, and ``tick`` must be called when ``next_due``
says so, also while an old log is replayed by its own time: a call that comes much later than that means to the watch
that the machine slept, and nothing counts as quiet in a time that nobody observed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from recompile_watch.core.agenda import Agenda
from recompile_watch.core.casebook import Casebook
from recompile_watch.core.codec import Json
from recompile_watch.core.commands import Command, Refusal
from recompile_watch.core.course import Course
from recompile_watch.core.desks import Desks
from recompile_watch.core.diagnostic_queue import RunQueue
from recompile_watch.core.diagnostic_runs import RunEnd, RunOrder
from recompile_watch.core.events import EXTRA_FIELDS, TORCH_KINDS, Event
from recompile_watch.core.fading import Fading
from recompile_watch.core.findings import KIND_ORDER
from recompile_watch.core.heard import Heard, Trouble
from recompile_watch.core.hourly import Hour, Key, Measured
from recompile_watch.core.moments import BACK_S, OVERSLEPT_S, Clock, DatedRuns, LogTimes
from recompile_watch.core.notices import Notice
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.retelling import Retelling
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.runs import Run, Stretch
from recompile_watch.core.shelves import KeyedParts, Shelf
from recompile_watch.core.signals import Signal
from recompile_watch.core.silences import Silences
from recompile_watch.core.watch_settings import WatchSettings

HEARTBEAT = "heartbeat"
HEARTBEAT_S = 60.0
MAX_FRESH_ROWS = 20  # whose words and advice are made anew for one step; ``incident`` gives those of the others when they are asked for


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one call.

    incidents: those that changed, as JSON objects by id. notices: to be sent, in this order. memory: the parts of the
    memory that changed, None for those to be deleted. forgotten: incidents that cannot change any more, with when they were
    over in epoch seconds; None for those that were not, which made room for others. measured: what this call measured, by hour
    and series. runs: diagnoses that are to begin, once this is written down.
    """

    incidents: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    memory: Mapping[str, Json] = field(default_factory=dict)
    forgotten: Mapping[str, float | None] = field(default_factory=dict)
    measured: Mapping[Key, Hour] = field(default_factory=dict)
    runs: tuple[RunOrder, ...] = ()


@dataclass(slots=True)
class Backlog:
    """Logs from before the watch began are being read. told_at: when that is told, in epoch seconds of ``now``."""

    told_at: float


class Watch:
    """Decides what is an incident and who is told.

    memory: what ``memory`` gave before; None at the first start. is_market_open: whether the stock market is open at a
    moment in epoch seconds. Raises StoreError when the memory cannot be read.
    """

    def __init__(
        self, settings: WatchSettings, rules: Ruleset, catalog: Catalog, memory: Mapping[str, object] | None, *, host: str,
        is_market_open: Callable[[float], bool],
    ) -> None:  # fmt: skip
        parts = memory or {}
        self._settings = settings
        self._clocks = Shelf("clock", Clock, parts, 1)
        self._clock = self._clocks.get("clock") or Clock(0.0)
        self._is_new = self._clocks.get("clock") is None
        self._is_revised = self._is_new
        self._known_gap_s = OVERSLEPT_S + (0.0 if self._is_new else settings.looks_s)  # before the very first look nobody looked
        self._kinds = {rule.event for rule in rules.rules} | TORCH_KINDS | set(EXTRA_FIELDS)
        self._backlogs = Shelf("backlog", Backlog, parts, 1)
        self._agenda = Agenda()
        self._fading = Fading(parts)
        self._times = LogTimes(parts)
        self._casebook = Casebook(parts, Retelling(rules, catalog, settings.torch_version), host, settings.max_incidents)
        self._measured = Measured(settings.returns.strategies)
        self._silences = Silences(parts, self._clock)
        self._desks = Desks(settings.receivers, parts, self._casebook, self._clock, self._agenda, host)
        self._runs = RunQueue(settings.runs, self._casebook, self._clock, self._agenda)
        self._course = Course(
            settings, parts, self._casebook, self._silences, self._desks, self._clock, self._agenda, is_market_open, host, self._runs
        )  # fmt: skip
        self._shelves: tuple[KeyedParts, ...] = (
            self._clocks, self._backlogs, self._fading.shelf, self._times.shelf, self._silences.shelf, self._desks.shelf,
            *self._casebook.shelves, *self._course.shelves,
        )  # fmt: skip
        self._fading.resume(self._shelves)
        if not self._is_new:
            self._schedule()

    def feed(self, heard: Sequence[Heard], troubles: Sequence[Trouble], now: float) -> Step:
        """Takes in what was read since the last call, and gives what came of it."""
        self.hear(heard, troubles, now)
        return self._step()

    def hear(self, heard: Sequence[Heard], troubles: Sequence[Trouble], now: float) -> None:
        """Takes in what was read since the last call: each stream in log order, and several streams in order of time
        where that is known. The next ``feed`` gives what comes of it too."""
        is_old = bool(heard) and all(one.is_backlog for one in heard)
        if not self._is_new and now < self._clock.wall - BACK_S:
            self._arrive(now)
        is_first = True
        is_undated = all(self._times.printed(time, now) is None for time in _times(heard))
        if is_old and self._backlogs.get("backlog") is None and not len(self._casebook.shelf):
            self._go_back(heard, now)
        for one in heard:
            for record in self._records(one, now):
                if isinstance(record, DatedRuns):
                    self._take_runs(record, one, now, is_first=is_first and not is_old)
                    is_first = False
                    continue
                reading = now if self._is_new or is_undated else self._clock.wall
                dated = [(self._times.of(event, one.stream, reading, now), event) for event in record]
                self._reach(min(dated[0][0], now), is_first=is_first and not is_old)
                is_first = False
                for at, event in dated:
                    self._course.take(event, at, one)
                    self._measured.take(event, at, self._casebook.model_of)
                self._run_to(self._clock.wall)
        self._close(heard, now, is_old=is_old)
        for trouble in troubles:
            self._course.trouble(trouble, now)
        self._run_to(self._clock.wall)

    def tick(self, now: float) -> Step:
        """Time passed: what is over ends, what waited goes out."""
        backlog = self._backlogs.get("backlog")
        if backlog is None or now >= backlog.told_at or now < backlog.told_at - self._settings.backlog_settles_s - BACK_S:
            self._pass(now)
        return self._step()

    def conclude(self, now: float) -> Step:
        """Nobody reads on for a while: what waits only for more of its kind goes out now."""
        self._pass(now)
        self._desks.hurry()
        self._run_to(self._clock.wall)
        return self._step()

    def next_due(self) -> float | None:
        """When ``tick`` has work at the earliest, in epoch seconds; at most a minute ahead, so that it is noticed when the
        machine sleeps or its clock is set. None before the first call."""
        backlog = self._backlogs.get("backlog")
        if backlog is not None:
            return backlog.told_at
        due = self._agenda.next()
        return None if due is None or self._is_new else due[0] + self._clock.lost

    def command(self, command: Command, now: float) -> Step | Refusal:
        """Does what a person asks, or says why not."""
        if self._backlogs.get("backlog") is None:
            self._arrive(now)
        refusal = self._course.obey(command)
        if refusal is not None:
            return refusal
        self._run_to(self._clock.wall)
        return self._step()

    def ended(self, incident: str, end: RunEnd, now: float) -> Step:
        """Takes how the diagnosis of an incident ended: one that was ordered, or one that a person ran."""
        if self._backlogs.get("backlog") is None:
            self._arrive(now)
        self._course.ended(incident, end)
        self._run_to(self._clock.wall)
        return self._step()

    @property
    def interrupted(self) -> tuple[str, ...]:
        """Marks of the diagnoses that ran when the watch ended; what is left of their processes must end."""
        return self._runs.interrupted

    def judges(self, kind: str) -> bool:
        """True when events of a kind matter to the watch; the others only a report shows, and nobody need read them for it."""
        return self._course.judges(kind) or self._measured.measures(kind)

    def memory(self) -> dict[str, Json]:
        """Everything that has to be remembered over a restart, by key; whoever stores it keeps the order of the fields."""
        return {key: part for shelf in self._shelves for key, part in shelf.everything().items()}

    def incident(self, name: str) -> dict[str, Json] | None:
        """An incident as a row, its words made anew; None when there is none of that id."""
        found = self._casebook.get(name)
        return None if found is None else self._course.row(found)

    def remembers(self, incident: str) -> bool:
        """Whether an incident of that id can still change."""
        return incident in self._casebook.shelf

    def silences(self) -> list[dict[str, Json]]:
        """The silences, the oldest first: id, matchers, until (epoch seconds), who, why, and whether it holds now."""
        kept = sorted(self._silences.shelf.values(), key=lambda one: one.number)
        return [
            {
                "id": one.id,
                "matchers": [str(item) for item in one.matchers],
                "until": one.until,
                "who": one.who,
                "why": one.why,
                "holds": one.is_active,
            }
            for one in kept
        ]

    @property
    def overflowed(self) -> int:
        """How many problems got no incident of their own because there were too many, since the first start."""
        return self._casebook.counter.overflowed

    def _records(self, heard: Heard, now: float) -> Iterator[list[Event] | DatedRuns]:
        """Stretches as they are, if nothing must see their events one by one; of all other events those of one record together."""
        events: list[Event] = []
        for item in heard.events:
            if isinstance(item, Event):
                events.append(item)
                continue
            yield from _records(events)
            events = []
            dated = self._dated(item, heard.stream, now)
            if dated is None:
                events += item.events()
            else:
                yield dated
        yield from _records(events)

    def _dated(self, stretch: Stretch, stream: str, now: float) -> DatedRuns | None:
        """A stretch with its moments; None where something must see its events one by one, or happens meanwhile that they decide."""
        kinds = [run.kind for run in stretch.runs]
        if not all(map(self._course.takes_runs, kinds)):
            return None
        dated, due = self._times.of_stretch(stretch, stream, now), self._course.due(kinds)
        is_due = dated is not None and due is not None and due + self._clock.lost <= dated.latest()
        return None if is_due else dated

    def _take_runs(self, dated: DatedRuns, heard: Heard, now: float, *, is_first: bool) -> None:
        """Takes runs as their events one by one: nothing else happens at their times but what a condition says of one."""
        said: list[tuple[int, Run, float, int, Signal]] = []
        self._reach(min(dated.first(), now), is_first=is_first)
        for run, times in dated.runs:
            self._measured.take_run(run, times)
            said += [(run.offsets[index], run, times[index], index, signal) for index, signal in self._course.take_run(run, heard.source)]
        for offset, run, at, index, signal in sorted(said, key=itemgetter(0)):
            if self._course.concerns(signal):
                self._run_to(min(dated.latest(offset), now))
                event = None if signal.is_over else run.event(index)
                self._course.signal(signal, event, at, is_backlog=heard.is_backlog)
                self._run_to(self._clock.wall)
        self._run_to(min(dated.latest(), now))

    def _pass(self, now: float) -> None:
        """Time passed until now; what the logs held before the watch began is told."""
        self._arrive(now)
        if self._backlogs.get("backlog") is not None:
            self._backlogs.drop("backlog")
            self._course.tell_backlog()
        self._course.hear((), now)
        self._run_to(self._clock.wall)

    def _go_back(self, heard: Sequence[Heard], now: float) -> None:
        """Old logs are read at the first start: from here on time is theirs, so that what was over in them is over."""
        times = (self._times.printed(time, now) for time in _times(heard))
        first = next((at for at in times if at is not None), None)
        if first is not None and not self._is_new and first < self._clock.wall:
            self._clock.jump_to(first)
            self._schedule()

    def _close(self, heard: Sequence[Heard], now: float, *, is_old: bool) -> None:
        """The end of a call: the clocks arrive at its time, unless old logs are being read."""
        if is_old:
            self._reach(min(now, self._clock.wall) if not self._is_new else now, is_first=False)
            self._backlogs.put("backlog", Backlog(now + self._settings.backlog_settles_s))
        elif heard or self._backlogs.get("backlog") is None:
            self._arrive(now)
        self._course.hear(heard, now)

    def _reach(self, wall: float, *, is_first: bool) -> None:
        """Comes to the time of a record; the first one of a call may lie behind a time in which nobody watched."""
        if self._is_new or is_first:
            self._arrive(max(wall, self._clock.wall))
        else:
            self._run_to(wall)

    def _arrive(self, wall: float) -> None:
        """Comes to the time of a call: step by step, or in a jump when nobody watched meanwhile or the clock was set."""
        if self._is_new:
            self._is_new = False
            self._clock.wall = wall
            self._schedule()
            return
        due = self._agenda.next()
        has_slept = due is not None and wall > due[0] + self._clock.lost + self._known_gap_s
        if has_slept or wall < self._clock.wall - BACK_S:
            self._clock.jump_to(wall)
            self._schedule()
        self._run_to(wall)
        if not self._is_revised:
            self._is_revised = True
            self._course.revise(self._kinds, {receiver.name for receiver in self._settings.receivers})

    def _run_to(self, wall: float) -> None:
        """Lets time pass: what is due on the way is done at its own moment."""
        clock, agenda = self._clock, self._agenda
        while (due := agenda.next()) is not None and due[0] + clock.lost <= max(wall, clock.wall):
            clock.run_to(due[0] + clock.lost)
            key = agenda.pop()
            if key == HEARTBEAT:
                self._beat()
            else:
                self._course.run(key)
        clock.run_to(wall)

    def _beat(self) -> None:
        self._fading.run(self._clock.wall, self._shelves)
        self._agenda.set(HEARTBEAT, (self._clock.steady // HEARTBEAT_S + 1) * HEARTBEAT_S)

    def _schedule(self) -> None:
        self._beat()
        self._course.schedule()

    def _step(self) -> Step:
        self._clocks.put("clock", self._clock)
        self._casebook.advise()
        runs = tuple(self._runs.ordered)
        self._runs.ordered.clear()
        incidents: dict[str, Mapping[str, Json]] = {}
        measured = {order.incident for order in runs}  # their rows come first: a run reads its advice there
        for name in sorted(self._casebook.shelf.changed, key=lambda one: one not in measured):
            found = self._casebook.get(name)
            if found is not None:
                incidents[name] = self._course.row(found, is_fresh=len(incidents) < MAX_FRESH_ROWS)
        notices = tuple(self._desks.made)
        self._desks.made.clear()
        forgotten = dict(self._casebook.gone)
        self._casebook.gone.clear()
        memory = {key: part for shelf in self._shelves for key, part in shelf.changes().items()}
        return Step(incidents, notices, memory, forgotten, self._measured.given(), runs)


def _times(heard: Iterable[Heard]) -> Iterator[str | None]:
    """The times of all events as printed, those of a stretch by run, the one that begins first in front."""
    for item in (item for one in heard for item in one.events):
        if isinstance(item, Event):
            yield item.time
        else:
            for run in sorted(item.runs, key=lambda run: run.offsets[0]):
                yield from run.times


def _records(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The events of one record together, what matters most first: the cause before the failure that it made."""
    start = 0
    for end in range(1, len(events) + 1):
        if end == len(events) or _place(events[end]) != _place(events[start]):
            yield sorted(events[start:end], key=_weight) if end - start > 1 else [events[start]]
            start = end


def _place(event: Event) -> tuple[str, int]:
    return event.source, event.offset


def _weight(event: Event) -> int:
    return KIND_ORDER.index(event.kind) if event.kind in KIND_ORDER else len(KIND_ORDER)

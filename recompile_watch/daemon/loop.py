"""The loop: one turn reads what is new, decides, writes it down in one transaction, and only then tells.

Nothing here waits but ``wait``. What cannot be written down adds up and is written later; reading and telling go on.
"""

import selectors
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from recompile_watch.core.commands import Command, Refusal
from recompile_watch.core.delivery import Outbox
from recompile_watch.core.diagnostic_runs import end_of
from recompile_watch.core.errors import DeliveryError, StoreError
from recompile_watch.core.heard import Heard, Trouble, TroubleKind
from recompile_watch.core.notices import Alert, Notice
from recompile_watch.core.parcels import ParcelState, parcel_to_json
from recompile_watch.core.watch import Step, Watch
from recompile_watch.daemon.diagnostics import Diagnostics
from recompile_watch.daemon.followers import InputFollower
from recompile_watch.daemon.pruning import Pruner
from recompile_watch.daemon.readings import SourceReading
from recompile_watch.daemon.series import Series
from recompile_watch.report.message import message_of
from recompile_watch.respond.courier import Courier
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.wire import Job, Task
from recompile_watch.store import Changes, Json, Key, Store

if TYPE_CHECKING:
    from recompile_watch.daemon.metrics import Metrics
    from recompile_watch.sources.wake import Wake

HEARTBEAT = "(heartbeat)"
HINT_S = 0.2  # between two looks at all paths, however often the file system calls
FOLDERS_S = 5.0
MAX_HINTS_PER_S = 50  # a hint costs watchdog some tenths of a millisecond
REST_S = 60.0
BURST_POLLS = 7  # more that one turn reads of a burst before it writes down what came of it
BUSY_POLL_S = 0.1
BUSY_S = 2.0
RETRY_S = 1.0  # between two attempts to write a state that could not be written
UNWRITABLE_S = 10.0  # it is told when it lasts so long
_UNWRITABLE = "the state cannot be written; what was decided meanwhile is kept in memory and would be decided again after a kill: {error}"


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, as two functions: epoch seconds, which may jump, and monotonic seconds, which do not."""

    now: Callable[[], float]
    monotonic: Callable[[], float]


@dataclass(slots=True)
class Parts:
    """What the loop drives. heartbeat_s: seconds between two signs of life to the receiver ``HEARTBEAT``, None for none."""

    store: Store
    readings: list[SourceReading]
    watch: Watch
    outbox: Outbox
    courier: Courier
    pruner: Pruner
    series: Series
    receivers: Mapping[str, ReceiverSettings]
    diagnostics: Diagnostics
    heartbeat_s: float | None = None
    wake: "Wake | None" = None
    metrics: "Metrics | None" = None


class Loop:
    """Drives the parts of one configuration. ``turn`` does all work that is due; ``wait`` sleeps until there is more."""

    def __init__(self, parts: Parts, clock: Clock, selector: selectors.BaseSelector, *, poll_interval_s: float, state_dir: str | None = None) -> None:
        self._parts, self._clock, self._selector = parts, clock, selector
        self._poll_interval_s, self._state_dir = poll_interval_s, state_dir
        self._unsaved = parts.pruner.repairs
        self._retry_at: float | None = None
        self._failing_since: float | None = None
        self.is_unwritable = False
        self._troubles: list[Trouble] = []
        self.unread: dict[str, str] = {}  # sources and files that cannot be read now, with what is wrong
        self._watched_fds: set[int] = set()
        self._beat_at = clock.monotonic()
        self._hint_at = self._folders_at = self._listen_at = 0.0
        self._heard_hints = 0
        self._read_at = 0.0
        self.failed_commits = 0
        self.has_more = False
        self._tally: dict[Key, tuple[str, str]] = {}
        if parts.metrics is not None:
            self._count(parts.metrics, parts.store.each("incidents"))

    def trouble(self, trouble: Trouble) -> None:
        """A fault of the watching, told in the next turn."""
        self._troubles.append(trouble)

    def turn(self, *, settles_at_once: bool = False) -> bool:
        """Does what is due. True when there was something to do."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        heard, is_burst = self._read(now, monotonic, settles_at_once=settles_at_once), False
        for _ in range(BURST_POLLS if self.has_more else 0):
            is_burst = True
            self._parts.watch.hear(heard, (), now)
            heard = self._read(now, monotonic, settles_at_once=settles_at_once)
            if not self.has_more:
                break
        self._watch_folders(monotonic)
        self._collect(now, monotonic)
        self._beat(monotonic)
        troubles, self._troubles = self._troubles, []
        self._note_unread(troubles)
        changes = Changes()
        self._read_at = monotonic if heard or is_burst else self._read_at
        if heard or troubles or is_burst:
            self._take(self._parts.watch.feed(heard, troubles, now), changes, now)
        due = self._parts.watch.next_due()
        if due is None or due <= now:  # None: it has not begun, and listens from now on also to what never says a word
            self._take(self._parts.watch.tick(now), changes, now)
        self._diagnosed(changes, now, monotonic)
        for reading in self._parts.readings:
            reading.note(changes)
        self._parts.pruner.prune(self._parts.readings, now, monotonic, changes)
        self._deliver(changes, now, monotonic)
        if self._parts.metrics is not None:
            self._measure(self._parts.metrics, changes)
        return bool(heard or is_burst or troubles or not changes.is_empty)

    def conclude(self) -> None:
        """The watch ends here and looks again later: what waits only for company is told now."""
        now, changes = self._clock.now(), Changes()
        self._take(self._parts.watch.conclude(now), changes, now)
        self._deliver(changes, now, self._clock.monotonic())

    def command(self, command: Command) -> None:
        """Does what a person asks for, and writes it down. Raises StoreError with the reason of a refusal."""
        now = self._clock.now()
        changes = Changes()
        step = self._parts.watch.command(command, now)
        if isinstance(step, Refusal):
            raise StoreError(step.text)
        self._take(step, changes, now)
        self._deliver(changes, now, self._clock.monotonic())

    def measured(self, report: Mapping[str, object], incident: str | None, model: str | None) -> None:
        """Keeps the result of a diagnosis that a person ran. Raises StoreError where it is none."""
        try:
            end = end_of(report)
        except ValueError as error:
            raise StoreError(f"the watch did not keep it: {error}") from None
        now, changes = self._clock.now(), Changes()
        self._parts.diagnostics.keep(changes, report, now, incident=incident, model=model, is_by_hand=True)
        if incident is not None:
            self._take(self._parts.watch.ended(incident, end, now), changes, now)
        self._deliver(changes, now, self._clock.monotonic())

    @property
    def is_measuring(self) -> bool:
        """True while a diagnosis goes on."""
        return self._parts.diagnostics.is_busy

    @property
    def is_over(self) -> bool:
        """True when nothing more can come: standard input is the only source, and its writer closed it."""
        return all(isinstance(reading.follower, InputFollower) and reading.follower.is_ended for reading in self._parts.readings)

    def is_sending(self, within_s: float = 0.0) -> bool:
        """True while a message is under way, or is to go now or so soon."""
        due = self._parts.outbox.next_due(self._clock.now())
        return self._parts.courier.in_flight > 0 or (due is not None and due <= self._clock.now() + within_s)

    def progress(self) -> dict[str, list[dict[str, object]]]:
        """How far each source is read: the progress of its streams, by the name of the source."""
        return {
            reading.name: [{**asdict(one), "problem": one.problem or self.unread.get(one.stream)} for one in reading.follower.progress()]
            for reading in self._parts.readings
        }

    def wait(self, until_s: float | None = None) -> None:
        """Sleeps until something is due or a descriptor is ready, at most ``until_s``; serves what is ready."""
        self._watch_descriptors()
        timeout_s = 0.0 if self.has_more else self._due_in()
        for key, _ in self._selector.select(timeout_s if until_s is None else min(timeout_s, until_s)):
            if key.data is not None:
                key.data()

    def close(self, grace_s: float) -> None:
        """Gives out what waits, writes everything down, ends the senders."""
        now = self._clock.now()
        for result in self._parts.courier.close(grace_s):
            self._troubles += self._parts.outbox.settle(result.id, result.outcome, now)
        changes = Changes()
        for reading in self._parts.readings:
            reading.note(changes)
        self._note_outbox(changes)
        self._commit(changes, at_once=True)
        self.drop()

    def drop(self) -> None:
        """Lets everything go without writing anything down: what was not committed is read and decided again."""
        self._unwatch_descriptors()
        self._parts.diagnostics.close()
        self._parts.courier.close()
        if self._parts.wake is not None:
            self._parts.wake.close()
        for reading in self._parts.readings:
            reading.follower.close()

    def _read(self, now: float, monotonic: float, *, settles_at_once: bool) -> list[Heard]:
        heard: list[Heard] = []
        self.has_more = False
        for reading in self._parts.readings:
            found, troubles = reading.poll(now, monotonic)
            heard += found
            heard += reading.settle(monotonic, at_once=settles_at_once and not reading.follower.has_more)
            self._troubles += troubles
            self.has_more = self.has_more or reading.follower.has_more
        if self._parts.metrics is not None:
            self._parts.metrics.heard(heard)
        return heard

    def _note_unread(self, troubles: Iterable[Trouble]) -> None:
        for trouble in troubles:
            if trouble.is_over:
                self.unread.pop(trouble.subject, None)
            elif trouble.kind in (TroubleKind.SOURCE_MISSING, TroubleKind.UNREADABLE):
                self.unread[trouble.subject] = trouble.text

    def _collect(self, now: float, monotonic: float) -> None:
        """What became of messages under way."""
        for result in self._parts.courier.collect(monotonic):
            if self._parts.metrics is not None:
                self._parts.metrics.delivered(result.receiver, type(result.outcome).__name__.lower())
            self._troubles += self._parts.outbox.settle(result.id, result.outcome, now)

    def _diagnosed(self, changes: Changes, now: float, monotonic: float) -> None:
        """How a diagnosis ended: its result, the incident and the message of it are written down together."""
        found = self._parts.diagnostics.collect(monotonic)
        if found is None:
            return
        incident, ended = found
        if ended.report is not None:
            model = self._parts.diagnostics.model
            self._parts.diagnostics.keep(changes, ended.report, now, incident=incident, model=model, is_by_hand=False)
        self._take(self._parts.watch.ended(incident, ended.end, now), changes, now)

    def _beat(self, monotonic: float) -> None:
        """A sign of life for the external switch that alarms when it stops; only a loop that turns gives it."""
        if self._parts.heartbeat_s is not None and monotonic >= self._beat_at:
            self._beat_at = monotonic + self._parts.heartbeat_s
            self._parts.courier.submit(Job(f"beat-{monotonic:.0f}", HEARTBEAT, Task.PING), monotonic)

    def _take(self, step: Step, changes: Changes, now: float) -> None:
        """Puts what the watch decided into the changes and the outbox."""
        for name, value in step.memory.items():
            changes.put("memory", (name,), value)
        for name, row in step.incidents.items():
            changes.put("incidents", (name,), row)
        self._parts.series.add(step.measured, changes, self._unsaved, now)
        for name, over_at in step.forgotten.items():
            if over_at is None:
                changes.put("incidents", (name,), None)
            else:
                self._parts.pruner.over(name, over_at)
        self._parts.outbox.add([self._with_excerpts(notice) for notice in step.notices], now)
        self._parts.diagnostics.order(step.runs)

    def _deliver(self, changes: Changes, now: float, monotonic: float) -> None:
        """Writes the changes down, then sends what is due. A message that cannot be noted as being sent is sent all the same."""
        taken = self._parts.outbox.take(now)
        self._note_outbox(changes)
        self._commit(changes)
        self._parts.diagnostics.begin(monotonic)
        for notice in taken:
            message = message_of(notice, self._parts.receivers[notice.receiver].form, now=now, state_dir=self._state_dir)
            try:
                self._parts.courier.submit(Job(notice.id, notice.receiver, message=message), monotonic)
            except DeliveryError as error:
                self._troubles.append(Trouble(TroubleKind.UNDELIVERED, notice.receiver, str(error)))

    def _note_outbox(self, changes: Changes) -> None:
        for parcel in self._parts.outbox.changes():
            is_done = parcel.state in (ParcelState.SENT, ParcelState.DROPPED)
            changes.put("outbox", (parcel.id, parcel.receiver), None if is_done else parcel_to_json(parcel))
            if parcel.state is ParcelState.DEAD:
                self._parts.pruner.buried((parcel.id, parcel.receiver), parcel.made_at)

    def _commit(self, changes: Changes, *, at_once: bool = False) -> None:
        self._unsaved.merge(changes)
        if self._unsaved.is_empty or (self._retry_at is not None and not at_once and self._clock.monotonic() < self._retry_at):
            return
        try:
            self._parts.store.commit(self._unsaved)
        except StoreError as error:
            self._put_off(error)
            return
        self._unsaved = Changes()
        self._retry_at = self._failing_since = None
        if self.is_unwritable:
            self.is_unwritable = False
            self._troubles.append(Trouble(TroubleKind.STATE_UNWRITABLE, "state", "the state can be written again", is_over=True))

    def _put_off(self, error: StoreError) -> None:
        """Another program may hold the database for a moment; what lasts is told."""
        monotonic = self._clock.monotonic()
        self.failed_commits += 1
        self._retry_at = monotonic + RETRY_S
        self._failing_since = monotonic if self._failing_since is None else self._failing_since
        if not self.is_unwritable and monotonic - self._failing_since >= UNWRITABLE_S:
            self.is_unwritable = True
            self._troubles.append(Trouble(TroubleKind.STATE_UNWRITABLE, "state", _UNWRITABLE.format(error=error)))

    def _measure(self, metrics: "Metrics", changes: Changes) -> None:
        lag = {reading.name: sum(one.lag_bytes for one in reading.follower.progress()) for reading in self._parts.readings}
        metrics.turned(self.failed_commits, lag, self._parts.outbox.counts(), is_unwritable=self.is_unwritable)
        if changes.rows.get("incidents"):
            self._count(metrics, changes.rows["incidents"].items())

    def _count(self, metrics: "Metrics", rows: Iterable[tuple[Key, Json | None]]) -> None:
        """Counts the incidents anew, with what changed."""
        for key, row in rows:
            if isinstance(row, Mapping):
                self._tally[key] = str(row["state"]), str(row["severity"])
            else:
                self._tally.pop(key, None)
        metrics.incidents(Counter(self._tally.values()))

    def _with_excerpts(self, notice: Notice) -> Notice:
        return replace(notice, alerts=tuple(self._with_excerpt(alert) for alert in notice.alerts))

    def _with_excerpt(self, alert: Alert) -> Alert:
        """The alert with the lines around its newest event that can be read."""
        for place in reversed(alert.places):
            for reading in self._parts.readings:
                excerpt = reading.excerpt(place)
                if excerpt is not None:
                    return replace(alert, excerpt=excerpt)
        return alert

    def _due_in(self) -> float:
        """Seconds until something is due, at most the poll interval; more often only when there is work."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        rests = self._parts.wake is not None and not self._parts.wake.listens_to_growth
        is_busy = rests and monotonic - self._read_at < BUSY_S
        waits = [min(self._poll_interval_s, BUSY_POLL_S) if is_busy else self._poll_interval_s]
        waits += [wait for reading in self._parts.readings if (wait := reading.next_settle(monotonic)) is not None]
        watch_due, outbox_due, courier_due = self._parts.watch.next_due(), self._parts.outbox.next_due(now), self._parts.courier.next_due()
        diagnostics_due = self._parts.diagnostics.next_due()
        waits += [due - now for due in (watch_due, outbox_due) if due is not None]
        waits += [self._beat_at - monotonic] if self._parts.heartbeat_s is not None else []
        waits += [due - monotonic for due in (courier_due, diagnostics_due) if due is not None]
        waits += [0.0] if self._troubles else []
        return max(0.0, min(waits))

    def _watch_descriptors(self) -> None:
        """Lets the senders' pipes, the journal, standard input and the file system's hints wake the loop."""
        reading, writing = self._parts.courier.fds()
        reading += self._parts.diagnostics.fds()
        reading += [reading_.follower.fd for reading_ in self._parts.readings if reading_.follower.fd is not None]
        self._unwatch_descriptors()
        for fd in {*reading, *writing}:
            events = (selectors.EVENT_READ if fd in reading else 0) | (selectors.EVENT_WRITE if fd in writing else 0)
            self._selector.register(fd, events, None)
            self._watched_fds.add(fd)
        if self._parts.wake is not None:
            self._selector.register(self._parts.wake.fileno(), selectors.EVENT_READ, self._woken)
            self._watched_fds.add(self._parts.wake.fileno())

    def _woken(self) -> None:
        """A file grew, came or went. What grew is seen by every look; for what came there is one look in a while."""
        if self._parts.wake is not None and self._parts.wake.clear() and self._clock.monotonic() >= self._hint_at:
            self._hint_at = self._clock.monotonic() + HINT_S
            for reading in self._parts.readings:
                reading.follower.hint()

    def _watch_folders(self, monotonic: float) -> None:
        """Watches the folders of all sources, and revives what died."""
        if self._parts.wake is not None and monotonic >= self._folders_at:
            self._folders_at = monotonic + FOLDERS_S
            self._rest_or_listen(self._parts.wake, monotonic)
            folders = [folder for reading in self._parts.readings for folder in reading.follower.folders()]
            self._troubles += self._parts.wake.watch(folders)

    def _rest_or_listen(self, wake: "Wake", monotonic: float) -> None:
        """Hints of each write pay while writes are few; a log that is written all the time is looked at often instead."""
        hints, self._heard_hints = wake.heard - self._heard_hints, wake.heard
        if wake.listens_to_growth and hints > MAX_HINTS_PER_S * FOLDERS_S:
            wake.listens_to_growth, self._listen_at = False, monotonic + REST_S
        elif not wake.listens_to_growth and monotonic >= self._listen_at:
            wake.listens_to_growth = True

    def _unwatch_descriptors(self) -> None:
        for fd in self._watched_fds:
            self._selector.unregister(fd)
        self._watched_fds.clear()

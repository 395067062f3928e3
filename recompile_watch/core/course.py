"""The course of things: what an event, a signal, a person or mere time does to incidents, and whom it concerns."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from recompile_watch.core.agenda import Agenda
from recompile_watch.core.alerts import places_of
from recompile_watch.core.casebook import Casebook, Moment, Problem
from recompile_watch.core.codec import Json
from recompile_watch.core.commands import MAX_TEXT_CHARS, Acknowledge, Command, Refusal, Silence, Unsilence
from recompile_watch.core.conditions import Conditions
from recompile_watch.core.desks import Desks
from recompile_watch.core.diagnostic_queue import KEY as RUNS
from recompile_watch.core.diagnostic_queue import RunQueue
from recompile_watch.core.diagnostic_runs import RunEnd
from recompile_watch.core.events import TORCH_KINDS, Event
from recompile_watch.core.findings import NO_FINDING
from recompile_watch.core.heard import Heard, Trouble, TroubleKind
from recompile_watch.core.incidents import Acknowledgement, Incident, row_of
from recompile_watch.core.inhibition import explained_by, explainer_of
from recompile_watch.core.life import Life
from recompile_watch.core.lifecycle import State
from recompile_watch.core.moments import Clock
from recompile_watch.core.phases import MARK_KINDS
from recompile_watch.core.retelling import words_of
from recompile_watch.core.rules import SEVERITIES
from recompile_watch.core.runs import Run
from recompile_watch.core.shelves import KeyedParts
from recompile_watch.core.sight import NO_RULE, Sight
from recompile_watch.core.signals import Signal, signal_of
from recompile_watch.core.silences import Silences
from recompile_watch.core.watch_settings import WatchSettings
from recompile_watch.core.watched_phases import HAS_PHASE, WatchedPhases

HEALTHY = frozenset({"compile_mode", "profiler_report"})  # facts that only conditions judge
MAX_EXPLAINED = 50
CONDITIONS = "conditions/"
# Faults of the watching that a run tells when they begin and when they are over, and of which a new run knows nothing.
RESTATED = frozenset(
    {TroubleKind.UNREADABLE, TroubleKind.SOURCE_MISSING, TroubleKind.STATE_UNWRITABLE, TroubleKind.BAD_RELOAD, TroubleKind.WAKE_LOST}
)
RELOADED_KINDS = TORCH_KINDS | {"headroom_low", "late_recompiles"}


class Course:
    """Applies everything that happens to the incidents of a casebook."""

    def __init__(
        self, settings: WatchSettings, parts: Mapping[str, object], casebook: Casebook, silences: Silences, desks: Desks, clock: Clock,
        agenda: Agenda, is_market_open: Callable[[float], bool], host: str, runs: RunQueue,
    ) -> None:  # fmt: skip
        self._casebook, self._silences, self._desks, self._clock, self._agenda, self._host = casebook, silences, desks, clock, agenda, host
        self._runs = runs
        self._life = Life(settings.life)
        self._phases = WatchedPhases(parts)
        self._conditions = Conditions(settings, parts, is_market_open)

    @property
    def shelves(self) -> Iterator[KeyedParts]:
        """What is remembered besides incidents."""
        yield from (self._phases.marks, self._phases.streams)
        yield from self._conditions.shelves

    def take(self, event: Event, at: float, heard: Heard) -> None:
        """Takes one event. at: its moment by the log's time."""
        event = self._casebook.placed(event)
        phase = self._phases.of(event, at)
        sight = Sight(at, self._clock.wall, self._clock.steady, phase, heard.source, self._casebook.model_of(event))
        for signal in self._conditions.take(event, sight):
            self.signal(signal, event, at, is_backlog=heard.is_backlog)
        if event.kind == "model_load":
            self._reloaded(event)
        if event.kind in self._conditions.timed:
            self._agenda.set(CONDITIONS, self._conditions.due())
        if event.kind not in NO_FINDING and event.kind not in HEALTHY and self._conditions.matters(event, sight):
            self._see(self._casebook.problem(event), event, phase, Moment(at, self._clock.wall, self._clock.steady), heard.is_backlog)

    def judges(self, kind: str) -> bool:
        """False for a kind of event that comes to nothing here: it is no finding, tells no phase, and no condition takes it."""
        return kind not in NO_FINDING or kind in MARK_KINDS | HAS_PHASE or self._conditions.takes(kind)

    def takes_runs(self, kind: str) -> bool:
        """True when events of a kind may come as runs: they are no findings, and nothing must see each at its own time."""
        return kind in NO_FINDING and kind not in MARK_KINDS and self._conditions.takes_runs(kind)

    def due(self, kinds: Iterable[str]) -> float | None:
        """When time makes a condition say something that takes events of such kinds, on the steady clock."""
        return self._conditions.due(kinds)

    def concerns(self, signal: Signal) -> bool:
        """False for the end of what nobody noticed, or what is over already."""
        if not signal.is_over:
            return True
        incident = self._casebook.find((signal.key, signal.model))
        return incident is not None and incident.over_at is None

    def take_run(self, run: Run, source: str) -> Iterator[tuple[int, Signal]]:
        """Takes a run of such events; by index, which of them make a condition say what, for ``signal``."""
        yield from self._conditions.take_run(run, source)
        if run.kind in self._conditions.timed:
            self._agenda.set(CONDITIONS, self._conditions.due())

    def trouble(self, trouble: Trouble, now: float) -> None:
        """Takes a fault of the watching itself, or its end. now: also while old logs are read by their own time."""
        self._conditions.trouble(trouble)
        self.signal(signal_of(trouble), None, now)

    def signal(self, signal: Signal, event: Event | None, at: float, *, is_backlog: bool = False) -> None:
        """Takes what a condition, or the watching itself, says."""
        problem = (signal.key, signal.model)
        incident = self._casebook.find(problem)
        if signal.is_over:
            if incident is not None and incident.state is not State.RESOLVED:
                self._life.over(incident, self._clock.steady)
                self._settle(incident)
            return
        is_new = incident is None
        now = Moment(at, self._clock.wall, self._clock.steady)
        if incident is None:
            incident = self._casebook.open(problem, signal.severity, signal.line_no, now)
        returned = self._life.saw(incident, self._clock.steady)
        if event is not None:
            self._casebook.add(incident, event, now, None)
        else:
            incident.count += 1
            incident.until = max(incident.until, at)
            incident.timeline.add(at)
        if signal.symbol is not None and signal.symbol not in incident.symbols:
            incident.symbols.append(signal.symbol)
        if signal.is_lasting or is_new or returned or self._casebook.is_due(incident):
            self._casebook.tell(incident, signal)
        self._changed(incident, signal.severity, is_fresh=is_new or returned, is_backlog=is_backlog)

    def hear(self, heard: Sequence[Heard], now: float) -> None:
        """Takes which sources had lines, and that somebody watches at ``now``."""
        for signal in self._conditions.hear(heard, now):
            self.signal(signal, None, self._clock.wall)

    def ended(self, name: str, end: RunEnd) -> None:
        """Takes how the diagnosis of an incident ended."""
        incident = self._casebook.get(name)
        if incident is None:
            self._runs.forget(name)
        elif self._runs.ended(incident, end):
            self._desks.measured(incident)

    def run(self, key: str) -> None:
        """Does what is due under a key of the agenda."""
        if key == RUNS:
            self._runs.run()
            return
        sort, _, name = key.partition("/")
        match sort:
            case "incident":
                incident = self._casebook.get(name)
                if incident is not None:
                    self._review(incident)
            case "receiver":
                self._desks.run(name)
            case "silence":
                self._review_silence(name)
            case "conditions":
                for signal in self._conditions.run(self._clock.steady):
                    self.signal(signal, None, self._clock.wall)
        if sort != "receiver":
            self._agenda.set(CONDITIONS, self._conditions.due())

    def revise(self, kinds: Collection[str], receivers: Collection[str]) -> None:
        """At a start: ends what nothing in the configuration can tell of any more, and what an earlier run alone could end.

        kinds: of the events that the rules can make. receivers: those that are named.
        """
        for unjudged in self._conditions.revise():
            incident = self._casebook.find((unjudged.signal.key, unjudged.signal.model))
            if incident is not None:
                self._end(incident, unjudged.because)
        for incident in self._casebook:
            if incident.kind in RESTATED:
                self._life.doubted(incident, self._clock.steady)
                self._settle(incident)
            elif incident.kind == TroubleKind.UNDELIVERED and incident.subject not in receivers:
                self._end(incident, "the configuration no longer names the receiver")
            elif not incident.has_own_words and incident.kind not in kinds:
                self._end(incident, NO_RULE)

    def schedule(self) -> None:
        """Sets the whole agenda anew."""
        for incident in self._casebook:
            self._set(incident)
        for kept in list(self._silences.shelf.values()):
            self._agenda.set(f"silence/{kept.id}", self._clock.steady)
        self._agenda.set(CONDITIONS, self._conditions.due())
        self._desks.schedule()
        self._runs.schedule()

    def tell_backlog(self) -> None:
        """The old logs are read: one summary of what is still open."""
        found = [incident for incident in self._casebook if incident.is_backlog]
        for incident in found:
            incident.is_backlog = False
            self._casebook.touch(incident)
        self._desks.summarise([incident for incident in found if incident.state is not State.RESOLVED])
        for incident in found:
            self._settle(incident)

    def obey(self, command: Command) -> Refusal | None:
        """Does what a person asks; else why not."""
        match command:
            case Acknowledge():
                return self._acknowledge(command)
            case Silence():
                return self._silence(command)
            case Unsilence():
                found = self._silences.named(command.silence)
                if len(found) != 1:
                    return Refusal(f"{len(found) or 'no'} silences begin with '{command.silence[:40]}'; see recompile-watch incidents list")
                self._silences.end(found[0])
                self._unsilence(found[0].id)
                self._agenda.set(f"silence/{found[0].id}", self._silences.due(found[0]))
        return None

    def row(self, incident: Incident, *, is_fresh: bool = True) -> dict[str, Json]:
        """An incident as a row. is_fresh: its words are made anew."""
        finding = self._casebook.finding(incident) if is_fresh else None
        shown = incident
        if finding is not None:
            shown = replace(
                incident, words=words_of(finding, incident.count), severity=max(incident.severity, finding.severity, key=SEVERITIES.index)
            )
        return row_of(shown, places_of(self._casebook.events_of(incident)), self._host)

    def _see(self, problem: Problem, event: Event, phase: str | None, now: Moment, is_backlog: bool) -> None:
        incident = self._casebook.find(problem)
        is_new = incident is None
        if incident is None:
            incident = self._casebook.open(problem, "info", event.line_no, now)
        returned = self._life.saw(incident, now.steady)
        self._casebook.add(incident, event, now, phase)
        if is_new or returned or self._casebook.is_due(incident) or _is_to_repeat(incident, now.steady):
            severity = self._casebook.retell(incident)
            self._changed(incident, severity, is_fresh=is_new or returned, is_backlog=is_backlog)
        elif incident.explained_by is not None or incident.over_at is not None or is_warm_up_over(incident, phase):
            self._changed(incident, incident.severity, is_fresh=False, is_backlog=is_backlog)

    def _changed(self, incident: Incident, severity: str, *, is_fresh: bool, is_backlog: bool) -> None:
        """After an event: severity, silences, explanations, whom it concerns, and whether it is to be measured."""
        if is_fresh:
            incident.is_backlog = is_backlog
        worse = self._life.worsened(incident, severity)
        if is_fresh or worse:
            for name in self._silences.covering(incident.values(self._host)):
                self._life.silence(incident, name)
        cause = self._casebook.get(incident.explained_by) if incident.explained_by is not None else None
        if cause is None or cause.state is State.RESOLVED:
            incident.explained_by = None
            self._explain(incident)
        self._settle(incident)
        self._runs.consider(incident)

    def _explain(self, incident: Incident) -> None:
        cause = explainer_of(incident, self._casebook)
        pairs = [(cause, incident)] if cause is not None else []
        pairs += [(incident, effect) for effect in explained_by(incident, self._casebook) if effect.explained_by is None]
        for one, effect in pairs:
            effect.explained_by = one.id
            if effect.id not in one.explains and len(one.explains) < MAX_EXPLAINED:
                one.explains.append(effect.id)
                self._casebook.touch(one)
            self._casebook.touch(effect)

    def _free_effects(self, cause: Incident) -> None:
        """What lasts longer than the incident that explained it has another cause; events show that by coming again."""
        if cause.state is not State.RESOLVED:
            return
        for effect in (self._casebook.get(name) for name in cause.explains):
            if effect is not None and effect.explained_by == cause.id and effect.is_lasting:
                effect.explained_by = None
                self._explain(effect)
                self._settle(effect)

    def _settle(self, incident: Incident) -> None:
        """Tells whom it concerns, and sets when the incident is looked at next."""
        self._desks.consider(incident)
        self._casebook.touch(incident)
        self._set(incident)

    def _review(self, incident: Incident) -> None:
        if self._life.is_forgotten(incident, self._clock):
            self._casebook.forget(incident)
            return
        if self._life.review(incident, self._clock):
            self._casebook.touch(incident)
            self._free_effects(incident)
        self._desks.review(incident)
        self._set(incident)

    def _set(self, incident: Incident) -> None:
        dues = [due for due in (self._life.due(incident, self._clock), self._desks.due(incident)) if due is not None]
        self._agenda.set(f"incident/{incident.id}", min(dues, default=None))
        incident.repeat_at = self._desks.repeat_due(incident)

    def _end(self, incident: Incident, because: str) -> None:
        if incident.state is not State.RESOLVED:
            self._life.end(incident, self._clock, because)
            self._free_effects(incident)
            self._settle(incident)

    def _reloaded(self, event: Event) -> None:
        model = event.extra.get("model")
        for incident in self._casebook.of_kinds(sorted(RELOADED_KINDS)):
            if incident.state is not State.RESOLVED and (incident.model == model or (incident.model is None and event.source in incident.sources)):
                self._life.reloaded(incident, self._clock)
                self._free_effects(incident)
                self._settle(incident)

    def _acknowledge(self, command: Acknowledge) -> Refusal | None:
        found = self._casebook.named(command.incident)
        if len(found) != 1:
            return Refusal(f"{len(found) or 'no'} incidents begin with '{command.incident[:40]}'; see recompile-watch incidents list")
        if command.until is not None and command.until <= self._clock.wall:
            return Refusal("the acknowledgement would have ended already; name a later time")
        if found[0].state is State.RESOLVED:
            return Refusal(f"incident {found[0].id} is over; there is nothing to acknowledge")
        self._life.acknowledge(found[0], Acknowledgement(command.who[:MAX_TEXT_CHARS], command.why[:MAX_TEXT_CHARS], command.until))
        self._settle(found[0])
        return None

    def _silence(self, command: Silence) -> Refusal | None:
        if not command.matchers:
            return Refusal("a silence needs at least one matcher, such as kind=cudagraph_skip")
        if command.until <= self._clock.wall:
            return Refusal("the silence would have ended already; name a later time")
        kept = self._silences.add(command)
        self._cover(kept.id)
        self._agenda.set(f"silence/{kept.id}", self._silences.due(kept))
        return None

    def _cover(self, name: str) -> None:
        for incident in self._casebook:
            if incident.state is not State.RESOLVED and name in self._silences.covering(incident.values(self._host)):
                self._life.silence(incident, name)
                self._settle(incident)

    def _unsilence(self, name: str) -> None:
        for incident in self._casebook:
            if self._life.unsilence(incident, name):
                self._settle(incident)

    def _review_silence(self, name: str) -> None:
        kept = self._silences.shelf.get(name)
        if kept is None:
            return
        if self._silences.review(kept):
            if kept.is_active:
                self._cover(name)
            else:
                self._unsilence(name)
        if name in self._silences.shelf:
            self._agenda.set(f"silence/{name}", max(self._silences.due(kept), self._clock.steady + 1e-3))


def _is_to_repeat(incident: Incident, steady: float) -> bool:
    return incident.repeat_at is not None and steady >= incident.repeat_at


def is_warm_up_over(incident: Incident, phase: str | None) -> bool:
    """True when an incident that was expected while its model warmed up goes on afterwards."""
    return incident.kind == "recompile" and phase != "warmup" and not incident.told

"""The casebook: all incidents, found by what an event shows, with the events they remember and the words made of them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from recompile_watch.core.earlier import KINDS, Earlier
from recompile_watch.core.events import TORCH_KINDS, Event
from recompile_watch.core.findings import BREAK_KIND, LIMIT_KIND, Finding, decided, group_key
from recompile_watch.core.fingerprint import fingerprint
from recompile_watch.core.groups import SUBJECT_FIELDS, GroupKey
from recompile_watch.core.heard import TroubleKind
from recompile_watch.core.incidents import MAX_SYMBOLS, Head, Incident, Remembered, Tail, Words
from recompile_watch.core.lifecycle import State
from recompile_watch.core.pace import Pace
from recompile_watch.core.patterns import RESUMED
from recompile_watch.core.retelling import Retelling, words_of
from recompile_watch.core.rules import SEVERITIES
from recompile_watch.core.shelves import Shelf
from recompile_watch.core.signals import Signal

OWN_FAULTS = 200  # incidents beyond the bound: what ails the watching itself is always told
HEAD_EVENTS = 64  # as many guards as analyze keeps of one problem
TAIL_EVENTS = 8
MAX_HELD = 4_000  # events in all heads and tails together; beyond it each keeps few
FEW_EVENTS = 4
MAX_TEXT_CHARS = 2_000  # fingerprint and title look at no more
EACH_TOLD_ANEW = 16  # so many events are judged one by one, later ones at each doubling
MAX_RAW = 1_000
MAX_UNADVISED = 64
MAX_LIMITS = 64
MAX_NEAR = 64
MAX_BREAKS = 24  # other graph breaks that one is judged beside
MAX_LOOKED_AT = 200
MORE = GroupKey("more_problems", None, None, "")
MORE_TITLE = "More problems than can be told one by one"
_MORE_COST = "They are only counted here, and each may be as bad as the others; recompile-watch analyze tells all that stands in the log."
_FAULTS = frozenset(TroubleKind)
NOWHERE = ("", None)
_OVERWRITTEN = "cudagraph_overwritten"
_STORY_KINDS = ("recompile", LIMIT_KIND, "recompile_limit_error", "graph_break", "cudagraph_skip")
_NEW_WORDS = Words("", "")
Problem = tuple[GroupKey, str | None]


@dataclass(slots=True)
class Counter:
    """Numbers over all incidents. events: remembered so far. incidents: made so far. overflowed: problems without one of their own."""

    events: int = 0
    incidents: int = 0
    overflowed: int = 0


class _Signalled(NamedTuple):
    """What the advice of a condition is made of: what it said, and the events of its incident and of those related to it."""

    signal: Signal
    events: list[Remembered]
    related: list[Remembered]


@dataclass(frozen=True, slots=True)
class Moment:
    """When something is taken in. at: epoch seconds by the log's time. wall, steady: of the clocks."""

    at: float
    wall: float
    steady: float


class Casebook:
    """All incidents that are not forgotten."""

    def __init__(self, parts: Mapping[str, object], retelling: Retelling, host: str, most: int) -> None:
        """most: incidents that are kept, besides what ails the watching itself."""
        self._most = most
        self.shelf = Shelf("incident", Incident, parts, most + OWN_FAULTS)
        self._heads = Shelf("head", Head, parts, most + OWN_FAULTS)
        self._tails = Shelf("tail", Tail, parts, most + OWN_FAULTS)
        self._counter = Shelf("counter", Counter, parts, 1)
        self._retelling, self._judging, self._host = retelling, retelling.without_advice(), host
        self._by_problem: dict[Problem, str] = {}
        self._by_place: dict[tuple[str, str | None], dict[str, None]] = {}
        self._by_kind: dict[str, dict[str, None]] = {}
        self._unadvised: dict[str, _Signalled] = {}
        self._raw: dict[tuple[object, ...], Problem] = {}
        self._asked: tuple[Event | None, Problem] = None, (MORE, None)
        self.gone: dict[str, float | None] = {}  # forgotten since this was emptied last: when it was over, in epoch seconds, if it was
        self._held = sum(len(part.events) for shelf in (self._heads, self._tails) for part in shelf.values())
        self._telling: dict[tuple[object, object], Remembered] = {}  # by limit, or version of torch
        self._earlier = Earlier()
        for incident in sorted(self.shelf.values(), key=lambda one: one.number):
            self._index(incident)
        told = (item for incident in self.of_kinds(KINDS) for item in self.events_of(incident))
        for item in sorted(told, key=lambda one: one.n):
            self._earlier.see(item.event)
            self._learn(item)

    @property
    def shelves(self) -> tuple[Shelf[Incident], Shelf[Head], Shelf[Tail], Shelf[Counter]]:
        """Everything that is remembered."""
        return self.shelf, self._heads, self._tails, self._counter

    @property
    def counter(self) -> Counter:
        """The numbers so far."""
        return self._counter.get("all") or Counter()

    def __iter__(self) -> Iterator[Incident]:
        return iter(list(self.shelf.values()))

    def get(self, name: str) -> Incident | None:
        """The incident of an id."""
        return self.shelf.get(name)

    def named(self, start: str) -> list[Incident]:
        """The incidents whose id begins so."""
        exact = self.shelf.get(start)
        return [exact] if exact is not None else [one for one in self.shelf.values() if start and one.id.startswith(start)]

    def of_kinds(self, kinds: Iterable[str]) -> list[Incident]:
        """The incidents of some kinds, the oldest first."""
        return [one for kind in kinds for name in self._by_kind.get(kind, ()) if (one := self.shelf.get(name)) is not None]

    def near(self, incident: Incident) -> list[Incident]:
        """The incidents of the same function and those that name no function, the oldest first."""
        names = {*self._by_place.get(_place(incident.function, incident.file), ()), *self._by_place.get(NOWHERE, ())}
        return sorted((one for name in names if (one := self.shelf.get(name)) is not None), key=lambda one: one.number)

    def placed(self, event: Event) -> Event:
        """The event as ``analyze`` takes it: the decisive reason first, and what an earlier event said of the same happening."""
        return self._earlier.see(decided(event))

    def problem(self, event: Event) -> Problem:
        """Which problem an event shows; of each it is asked several times."""
        if event is not self._asked[0]:
            self._asked = event, self._problem(event)
        return self._asked[1]

    def _problem(self, event: Event) -> Problem:
        """The same, remembered: a storm repeats few of them very often."""
        event = _bounded(event)
        reason = event.reasons[0].text if event.reasons else None
        raw = (
            event.kind,
            event.function,
            event.function or event.line_no,
            event.file,
            reason,
            *(str(event.extra.get(name)) for name in (*SUBJECT_FIELDS, "refused")),
        )
        found = self._raw.get(raw)
        if found is None:
            if len(self._raw) >= MAX_RAW:
                self._raw.clear()
            found = self._raw[raw] = (group_key(event), self._retelling.model_of(event))
        return found

    def model_of(self, event: Event) -> str | None:
        """The model that an event is about."""
        return self.problem(event)[1]

    def find(self, problem: Problem) -> Incident | None:
        """The incident of a problem."""
        name = self._by_problem.get(problem)
        return self.shelf.get(name) if name is not None else None

    def open(self, problem: Problem, severity: str, line_no: int | None, now: Moment) -> Incident:
        """A new incident of a problem; the one that counts all further problems when there are too many."""
        if self._is_crowded(problem[0].kind) and not self._make_room(problem[0].kind):
            problem = (MORE, None)
            self._count(overflowed=1)
            known = self.find(problem)
            if known is not None:
                return known
        number = self._count(incidents=1).incidents
        key, model = problem
        name = fingerprint(key.kind, key.function, key.file, key.subject)
        incident = Incident(
            _id(self._host, name, model, number, now.at), number, name, key.kind, key.function, key.file, key.subject, model, line_no, severity,
            now.at, now.at, now.steady, now.steady, Pace(now.at), _NEW_WORDS,
        )  # fmt: skip
        self.shelf.put(incident.id, incident)
        self._index(incident)
        return incident

    def add(self, incident: Incident, event: Event, now: Moment, phase: str | None) -> None:
        """Counts one event of an incident, and remembers it if it is among the first or the latest."""
        incident.since, incident.until = min(incident.since, now.at), max(incident.until, now.at)
        incident.line_no = incident.line_no if incident.line_no is not None else event.line_no
        incident.timeline.add(now.at)
        is_refused = bool(event.extra.get("refused")) and not incident.has_own_words
        if is_refused:
            incident.refused += 1
        else:
            incident.count += 1
        if phase is not None and phase not in incident.phases:
            incident.phases.append(phase)
        symbol = event.extra.get("symbol")
        for found, values in ((symbol, incident.symbols), (event.source, incident.sources)):
            if isinstance(found, str) and found not in values and len(values) < MAX_SYMBOLS:
                values.append(found)
        self._remember(incident.id, event, is_refused=is_refused)
        self.shelf.put(incident.id, incident)

    def is_due(self, incident: Incident) -> bool:
        """True when an incident has to be judged again after its latest event."""
        if incident.key == MORE and incident.severity != SEVERITIES[-1]:
            *before, latest = self.events_of(incident)
            if all(item.event.kind != latest.event.kind for item in before):
                return True  # another kind of problem, which may be worse
        count = incident.count + incident.refused
        return count <= EACH_TOLD_ANEW or count & (count - 1) == 0

    def finding(self, incident: Incident) -> Finding | None:
        """What ``analyze`` would say of an incident that is made of events."""
        return self._finding(incident, self._retelling)

    def _finding(self, incident: Incident, retelling: Retelling) -> Finding | None:
        head, tail = self._heads.get(incident.id), self._tails.get(incident.id)
        if head is None or incident.has_own_words:
            return None
        own = head.events + (tail.events if tail else [])
        if incident.key == MORE:
            finding = retelling.finding_of(own[-1])
            return None if finding is None else replace(finding, title=_more(finding.title), consequence=_MORE_COST, model=None, advice=())
        return retelling.finding(incident, own, self._related(incident), tail.left_out if tail else 0)

    def retell(self, incident: Incident) -> str:
        """Makes the words of an incident anew; its severity by them."""
        finding = self._finding(incident, self._judging)  # the advice is made when it is told: it is long
        if finding is None:
            return incident.severity
        incident.words = words_of(finding, incident.count)
        incident.model = incident.model or finding.model
        self.shelf.put(incident.id, incident)
        return finding.severity

    def words(self, incident: Incident) -> Words:
        """The words of an incident as they are now, with its advice."""
        self.advise()
        finding = self.finding(incident)
        return incident.words if finding is None else words_of(finding, incident.count)

    def tell(self, incident: Incident, signal: Signal) -> None:
        """Takes over the words of a condition; ``advise`` adds the advice, for it may be told again before anybody asks."""
        if incident.key == MORE:
            incident.words = Words(_more(signal.title), _MORE_COST)
            return
        incident.words = Words(signal.title, signal.cost, signal.cause)
        incident.has_own_words, incident.is_lasting = True, signal.is_lasting
        self._unadvised[incident.id] = _Signalled(signal, self.events_of(incident), list(self._related(incident)))
        self.shelf.put(incident.id, incident)
        if len(self._unadvised) >= MAX_UNADVISED:
            self.advise()

    def advise(self) -> None:
        """Adds the advice to the words of the conditions that were told, by what was known of each when it was told last."""
        for name, signalled in self._unadvised.items():
            incident = self.shelf.get(name)
            if incident is not None:
                incident.words = replace(incident.words, advice=self._retelling.advice_of_signal(*signalled))
        self._unadvised.clear()

    def events_of(self, incident: Incident) -> list[Remembered]:
        """The events that an incident remembers."""
        head, tail = self._heads.get(incident.id), self._tails.get(incident.id)
        return (head.events if head else []) + (tail.events if tail else [])

    def touch(self, incident: Incident) -> None:
        """Says that an incident was changed in place."""
        self.shelf.put(incident.id, incident)

    def forget(self, incident: Incident) -> None:
        """Drops an incident and its events."""
        self.gone[incident.id] = incident.resolved_at if incident.state is State.RESOLVED else None
        self._held -= len(self.events_of(incident))
        for shelf in (self.shelf, self._heads, self._tails):
            shelf.drop(incident.id)
        self._by_problem.pop((incident.key, incident.model), None)
        self._by_kind.get(incident.kind, {}).pop(incident.id, None)
        place = _place(incident.function, incident.file)
        self._by_place.get(place, {}).pop(incident.id, None)
        if not self._by_place.get(place):
            self._by_place.pop(place, None)

    def _index(self, incident: Incident) -> None:
        self._by_problem[incident.key, incident.model] = incident.id
        self._by_kind.setdefault(incident.kind, {})[incident.id] = None
        if incident.function is not None or incident.kind in _STORY_KINDS:
            self._by_place.setdefault(_place(incident.function, incident.file), {})[incident.id] = None

    def _remember(self, name: str, event: Event, *, is_refused: bool) -> None:
        item = Remembered(self._count(events=1).events, _bounded(event))
        self._learn(item)
        head = self._heads.get(name) or Head()
        if len(head.events) < (HEAD_EVENTS if self._held < MAX_HELD else FEW_EVENTS):
            self._held += 1
            head.events.append(item)
            self._heads.put(name, head)
            return
        tail = self._tails.get(name) or Tail()
        tail.events.append(item)
        self._held += 1
        while len(tail.events) > (TAIL_EVENTS if self._held < MAX_HELD else 1):
            gone = tail.events.pop(0).event
            self._held -= 1
            tail.left_out += 0 if gone.extra.get("refused") else 1
        self._tails.put(name, tail)

    def _learn(self, item: Remembered) -> None:
        """Keeps the latest event that printed each recompile limit, or shows a version of torch: advice to any function may depend on it."""
        event = item.event
        is_limit = event.kind == LIMIT_KIND
        key = (event.extra.get("limit"), event.extra.get("limit_name")) if is_limit else ("torch", event.extra.get("torch"))
        if (is_limit or key[1] is not None) and (key in self._telling or len(self._telling) < MAX_LIMITS):
            self._telling[key] = item

    def _related(self, incident: Incident) -> Iterator[Remembered]:
        """Events of other incidents that belong to the story of this one."""
        place = _place(incident.function, incident.file)
        places = [place] if place != NOWHERE else []
        if not places and incident.kind == "recompile_limit_error":  # torch warns of the function, then raises without naming it
            places = [_place(hit.function, hit.file) for hit in self.of_kinds(("recompile_limit_hit",))[:2]]
        if incident.kind == LIMIT_KIND:
            yield from (item for error in self.of_kinds(("recompile_limit_error",)) if error is not incident for item in self.events_of(error))
        for name in (name for place in places for name in list(self._by_place.get(place, ()))[-MAX_NEAR:]):
            other = self.shelf.get(name)
            if other is not None and other is not incident and other.kind in _STORY_KINDS:
                yield from self.events_of(other)
        if incident.kind == BREAK_KIND:  # many of a process are worse than one, and a package with many is left out as a whole
            others = (one for one in self.of_kinds((BREAK_KIND,))[-MAX_BREAKS:] if one is not incident)
            yield from (item for other in others for item in self.events_of(other)[:EACH_TOLD_ANEW])
        if incident.kind in TORCH_KINDS or incident.has_own_words:
            yield from self._telling.values()
        elif incident.kind == "forecast_failure":
            for other in self.of_kinds(("cudagraph_overwritten_error", "forecast_failure")):
                if other.kind != "forecast_failure" or other.words.cause == _OVERWRITTEN:
                    yield from self.events_of(other)[:1]

    def _is_crowded(self, kind: str) -> bool:
        """True when there is no place for one more of a kind: one kind fills half of the places, so that it hides no other."""
        return kind not in _FAULTS and (len(self.shelf) >= self._most or len(self._by_kind.get(kind, ())) >= self._most / 2)

    def _make_room(self, kind: str) -> bool:
        """Forgets what matters least among the incidents that changed longest ago; False when all of them matter."""
        is_full = len(self.shelf) >= self._most
        for found, incident in enumerate(self.shelf.values()):
            if not is_full and incident.kind != kind:
                continue
            if incident.state is State.RESOLVED or incident.severity == "info":
                self.forget(incident)
                return True
            if found >= MAX_LOOKED_AT:
                break
        return False

    def _count(self, *, events: int = 0, incidents: int = 0, overflowed: int = 0) -> Counter:
        counter = self.counter
        counter.events += events
        counter.incidents += incidents
        counter.overflowed += overflowed
        self._counter.put("all", counter)
        return counter


def _bounded(event: Event) -> Event:
    """The event with its long texts cut: what is remembered must not grow with what a line holds."""
    texts = [reason.text for reason in event.reasons]
    if max(map(len, texts), default=0) <= MAX_TEXT_CHARS and not any(map(_is_long, event.extra.values())):
        return event
    reasons = tuple(reason._replace(text=reason.text[:MAX_TEXT_CHARS]) for reason in event.reasons)
    extra = {name: str(value)[:MAX_TEXT_CHARS] if _is_long(value) else value for name, value in event.extra.items()}
    return event._replace(reasons=reasons, extra=extra)


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > MAX_TEXT_CHARS


def _more(title: str) -> str:
    return f"{MORE_TITLE}; the latest: {title}"


def _place(function: str | None, file: str | None) -> tuple[str, str | None]:
    """A function and its file; the code behind a graph break belongs to the function that was cut."""
    if function is None:
        return NOWHERE
    resumed = RESUMED.search(function)
    return (resumed["name"] if resumed else function, file)


def _id(host: str, name: str, model: str | None, number: int, at: float) -> str:
    return hashlib.sha256(f"{host}\0{name}\0{model}\0{number}\0{at!r}".encode("utf-8", "replace")).hexdigest()[:12]

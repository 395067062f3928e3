"""Incidents: one continuing problem each, as it is remembered and as a row for whoever asks."""

from dataclasses import dataclass, field

from recompile_watch.core.advice import Advice
from recompile_watch.core.codec import Json, to_json
from recompile_watch.core.diagnostic_runs import DiagnosticRun, run_row
from recompile_watch.core.events import Event
from recompile_watch.core.groups import GroupKey
from recompile_watch.core.lifecycle import State
from recompile_watch.core.matchers import Values
from recompile_watch.core.notices import Place
from recompile_watch.core.pace import Pace

MAX_SYMBOLS = 50
MAX_PROCESSES = 64
MAX_TURNS = 16
Origin = tuple[str, int | None, int | None]


@dataclass(slots=True)
class Told:
    """What a receiver was told of an incident. at: on the steady clock. is_over: also that it is resolved."""

    severity: str
    at: float
    is_over: bool = False
    is_flapping: bool = False
    is_escalated: bool = False


@dataclass(slots=True)
class Acknowledgement:
    """A person knows. until: epoch seconds, None until it is resolved."""

    who: str
    why: str
    until: float | None


@dataclass(slots=True)
class Words:
    """What is said of an incident; the same as ``analyze`` says of the same events. made_for: count it was made for."""

    title: str
    cost: str
    cause: str | None = None
    phase: str = "unknown"
    entries: int | None = None
    limit: int | None = None
    advice: tuple[Advice, ...] = ()
    made_for: int = 0


@dataclass(slots=True)
class Incident:
    """One problem. since, until: epoch seconds of the first and latest event by the log's time.

    seen, opened: when it was last seen and (re)opened, on the steady clock. count: its events, without the recompiles
    that a limit refused (``refused``). is_lasting: a condition that goes on without further events until it is over. has_own_words: a
    condition brought its words along; they are not made of its events.
    over_at: since when its condition is gone, on the steady clock. loads: loads of its model since it was last seen.
    turns: when it came back, on the steady clock. explained_by: the id of the incident that explains it.
    is_backlog: nobody was told because it lies in the logs written before the watch began. repeat_at: when
    another event of it may be told again, on the steady clock. number: of all incidents, in the order in which they were made.
    run: its diagnosis; None where none was asked for.
    """

    id: str
    number: int
    fingerprint: str
    kind: str
    function: str | None
    file: str | None
    subject: str
    model: str | None
    line_no: int | None
    severity: str
    since: float
    until: float
    opened: float
    seen: float
    timeline: Pace
    words: Words
    state: State = State.OPEN
    count: int = 0
    refused: int = 0
    is_lasting: bool = False
    has_own_words: bool = False
    over_at: float | None = None
    resolved_at: float | None = None
    ended_because: str | None = None
    loads: int = 0
    turns: list[float] = field(default_factory=list)
    is_flapping: bool = False
    explained_by: str | None = None
    explains: list[str] = field(default_factory=list)
    silences: list[str] = field(default_factory=list)
    acknowledgement: Acknowledgement | None = None
    is_backlog: bool = False
    repeat_at: float | None = None
    phases: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    told: dict[str, Told] = field(default_factory=dict)
    run: DiagnosticRun | None = None

    @property
    def key(self) -> GroupKey:
        """What its events have in common."""
        return GroupKey(self.kind, self.function, self.file, self.subject)

    def values(self, host: str) -> Values:
        """Its fields, for matchers."""
        one = {
            "id": self.id, "fingerprint": self.fingerprint, "kind": self.kind, "severity": self.severity, "model": self.model,
            "function": self.function, "file": self.file, "cause": self.words.cause, "host": host,
        }  # fmt: skip
        return {**{name: (value,) for name, value in one.items() if value}, "symbol": self.symbols, "source": self.sources}


@dataclass(slots=True)
class Remembered:
    """An event that an incident remembers. n: its number among all events of incidents, so that they have an order."""

    n: int
    event: Event


@dataclass(slots=True)
class Head:
    """The first events of an incident."""

    events: list[Remembered] = field(default_factory=list)


@dataclass(slots=True)
class Tail:
    """The latest events of an incident, without those of its head. left_out: how many lay between."""

    events: list[Remembered] = field(default_factory=list)
    left_out: int = 0


def row_of(incident: Incident, places: tuple[Place, ...], host: str) -> dict[str, Json]:
    """The incident as a JSON object: what ``incidents list`` and ``incidents show`` tell."""
    words, ack = incident.words, incident.acknowledgement
    return {
        "id": incident.id, "fingerprint": incident.fingerprint, "kind": incident.kind, "severity": incident.severity, "state": incident.state.value,
        "title": words.title, "consequence": words.cost, "cause": words.cause, "phase": words.phase,
        "headroom": None if words.entries is None else {"entries": words.entries, "limit": words.limit},
        "model": incident.model, "function": incident.function, "file": incident.file, "line_no": incident.line_no, "host": host,
        "sources": list(incident.sources), "symbols": list(incident.symbols), "since": incident.since, "until": incident.until,
        "count": incident.count, "refused": incident.refused, "counts": list(incident.timeline.counts),
        "counts_width_s": incident.timeline.width_s, "resolved_at": incident.resolved_at, "ended_because": incident.ended_because,
        "acknowledged": None if ack is None else {"who": ack.who, "why": ack.why, "until": ack.until}, "silences": list(incident.silences),
        "explained_by": incident.explained_by, "explains": list(incident.explains), "is_flapping": incident.is_flapping,
        "is_backlog": incident.is_backlog, "told": sorted(incident.told), "advice": to_json(words.advice), "places": to_json(places),
        "diagnosis": run_row(incident.run),
    }  # fmt: skip

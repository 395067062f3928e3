"""What a notice says of an incident."""

import hashlib
from collections.abc import Iterable, Sequence

from recompile_watch.core.advice import Advice
from recompile_watch.core.candidates import EAGER, advised_candidate
from recompile_watch.core.evidence import evidence_text
from recompile_watch.core.incidents import Incident, Remembered
from recompile_watch.core.notices import Alert, NoticeSort, Place
from recompile_watch.core.units import duration_text
from recompile_watch.core.watch_settings import Receiver

MAX_PLACES = 5
MAX_EXPLAINED = 10
_TO_EAGER = ("disable_compile_for_model", "disable_compile_process")


def places_of(events: Sequence[Remembered]) -> tuple[Place, ...]:
    """Where the first, the latest and up to three events between them stand."""
    if len(events) > MAX_PLACES:
        inner = events[1:-1]
        events = [events[0], *(inner[i * len(inner) // (MAX_PLACES - 2)] for i in range(MAX_PLACES - 2)), events[-1]]
    return tuple(Place(one.event.source, one.event.line, one.event.offset, evidence_text(one.event)) for one in events)


def alert_of(incident: Incident, places: tuple[Place, ...], explains: Iterable[str], why: str) -> Alert:
    """An incident as a notice tells it. explains: titles of the incidents that it explains."""
    words = incident.words
    return Alert(
        incident.id, incident.fingerprint, incident.kind, incident.severity, incident.state.value, words.title, words.cost, why, incident.model,
        incident.function, incident.file, incident.line_no, incident.since, incident.until, incident.count or incident.refused,
        tuple(incident.timeline.counts), places, tuple(incident.symbols), _advice(incident), explains=tuple(explains)[:MAX_EXPLAINED],
        measured=None if incident.run is None else incident.run.text,
    )  # fmt: skip


def _advice(incident: Incident) -> tuple[Advice, ...]:
    """The advice, first what was measured to be best; where that is eager, without what lost against it."""
    advice, function = incident.words.advice, incident.function
    choose = incident.run.measured.choose if incident.run is not None and incident.run.measured is not None else None
    if choose is None:
        return advice
    measured = [(one, advised_candidate(one.name, one.apply, function)) for one in advice]
    if choose == EAGER:
        return tuple(sorted((one for one, candidate in measured if candidate is None), key=lambda one: one.remedy not in _TO_EAGER))
    first = tuple(one for one, candidate in measured if candidate is not None and candidate.name == choose)
    return (*first, *(one for one in advice if one not in first))


def why_told(receiver: Receiver, incident: Incident, sort: NoticeSort) -> str:
    """Why a receiver gets it, in words."""
    chosen = f"{receiver.name} takes {receiver.min_severity}" + ("" if receiver.min_severity == "critical" else " and worse")
    if receiver.matchers:
        chosen += " with " + ", ".join(map(str, receiver.matchers))
    return f"{chosen}; {_reason(receiver, incident, sort)}"


def notice_id(host: str, receiver: str, number: int, made_at: float) -> str:
    """The name of a receiver's n-th notice, the same for each attempt to deliver it."""
    return hashlib.sha256(f"{host}\0{receiver}\0{number}\0{made_at!r}".encode("utf-8", "replace")).hexdigest()[:16]


def _reason(receiver: Receiver, incident: Incident, sort: NoticeSort) -> str:
    told = incident.told.get(receiver.name)
    match sort:
        case NoticeSort.OPENED if told is not None:
            return "it was over and has come back"
        case NoticeSort.OPENED:
            return "it is new"
        case NoticeSort.WORSE:
            return f"it was {told.severity if told else 'milder'} when you were told"
        case NoticeSort.REPEATED:
            return f"it still goes on, {duration_text(receiver.repeat_interval_s)} after you were told"
        case NoticeSort.ESCALATED:
            return "nobody acknowledged it"
        case NoticeSort.RESOLVED:
            return f"it is over: {incident.ended_because or 'nothing of it was seen for long enough'}"
        case NoticeSort.FLAPPING:
            return f"it came back {len(incident.turns)} times in a short time; you hear of it again when it stays away"
        case NoticeSort.MEASURED:
            return "you were told of it, and it was measured since"
        case NoticeSort.DIGEST:
            return "your daily digest of what is open and was not told by itself"
        case NoticeSort.BACKLOG:
            return "it stands in the logs written before the watch began"
    return "you asked for it"

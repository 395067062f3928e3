"""What is told to a receiver: plain values, from which every form of a message is made."""

from dataclasses import dataclass
from enum import StrEnum

from recompile_watch.core.advice import Advice


class NoticeSort(StrEnum):
    """Why a receiver gets a notice."""

    OPENED = "opened"
    WORSE = "worse"  # the same incidents at a higher severity
    REPEATED = "repeated"  # still going on after the repeat interval
    ESCALATED = "escalated"  # nobody acknowledged it
    RESOLVED = "resolved"
    FLAPPING = "flapping"  # comes and goes; told once
    DIGEST = "digest"
    BACKLOG = "backlog"  # one summary of what the logs held before the watch began
    MEASURED = "measured"  # the diagnostic's result
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a log around an event. first_line: 1-based number of the first. matched: indices into ``lines``."""

    source: str
    first_line: int
    lines: tuple[str, ...]
    matched: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands in a log: line is 1-based, offset in bytes."""

    source: str
    line: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Alert:
    """What a notice says of one incident.

    incident: its id, unique for ever. fingerprint: the id of the finding. state: ``open``, ``acknowledged``,
    ``silenced`` or ``resolved``. since, until: epoch seconds of its first and latest event by the log's own time, else
    by the time of reading. count: events so far; counts: the events in equal stretches of ``since`` to ``until``, for
    a picture. what: one sentence, the title. cost: one sentence, the consequence. why: why the receiver gets it.
    excerpt: the lines around the newest event, None where they cannot be read. explains: titles of incidents that this
    one explains and that are therefore not told. advice: the remedies, the one to do first.
    """

    incident: str
    fingerprint: str
    kind: str
    severity: str
    state: str
    what: str
    cost: str
    why: str
    model: str | None
    function: str | None
    file: str | None
    line_no: int | None
    since: float
    until: float
    count: int
    counts: tuple[int, ...]
    places: tuple[Place, ...]
    symbols: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    excerpt: Excerpt | None = None
    explains: tuple[str, ...] = ()
    measured: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """One message to one receiver. id: unique; the same for each attempt to deliver it.

    made_at: epoch seconds. alerts: the incidents of one group, worst first, at most ``MAX_ALERTS`` (a digest after an
    outage may hold more); left_out counts the others. host: where the watch runs. possible_duplicate: it may have been
    delivered already, just before the watch was killed. note: what to know of the whole notice, one sentence, such as
    which receiver did not take it.
    """

    id: str
    receiver: str
    sort: NoticeSort
    severity: str
    made_at: float
    host: str
    alerts: tuple[Alert, ...]
    left_out: int = 0
    possible_duplicate: bool = False
    note: str = ""


MAX_ALERTS = 10

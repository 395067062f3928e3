"""Findings as the HTML report shows them: everything is text that is safe to show, in the order in which it is shown."""

from dataclasses import dataclass

from recompile_watch.core.advice import Advice
from recompile_watch.core.decision import Decision
from recompile_watch.core.evidence import shorter_paths
from recompile_watch.core.findings import Evidence, Finding
from recompile_watch.report.blocks import Block, title_of
from recompile_watch.report.safe import safe
from recompile_watch.report.times import Clock
from recompile_watch.report.words import PHASES, list_text, other_text, told_apart, unsaid, where_text

MAX_ENTRIES = 20
_MAX_APPLY = 4096
_MAX_PATH = 400


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way to mend it. apply: exactly what to paste. facts: name and text."""

    title: str
    apply: str
    kind: str
    restart: bool
    facts: tuple[tuple[str, str], ...]
    docs: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding. facts: where, how often, when and by whom, in short. mark: against the baseline."""

    severity: str
    title: str
    count: int
    facts: tuple[str, ...]
    mark: str
    accepted: str
    consequence: str
    places: tuple[tuple[str, str], ...]
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One block of findings. head: what is shown at once. entries: its findings one by one; left_off: how many more."""

    head: Entry
    headroom: tuple[int, int] | None
    entries: tuple[Entry, ...]
    left_off: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The mode for one model."""

    model: str
    mode: str
    confidence: str
    because: tuple[str, ...]
    against: tuple[str, ...]
    settings: str
    revisit: tuple[str, ...]


class Cards:
    """Makes cards. names: how each source is called in short."""

    def __init__(self, clock: Clock, names: dict[str, str]) -> None:
        self._clock, self._names = clock, names

    def card(self, block: Block) -> Card:
        """A block that matters."""
        head = block.head
        apart = told_apart(block) or (list(block.findings) if block.others else [])
        places = () if head in apart else self._places(head)
        advice = next((finding.advice for finding in block.findings if finding.advice), ())
        entry = Entry(
            head.severity, safe(title_of(block)), block.count, self._facts(head, block), safe(head.baseline or "", 20), _accepted(head),
            safe(head.consequence), places, tuple(map(_remedy, advice)),
        )  # fmt: skip
        room = head.headroom
        headroom = (room.entries, room.limit) if room is not None and room.limit is not None else None
        entries = tuple(self.entry(finding, other_text(finding), advice) for finding in apart[:MAX_ENTRIES])
        return Card(entry, headroom, entries, max(0, len(apart) - MAX_ENTRIES))

    def entry(self, finding: Finding, title: str | None = None, said: tuple[Advice, ...] = ()) -> Entry:
        """One finding by itself; advice that was ``said`` already is not said again."""
        remedies = tuple(_remedy(advice) for advice in finding.advice) if finding.advice != said else ()
        return Entry(
            finding.severity, title or safe(finding.title), finding.count, self._facts(finding, Block(finding, ())), safe(finding.baseline or "", 20),
            _accepted(finding), safe(finding.consequence), self._places(finding), remedies,
        )  # fmt: skip

    def _facts(self, finding: Finding, block: Block) -> tuple[str, ...]:
        span = self._clock.span_of((one.first_time, one.last_time) for one in block.findings)
        facts = (
            where_text(finding), safe(finding.model or "", 30), span, PHASES.get(finding.phase, ""),
            f"rank {list_text(finding.ranks)}" if finding.ranks else "", f"pid {list_text(finding.processes)}" if finding.processes else "",
            f"{finding.compile_seconds:.1f} s compiling" if finding.compile_seconds else "",
            f"{finding.refused} refused by the limit" if finding.refused else "",
        )  # fmt: skip
        return tuple(fact for fact in facts if fact)

    def _places(self, finding: Finding) -> tuple[tuple[str, str], ...]:
        """Where in the log it stands, and what stands there."""
        return tuple((self._place(place), shorter_paths(unsaid(safe(place.text)))) for place in finding.evidence)

    def _place(self, place: Evidence) -> str:
        if len(self._names) == 1:
            return f"line {place.line}"
        return f"{safe(self._names.get(place.source, place.source), 60)}:{place.line}"


def choice(decision: Decision) -> Choice:
    """A decision as it is shown."""
    return Choice(
        safe(decision.model), decision.mode, safe(decision.confidence), tuple(map(safe, decision.because)), tuple(map(safe, decision.against)),
        "\n".join(safe(line, _MAX_APPLY) for line in decision.settings), tuple(safe(one.text) for one in decision.revisit_when),
    )  # fmt: skip


def _remedy(advice: Advice) -> Remedy:
    facts = (
        ("Where", safe(advice.where, _MAX_PATH)), ("Expect", safe(advice.expect)), ("torch", safe(advice.torch, 60)),
        ("Known", safe(advice.verified)), ("Caution", safe(advice.caution or "")),
    )  # fmt: skip
    docs = advice.docs if advice.docs and advice.docs.startswith("https://") else None
    return Remedy(
        safe(advice.title), safe(advice.apply, _MAX_APPLY), safe(advice.kind, 30), advice.restart, tuple(fact for fact in facts if fact[1]), docs
    )


def _accepted(finding: Finding) -> str:
    return f"accepted until {finding.accepted_until}" if finding.accepted_until else ""

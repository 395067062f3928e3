"""Everything remembered of one problem, in bounded memory, so that two parts of a log add up exactly."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recompile_watch.core.compile_id import without_attempt
from recompile_watch.core.events import Event, Reason
from recompile_watch.core.phases import Stream

MAX_EVIDENCE = 5
MAX_SEEN = 64
MAX_PROCESSES = 256
MAX_NAMES = 200
MAX_GUARDS = 64
# Besides kind, place and guard: all that a subject is made of.
SUBJECT_FIELDS = (
    "limit_name", "stance", "exception", "symbol", "model", "cause", "message", "compiled", "mode", "setting", "operation", "raised",
)  # fmt: skip
_VALUES = ("limit", "limit_name", "instances", "distinct_sizes", "skipped", "not_resumed", "called_from", "entered_at")
_Broken = tuple[str, int | None, int | None, str | None, int | None]
Process = tuple[str, int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the events of a group have in common. subject: the normalised guard, reason, symbol or model."""

    kind: str
    function: str | None
    file: str | None
    subject: str


@dataclass(slots=True)
class TimeSpan:
    """The earliest and the latest time, as printed; logs of several sources are not in order of time."""

    first: str | None = None
    last: str | None = None
    _earliest: datetime | None = None
    _latest: datetime | None = None

    def add(self, text: str | None, at: datetime | None) -> None:
        """Takes one time: its text, and the moment it names."""
        if text is None or at is None:
            return
        if self._earliest is None or at < self._earliest:
            self.first, self._earliest = text, at
        if self._latest is None or at > self._latest:
            self.last, self._latest = text, at

    def merge(self, other: "TimeSpan") -> None:
        """Takes in the times of another span."""
        self.add(other.first, other._earliest)
        self.add(other.last, other._latest)


@dataclass(slots=True)
class Group:
    """The events of one problem.

    count: events, without the recompiles that a limit refused (``refused``). worst_process: most events in one
    process. inherited: streams whose phase only the part of the log before this one can tell. seconds: what its
    compiles took, where the log says so. values: numbers such as the limit, the latest that was printed.
    guards: the newest guard of the first events of its first process. widest: the reasons of the event with most.
    breaks: of graph breaks each one, and whether torch could resume behind it.
    """

    key: GroupKey
    first: Event
    last: Event
    count: int = 0
    refused: int = 0
    span: TimeSpan = field(default_factory=TimeSpan)
    ranks: set[int] = field(default_factory=set)
    pids: set[int] = field(default_factory=set)
    symbols: set[str] = field(default_factory=set)
    processes: dict[Process, int] = field(default_factory=dict)
    phases: set[str] = field(default_factory=set)
    inherited: set[Stream] = field(default_factory=set)
    values: dict[str, object] = field(default_factory=dict)
    seconds: float | None = None
    guards: list[Reason] = field(default_factory=list)
    widest: tuple[Reason, ...] = ()
    breaks: dict[_Broken, bool] = field(default_factory=dict)
    _sample: list[tuple[int, str, int, Event]] = field(default_factory=list)

    @property
    def starts(self) -> int:
        """How many processes of one rank it happened in: one for each start of the program, as far as the log tells process ids."""
        of_rank: dict[int | None, set[int]] = {}
        for _, rank, pid, _ in self.processes:
            if pid is not None:
                of_rank.setdefault(rank, set()).add(pid)
        return max(map(len, of_rank.values()), default=0)

    @property
    def has_raised(self) -> bool:
        """True when error_on_recompile made an exception of its first or its latest recompile."""
        return any(event.extra.get("raised") for event in (self.first, self.last))

    def add(self, event: Event, at: datetime | None) -> None:
        """Takes one event, in log order."""
        self.last = event
        if event.extra.get("refused"):
            self.refused += 1
        else:
            self.count += 1
            process = (event.source, event.rank, event.pid, event.line_no)
            if process in self.processes or len(self.processes) < MAX_PROCESSES:
                self.processes[process] = self.processes.get(process, 0) + 1
        if event.time is not None:
            self.span.add(event.time, at)
        if event.rank is not None and len(self.ranks) < MAX_SEEN:
            self.ranks.add(event.rank)
        if event.pid is not None and len(self.pids) < MAX_SEEN:
            self.pids.add(event.pid)
        if event.kind != "recompile":
            self._learn(event)
        if event.kind == "graph_break":
            self._see_breaks({_break(event): not event.extra.get("skipped")})
        if event.reasons:
            self._see_guards(event)
        self._draw(event)

    def add_unseen(self, count: int, phases: Iterable[str]) -> None:
        """Counts events that are no longer at hand, as those of its latest process; all of its events happened in ``phases``."""
        self.count += count
        if count:
            last = (self.last.source, self.last.rank, self.last.pid, self.last.line_no)
            self.processes[last] = self.processes.get(last, 0) + count
        self.phases, self.inherited = set(phases), set()

    def add_phase(self, stream: Stream, phase: str | None) -> None:
        """Takes the phase in which an event happened."""
        if phase is not None:
            self.phases.add(phase)
        elif len(self.inherited) < MAX_PROCESSES:
            self.inherited.add(stream)

    def add_seconds(self, seconds: float) -> None:
        """Takes the duration of one of its compiles."""
        self.seconds = (self.seconds or 0.0) + seconds

    def merge(self, later: "Group", resolved: dict[Stream, str | None]) -> None:
        """Takes in the same problem in the part of the log that follows; ``resolved`` tells its open phases."""
        self.last = later.last if self.last.source != later.last.source else max(self.last, later.last, key=_place)
        self.count += later.count
        self.refused += later.refused
        self.span.merge(later.span)
        for mine, more, limit in ((self.ranks, later.ranks, MAX_SEEN), (self.pids, later.pids, MAX_SEEN)):
            mine.update(sorted(more - mine)[: limit - len(mine)])
        self.symbols.update(sorted(later.symbols - self.symbols)[: MAX_NAMES - len(self.symbols)])
        for process, count in later.processes.items():
            if process in self.processes or len(self.processes) < MAX_PROCESSES:
                self.processes[process] = self.processes.get(process, 0) + count
        self.values.update(later.values)
        self._see_breaks(later.breaks)
        if later.seconds is not None:
            self.add_seconds(later.seconds)
        self._sample = sorted([*self._sample, *later._sample], key=_draw_order)[:MAX_EVIDENCE]
        if _process(self.first) == _process(later.first):
            self.guards += later.guards[: MAX_GUARDS - len(self.guards)]
        if len(later.widest) > len(self.widest):
            self.widest = later.widest
        self.phases |= later.phases
        for stream in later.inherited:
            self.add_phase(stream, resolved.get(stream))

    def resolve(self, resolved: dict[Stream, str | None]) -> None:
        """Settles the open phases of a group that only the later part has."""
        open_streams, self.inherited = self.inherited, set()
        for stream in open_streams:
            self.add_phase(stream, resolved.get(stream))

    def retell(self, told: Callable[[Event], Event]) -> None:
        """Takes what an earlier part of the log tells about its events."""
        self.first, self.last = told(self.first), told(self.last)
        self._sample = [(draw, source, offset, told(event)) for draw, source, offset, event in self._sample]
        self._learn(self.first)
        if self.first.reasons and not self.guards:
            self._see_guards(self.first)

    @property
    def worst_process(self) -> int:
        """Most events in one process."""
        return max(self.processes.values(), default=0)

    @property
    def is_told_by_a_hit(self) -> bool:
        """True for attempts that a limit refused whose heads, which name the function, were cut off: the hits behind them are another group."""
        return self.key.kind == "recompile_limit_hit" and self.key.function is None and not self.count

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of code that its events are about, ascending."""
        return tuple(sorted({line for *_, line in self.processes if line is not None}))

    @property
    def lines_not_resumed(self) -> tuple[int | None, ...] | None:
        """The lines of the breaks behind which torch could not resume; None where that holds for all of them, or for none."""
        lines = {line for (*_, line), is_resumed in self.breaks.items() if not is_resumed}
        return tuple(sorted(lines, key=lambda line: line or 0)) if lines and any(self.breaks.values()) else None

    @property
    def phase(self) -> str:
        """``steady`` when any event was, since that is the one that hurts."""
        return next((phase for phase in ("steady", "warmup") if phase in self.phases), "unknown")

    def evidence(self) -> list[Event]:
        """The first event, the last, and up to three between them, in log order."""
        ends = {_place(self.first): self.first, _place(self.last): self.last}
        between = [event for _, _, _, event in self._sample if _place(event) not in ends][: MAX_EVIDENCE - len(ends)]
        rank = {source: i for i, source in enumerate(dict.fromkeys([self.first.source, *(e.source for e in between), self.last.source]))}
        return sorted([*ends.values(), *between], key=lambda event: (rank[event.source], event.offset, event.line))

    def _see_guards(self, event: Event) -> None:
        if len(self.guards) < MAX_GUARDS and _process(event) == _process(self.first):
            self.guards.append(event.reasons[0])
        if len(event.reasons) > len(self.widest):
            self.widest = event.reasons

    def _see_breaks(self, breaks: Mapping[_Broken, bool]) -> None:
        """torch tells of a break first, and then that it cannot resume behind it."""
        for one, is_resumed in breaks.items():
            if one in self.breaks or len(self.breaks) < MAX_PROCESSES:
                self.breaks[one] = self.breaks.get(one, True) and is_resumed

    def _learn(self, event: Event) -> None:
        extra = event.extra
        for name in _VALUES:
            if extra.get(name) is not None:
                self.values[name] = extra[name]
        symbol = extra.get("symbol")
        if isinstance(symbol, str) and len(self.symbols) < MAX_NAMES:
            self.symbols.add(symbol)

    def _draw(self, event: Event) -> None:
        """Keeps the events of the lowest hashes: spread over the log, and the same however it is cut into parts."""
        draw = (event.offset * 0x9E3779B1 + event.line * 0x85EBCA6B) & 0xFFFFFFFF
        sample = self._sample
        if len(sample) >= MAX_EVIDENCE:
            if (draw, event.source, event.offset) >= sample[-1][:3]:
                return
            sample.pop()
        sample.append((draw, event.source, event.offset, event))
        sample.sort(key=_draw_order)


def _process(event: Event) -> tuple[str, int | None, int | None]:
    return event.source, event.rank, event.pid


def _break(event: Event) -> _Broken:
    return *_process(event), without_attempt(event.compile_id) if event.compile_id else None, event.line_no


def _draw_order(item: tuple[int, str, int, Event]) -> tuple[int, str, int]:
    return item[:3]


def _place(event: Event) -> tuple[str, int, int]:
    return event.source, event.offset, event.line

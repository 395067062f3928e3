"""Events become a report: counts, findings, series and a status. Parts of a log add up: see ``Analysis.merge``."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recompile_watch.core.advice import advise
from recompile_watch.core.compile_id import parse_compile_id
from recompile_watch.core.context import Item
from recompile_watch.core.decision import Decision, decide
from recompile_watch.core.drift import drift_events
from recompile_watch.core.earlier import Earlier
from recompile_watch.core.env_check import env_events
from recompile_watch.core.env_file import EnvFile
from recompile_watch.core.events import TORCH_KINDS, Event, is_accumulated
from recompile_watch.core.findings import LIMIT_KIND, NO_FINDING, Finding, Headroom, Wording, decided, gathered, group_key, in_order
from recompile_watch.core.groups import SUBJECT_FIELDS, Group, GroupKey
from recompile_watch.core.phases import MARK_KINDS, Phases
from recompile_watch.core.raised_limits import limit_events
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.rules import SEVERITIES, Ruleset
from recompile_watch.core.series import Numbers, Series
from recompile_watch.core.shown_versions import settled, shown_version
from recompile_watch.core.sightings import TableRows
from recompile_watch.core.source_span import SourceSpan
from recompile_watch.core.stories import Stories
from recompile_watch.core.sums import LATEST, Sums, of_table
from recompile_watch.core.timeline import Timeline, TimeSlices
from recompile_watch.core.times import moment_of
from recompile_watch.core.versions import Version, VersionRange, default_limit, version_of

MAX_GROUPS = 5_000
MAX_COMPILES = 20_000
MAX_LIMITS = 64
SLOW_COMPILE_S = 300.0  # a start that takes longer is worth a word; one whose compilations were kept takes seconds
_HAS_PHASE = TORCH_KINDS | {"forecast_failure", "out_of_memory", "cpu_fallback"}
# Reasons for which a part of a source that should have been read was not.
CUT_SHORT = frozenset(
    {
        "truncated_gzip", "bad_gzip_member", "truncated_zstd", "bad_zstd_frame", "trailing_garbage", "bomb", "shrunk_while_read", "vanished",
        "unsupported_compression",
    }
)  # fmt: skip
# Lines of torch that could not be read; with --strict they make the status unknown.
UNREAD_TORCH = frozenset({"torn_trace_line", "bad_trace_line", "line_too_long"})
NOTHING = "nothing recognisable in the input"

_Moment = tuple[str | None, int]
_Place = tuple[str | None, str | None, int | None]
_Compile = tuple[str, int | None, str]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What reading one source came to. unread: what could not be read, by reason. error: why it could not be opened."""

    path: str
    bytes: int = 0
    lines: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    torch_version: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What only the caller knows. errors: sources that were not found, one line each. torch_version: as the user named
    it. is_strict: unread torch lines make the status unknown. unread: what was passed over while looking for sources.
    env_files: what sets the environment of the models.
    """

    sources: tuple[SourceFacts, ...] = ()
    errors: tuple[str, ...] = ()
    torch_version: str | None = None
    is_strict: bool = False
    unread: Mapping[str, int] = field(default_factory=dict)
    env_files: tuple[EnvFile, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceReport:
    """A source in the report; the times are those of its first and last event that has one.

    also_in: how many of its events were counted in another source that holds the same lines, by its path.
    """

    facts: SourceFacts
    first_time: str | None
    last_time: str | None
    also_in: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What a log means. status: ``ok``, ``warning``, ``critical`` or ``unknown``.

    problems: why the evidence is incomplete, one line each; they make the status unknown unless something is critical.
    torch_version_from: ``option``, ``log`` or None. counts: events by kind. decisions: one for each model.
    """

    status: str
    problems: tuple[str, ...]
    torch_version: str | None
    torch_version_from: str | None
    sources: tuple[SourceReport, ...]
    unread: Mapping[str, int]
    counts: Mapping[str, int]
    findings: tuple[Finding, ...]
    series: Numbers
    decisions: tuple[Decision, ...] = ()
    timeline: Timeline = field(default_factory=Timeline)


class Analysis:
    """Takes the events of any number of sources, each source's in log order, and says what they mean."""

    def __init__(self, rules: Ruleset) -> None:
        self._wording = Wording(rules)
        self._counts: dict[str, int] = {}
        self._sources: dict[str, SourceSpan] = {}
        self._source = SourceSpan("")
        self._series = Series()
        self._takers = self._series.takers
        self._phases = Phases()
        self._slices = TimeSlices()
        self._groups: dict[GroupKey, Group] = {}
        self._recent: dict[tuple[object, ...], Group] = {}
        self._earlier = Earlier()
        self._entries: dict[_Place, int] = {}
        self._limits: dict[_Place, int | None] = {}
        self._limit: int | None = None
        self._printed_limits: set[int] = set()
        self._compiles: dict[_Compile, GroupKey] = {}
        self._seconds: dict[_Compile, float] = {}
        self._moment: tuple[str, datetime | None] = ("", None)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_takers", "_recent")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._takers, self._recent = self._series.takers, {}

    def add(self, event: Event) -> None:
        """Takes one event. Bulk kinds cost a few dictionary updates and nothing else."""
        kind, source, time = event[0], event[1], event[4]
        counts = self._counts
        counts[kind] = counts.get(kind, 0) + 1
        span = self._source
        if span.path != source:
            span = self._source = self._sources.setdefault(source, SourceSpan(source))
        if time is not None:
            span.see(time, event[3], time, event[3])
            at = self._at(time)
            if at is not None:
                self._slices.add(event, at)
        take = self._takers.get(kind)
        if take is not None:
            take(event)
        if kind not in NO_FINDING:
            self._find(event)
        elif kind in MARK_KINDS:
            self._phases.mark(kind, source, self._at(time), event.extra.get("model"))
        elif kind == "compile_time":
            self._add_compile_time(event)

    def pass_over(self, event: Event) -> None:
        """Takes an event that another source may hold as well: only what it tells of those beside it."""
        self.span(event.source).see(event.time, event.offset, event.time, event.offset)
        at = self._at(event.time)
        if event.kind in MARK_KINDS:
            self._phases.mark(event.kind, event.source, at)
        elif event.kind in _HAS_PHASE:
            self._phases.phase_at(event.kind, event.source, event.pid, at)

    def span(self, source: str) -> SourceSpan:
        """What is remembered of a source."""
        return self._sources.setdefault(source, SourceSpan(source))

    def take(self, item: Item) -> None:
        """Takes whatever an engine gives: an event, or what was read in bulk."""
        match item:
            case Event():
                self.add(item)
            case Sums():
                self._take_bulk(item.kind, item.source, item.n, (item.times[0], item.offset), (item.times[1], item.last_offset))
                self._series.add_sums(item)
                self._slices.add_sums(item)
            case TableRows() if item.kind in LATEST:
                self.take(of_table(item))
            case TableRows():
                self._take_bulk(item.kind, item.source, len(item.at), (item.time, item.span[0]), (item.time, item.span[1] - 1))
                self._series.add_table(item)
                at = self._at(item.time)
                if at is not None:
                    self._slices.add_table(item, at)

    def _take_bulk(self, kind: str, source: str, n: int, first: _Moment, last: _Moment) -> None:
        """Counts events of one kind that were read in bulk, as ``add`` counts as many."""
        self._counts[kind] = self._counts.get(kind, 0) + n
        self.span(source).see(*first, *last)

    def merge(self, later: "Analysis") -> None:
        """Takes in what another analysis saw, as if its events had been added after those of this one."""
        for kind, count in later._counts.items():
            self._counts[kind] = self._counts.get(kind, 0) + count
        for path, span in later._sources.items():
            self.span(path).merge(span)
        self._series.merge(later._series)
        self._slices.merge(later._slices)
        resolved = self._phases.merge(later._phases)
        for group in later._groups.values():
            self._earlier.name(group)
            known = self._groups.get(group.key)
            if known is not None:
                known.merge(group, resolved)
            else:
                group.resolve(resolved)
                self._groups[group.key] = group
        self._earlier.merge(later._earlier)
        for place, entries in later._entries.items():
            self._entries[place] = max(entries, self._entries.get(place, 0))
        self._limits.update(later._limits)
        self._printed_limits |= later._printed_limits
        self._limit = later._limit if later._limit is not None else self._limit
        self._merge_compiles(later)

    def report(self, facts: Facts, catalog: Catalog | None = None) -> Report:
        """Everything so far, as frozen values. catalog: what advice is made of; without one there is none."""
        named, origin = _torch_version(facts, self._groups.values())
        parsed, known = version_of(named), catalog or Catalog()
        findings = in_order([*self._findings(known, named, facts.env_files)])
        problems = problems_of(facts, has_events=bool(self._counts))
        return Report(
            status=status_of(findings, problems), problems=problems, torch_version=named, torch_version_from=origin,
            sources=tuple(self._source_report(source) for source in facts.sources), unread=dict(facts.unread),
            counts=dict(sorted(self._counts.items())), findings=findings, series=self._series.numbers(),
            decisions=decide(findings, known, self._phases.loads(), parsed), timeline=self._slices.timeline(),
        )  # fmt: skip

    def finding(self, key: GroupKey, torch_version: str | None, catalog: Catalog, left_out: int, phases: Iterable[str]) -> Finding | None:
        """What ``report`` would say of one group; None when it is not known. left_out, phases: see ``Group.add_unseen``."""
        group = self._groups.get(key)
        if group is None:
            return None
        group.add_unseen(left_out, phases)
        version, torch = settled(torch_version, self._groups.values())
        return self._finding(group, Stories(self._groups.values(), catalog, frozenset(self._printed_limits), torch), catalog, version, torch)

    def _findings(self, catalog: Catalog, named: str | None, env_files: tuple[EnvFile, ...]) -> Iterator[Finding]:
        version, torch = settled(named, self._groups.values())
        groups = [group for group in self._groups.values() if not group.is_told_by_a_hit]
        groups += gathered([*drift_events(groups, env_files, catalog), *env_events(env_files, catalog, torch)])
        groups += gathered(limit_events(groups, catalog.models, self._printed_limits))
        stories = Stories(groups, catalog, frozenset(self._printed_limits), torch)
        yield from (self._finding(group, stories, catalog, version, torch) for group in groups)

    def _finding(self, group: Group, stories: Stories, catalog: Catalog, version: Version | None, torch: VersionRange) -> Finding:
        advice = advise(stories.of(group), catalog, torch) if catalog.cases else ()
        model, is_raised, cuts = catalog.models.of(group.first), stories.is_raised(group), stories.cuts(group)
        return self._wording.finding(group, self._headroom(group, torch), version, advice=advice, model=model, is_raised=is_raised, cuts=cuts)

    def _find(self, event: Event) -> None:
        event = self._earlier.see(decided(event))
        group = self._group(event)
        at = self._at(event.time)
        group.add(event, at)
        if event.kind in _HAS_PHASE:
            group.add_phase(*self._phases.phase_at(event.kind, event.source, event.pid, at))
        if event.kind == "recompile":
            self._count_entries(event, group.key)
        elif event.kind == LIMIT_KIND:
            self._learn_limit(event)

    def _group(self, event: Event) -> Group:
        """The group of an event, remembered: a storm repeats few guards very often."""
        reason = event.reasons[0].text if event.reasons else None
        refused_by = event.extra.get("refused") and (event.extra.get("limit_name") or True)
        raw: tuple[object, ...] = (event.kind, event.function, event.file, reason, refused_by)
        if event.kind != "recompile":
            raw = (*raw, event.function or event.line_no, *[str(event.extra.get(name)) for name in SUBJECT_FIELDS])
        group = self._recent.get(raw)
        if group is None:
            if len(self._recent) >= MAX_COMPILES:
                self._recent.clear()
            group = self._recent[raw] = self._new_or_known(event)
        return group

    def _new_or_known(self, event: Event) -> Group:
        key = group_key(event)
        if key not in self._groups and len(self._groups) >= MAX_GROUPS:
            key = GroupKey(key.kind, None, None, "(others)")
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, event, event)
        return group

    def _at(self, time: str | None) -> datetime | None:
        if time is None:
            return None
        if self._moment[0] != time:
            self._moment = (time, moment_of(time))
        return self._moment[1]

    def _count_entries(self, event: Event, key: GroupKey) -> None:
        if event.extra.get("refused"):
            return
        if event.compile_id is not None and len(self._compiles) < MAX_COMPILES:
            self._compiles[event.source, event.pid, event.compile_id] = key
        text = event.compile_id or (event.reasons[0].entry if event.reasons else None)
        parsed = parse_compile_id(text) if text else None
        if parsed is None or parsed.frame_compile is None:
            return
        # The reasons name the entries that exist; the compile id names the one that is being made.
        entries = parsed.frame_compile + (1 if event.compile_id else 2)
        place = (event.function, event.file, event.line_no)
        if entries > self._entries.get(place, 0) and (place in self._entries or len(self._entries) < MAX_COMPILES):
            self._entries[place] = entries

    def _learn_limit(self, event: Event) -> None:
        limit = event.extra.get("limit")
        if is_accumulated(event.extra.get("limit_name")) or not isinstance(limit, int):
            return
        self._limit = limit
        if len(self._printed_limits) < MAX_LIMITS:
            self._printed_limits.add(limit)
        if len(self._limits) < MAX_COMPILES:
            self._limits[event.function, event.file, event.line_no] = limit

    def _headroom(self, group: Group, torch: VersionRange) -> Headroom | None:
        """How much of the limit the group's function uses; None where nothing in the log tells."""
        if group.key.kind not in ("recompile", LIMIT_KIND, "recompile_limit_error") or group.key.subject == "accumulated":
            return None
        places = {(event.function, event.file, event.line_no) for event in (group.first, group.last)}
        hit = next((limit for place in places if (limit := self._limits.get(place)) is not None), None)
        if hit is not None:
            return Headroom(hit, hit)
        entries = max((self._entries.get(place, 0) for place in places), default=0)
        if not entries:
            return None
        limit = self._limit if self._limit is not None else default_limit(torch)
        return Headroom(entries, limit if entries <= limit else None)

    def _add_compile_time(self, event: Event) -> None:
        seconds = event.extra.get("seconds")
        self._phases.phase_at(event.kind, event.source, event.pid, self._at(event.time))
        if isinstance(seconds, int | float) and seconds >= SLOW_COMPILE_S:
            self._group(event).add(event, self._at(event.time))
        if event.compile_id is not None and isinstance(seconds, int | float):
            self._cost((event.source, event.pid, event.compile_id), float(seconds))

    def _cost(self, compiled: _Compile, seconds: float) -> None:
        key = self._compiles.get(compiled)
        if key is not None and key in self._groups:
            self._groups[key].add_seconds(seconds)
        elif len(self._seconds) < MAX_COMPILES:
            self._seconds[compiled] = self._seconds.get(compiled, 0.0) + seconds

    def _merge_compiles(self, later: "Analysis") -> None:
        for compiled, seconds in later._seconds.items():
            self._cost(compiled, seconds)
        for compiled, key in later._compiles.items():
            if len(self._compiles) < MAX_COMPILES:
                self._compiles[compiled] = key

    def _source_report(self, facts: SourceFacts) -> SourceReport:
        span = self._sources.get(facts.path, SourceSpan(facts.path))
        return SourceReport(facts, span.first, span.last, span.also_in)


def _torch_version(facts: Facts, groups: Collection[Group]) -> tuple[str | None, str | None]:
    if facts.torch_version is not None:
        return facts.torch_version, "option"
    found = next((source.torch_version for source in facts.sources if source.torch_version), None) or shown_version(groups)
    return found, "log" if found else None


def problems_of(facts: Facts, *, has_events: bool) -> tuple[str, ...]:
    """Why the evidence is incomplete, one line each; with one of them the status is never ok."""
    found = [*facts.errors, *(source.error for source in facts.sources if source.error)]
    for path, unread in [*((source.path, source.unread) for source in facts.sources), ("the folders given", facts.unread)]:
        wanted = CUT_SHORT | UNREAD_TORCH if facts.is_strict else CUT_SHORT
        reasons = [f"{reason.replace('_', ' ')} ({count})" for reason, count in unread.items() if reason in wanted]
        if reasons:
            found.append(f"{path}: not everything could be read: {', '.join(reasons)}")
    if not has_events and not found:
        found.append(NOTHING)
    return tuple(found)


def status_of(findings: tuple[Finding, ...], problems: tuple[str, ...]) -> str:
    """The status: the worst finding that counts, and ``unknown`` where the evidence is incomplete and nothing is critical."""
    worst = max((finding.severity for finding in findings if finding.counts), key=SEVERITIES.index, default="info")
    if worst == "critical":
        return "critical"
    if problems:
        return "unknown"
    return "warning" if worst == "warning" else "ok"

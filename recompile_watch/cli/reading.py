"""Reads sources through the engine, one after another."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo

from recompile_watch.core.analysis import Analysis, SourceFacts
from recompile_watch.core.context import Item
from recompile_watch.core.engine import SourceEngine, Tally
from recompile_watch.core.errors import SourceError
from recompile_watch.core.events import Event
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import LiteralMatcher
from recompile_watch.core.times import TimeOptions
from recompile_watch.core.window import TimeWindow
from recompile_watch.sources.find import SourceFile
from recompile_watch.sources.limits import Unread
from recompile_watch.sources.read import read_blocks


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read. zone_is_given: the user named the zone. since, until: aware of their zone.

    jobs: processes; 0 is one for each core.
    """

    zone: tzinfo
    zone_is_given: bool
    year: int | None
    since: datetime | None
    until: datetime | None
    jobs: int


class Reader:
    """Reads sources in order. ``facts`` and ``outside`` are complete when everything was read."""

    def __init__(self, rules: Ruleset, options: ReadOptions, on_progress: Callable[[int], None] | None) -> None:
        self._rules, self._options, self._on_progress = rules, options, on_progress
        self._matcher = LiteralMatcher(rules.literals())
        self._done_bytes = 0
        self.facts: list[SourceFacts] = []
        self.outside = 0

    def read_events(self, sources: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, list[Event]]]:
        """The events of all sources, block by block; a source that cannot be read gets an error in its facts."""
        for source in sources:
            yield from self._read(source)

    def analyse(self, sources: Sequence[SourceFile]) -> Analysis:
        """All events of all sources, taken in."""
        analysis = Analysis(self._rules)
        for _, events in self.read_events(sources):
            for event in events:
                analysis.add(event)
        return analysis

    def _read(self, source: SourceFile) -> Iterator[tuple[SourceFile, list[Event]]]:
        engine = SourceEngine(source.path, self._rules, self._matcher, _time_options(source, self._options))
        window = TimeWindow(self._options.since, self._options.until)
        unread, error = Unread(), None
        try:
            for block in read_blocks(source, unread=unread, on_progress=self._on_source_progress):
                yield source, window.inside(_events(engine.feed(block)))
        except SourceError as failed:
            error = str(failed)
        yield source, window.inside(_events(engine.end()))
        self.outside += window.outside
        self._done_bytes += source.size_bytes or 0
        self.facts.append(_facts(source, engine.tally(), unread, error))

    def _on_source_progress(self, taken_bytes: int) -> None:
        if self._on_progress is not None:
            self._on_progress(self._done_bytes + taken_bytes)


def _events(items: Iterable[Item]) -> list[Event]:
    """Without bulk patterns the engine gives nothing but events."""
    return [item for item in items if isinstance(item, Event)]


def _time_options(source: SourceFile, options: ReadOptions) -> TimeOptions:
    return TimeOptions(
        zone=options.zone, zone_is_given=options.zone_is_given, year=options.year, modified_on=_modified_on(source, options.zone)
    )


def _modified_on(source: SourceFile, zone: tzinfo) -> date | None:
    if source.modified_at is None:
        return None
    try:
        return datetime.fromtimestamp(source.modified_at, UTC).astimezone(zone).date()
    except (ValueError, OverflowError, OSError):  # file systems hold any number
        return None


def _facts(source: SourceFile, tally: Tally, unread: Unread, error: str | None) -> SourceFacts:
    reasons = dict(tally.unread)
    for reason, count in unread.counts.items():
        reasons[reason] = reasons.get(reason, 0) + count
    return SourceFacts(source.path, tally.bytes, tally.lines, reasons, tally.torch_version, error)

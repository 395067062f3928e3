"""Reads sources through the engine, as the options of the command line say."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, tzinfo
from itertools import chain
from typing import TYPE_CHECKING

from recompile_watch.cli.background import InBackground
from recompile_watch.cli.inputs import ReadOptions
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.context import Item
from recompile_watch.core.events import Event
from recompile_watch.core.members import Member, event_in
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.times import TimeOptions
from recompile_watch.core.window import TimeWindow
from recompile_watch.sources.find import SourceFile
from recompile_watch.survey import SourceReading, Survey, SurveyOptions

if TYPE_CHECKING:
    from recompile_watch.core.analysis import Analysis, SourceFacts


class Reader:
    """Reads sources in order. ``facts``, ``members`` and ``outside`` are complete when everything was read."""

    def __init__(
        self, rules: Ruleset, matcher: InBackground[Matcher], options: ReadOptions, on_progress: Callable[[int], None] | None
    ) -> None:  # fmt: skip
        self._rules, self._matcher, self._options, self._on_progress = rules, matcher, options, on_progress
        self.facts: list[SourceFacts] = []
        self.members: dict[str, list[Member]] = {}
        self.outside = 0

    def read_events(self, sources: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, list[Event]]]:
        """The events of all sources as they come; a source that cannot be read gets an error in its facts."""
        for source, items in self._read(sources, None, settles=True):
            members = self.members.get(source.path, ())
            yield source, [event_in(members, item) for item in items if isinstance(item, Event)]

    def begin(self, sources: Sequence[SourceFile]) -> Iterator[Sequence[Item]]:
        """What an analysis takes: metric lines in bulk, unless each one's time matters.

        The reading has begun when this returns: with several jobs, all of them are at work and the caller is free.
        """
        has_window = self._options.since is not None or self._options.until is not None
        bulk = None if has_window else Bulk.of(self._rules)
        read = (items for _, items in self._read(sources, bulk.uncounted() if bulk is not None and len(sources) > 1 else bulk))
        return chain([next(read, ())], read)

    def _read(
        self, sources: Sequence[SourceFile], bulk: Bulk | None, *, settles: bool = False
    ) -> Iterator[tuple[SourceFile, Sequence[Item]]]:  # fmt: skip
        options = SurveyOptions(lambda source: _time_options(source, self._options), _jobs(self._options.jobs), bulk, self._on_progress, settles)
        survey = Survey(sources, self._rules, self._matcher.result(), options)
        self.members = {reading.source.path: reading.members for reading in survey.readings}
        windows: dict[str, TimeWindow] = {}
        for source, items in survey.items():
            if bulk is not None:
                yield source, items
                continue
            window = windows.setdefault(source.path, TimeWindow(self._options.since, self._options.until))
            yield source, window.inside([item for item in items if isinstance(item, Event)])
        self.outside = sum(window.outside for window in windows.values())
        self.facts = [_facts(reading) for reading in survey.readings]


def _jobs(wanted: int) -> int:
    return wanted or os.cpu_count() or 1


def _time_options(source: SourceFile, options: ReadOptions) -> TimeOptions:
    return TimeOptions(zone=options.zone, zone_is_given=options.zone_is_given, year=options.year, modified_on=_modified_on(source, options.zone))


def _modified_on(source: SourceFile, zone: tzinfo) -> date | None:
    if source.modified_at is None:
        return None
    try:
        return datetime.fromtimestamp(source.modified_at, UTC).astimezone(zone).date()
    except (ValueError, OverflowError, OSError):  # file systems hold any number
        return None


def _facts(reading: SourceReading) -> SourceFacts:
    from recompile_watch.core.analysis import SourceFacts

    tally, error = reading.tally, None if reading.error is None else str(reading.error)
    return SourceFacts(reading.source.path, tally.bytes, tally.lines, dict(tally.unread), tally.torch_version, error)


def analysed(rules: Ruleset, read: Iterable[Iterable[Item]], *, several: bool = False) -> Analysis:
    """An analysis that has taken everything in. several: from sources in which the same may stand twice."""
    from recompile_watch.core.analysis import Analysis  # loaded while other processes read

    analysis = Analysis(rules)
    items = chain.from_iterable(read)
    if several:
        from recompile_watch.core.doubles import Doubles

        doubles = Doubles(analysis)
        for item in items:
            doubles.take(item)
        doubles.end()
    else:
        for item in items:
            analysis.take(item)
    return analysis

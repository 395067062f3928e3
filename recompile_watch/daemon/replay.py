"""An old log, watched by its own time: what the daemon would have sent, and when."""

import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter

from recompile_watch.config import load_catalog, load_matcher, load_rules
from recompile_watch.core.events import Event
from recompile_watch.core.heard import Heard
from recompile_watch.core.notices import Notice
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.streams import Piece, Seen, Stream
from recompile_watch.core.times import TimeOptions
from recompile_watch.core.watch import Step, Watch
from recompile_watch.core.watch_settings import Receiver, WatchSettings
from recompile_watch.market import is_market_open
from recompile_watch.sources.source_file import SourceFile

AFTER_S = 300.0  # what waits for company at the end of the log goes out within this time
NOBODY = Receiver("replay")


class Replay:
    """Runs the watch over logs. rules: default those that ship.

    ``pause`` is called with the log's time before each step, for those who want to look on.
    """

    def __init__(self, settings: WatchSettings, source: str, pause: Callable[[float], None] = lambda _: None, rules: Ruleset | None = None) -> None:
        self._settings = replace(settings, receivers=settings.receivers or (NOBODY,), runs=None)
        self._rules = rules or load_rules()
        self._matcher = load_matcher(self._rules)
        self._source, self._pause = source, pause
        self._watch: Watch | None = None
        self._now: float | None = None
        self.events = 0

    def notices(self, logs: Iterable[tuple[SourceFile, Iterable[bytes]]], zone: tzinfo) -> Iterator[Notice]:
        """What would have been sent while these logs were written side by side, and soon after."""
        heard = merge(*(self._heard(log, blocks, zone) for log, blocks in logs), key=itemgetter(0))
        for at, one in heard:
            self.events += len(one.events)
            at = max(at, self._now or at)
            yield from self._until(at)
            yield from self._sent(self._watch_at(at).feed([one], (), at))
        if self._now is not None:
            yield from self._until(self._now + AFTER_S)

    def _heard(self, log: SourceFile, blocks: Iterable[bytes], zone: tzinfo) -> Iterator[tuple[float, Heard]]:
        """The records of one log, each with its time; that of the one before it where it has none."""
        at = 0.0
        for together in _records(self._events(log, blocks, zone)):
            time = together[0].time
            at = at if time is None else max(at, datetime.fromisoformat(time).timestamp())
            yield at, Heard(self._source, log.path, together, 1)

    def _events(self, log: SourceFile, blocks: Iterable[bytes], zone: tzinfo) -> Iterator[Event]:
        stream = Stream(log.path, self._rules, self._matcher)
        modified = None if log.modified_at is None else datetime.fromtimestamp(log.modified_at, UTC).date()
        options = TimeOptions(zone=zone, zone_is_given=True, modified_on=modified)
        offset, line = 0, 1
        for payload in _whole_lines(blocks):
            yield from _events(stream.feed(Piece(1, offset, line, payload), options))
            offset += len(payload)
            line += payload.count(b"\n")
        yield from _events([*stream.finish(1), *stream.settle()])

    def _until(self, at: float) -> Iterator[Notice]:
        """Lets the time pass, step by step as the watch wants it."""
        if self._watch is None:
            return
        while (due := self._watch.next_due()) is not None and due <= at:
            yield from self._sent(self._watch.tick(due))

    def _sent(self, step: Step) -> Iterator[Notice]:
        for notice in step.notices:
            self._pause(notice.made_at)
            yield notice

    def _watch_at(self, at: float) -> Watch:
        if self._watch is None:
            self._watch = Watch(self._settings, self._rules, load_catalog(), None, host=socket.gethostname(), is_market_open=is_market_open)
        self._now = at
        return self._watch


def _events(seen: Iterable[Seen]) -> Iterator[Event]:
    """The events of a stream that gives no runs: each is taken in at its own time."""
    for item in seen:
        assert isinstance(item.event, Event)
        yield item.event


def _records(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    """The events of one record together."""
    for _, together in groupby(events, key=attrgetter("offset")):
        yield tuple(together)


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks, cut at line ends; the last line as it stands."""
    rest = b""
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest

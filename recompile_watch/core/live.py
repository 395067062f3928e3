"""A log that grows: its bytes become events at once, and the reading can be saved and resumed between any two lines.

``safe`` is the first line that is not understood yet, because its record may go on. Everything in front of it has
become events, or waits in the saved state; so a reading that resumes there neither loses nor repeats an event. (Only
a line that an earlier record took, and that could begin another, would be read again when it stands behind ``safe``.)
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from recompile_watch.core.bulk import Bulk, BulkReader
from recompile_watch.core.context import Context, Item
from recompile_watch.core.detect import Detector
from recompile_watch.core.engine import BulkOrder
from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import Event
from recompile_watch.core.lines import LineReader
from recompile_watch.core.record_order import RecordOrder
from recompile_watch.core.records import HEAD_LINES, Record
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.runs import Stretch, stretches_of
from recompile_watch.core.scan import Matcher
from recompile_watch.core.shape import HEAD_BYTES, shape_of
from recompile_watch.core.sightings import Sighting, TableRows
from recompile_watch.core.times import TimeOptions, TimeResolver
from recompile_watch.core.trace import TraceReader, is_trace

Safe = tuple[int, int]  # offset and line number


class LiveLog:
    """Understands one growing text log. Offsets and line numbers count from where its first reading began."""

    def __init__(self, source: str, rules: Ruleset, matcher: Matcher | None, options: TimeOptions, head: bytes, bulk: Bulk | None = None) -> None:
        """head: the first bytes that are there; date and zone may be taken from them. bulk: what comes in stretches."""
        shape = shape_of(head[:HEAD_BYTES])
        self._source, self._rules, self._matcher = source, rules, matcher
        self._bulk = None if bulk is None or matcher is None else BulkReader(bulk, matcher, source, keeps_places=True)
        self._context = Context(TimeResolver(options, shape.first_date, shape.offset_s))
        self._detector = Detector(rules, source)
        self._begin(0, 1, b"")

    def feed(self, block: bytes) -> list[Event | Stretch]:
        """Takes the next bytes; the events that are certain now, in log order."""
        return self._events(self._lines.feed(block), self._lines.joiner.open)

    def settle(self) -> list[Event | Stretch]:
        """Nothing more comes for now: what was waiting becomes events."""
        return self._events(self._lines.settle(), []) + _given(self._context.flush())

    @property
    def lines(self) -> int:
        """Complete lines read so far."""
        return self._lines.lines - HEAD_LINES

    @property
    def is_settled(self) -> bool:
        """True when nothing waits for lines to come."""
        return not self._lines.joiner.open and not self._lines.joiner.is_carrying and not self._context.is_waiting

    @property
    def safe(self) -> Safe:
        """Where a reading that resumes must begin."""
        offset, line, _ = self._lines.first_open()
        return offset, line - HEAD_LINES

    @property
    def waits_from(self) -> int:
        """The offset of the earliest event that is not given out yet, else that of ``safe``."""
        return min(self.safe[0], self._context.waits_from(self.safe[0]))

    def state(self) -> dict[str, object]:
        """What a reading that resumes at ``safe`` must know, as JSON values."""
        offset, line, before = self._lines.first_open()
        return {"offset": offset, "line": line - HEAD_LINES, "before": before.decode("latin-1"), "context": self._context.state()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Goes on where another reading saved its state. Raises StoreError when it is no such state."""
        try:
            self._context.resume(state["context"])
            self._begin(int(state["offset"]), int(state["line"]), state["before"].encode("latin-1"))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise StoreError(f"{self._source}: the saved state of its reading is damaged ({error!r})") from None

    def _begin(self, offset: int, line: int, before: bytes) -> None:
        # A followed log is joined at any line: no line of it may count as the rest of a record whose head was cut off.
        self._lines = LineReader(self._rules, self._matcher, line=line + HEAD_LINES, offset=offset, before=before, bulk=self._bulk)
        self._order, self._in_bulk = RecordOrder(), BulkOrder()

    def _events(self, closed: list[Record], still_open: list[Record]) -> list[Event | Stretch]:
        found: list[tuple[int, Sequence[Sighting | TableRows | Stretch]]] = [
            (record.offset, self._detector.sightings(record)) for record in self._order.ordered(closed, still_open)
        ]
        rows, tables = self._in_bulk.ordered(*self._lines.in_bulk(), still_open)
        borders = [offset for offset, _ in found]
        stretches = stretches_of(self._source, rows, tables, borders, HEAD_LINES) if rows or tables else []
        seen = sorted([*found, *((stretch.first, (stretch,)) for stretch in stretches)], key=itemgetter(0)) if stretches else found
        return _given(self._context.push(_renumbered(item) for _, items in seen for item in items))


class LiveTrace:
    """Understands one growing TORCH_TRACE file. It resumes by reading the file again from its beginning."""

    is_settled = True
    safe: Safe = (0, 1)
    waits_from = 0

    def __init__(self, source: str, options: TimeOptions) -> None:
        self._source = source
        self._context = Context(TimeResolver(options))
        self._reader = TraceReader(source)
        self._given = 0
        self._known = 0
        self.lines = 0

    def feed(self, block: bytes) -> list[Event | Stretch]:
        """Takes the next bytes; the events that are certain now, in log order."""
        self.lines += block.count(b"\n")
        return self._new(_given(self._context.push(self._reader.feed(block))))

    def settle(self) -> list[Event | Stretch]:
        """Nothing more comes for now: what was waiting becomes events."""
        return self._new(_given(self._context.push(self._reader.settle())) + _given(self._context.flush()))

    def state(self) -> dict[str, object]:
        """How many events were given out."""
        return {"trace": True, "given": max(self._given, self._known)}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Gives out only what comes behind the events of an earlier reading."""
        self._known = int(state.get("given") or 0)

    def _new(self, events: list[Event | Stretch]) -> list[Event | Stretch]:
        first = max(0, self._known - self._given)
        self._given += len(events)
        return events[first:]


def live_reading(
    source: str, rules: Ruleset, matcher: Matcher | None, options: TimeOptions, head: bytes, state: Mapping[str, Any] | None,
    bulk: Bulk | None = None,
) -> LiveLog | LiveTrace:  # fmt: skip
    """The reading of a stream that begins with ``head``, or that goes on from ``state``. Raises StoreError."""
    reading = (
        LiveTrace(source, options)
        if (state or {}).get("trace", state is None and is_trace(head))
        else LiveLog(source, rules, matcher, options, head, bulk)
    )
    if state is not None:
        reading.resume(state)
    return reading


def _renumbered(item: Sighting | TableRows | Stretch) -> Sighting | Stretch:
    if isinstance(item, Stretch):
        return item
    assert isinstance(item, Sighting)
    return item._replace(event=item.event._replace(line=item.event.line - HEAD_LINES))


def _given(items: list[Item]) -> list[Event | Stretch]:
    return [item for item in items if isinstance(item, Event | Stretch)]

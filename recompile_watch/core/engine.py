"""The engine: bytes of one source go in, events come out.

``analyze``, ``replay`` and ``watch`` drive the same engine with different sources and clocks.
"""

from dataclasses import dataclass, field

from recompile_watch.core.bulk import Bulk, BulkReader
from recompile_watch.core.context import Context, Item
from recompile_watch.core.detect import Detector
from recompile_watch.core.lines import LineReader
from recompile_watch.core.printed_version import printed_version
from recompile_watch.core.record_order import RecordOrder
from recompile_watch.core.records import Record
from recompile_watch.core.rows import Rows
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.shape import HEAD_BYTES, Shape, shape_of, unwrapper_of
from recompile_watch.core.sightings import TableRows
from recompile_watch.core.sums import Seen, added_up
from recompile_watch.core.times import TimeOptions, TimeResolver
from recompile_watch.core.trace import TraceReader, is_trace


@dataclass(slots=True)
class Tally:
    """What was read of one source. unread: what could not be read, by reason."""

    bytes: int = 0
    lines: int = 0
    unread: dict[str, int] = field(default_factory=dict)
    torch_version: str | None = None


class SourceEngine:
    """Understands one source. ``feed`` takes its bytes in order; ``feed`` and ``end`` return events in log order.

    bulk: what is read in bulk, when sums are wanted and not each event.
    """

    def __init__(self, source: str, rules: Ruleset, matcher: Matcher | None, options: TimeOptions, bulk: Bulk | None = None) -> None:
        self._source, self._rules, self._matcher, self._options, self._bulk = source, rules, matcher, options, bulk
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._reader: _LogReader | TraceReader | None = None
        self._context = Context(TimeResolver(options))
        self._read = 0
        self._printed_version: str | None = None

    def feed(self, block: bytes) -> list[Item]:
        """Takes the next bytes, any number of them."""
        self._read += len(block)
        if self._reader is not None:
            return self._context.push(self._reader.feed(block))
        self._head.append(block)
        self._head_bytes += len(block)
        return self._start() if self._head_bytes >= HEAD_BYTES else []

    def settle(self) -> list[Item]:
        """Nothing more comes for now: what was waiting becomes events, once there is a whole line."""
        if self._reader is None and not any(b"\n" in block for block in self._head):
            return []
        events = self._start() if self._reader is None else []
        assert self._reader is not None
        return events + self._context.push(self._reader.settle()) + self._context.flush()

    def end(self) -> list[Item]:
        """The source is complete."""
        events = self._start() if self._reader is None else []
        assert self._reader is not None
        return events + self._context.push(self._reader.end()) + self._context.flush()

    def tally(self) -> Tally:
        """What was read so far."""
        if self._reader is None:
            return Tally(self._read)
        version = self._reader.torch_version if isinstance(self._reader, TraceReader) else self._printed_version
        return Tally(self._read, self._reader.lines, dict(self._reader.unread), version)

    def _start(self) -> list[Item]:
        """Chooses the reader by the first bytes and gives it everything held so far."""
        held = b"".join(self._head)
        self._head = []
        shape = shape_of(held[:HEAD_BYTES])
        self._printed_version = printed_version(held[:HEAD_BYTES])
        self._context = Context(TimeResolver(self._options, shape.first_date, shape.offset_s))
        if is_trace(held):
            self._reader = TraceReader(self._source)
        else:
            self._reader = _LogReader(self._source, self._rules, self._matcher, shape, self._bulk)
        return self._context.push(self._reader.feed(held)) if held else []


class _LogReader:
    """Text logs: blocks to records to sightings, in the order of the records' first lines."""

    def __init__(self, source: str, rules: Ruleset, matcher: Matcher | None, shape: Shape, bulk: Bulk | None) -> None:
        unwrapper = unwrapper_of(shape)
        self._bulk = None if bulk is None or matcher is None else BulkReader(bulk, matcher, source)
        self._lines = LineReader(
            rules,
            matcher,
            unwrapper=unwrapper,
            bulk=self._bulk,
            indent=shape.indent,
            front=shape.front,
            header=shape.header,
            blank=shape.blank,
            back=shape.back,
        )
        self._detector = Detector(rules, source, in_bulk=bulk is not None)
        self._adds_up = bulk is not None and bulk.adds_up
        self._order = RecordOrder()
        self._in_bulk = BulkOrder()

    @property
    def lines(self) -> int:
        return self._lines.lines

    @property
    def unread(self) -> dict[str, int]:
        return self._lines.unread

    def feed(self, block: bytes) -> list[Seen]:
        return self._seen(self._lines.feed(block), self._lines.joiner.open)

    def settle(self) -> list[Seen]:
        return self._seen(self._lines.settle(), [])

    def end(self) -> list[Seen]:
        return self._seen(self._lines.end(), [])

    def _seen(self, closed: list[Record], still_open: list[Record]) -> list[Seen]:
        records = self._order.ordered(closed, still_open)
        seen = [sighting for record in records for sighting in self._detector.sightings(record)]
        if self._bulk is None:
            return [*seen]
        rows, tables = self._in_bulk.ordered(*self._lines.in_bulk(), still_open)
        return added_up(seen, rows, tables, self._bulk.source, adds_up=self._adds_up)


class BulkOrder:
    """Holds what was read in bulk behind a record that is still open, as ``RecordOrder`` does with records."""

    def __init__(self) -> None:
        self._rows: list[Rows] = []
        self._tables: list[TableRows] = []

    def ordered(self, rows: list[Rows], tables: list[TableRows], still_open: list[Record]) -> tuple[list[Rows], list[TableRows]]:
        """What nothing open stands before; the rest is held until that closes."""
        rows, tables = [*self._rows, *rows], [*self._tables, *tables]
        self._rows, self._tables = [], []
        if not still_open:
            return rows, tables
        first_open = min((record.offset, record.line) for record in still_open)
        border = first_open[0]
        self._tables = [table for table in tables if table.span[0] >= border]
        parts = [part for item in rows for part in item.split([first_open])]
        self._rows = [part for part in parts if part.offsets[0] >= border]
        return [part for part in parts if part.offsets[0] < border], [table for table in tables if table.span[0] < border]

"""Parts of one log, read on their own and joined without a seam.

A part is a range of bytes that begins and ends at a line. Its reader opens records only for lines inside the range,
and drains behind the end until those records are complete. Two neighbours agree unless a line behind the border,
taken as the rest of an earlier record, also begins one: ``agree`` tells.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from recompile_watch.core.bulk import Bulk, BulkReader
from recompile_watch.core.detect import Detector
from recompile_watch.core.lines import LineReader
from recompile_watch.core.record_order import RecordOrder
from recompile_watch.core.records import HEAD_LINES, Record
from recompile_watch.core.rows import Rows
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.sightings import TableRows
from recompile_watch.core.sums import Seen, Sums, added_up


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a source: [start, end) in bytes, end None for the rest. before: the lines in front of it."""

    start: int
    end: int | None
    before: bytes = b""


@dataclass(slots=True)
class PartReading:
    """What one part holds. Line numbers count from ``first_line`` at the part's own start.

    heads: offsets of the lines that begin a record in it. taken: offsets of lines behind its end that go on with
    its records. whole: no line was cut by its carrier at the end of the part.
    """

    seen: list[Seen]
    first_line: int
    heads: list[int]
    taken: list[int]
    lines: int
    unread: dict[str, int]
    whole: bool


class PartReader:
    """Reads parts of one source, one after the other; what repeats from part to part is remembered."""

    def __init__(self, source: str, rules: Ruleset, matcher: Matcher | None, bulk: Bulk | None = None) -> None:
        self._source, self._rules, self._matcher = source, rules, matcher
        self._bulk = None if bulk is None or matcher is None else BulkReader(bulk, matcher, source)
        self._detector = Detector(rules, source, in_bulk=bulk is not None)
        self._adds_up = bulk is not None and bulk.adds_up

    def read(self, part: Part, blocks: Iterable[bytes], behind: Iterable[bytes]) -> PartReading:
        """Reads one part: ``blocks`` are its bytes, ``behind`` those after its end (taken only as far as needed)."""
        shift = HEAD_LINES if part.start else 0  # only the first lines of a log may go on with a record whose head is cut off
        reader = LineReader(self._rules, self._matcher, line=1 + shift, offset=part.start, before=part.before, bulk=self._bulk)
        closed: list[Record] = []
        rows: list[Rows] = []
        tables: list[TableRows] = []
        for block in blocks:
            closed += reader.feed(block)
            more_rows, more_tables = reader.in_bulk()
            rows += more_rows
            tables += more_tables
        lines, whole = reader.lines - shift, not reader.joiner.is_carrying
        if part.end is None:
            closed += reader.end()
            lines = reader.lines - shift
        else:
            closed += _drain(reader, behind, part.end)
        records = RecordOrder().ordered(closed, [])
        found = [sighting for record in records for sighting in self._detector.sightings(record)]
        seen: list[Seen] = [*found] if self._bulk is None else added_up(found, rows, tables, self._source, adds_up=self._adds_up)
        return PartReading(seen, 1 + shift, [record.offset for record in records], reader.taken, lines, reader.unread, whole)


def agree(part: PartReading, after: PartReading, after_end: int | None) -> bool:
    """True when two neighbouring parts, read apart, hold what reading them in one go would."""
    if not part.whole or (after_end is not None and part.taken and part.taken[-1] >= after_end):
        return False
    return not set(part.taken).intersection(after.heads)


def numbered(reading: PartReading, lines_before: int) -> list[Seen]:
    """What the part holds, with the line numbers of the whole source."""
    by = lines_before + 1 - reading.first_line
    return [_shifted(item, by) for item in reading.seen] if by else reading.seen


def _drain(reader: LineReader, behind: Iterable[bytes], end: int) -> list[Record]:
    closed: list[Record] = []
    for block in behind:
        if not reader.joiner.open:
            return closed
        closed += reader.drain(block, end)
    return closed + reader.end()


def _shifted(item: Seen, lines: int) -> Seen:
    if isinstance(item, Sums):
        return item._replace(memory=[replace(memory, line=memory.line + lines) for memory in item.memory])
    if isinstance(item, TableRows):
        of = item.lines
        return item._replace(lines=range(of.start + lines, of.stop + lines) if isinstance(of, range) else [line + lines for line in of])
    return item._replace(event=item.event._replace(line=item.event.line + lines))

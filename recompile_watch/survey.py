"""Reads sources once through the engine, in one process or several: the glue between ``sources`` and ``core``.

With several jobs, one large plain file is cut into parts and many files are shared out; what comes back is the same
as one job would give, in the same order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from recompile_watch.core.bulk import Bulk
from recompile_watch.core.context import Context, Item
from recompile_watch.core.engine import SourceEngine, Tally
from recompile_watch.core.errors import SourceError
from recompile_watch.core.members import Member
from recompile_watch.core.near import BEFORE_BYTES, lines_before
from recompile_watch.core.parts import Part, PartReader, PartReading, agree, numbered
from recompile_watch.core.printed_version import printed_version
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.shape import HEAD_BYTES, shape_of
from recompile_watch.core.times import TimeOptions, TimeResolver
from recompile_watch.core.trace import is_trace
from recompile_watch.sources.find import SourceFile
from recompile_watch.sources.read import Unread, is_quiet, plain_size, read_blocks, read_range
from recompile_watch.workers import CAN_FORK, WorkerDiedError, in_order

# What a part holds is kept until it is handed over, and each costs about half a millisecond; the last are small, so that all jobs end together.
SMALL_PART_BYTES, LARGE_PART_BYTES = 2 << 20, 16 << 20
_SHARE_OF_REST = 4  # parts a job that the rest of the log would make
_DRAIN_BLOCK = 1 << 13  # read line by line until the records at the end are complete: few lines, as a rule


@dataclass(slots=True)
class SourceReading:
    """What was read of one source. error: why it could not be read, or not to its end. members: of a rotated log, those begun."""

    source: SourceFile
    tally: Tally = field(default_factory=Tally)
    error: SourceError | None = None
    members: list[Member] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """How to read.

    times: the time options of a source. jobs: processes. bulk: read metric lines as rows, for an analysis.
    on_progress: takes the bytes read so far. settles: when standard input falls silent, give out what waits for more.
    """

    times: Callable[[SourceFile], TimeOptions]
    jobs: int = 1
    bulk: Bulk | None = None
    on_progress: Callable[[int], None] | None = None
    settles: bool = False


class Survey:
    """One pass over all sources. ``items`` streams them; ``readings`` tells afterwards what was read."""

    def __init__(self, sources: Sequence[SourceFile], rules: Ruleset, matcher: Matcher, options: SurveyOptions) -> None:
        self._rules, self._matcher, self._options = rules, matcher, options
        self._done_bytes = 0
        self.readings = [SourceReading(source) for source in sources]

    def items(self) -> Iterator[tuple[SourceFile, list[Item]]]:
        """The events (and metric rows) of all sources, source by source, each in log order."""
        for reading in self.readings:
            try:
                for items in self._one(reading):
                    yield reading.source, items
            except SourceError as error:
                reading.error = error

    def _one(self, reading: SourceReading) -> Iterator[list[Item]]:
        source = reading.source
        size = plain_size(source) if self._options.jobs > 1 and CAN_FORK else None
        if size is None or size < 4 * SMALL_PART_BYTES or not _divides(source):
            return self._in_one_go(reading)
        return self._in_parts(reading, size)

    def _in_one_go(self, reading: SourceReading) -> Iterator[list[Item]]:
        source, unread = reading.source, Unread()
        engine = SourceEngine(source.path, self._rules, self._matcher, self._options.times(source), self._options.bulk)
        try:
            for block in self._blocks(reading, unread):
                yield engine.feed(block)
                if self._options.settles and is_quiet(source):
                    yield engine.settle()
        except SourceError as error:
            reading.error = error  # what came before it still counts
        yield engine.end()
        self._done_bytes += source.size_bytes or 0
        reading.tally = engine.tally()
        for reason, count in unread.counts.items():
            reading.tally.unread[reason] = reading.tally.unread.get(reason, 0) + count

    def _blocks(self, reading: SourceReading, unread: Unread) -> Iterator[bytes]:
        """The blocks of a source; where the files of a rotated log begin is noted."""
        source = reading.source
        if len(source.family) == 1:
            yield from read_blocks(source, unread=unread, on_progress=self._on_source_progress)
            return
        lines = size = 0

        def begin(path: str) -> None:
            reading.members.append(Member(path, lines, size))

        for block in read_blocks(source, unread=unread, on_progress=self._on_source_progress, on_member=begin):
            lines, size = lines + block.count(b"\n"), size + len(block)
            yield block

    def _on_source_progress(self, taken_bytes: int) -> None:
        if self._options.on_progress is not None:
            self._options.on_progress(self._done_bytes + taken_bytes)

    def _in_parts(self, reading: SourceReading, size: int) -> Iterator[list[Item]]:
        source = reading.source
        head = b"".join(read_range(source.path, 0, HEAD_BYTES))
        shape = shape_of(head)
        context = Context(TimeResolver(self._options.times(source), shape.first_date, shape.offset_s))
        reader = PartReader(source.path, self._rules, self._matcher, self._options.bulk)
        lines, tally = 0, Tally(size, torch_version=printed_version(head))
        held: tuple[Part, PartReading] | None = None
        for part, part_reading in self._readings(reader, source.path, _parts(source.path, size, self._options.jobs)):
            if held is not None:
                before, before_reading = held
                if agree(before_reading, part_reading, part.end):
                    yield context.push(numbered(before_reading, lines))
                    lines = _count(tally, lines, before_reading)
                else:  # a record crosses the border in a way that only reading it in one go decides
                    part = Part(before.start, part.end, before.before)
                    part_reading = _read(reader, source.path, part)
            held = (part, part_reading)
            self._on_source_progress(part.end or size)
        if held is not None:
            yield context.push(numbered(held[1], lines))
            lines = _count(tally, lines, held[1])
        yield context.flush()
        self._done_bytes += size
        tally.lines = lines
        reading.tally = tally

    def _readings(self, reader: PartReader, path: str, parts: list[Part]) -> Iterator[tuple[Part, PartReading]]:
        """The parts with their readings, in order; each job takes every n-th part."""
        results = in_order(parts, lambda part: _part_or_error(reader, path, part), min(self._options.jobs, len(parts)))
        try:
            for part, reading in zip(parts, results, strict=True):
                if isinstance(reading, str):
                    raise SourceError(reading)
                yield part, reading
        except WorkerDiedError:
            raise SourceError(f"{path}: a reading process died; try --jobs 1") from None


def _read(reader: PartReader, path: str, part: Part) -> PartReading:
    behind = read_range(path, part.end, None, block_bytes=_DRAIN_BLOCK) if part.end is not None else ()
    return reader.read(part, read_range(path, part.start, part.end), behind)


def _part_or_error(reader: PartReader, path: str, part: Part) -> PartReading | str:
    try:
        return _read(reader, path, part)
    except SourceError as error:
        return str(error)


def _divides(source: SourceFile) -> bool:
    """True when the file can be read in parts: it is no trace and each of its lines stands in it as it was printed."""
    head = b"".join(read_range(source.path, 0, HEAD_BYTES))
    return not is_trace(head) and shape_of(head).is_plain


def _parts(path: str, size: int, jobs: int) -> list[Part]:
    """Ranges that begin and end at lines, smaller towards the end."""
    parts: list[Part] = []
    start, before = 0, b""
    while start < size:
        part_bytes = (size - start) // (jobs * _SHARE_OF_REST)
        border = _line_start(path, start + min(max(SMALL_PART_BYTES, part_bytes), LARGE_PART_BYTES), size)
        end, next_before = border if border is not None else (None, b"")
        parts.append(Part(start, end, before))
        if end is None:
            break
        start, before = end, next_before
    return parts


def _line_start(path: str, near: int, size: int) -> tuple[int, bytes] | None:
    """The first line start at or behind ``near`` with the lines in front of it; None when there is none."""
    position = max(near - 1, 0)
    for block in read_range(path, position, None, block_bytes=1 << 16):
        newline = block.find(b"\n")
        if newline >= 0:
            start = position + newline + 1
            if start >= size:
                return None
            return start, lines_before(b"".join(read_range(path, max(0, start - BEFORE_BYTES - 2), start - 1)))
        position += len(block)
    return None


def _count(tally: Tally, lines: int, reading: PartReading) -> int:
    for reason, count in reading.unread.items():
        tally.unread[reason] = tally.unread.get(reason, 0) + count
    return lines + reading.lines

"""Blocks become the lines that matter, and those become records.

The reader walks from one place of interest to the next: a literal of a rule, a torch prefix that an open record
waits for, or simply the next line while a bare record is open. All other bytes are only counted. Where blocks begin
and end makes no difference, and neither does leaving the matcher out.
"""

import re
from bisect import bisect_left

from recompile_watch.core.bulk import INDENTED, BulkReader, Found
from recompile_watch.core.digits import TO_ZERO, make_room
from recompile_watch.core.fronts import without_back
from recompile_watch.core.joiner import Joiner
from recompile_watch.core.near import BEFORE_BYTES, lines_before
from recompile_watch.core.prefix_grammar import SUSPECT
from recompile_watch.core.prefixes import are_plain, first_line, peel
from recompile_watch.core.records import HEAD_LINES, MAX_RECORD_BYTES, Record
from recompile_watch.core.rows import Rows
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.shape import Unwraps
from recompile_watch.core.sightings import TableRows

MAX_LINE_BYTES = 1 << 20
_RUN_BYTES = 1 << 13
_PLAIN_BYTES = 512  # of each message line that is remembered; a storm repeats the same few thousand


class LineReader:
    """Reads the blocks of one source; ``feed`` and ``end`` return the records that became complete.

    matcher: None looks at every line (the slow reference). lines, offset: what was read so far.
    """

    def __init__(
        self, rules: Ruleset, matcher: Matcher | None, *, line: int = 1, offset: int = 0, before: bytes = b"",
        unwrapper: Unwraps | None = None, bulk: BulkReader | None = None, indent: bytes = b"",
        front: "re.Pattern[bytes] | None" = None, header: "re.Pattern[bytes] | None" = None,
        blank: bytes = b"", back: "re.Pattern[bytes] | None" = None,
    ) -> None:  # fmt: skip
        """indent, front: what stands in front of every line and is none of it; header: of each record's first one. blank, back: see ``Shape``."""
        self.joiner = Joiner(rules, matcher, front, header)
        self._unwrapper, self._indent, self._blank, self._back = unwrapper, indent, blank, back
        self._bulk = bulk if unwrapper is None and not blank and back is None else None
        self._rows: list[Rows] = []
        self._tables: list[TableRows] = []
        self._looked_at: list[tuple[int, int]] = []
        self._counted: list[tuple[int, int]] = []
        self.unread: dict[str, int] = {}
        self._matcher = matcher
        self._number = self._ordinal = line
        self._offset = offset
        self._carry: list[bytes | memoryview] = []
        self._carry_bytes = 0
        self._skipping = False
        self._before = before
        self._plain: set[bytes] = set()
        self._plain_shapes: set[bytes] = set()
        self._drained_from: int | None = None
        self.taken: list[int] = []

    @property
    def lines(self) -> int:
        """Complete lines read so far (plus those before the start of this reader)."""
        return self._number - 1

    @property
    def offset(self) -> int:
        """Where the next unread complete line begins."""
        return self._offset

    def feed(self, block: bytes) -> list[Record]:
        """Takes the next bytes of the source, of any length."""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._hold(block)
            return []
        closed: list[Record] = []
        if self._skipping:
            first = block.find(b"\n") + 1
            self._step_over(first)
            self._skipping = False
            region = block[first:cut]
        elif self._carry:
            self._carry.append(memoryview(block)[:cut])
            region = b"".join(self._carry)
        else:
            region = block if cut == len(block) else block[:cut]
        self._carry, self._carry_bytes = [], 0
        if region:
            closed = self._region(region)
        if cut < len(block):
            self._hold(block[cut:])
        return closed

    def drain(self, block: bytes, start: int) -> list[Record]:
        """Like ``feed``, but lines from offset ``start`` on may only go on with open records, not open new ones."""
        self._drained_from = start
        return self.feed(block)

    def end(self) -> list[Record]:
        """Takes the last line, if it has no newline, and closes what is open."""
        closed: list[Record] = []
        is_torn = bool(self._carry) and not self._skipping
        if is_torn:
            region = b"".join(self._carry)
            self._carry, self._carry_bytes = [], 0
            closed = self._one(region, 0, len(region), terminated=False)
            self._step(region, 0, len(region))
        if self._unwrapper is not None:
            for number, offset, text in self._unwrapper.end():
                closed += self._whole(number, offset, text, self._offset - offset, terminated=not is_torn)
        return closed + self.joiner.close(self._offset)

    def settle(self) -> list[Record]:
        """Closes what is open because nothing more comes for now; a line without its newline is held on."""
        return self.joiner.close(self._offset)

    def first_open(self) -> tuple[int, int, bytes]:
        """Offset and number of the first line that is not understood yet, and the line in front of it."""
        return self.joiner.first_open() or (self._offset, self._number, self._before)

    def _hold(self, part: bytes) -> None:
        """Keeps the beginning of a line whose newline has not come yet; of a monster only its length."""
        if self._skipping:
            self._offset += len(part)
            return
        self._carry.append(part)
        self._carry_bytes += len(part)
        if self._carry_bytes > MAX_LINE_BYTES:
            self.unread["line_too_long"] = self.unread.get("line_too_long", 0) + 1
            self._offset += self._carry_bytes
            self._carry, self._carry_bytes, self._skipping = [], 0, True
            self._before = b""

    def _step_over(self, length: int) -> None:
        self._offset += length
        self._number += 1

    def _region(self, region: bytes) -> list[Record]:
        closed: list[Record] = []
        position, size = 0, len(region)
        self._looked_at = []
        found = self._bulk.read(region, self._offset, self._number) if self._bulk is not None else None
        self._counted = found.counted[::-1] if found is not None else []
        ends = found.ends if found is not None else self._matcher.ends(region) if self._matcher is not None else None
        hit = 0
        while position < size:
            target = position
            if ends is not None and not self._must_look():
                while hit < len(ends) and ends[hit] <= position:
                    hit += 1
                limit = region.rfind(b"\n", position, ends[hit]) + 1 or position if hit < len(ends) else size
                target = self._awaited(region, position, limit)
            if target >= size:
                break
            self._step(region, position, target)
            newline = region.find(b"\n", target)
            closed += self._one(region, target, newline)
            self._step(region, target, newline + 1)
            position = self._run(region, newline + 1)
        self._step(region, position, size)
        if found is not None:
            self._keep(found)
        self._before = self._lines_before(region, size)
        return closed

    def _keep(self, found: Found) -> None:
        """Keeps what was read in bulk, but for the lines that the ordinary way has looked at."""
        if not found.rows and not found.tables:
            return
        stretches = self._looked_at
        self._rows += [left for rows in found.rows if (left := rows.outside(stretches)).offsets]
        begins = [begin for begin, _ in stretches]
        for table in found.tables:
            begin, end = table.span
            if bisect_left(begins, begin) == bisect_left(begins, end):
                self._tables.append(table)

    def in_bulk(self) -> tuple[list[Rows], list[TableRows]]:
        """The metric lines and the tables taken since the last call."""
        taken = self._rows, self._tables
        self._rows, self._tables = [], []
        return taken

    def _must_look(self) -> bool:
        return self._number <= HEAD_LINES or self._unwrapper is not None or self._blank != b"" or self.joiner.wants_every_line()

    def _awaited(self, region: bytes, position: int, limit: int) -> int:
        """The next line that goes on with an open torch record, or ``limit``."""
        for prefix, deadline in self.joiner.awaited():
            until = min(limit, max(position, deadline - self._offset + position + MAX_LINE_BYTES // 16))
            found = region.find(prefix, position, until)
            if found >= 0:
                limit = region.rfind(b"\n", position, found) + 1 or position
        return limit

    def _step(self, region: bytes, start: int, stop: int) -> None:
        """Counts the bytes and lines between two places of the region."""
        if stop <= start:
            return
        self._offset += stop - start
        while self._counted and self._counted[-1][0] <= stop:
            place, number = self._counted.pop()
            if place > start:
                start, self._number = place, number
        self._number += region.count(b"\n", start, stop)

    def _one(self, region: bytes, start: int, stop: int, *, terminated: bool = True) -> list[Record]:
        """Hands one line to the joiner; ``self._number`` and ``self._offset`` stand at its beginning."""
        raw = region[start:stop]
        self._looked_at.append((self._offset, self._offset + len(raw) + 1))
        if len(raw) > MAX_LINE_BYTES:
            self.unread["line_too_long"] = self.unread.get("line_too_long", 0) + 1
            return []
        if not self._offset:
            raw = first_line(raw)
        if self._blank:
            raw = raw.replace(self._blank, b" ")
        if self._back is not None:
            raw = without_back(self._back, raw)
        if self._indent:
            raw = raw.removeprefix(self._indent)
        if self._unwrapper is not None:
            logical = self._unwrapper.line(self._number, self._offset, raw)
            return [record for number, offset, text in logical for record in self._whole(number, offset, text, self._offset - offset - 1)]
        opens = self._drained_from is None or self._offset < self._drained_from
        before = self._lines_before(region, start) if opens else b""
        closed = self.joiner.line(self._number, self._offset, raw, before, opens=opens, terminated=terminated, size=stop - start)
        if not opens and any(record.last_line == self._number for record in (*self.joiner.open, *closed)):
            self.taken.append(self._offset)
        return closed

    def _whole(self, number: int, offset: int, text: bytes, size: int, *, terminated: bool = True) -> list[Record]:
        """Hands a line that was put together to the joiner."""
        self._ordinal += 1
        closed = self.joiner.line(number, offset, text, self._before, terminated=terminated, size=size, ordinal=self._ordinal)
        self._before = lines_before(self._before + b"\n" + text if self._before else text)
        return closed

    def _lines_before(self, region: bytes, start: int) -> bytes:
        """The lines in front of a place in the region; a region may be shorter than they are."""
        if start == 0:
            return self._before
        if start > BEFORE_BYTES + 1 or not self._before:
            return lines_before(region[max(start - BEFORE_BYTES - 2, 0) : start - 1])
        return lines_before(self._before + b"\n" + region[: start - 1])

    def _run(self, region: bytes, position: int) -> int:
        """Takes at once the lines that plainly go on with the only open record; where they end."""
        opened = self.joiner.open
        if len(opened) != 1 or self._drained_from is not None or self._unwrapper is not None or self._blank or self._back or self.joiner.is_carrying:
            return position
        record = opened[0]
        if record.rule.indented and not record.head.torch:
            return self._indented_run(record, region, position)
        return position if record.takes_bare else self._prefixed_run(record, region, position)

    def _indented_run(self, record: Record, region: bytes, position: int) -> int:
        """Takes the indented lines of a table."""
        if record.head.channel or record.head.rank is not None or record.last_line != self._number - 1:
            return position
        run = INDENTED.match(region, position)
        if run is not None:
            texts = run[0][:-1].split(b"\n")
            if not are_plain(run[0]) or len(record.texts) + len(texts) > record.rule.max_lines or record.size > MAX_RECORD_BYTES:
                return position
            for text in texts:
                record.at.append((self._number, self._offset))
                self._number += 1
                self._offset += len(text) + 1
            record.texts += texts
            record.size += len(run[0])
            record.last_line, record.end = self._number - 1, self._offset
            position = run.end()
        return position

    def _prefixed_run(self, record: Record, region: bytes, position: int) -> int:
        """Takes the lines that repeat the record's prefix byte for byte; where they end."""
        previous = region.rfind(b"\n", 0, position - 1) + 1
        raw, text = region[previous : position - 1], record.texts[-1]
        if record.last_line != self._number - 1 or not text or not raw.endswith(text) or record.rule.ends is not None:
            return position
        prefix = raw[: len(raw) - len(text)]
        while region.startswith(prefix, position):
            taken = self._take_run(record, region, position, prefix)
            if not taken:
                break
            position += taken
            self._offset += taken
            record.last_line, record.end = self._number - 1, self._offset
        return position

    def _take_run(self, record: Record, region: bytes, position: int, prefix: bytes) -> int:
        """Takes a stretch of lines that all begin with ``prefix``; its length in bytes, 0 when the next line is no such.

        Splitting the stretch at once keeps the work on each line inside the interpreter's own loops.
        """
        width = len(prefix)
        stop = region.rfind(b"\n", position, position + _RUN_BYTES)
        if stop < 0:
            return 0
        parts = self._plain_beginning(region[position + width : stop].split(b"\n" + prefix))
        length = sum(map(len, parts)) + len(parts) * (width + 1)
        if not parts or record.size + length > MAX_RECORD_BYTES or len(record.texts) + len(parts) > 50 * record.rule.max_lines:
            return 0
        record.texts += parts
        record.size += length - len(parts) * (width + 1)
        self._number += len(parts)
        return length

    def _plain_beginning(self, parts: list[bytes]) -> list[bytes]:
        """The parts as far as they are plain; one with a newline ends in lines without the prefix, and is the last."""
        if self._plain.issuperset(parts):
            return parts
        for index, text in enumerate(parts):
            if text in self._plain:
                continue
            line, foreign, _ = text.partition(b"\n")
            if line not in self._plain and not self._is_plain(line):
                return parts[:index]
            if foreign:
                return [*parts[:index], line]
        return parts

    def _is_plain(self, text: bytes) -> bool:
        """True when this is an indented message that peeling would leave as it stands; remembered."""
        if text[:1] != b" ":
            return False
        shape = text.translate(TO_ZERO)
        is_sure = shape in self._plain_shapes or _SUSPECT.search(shape) is None
        if not is_sure and _peels(text):
            return False
        if len(text) <= _PLAIN_BYTES:
            make_room(self._plain)
            self._plain.add(text)
            if is_sure:
                make_room(self._plain_shapes)
                self._plain_shapes.add(shape)
        return True


# What the shape of a text (each digit made a zero) must hold at least for peeling to change the text.
_SUSPECT = re.compile(SUSPECT.replace(b"#033", b"#000"))


def _peels(text: bytes) -> bool:
    pieces = peel(b"V0101 00:00:00.000000 1 a.py:1] " + text)
    return len(pieces) != 1 or pieces[0].text != text

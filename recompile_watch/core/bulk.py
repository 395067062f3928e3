"""Reading in bulk: lines that come very often, and tables, are read with one pass over a block.

The bot writes three lines of GPU memory for each of its two thousand forecasts a symbol, and tables by the hundred.
For a report only their columns matter, so no record and no event is made of them. Where their events are wanted one
by one (``events``) they go the ordinary way; both give the same numbers. What does not plainly look as the bot
prints it goes the ordinary way too.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from recompile_watch.core.prefix_grammar import DIALECT_HEADERS, LOGGING_LINE, Stamp
from recompile_watch.core.prefixes import are_plain
from recompile_watch.core.records import BEFORE_BYTES, MAX_RECORD_BYTES
from recompile_watch.core.rules import Rule, Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.sightings import TableRows, typed_fields
from recompile_watch.core.tables import TABLES, table_of

# The columns that a report wants of a metric line, by event; a line of any other event is no metric line.
_WANTED = {"gpu_memory": frozenset({"stage", "model", "peak_mb"}), "quote": frozenset({"symbol", "bid", "ask"})}
_WANTED_OF_COUNTERS = frozenset({"num_samples", "samples_per_batch", "count", "symbol"})
_NAME = re.compile(r"\(\?P<(\w+)>")
HEADER = re.compile(b"(?:" + b"|".join(DIALECT_HEADERS) + b")")
_LOGGING_LINE = re.compile(LOGGING_LINE)
INDENTED = re.compile(rb"(?:  [^\s][^\n]*\n)+")
_STAMP = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?")
_REST = rb"[^\n\r\x00\x1b&]*\n"
_ODD_TITLE = re.compile(rb'[\r\x00\x0b\x1b&*#"{}\[\]\\]')
_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_MAX_SHAPES = 10_000


class RowPattern(NamedTuple):
    """A bulk rule's pattern for the message and the rest of its line. names: of its columns, its groups in order."""

    rule: Rule
    pattern: re.Pattern[bytes]
    names: tuple[str, ...]


class TablePattern(NamedTuple):
    """The pattern for the title of a table."""

    rule: Rule
    pattern: re.Pattern[bytes]


class Rows(NamedTuple):
    """Lines of one bulk rule, in log order.

    region: the bytes in which they stand. base: its offset. known: the offset and the number of a line in front of
    them. offsets, headers: of each line. columns: what the pattern captured, group by group.
    """

    by: RowPattern
    region: bytes
    base: int
    known: tuple[int, int]
    offsets: list[int]
    headers: list[bytes]
    columns: list[list[bytes | None]]

    def column(self, name: str) -> Sequence[bytes | None]:
        """One column; a field that the rule fixes has the same value in every row."""
        if name in self.by.names:
            return self.columns[self.by.names.index(name)]
        fixed = self.by.rule.values.get(name)
        return [fixed.encode() if isinstance(fixed, str) else None] * len(self.offsets)

    def line(self, index: int) -> int:
        """The line number of a row."""
        offset, line = self.known
        return line + self.region.count(b"\n", offset - self.base, self.offsets[index] - self.base)

    def without(self, indexes: Collection[int]) -> "Rows":
        """The rows but for some."""
        keep = [index for index in range(len(self.offsets)) if index not in indexes]
        columns = [[column[i] for i in keep] for column in self.columns]
        return self._replace(offsets=[self.offsets[i] for i in keep], headers=[self.headers[i] for i in keep], columns=columns)

    def outside(self, stretches: Sequence[tuple[int, int]]) -> "Rows":
        """The rows that lie in none of the stretches (begin and end) of the log."""
        inside = {index for a, b in stretches for index in range(bisect_left(self.offsets, a), bisect_left(self.offsets, b))}
        return self.without(inside) if inside else self

    def split(self, places: Sequence[tuple[int, int]]) -> list["Rows"]:
        """The rows cut in front of each of the places (offset and line number, ascending)."""
        parts: list[Rows] = []
        begin, known = 0, self.known
        for place in [*places, None]:
            end = len(self.offsets) if place is None else bisect_left(self.offsets, place[0])
            if begin < end:
                columns = [column[begin:end] for column in self.columns]
                parts.append(self._replace(known=known, offsets=self.offsets[begin:end], headers=self.headers[begin:end], columns=columns))
            begin = end
            known = known if place is None or place[0] < self.base else place
        return parts


class Found(NamedTuple):
    """What a region holds: the places behind literals that the ordinary way must look at, metric lines, tables."""

    ends: list[int]
    rows: list[Rows]
    tables: list[TableRows]


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is read in bulk: patterns by the number of their literal."""

    rows: dict[int, RowPattern]
    tables: dict[int, TablePattern]

    @classmethod
    def of(cls, rules: Ruleset) -> "Bulk":
        """The bulk reading of a ruleset; only rules whose literals no other rule names take part."""
        rows: dict[int, RowPattern] = {}
        tables: dict[int, TablePattern] = {}
        owners = dict(zip(rules.literals(), rules.by_literal(), strict=True))
        for number, (literal, named_by) in enumerate(owners.items()):
            rule = rules.rules[named_by[0]]
            if any(len(owners[other]) > 1 for other in rule.literals):
                continue
            if rule.bulk and rule.event in _WANTED and rule.literals == (literal,):
                rows[number] = _row_pattern(rule)
            elif rule.indented and rule.reader in TABLES:
                tables[number] = TablePattern(rule, re.compile(rule.text))
        return cls(rows, tables)


class BulkReader:
    """Finds the metric lines and tables of a source; remembers the shapes of the headers it has seen."""

    def __init__(self, bulk: Bulk, matcher: Matcher, source: str) -> None:
        self._bulk, self._matcher, self.source = bulk, matcher, source
        self._apart = frozenset({*bulk.rows, *bulk.tables})
        self._shapes: dict[bytes, tuple[str, int] | None] = {}

    def read(self, region: bytes, offset: int, line: int) -> Found:
        """Reads a region of whole lines, which begins at ``offset`` and ``line``."""
        ends, apart = self._matcher.ends_apart(region, self._apart)
        rows: list[Rows] = []
        titles: dict[int, tuple[int, int, TablePattern]] = {}
        left: list[int] = []
        for number, row in self._bulk.rows.items():
            if apart[number]:
                left += self._take_rows(Rows(row, region, offset, (offset, line), [], [], [[] for _ in row.names]), apart[number], rows)
        for number, by in self._bulk.tables.items():
            for place in apart[number]:
                start = region.rfind(b"\n", 0, place) + 1
                stop = _table_end(region, place, by.rule)
                if stop:
                    titles[start] = (place, stop, by)
                else:
                    left.append(place)
        if left:
            ends = sorted([*ends, *left])
        return self._with_tables(region, offset, line, ends, rows, titles)

    def stamp(self, header: bytes) -> Stamp | None:
        """The time that a header carries; None when it is no header of the bot's."""
        form = self._form(header)
        if form is None:
            return None
        text = header[: form[1]].decode()
        return Stamp("zoned", text + "+00:00") if form[0] == "utc" else Stamp("local", text)

    def _form(self, header: bytes) -> tuple[str, int] | None:
        """How a header prints its time: in UTC or in local time, and with how many bytes. Headers differ in digits only."""
        shape = header.translate(_TO_ZERO)
        if shape not in self._shapes:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[shape] = _form_of(header)
        return self._shapes[shape]

    def _take_rows(self, none: Rows, places: list[int], found: list[Rows]) -> list[int]:
        """Appends the metric lines of one rule, filled into ``none``; the places of its literal that stand in no such line."""
        starts, lines = _lines_at(none.region, places)
        groups = len(none.by.names) + 1
        text = b"".join(lines)
        parts = none.by.pattern.split(text)
        headers = parts[0:-1:groups]
        strange = {header for header in set(headers) if self._form(header) is None}
        if strange or len(headers) != len(places) or len(set(starts)) != len(places) or not text.isascii():
            return self._take_some_rows(none, places, starts, lines, found)
        columns = [parts[i::groups] for i in range(1, groups)]
        found.append(none._replace(offsets=[start + none.base for start in starts], headers=headers, columns=columns))
        return []

    def _take_some_rows(self, rows: Rows, places: list[int], starts: list[int], lines: list[bytes], found: list[Rows]) -> list[int]:
        """The same where some lines hold the literal in another way, or have a header that is none of the bot's."""
        left: list[int] = []
        for place, start, text in zip(places, starts, lines, strict=True):
            match = rows.by.pattern.search(text)
            is_second = bool(rows.offsets) and rows.offsets[-1] == start + rows.base
            if match is None or is_second or not text.isascii() or self._form(text[: match.start()]) is None:
                left.append(place)
                continue
            rows.offsets.append(start + rows.base)
            rows.headers.append(text[: match.start()])
            for column, value in zip(rows.columns, match.groups(), strict=True):
                column.append(value)
        if rows.offsets:
            found.append(rows)
        return left

    def _with_tables(
        self, region: bytes, offset: int, line: int, ends: list[int], rows: list[Rows], titles: dict[int, tuple[int, int, TablePattern]]
    ) -> Found:
        """Reads the tables below the titles, but for those in which another literal stands."""
        tables: list[TableRows] = []
        left: list[int] = []
        counted = 0
        order = sorted(titles)
        for start, after in pairwise([*order, len(region)]):
            place, stop, by = titles[start]
            line += region.count(b"\n", counted, start)
            counted = start
            free = stop <= after and bisect_left(ends, start) == bisect_left(ends, stop + 1)
            table = self._table(region, start, stop, by, offset, line) if free else None
            if table is None:
                left.append(place)
            elif table.rows:
                tables.append(table)
        return Found(sorted([*ends, *left]) if left else ends, rows, tables)

    def _table(self, region: bytes, start: int, stop: int, by: TablePattern, offset: int, line: int) -> TableRows | None:
        """The table from ``start`` to ``stop``; None when its title does not plainly begin one."""
        texts = region[start : stop - 1].split(b"\n")
        header = HEADER.match(texts[0])
        at = header.end() if header is not None else 0
        head = header[0] if header is not None else _header_before(region, start) if by.rule.after_blank else b""
        stamp = self.stamp(head)
        title = by.pattern.match(texts[0], at)
        if title is None or stamp is None or not texts[0].isascii() or _ODD_TITLE.search(texts[0], at):
            return None
        texts[0] = texts[0][at:]
        fields = typed_fields(by.rule, title.groupdict())
        return table_of(by.rule, self.source, stamp, texts, fields, range(line, line + len(texts)), (start + offset, stop + offset))


def ten_seconds(header: bytes) -> Stamp:
    """The time of one of the bot's headers, rounded down to ten seconds; only behind a time in UTC stands a blank."""
    text = header[:18].decode() + "0"
    return Stamp("zoned", text + "+00:00") if header[19:20] == b" " else Stamp("local", text)


def _lines_at(region: bytes, places: list[int]) -> tuple[list[int], list[bytes]]:
    """Where the lines of some places begin, and the lines themselves."""
    find, rfind = region.find, region.rfind
    starts = [rfind(b"\n", 0, place) + 1 for place in places]
    return starts, [region[start : find(b"\n", place) + 1] for start, place in zip(starts, places, strict=True)]


def _row_pattern(rule: Rule) -> RowPattern:
    counts = rule.event == "gpu_memory" and "(?P<count>" in rule.text.decode()
    wanted = _WANTED[rule.event] | (_WANTED_OF_COUNTERS if counts else frozenset())
    text = _NAME.sub(lambda name: name[0] if name[1] in wanted else "(?:", rule.text.decode())
    pattern = re.compile(text.encode() + _REST)
    return RowPattern(rule, pattern, tuple(sorted(pattern.groupindex, key=pattern.groupindex.__getitem__)))


def _form_of(header: bytes) -> tuple[str, int] | None:
    match = HEADER.fullmatch(header)
    text = (match["utc"] or match["local"]) if match else None
    if match is None or text is None or _STAMP.fullmatch(text) is None:
        return None
    return "utc" if match["utc"] else "local", len(text)


def _header_before(region: bytes, start: int) -> bytes:
    """The header on the line before ``start``, when nothing stands behind it; else nothing."""
    begin = region.rfind(b"\n", 0, max(start - 1, 0)) + 1
    header = HEADER.match(region, begin, max(start - 1, 0))
    if header is None or start - 1 - begin > BEFORE_BYTES or region[header.end() : start - 1].strip():
        return b""
    return header[0]


def closes_table(region: bytes, position: int) -> bool:
    """True when the line at this position has a header and no indented message, so that the lines in front are a whole table."""
    header = HEADER.match(region, position)
    if header is not None:
        return not region.startswith(b"  ", header.end())
    return _LOGGING_LINE.match(region, position) is not None


def _table_end(region: bytes, place: int, rule: Rule) -> int:
    """Where the indented rows below a title end, when a line with a header follows; 0 when it is not that plain."""
    begin = region.find(b"\n", place) + 1
    run = INDENTED.match(region, begin)
    stop = run.end() if run is not None else begin
    if not closes_table(region, stop) or stop - begin > MAX_RECORD_BYTES:
        return 0
    if run is not None and (not are_plain(run[0]) or run[0].count(b"\n") >= rule.max_lines):
        return 0
    return stop

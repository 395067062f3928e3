"""Reading in bulk: lines that come very often, and tables, are read with one pass over a block.

The bot writes three lines of GPU memory for each of its two thousand forecasts a symbol, and tables by the hundred.
For a report only their columns matter, so no record and no event is made of them. Where their events are wanted one
by one (``events``) they go the ordinary way; both give the same numbers. What does not plainly look as the bot
prints it goes the ordinary way too.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, compress, islice, pairwise
from typing import NamedTuple, cast

from recompile_watch.core.digits import TO_ZERO, make_room
from recompile_watch.core.near import BEFORE_BYTES
from recompile_watch.core.prefix_grammar import LOGGING_LINE, Stamp
from recompile_watch.core.prefixes import are_plain
from recompile_watch.core.records import MAX_RECORD_BYTES, REST_LINES, has_cells
from recompile_watch.core.rows import HEADER, HeaderForm, RowForm, RowPattern, Rows, Shapes, header_form
from recompile_watch.core.rules import Rule, Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.sightings import TableRows, decode, extra_fields, typed_fields
from recompile_watch.core.tables import TABLES, table_of

_LOGGING_LINE = re.compile(LOGGING_LINE)
INDENTED = re.compile(rb"(?:  [^\s][^\n]*\n)+")
_NO_ROWS = TableRows("", "", None, {}, {}, (), (), (0, 0))  # of a table that nobody wants
# Lines behind a table that are none of its rows, as many as may stand between two of them, and the next indented one.
_INTERRUPTION = re.compile(rb"(?:(?!  )[^\n]*\n){1,%d}(?P<row>  [^\n]*)" % REST_LINES)
_FAR = re.compile(rb"(?:[^\n]*\n){%d}" % (REST_LINES + 1))
_ODD_TITLE = re.compile(rb'[\r\x00\x0b\x1b&*#"{}\[\]\\]')


class TablePattern(NamedTuple):
    """The pattern for the title of a table."""

    rule: Rule
    pattern: re.Pattern[bytes]


class Titles:
    """What the titles of one rule's tables say, remembered: a log names few symbols very often."""

    def __init__(self, by: TablePattern) -> None:
        self.rule, self._pattern = by
        self._known: dict[bytes, Mapping[str, object] | None] = {}

    def fields(self, title: bytes) -> Mapping[str, object] | None:
        """The fields that all rows below a title share; None when it does not plainly begin a table."""
        if title not in self._known:
            make_room(self._known)
            match = None if _ODD_TITLE.search(title) else self._pattern.match(title)
            self._known[title] = None if match is None else extra_fields(self.rule, typed_fields(self.rule, match.groupdict()))
        return self._known[title]


class Found(NamedTuple):
    """What a region holds: the places behind literals that the ordinary way must look at, metric lines, tables.

    counted: the line numbers of some places in it, ascending.
    """

    ends: list[int]
    counted: list[tuple[int, int]]
    rows: list[Rows]
    tables: list[TableRows]


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is read in bulk: patterns by the number of their literal. adds_up: events are added up where they are read."""

    rows: dict[int, RowPattern]
    tables: dict[int, TablePattern]
    adds_up: bool = True

    @classmethod
    def of(cls, rules: Ruleset) -> "Bulk":
        """The bulk reading of a ruleset; only rules whose literals no other rule names take part."""
        rows: dict[int, RowPattern] = {}
        tables: dict[int, TablePattern] = {}
        owners = dict(zip(rules.literals, rules.by_literal, strict=True))
        for number, named_by in enumerate(owners.values()):
            rule = rules.rules[named_by[0]]
            if any(len(owners[other]) > 1 for other in rule.literals):
                continue
            row = RowPattern.of(rule)
            if row is not None:
                rows[number] = row
            elif rule.indented and rule.reader in TABLES:
                tables[number] = TablePattern(rule, re.compile(rule.text))
        return cls(rows, tables)

    def uncounted(self) -> "Bulk":
        """What adds up no events, for several sources, in which one may stand twice."""
        rows = {number: row for number, row in self.rows.items() if row.rule.event == "gpu_memory"}
        return Bulk(rows, self.tables, adds_up=False)


class BulkReader:
    """Finds the metric lines and tables of a source; remembers the shapes of the lines and headers it has seen."""

    def __init__(self, bulk: Bulk, matcher: Matcher, source: str, *, keeps_places: bool = False) -> None:
        """keeps_places: the offset of each row of a table is wanted."""
        self._matcher, self.source, self._keeps_places = matcher, source, keeps_places
        self._rows = {number: Shapes(row) for number, row in bulk.rows.items()}
        self._tables = {number: Titles(table) for number, table in bulk.tables.items()}
        self._apart = frozenset({*bulk.rows, *bulk.tables})
        self._headers: dict[bytes, HeaderForm | None] = {}

    def read(self, region: bytes, offset: int, line: int) -> Found:
        """Reads a region of whole lines, which begins at ``offset`` and ``line``."""
        ends, apart = self._matcher.ends_apart(region, self._apart)
        rows: list[Rows] = []
        titles: dict[int, tuple[int, int, Titles]] = {}
        left: list[int] = []
        for number, shapes in self._rows.items():
            if apart[number]:
                left += _take_rows(Rows(shapes.by, region, offset, (offset, line), [], [], []), shapes, apart[number], rows)
        for number, by in self._tables.items():
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

    def _stamp(self, header: bytes) -> Stamp | None:
        """The time that a header carries; None when it is no header of the bot's."""
        shape = header.translate(TO_ZERO)
        if shape not in self._headers:
            make_room(self._headers)
            self._headers[shape] = header_form(header)
        form = self._headers[shape]
        return None if form is None else form.stamp(header)

    def _with_tables(
        self, region: bytes, offset: int, line: int, ends: list[int], rows: list[Rows], titles: dict[int, tuple[int, int, Titles]]
    ) -> Found:
        """Reads the tables below the titles, but for those in which another literal stands."""
        tables: list[TableRows] = []
        left: list[int] = []
        counted = [(0, line)]
        order = sorted(titles)
        for start, after in pairwise([*order, len(region)]):
            place, stop, by = titles[start]
            line += region.count(b"\n", counted[-1][0], start)
            counted.append((start, line))
            free = stop <= after and bisect_left(ends, start) == bisect_left(ends, stop + 1)
            table = self._table(region, start, stop, by, offset, line) if free else None
            if table is None:
                left.append(place)
            elif table.at:
                tables.append(table)
        return Found(sorted([*ends, *left]) if left else ends, counted, rows, tables)

    def _table(self, region: bytes, start: int, stop: int, by: Titles, offset: int, line: int) -> TableRows | None:
        """The table from ``start`` to ``stop``; None when its title does not plainly begin one."""
        end = region.find(b"\n", start)
        header = HEADER.match(region, start, end)
        if header is not None:
            title, stamp = region[header.end() : end], self._stamp(header[0])
        else:
            title, stamp = region[start:end], self._stamp(_line_before(region, start)) if by.rule.after_blank else None
        fixed = by.fields(title) if stamp is not None and title.isascii() else None
        if fixed is None:
            return None
        if by.rule.is_mute:
            return _NO_ROWS
        rows = region[end - len(title) : stop - 1]
        texts = decode(rows).split("\n")
        table = table_of(by.rule, self.source, stamp, texts, fixed, range(line, line + len(texts)), (start + offset, stop + offset))
        if not self._keeps_places:
            return table
        widths = [len(text) + 1 for text in rows.split(b"\n")[:-1]]
        return table._replace(offsets=[start + offset, *islice(accumulate(widths, initial=end - len(title) + offset), 1, None)], base=offset)


def _take_rows(none: Rows, shapes: Shapes, places: list[int], found: list[Rows]) -> list[int]:
    """Appends the metric lines of one rule, filled into ``none``; the places of its literal that stand in no such line."""
    region, base = none.region, none.base
    find, rfind = region.find, region.rfind
    starts = [rfind(b"\n", 0, place) + 1 for place in places]
    lines = [region[start : find(b"\n", place) + 1] for start, place in zip(starts, places, strict=True)]
    found_forms = shapes.forms(lines)
    left: list[int] = []
    if None in found_forms:
        left = [place for place, form in zip(places, found_forms, strict=True) if form is None]
        starts, lines = list(compress(starts, found_forms)), list(compress(lines, found_forms))
    if lines:
        forms = cast(list[RowForm], found_forms if not left else [*filter(None, found_forms)])
        found.append(none._replace(offsets=[start + base for start in starts], lines=lines, forms=forms))
    return left


def _line_before(region: bytes, start: int) -> bytes:
    """The line before ``start``, if it is short enough for a header; else nothing."""
    begin = region.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return region[begin : max(start - 1, 0)] if start - 1 - begin <= BEFORE_BYTES else b""


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
    if run is None and rule.second is not None and rule.second.search(region[begin : region.find(b"\n", begin)]) is not None:
        return 0  # the rows lost their indent
    stop = run.end() if run is not None else begin
    if not closes_table(region, stop) or stop - begin > MAX_RECORD_BYTES:
        return 0
    behind = _INTERRUPTION.match(region, stop)
    if behind is None and _FAR.match(region, stop) is None:
        return 0
    if run is not None and behind is not None and _goes_on(run[0], behind, rule):
        return 0
    if run is not None and (not are_plain(run[0]) or run[0].count(b"\n") >= rule.max_lines):
        return 0
    return stop


def _goes_on(rows: bytes, behind: "re.Match[bytes]", rule: Rule) -> bool:
    """True when the first indented line behind those of other streams is a row of the same table."""
    has_title = any(literal in behind[0] for literal in rule.literals)
    return not has_title and has_cells([b"", *rows.split(b"\n", 3)[:3]], behind["row"])

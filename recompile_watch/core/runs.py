"""Runs: metric lines, or the rows of one table, that follow each other in a growing log, as columns.

A watch needs of most of them only that they were there, and a few of their numbers. So no event is made of them, until
something is to be said of one: ``Run.event`` gives the very event that reading its line one by one gives.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise, repeat
from math import inf
from operator import attrgetter, itemgetter
from typing import NamedTuple

from recompile_watch.core.events import Event
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.readers import spread_bps
from recompile_watch.core.rows import HEADER, RowForm, RowPattern, Rows
from recompile_watch.core.rules import captures
from recompile_watch.core.sightings import Fields, TableRows, decode, extra_fields, number, typed_fields
from recompile_watch.core.sums import real_quotes

_NAMES = frozenset({"stage", "model", "symbol"})
Settings = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metric lines of one kind, in log order: the rule's pattern, the line and its form, of each."""

    by: Sequence[RowPattern]
    texts: Sequence[bytes]
    forms: Sequence[RowForm]
    _columns: dict[str, Sequence[object]] = field(default_factory=dict, compare=False, repr=False)

    def column(self, name: str) -> Sequence[object]:
        """A name, or a number that a report wants, of all lines; None where a line shows none."""
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def _column(self, name: str) -> Sequence[object]:
        if name in _NAMES:
            return list(map(attrgetter(name), self.forms))
        return _numbers([text[form.numbers[name]] for text, form in zip(self.texts, self.forms, strict=True)])

    def row(self, number: int) -> Fields:
        """The further fields of one line's event."""
        rule, text = self.by[number].rule, self.texts[number]
        header = HEADER.match(text)
        match = rule.pattern.match(text[header.end() if header is not None else 0 : -1])
        assert match is not None
        fields = typed_fields(rule, captures(match))
        if rule.reader == "quote":
            bid, ask = fields["bid"], fields["ask"]
            assert isinstance(bid, float) and isinstance(ask, float)
            fields["spread_bps"] = spread_bps(bid, ask)
        return extra_fields(rule, fields)

    def stamps(self) -> Iterable[tuple[Stamp | None, int]]:
        """The times as printed, each with the number of lines that follow each other with it."""
        headers = {form.header for form in dict(zip(map(id, self.forms), self.forms, strict=True)).values()}
        if len(headers) == 1:
            (header,) = headers
            return [(header.stamp(text), len([*alike])) for text, alike in groupby([text[: header.size] for text in self.texts])]
        keys = ((form.header, text[: form.header.size]) for text, form in zip(self.texts, self.forms, strict=True))
        return [(header.stamp(text), len([*alike])) for (header, text), alike in groupby(keys)]

    def cut(self, begin: int, end: int) -> "Metrics":
        """The lines from one to another."""
        return Metrics(self.by[begin:end], self.texts[begin:end], self.forms[begin:end])

    def counters(self) -> Iterator[tuple[int, int, Settings]]:
        """The lines that show a call counter: index, calls, and settings (number of samples, samples per batch).

        Of those that begin like the one before them only the first.
        """
        before = b""
        for index, (by, text, form) in enumerate(zip(self.by, self.texts, self.forms, strict=True)):
            if by.counts:
                head = text[form.head]
                if head != before:
                    calls, samples, batch = form.counter(text)
                    if calls is not None:
                        before = head
                        yield index, calls, (samples, batch)


class Lines(NamedTuple):
    """Line numbers that are counted when one is asked for. region: the bytes. base: its offset. known: offset and number of a line in it."""

    region: bytes
    base: int
    known: tuple[int, int]

    def at(self, offset: int) -> int:
        """The number of the line that begins there, behind the known one."""
        begin, line = self.known
        return line + self.region.count(b"\n", begin - self.base, offset - self.base)

    def moved(self, offset: int, line: int) -> "Lines":
        """The same so many bytes and lines further on."""
        return Lines(self.region, self.base + offset, (self.known[0] + offset, self.known[1] + line))


class Run(NamedTuple):
    """Events of one kind that follow each other, as many in one.

    offsets, lines: the place of each; lines are counted, or those of a table. cells: what they say. times: of each, as in
    ``Event``; empty until they are resolved.
    """

    kind: str
    source: str
    offsets: Sequence[int]
    lines: Lines | Sequence[int]
    cells: Metrics | TableRows
    times: Sequence[str | None] = ()

    @property
    def n(self) -> int:
        """How many events it stands for."""
        return len(self.offsets)

    def column(self, name: str) -> Sequence[object]:
        """One further field of all of them, which a report wants."""
        return self.cells.column(name)

    def stamps(self) -> Iterable[tuple[Stamp | None, int]]:
        """Their times as printed, each with the number of events that follow each other with it."""
        return self.cells.stamps() if isinstance(self.cells, Metrics) else [(self.cells.stamp, self.n)]

    def event(self, index: int) -> Event:
        """One of them."""
        extra = self.cells.row(index)
        line = self.lines.at(self.offsets[index]) if isinstance(self.lines, Lines) else self.lines[index]
        return Event(
            self.kind, self.source, line, self.offsets[index], self.times[index],
            None, None, None, None, None, None, (), False, extra,
        )  # fmt: skip

    def events(self) -> list[Event]:
        """All of them."""
        return [self.event(index) for index in range(self.n)]

    def cut(self, begin: int, end: int) -> "Run":
        """Those from one to another; a table stays whole."""
        assert isinstance(self.cells, Metrics)
        return self._replace(offsets=self.offsets[begin:end], cells=self.cells.cut(begin, end), times=self.times[begin:end])

    def moved(self, offset: int, line: int) -> "Run":
        """The same so many bytes and lines further on."""
        if not offset and not line:
            return self
        lines = self.lines.moved(offset, line) if isinstance(self.lines, Lines) else [one + line for one in self.lines]
        return self._replace(offsets=[one + offset for one in self.offsets] if offset else self.offsets, lines=lines)


def runs_of(source: str, rows: Sequence[Rows], tables: Sequence[TableRows], borders: Sequence[int], line: int = 0) -> list[Run]:
    """Metric lines and tables as runs in log order. borders: the offsets where other records begin, which no run spans.

    line: so many more lines were counted than there are.
    """
    found = [_table_run(source, table, line) for table in tables]
    if rows:
        found += _metric_runs(source, rows, [*borders, *(run.offsets[0] for run in found)], line)
    return sorted(found, key=lambda run: run.offsets[0])


def _table_run(source: str, table: TableRows, line: int) -> Run:
    return Run(table.kind, source, [table.offsets[index] for index in table.at], [table.lines[index] - line for index in table.at], table)


def _metric_runs(source: str, rows: Sequence[Rows], borders: Sequence[int], line: int) -> Iterator[Run]:
    found = [line for part in map(real_quotes, rows) for line in zip(part.offsets, repeat(part), part.lines, part.forms, strict=False)]
    if not found:
        return
    offsets, parts, texts, forms = zip(*sorted(found, key=itemgetter(0)), strict=True)
    cuts = {0, len(offsets), *(bisect_left(offsets, border) for border in borders)}
    if len({(part.by.rule.event, part.base) for part in rows}) > 1:
        cuts |= {index for index, (one, other) in enumerate(pairwise(parts), 1) if _are_apart(one, other)}
    lines = Lines(b"", 0, (0, 0))
    for begin, end in pairwise(sorted(cuts)):
        part = parts[begin]
        known = (offsets[begin], lines.at(offsets[begin])) if lines.region is part.region else (part.known[0], part.known[1] - line)
        lines = Lines(part.region, part.base, known)
        cells = Metrics([one.by for one in parts[begin:end]], texts[begin:end], forms[begin:end])
        yield Run(part.by.rule.event, source, offsets[begin:end], lines, cells)


def _are_apart(one: Rows, other: Rows) -> bool:
    """True for rows of different kinds, or of different blocks."""
    return one is not other and (one.by.rule.event != other.by.rule.event or one.region is not other.region)


def _numbers(cells: list[bytes]) -> list[float | None]:
    """Each cell as a finite number; None for one that is none."""
    try:
        values: list[float | None] = list(map(float, cells))
    except ValueError:
        return [number(decode(cell)) for cell in cells]
    return [number(decode(cell)) for cell in cells] if inf in values or -inf in values else values

"""Runs: metric lines, or the rows of one table, that follow each other in a growing log, as columns.

A watch needs of most of them only that they were there, and a few of their numbers. So no event is made of them, until
something is to be said of one: ``Run.event`` gives the very event that reading its line one by one gives.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby, islice, pairwise, repeat
from math import isfinite
from operator import attrgetter, itemgetter, ne
from typing import NamedTuple

from recompile_watch.core.events import Event
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.readers import spread_bps
from recompile_watch.core.rows import HEADER, RowForm, Rows, by_form
from recompile_watch.core.rules import captures
from recompile_watch.core.sightings import Fields, TableRows, decode, extra_fields, number, typed_fields
from recompile_watch.core.sums import real_quotes

_NAMES = frozenset({"stage", "model", "symbol"})
Settings = tuple[int | None, int | None]
Stage = tuple[str | None, str | None]  # a model and what it was doing


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metric lines of one kind, in log order: the line and its form, of each."""

    texts: Sequence[bytes]
    forms: Sequence[RowForm]
    _numbers: dict[str, Sequence[float | None]] = field(default_factory=dict, compare=False, repr=False)
    _stages: dict[Stage, Sequence[int]] = field(default_factory=dict, compare=False, repr=False)

    def column(self, name: str) -> Sequence[object]:
        """A name, or a number that a report wants, of all lines; None where a line shows none."""
        return list(map(attrgetter(name), self.forms)) if name in _NAMES else self.numbers(name)

    def numbers(self, name: str) -> Sequence[float | None]:
        """A finite number that a report wants, of all lines."""
        if name not in self._numbers:
            self._numbers[name] = _numbers([text[form.numbers[name]] for text, form in zip(self.texts, self.forms, strict=True)])
        return self._numbers[name]

    def stages(self) -> Mapping[Stage, Sequence[int]]:
        """The lines of each model and stage that they name, in log order."""
        if not self._stages:
            found: dict[Stage, list[int]] = {}
            for indexes in by_form(self.forms):
                form = self.forms[indexes[0]]
                found[form.model, form.stage] = found.get((form.model, form.stage), []) + indexes
            self._stages.update({stage: sorted(indexes) for stage, indexes in found.items()})
        return self._stages

    def row(self, number: int) -> Fields:
        """The further fields of one line's event."""
        rule, text = self.forms[number].rule, self.texts[number]
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
        headers = {form.header for form in self._forms()}
        if len(headers) == 1:
            (header,) = headers
            return [(header.stamp(text), len([*alike])) for text, alike in groupby([text[: header.size] for text in self.texts])]
        keys = ((form.header, text[: form.header.size]) for text, form in zip(self.texts, self.forms, strict=True))
        return [(header.stamp(text), len([*alike])) for (header, text), alike in groupby(keys)]

    def cut(self, begin: int, end: int) -> "Metrics":
        """The lines from one to another."""
        return Metrics(self.texts[begin:end], self.forms[begin:end])

    def counters(self) -> Iterator[tuple[int, int, Settings]]:
        """The lines that show a call counter: index, calls, and settings (number of samples, samples per batch).

        Of those that begin like the one before them only the first.
        """
        counting = {id(form) for form in self._forms() if form.counts}
        before = b""
        for index in compress(range(len(self.forms)), map(counting.__contains__, map(id, self.forms))) if counting else ():
            text, form = self.texts[index], self.forms[index]
            head = text[form.head]
            if head != before:
                calls, samples, batch = form.counter(text)
                if calls is not None:
                    before = head
                    yield index, calls, (samples, batch)

    def _forms(self) -> Iterable[RowForm]:
        """Each form once."""
        return dict(zip(map(id, self.forms), self.forms, strict=True)).values()


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

    def numbers(self, name: str) -> Sequence[float | None]:
        """One number of all of them, of a kind that metric lines show."""
        assert isinstance(self.cells, Metrics)
        return self.cells.numbers(name)

    def stages(self) -> Mapping[Stage, Sequence[int]]:
        """Which of them, of a kind that metric lines show, name which model and stage."""
        assert isinstance(self.cells, Metrics)
        return self.cells.stages()

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
    parts = [*map(real_quotes, rows)]
    kinds: dict[tuple[str, int], int] = {}  # what may follow each other in one run: lines of one kind, of one block
    found: list[tuple[int, int, bytes, RowForm]] = []
    for place, part in enumerate(parts):
        first = kinds.setdefault((part.by.rule.event, part.base), place)
        found += zip(part.offsets, repeat(first), part.lines, part.forms, strict=False)
    if not found:
        return
    offsets, firsts, texts, forms = zip(*sorted(found, key=itemgetter(0)), strict=True)
    cuts = {0, len(offsets), *(bisect_left(offsets, border) for border in borders)}
    if len(kinds) > 1:
        cuts.update(compress(range(1, len(firsts)), map(ne, firsts, islice(firsts, 1, None))))
    lines = Lines(b"", 0, (0, 0))
    for begin, end in pairwise(sorted(cuts)):
        part = parts[firsts[begin]]
        known = (offsets[begin], lines.at(offsets[begin])) if lines.region is part.region else (part.known[0], part.known[1] - line)
        lines = Lines(part.region, part.base, known)
        yield Run(part.by.rule.event, source, offsets[begin:end], lines, Metrics(texts[begin:end], forms[begin:end]))


def _numbers(cells: list[bytes]) -> Sequence[float | None]:
    """Each cell as a finite number; None for one that is none."""
    try:
        values = list(map(float, cells))
    except ValueError:
        return [number(decode(cell)) for cell in cells]
    return values if isfinite(sum(values)) else [number(decode(cell)) for cell in cells]

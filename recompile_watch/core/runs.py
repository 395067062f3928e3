"""Runs: metric lines, or the rows of tables, of a growing log, as columns.

A watch needs of most of them only that they were there, and a few of their numbers. So no event is made of them, until
something is to be said of one: ``Run.event`` gives the very event that reading its line one by one gives.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress, groupby, pairwise
from math import isfinite
from operator import attrgetter, itemgetter
from typing import NamedTuple

from recompile_watch.core.events import Event
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.readers import spread_bps
from recompile_watch.core.rows import HEADER, RowForm, Rows, Settings, by_form, counters
from recompile_watch.core.rules import captures
from recompile_watch.core.sightings import Fields, TableRows, decode, extra_fields, number, typed_fields
from recompile_watch.core.sums import real_quotes

_NAMES = frozenset({"stage", "model", "symbol"})
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
        """Those of the lines that show a call counter: index, calls and settings."""
        counting = {id(form) for form in self._forms() if form.counts}
        shown = map(counting.__contains__, map(id, self.forms)) if counting else ()
        return counters(self.texts, self.forms, [*compress(range(len(self.forms)), shown)])

    def _forms(self) -> Iterable[RowForm]:
        """Each form once."""
        return dict(zip(map(id, self.forms), self.forms, strict=True)).values()


class Tables(NamedTuple):
    """The rows of tables of one kind, in log order."""

    tables: Sequence[TableRows]

    def column(self, name: str) -> Sequence[object]:
        """One field of all rows."""
        return [cell for table in self.tables for cell in table.column(name)]

    def row(self, number: int) -> Fields:
        """The fields of one row."""
        for table in self.tables:
            if number < len(table.at):
                return table.row(number)
            number -= len(table.at)
        raise IndexError(number)

    def stamps(self) -> Iterable[tuple[Stamp | None, int]]:
        """The times as printed, each with the number of rows below it."""
        return [(table.stamp, len(table.at)) for table in self.tables]

    def cut(self, begin: int, end: int) -> "Tables":
        """The tables from one row to another, between which whole tables stand."""
        ends = accumulate(len(table.at) for table in self.tables)
        return Tables([table for table, last in zip(self.tables, ends, strict=True) if begin < last <= end])


@dataclass(slots=True)
class Lines:
    """Line numbers that are counted when one is asked for.

    region: the bytes. base: its offset. first: offset and number of a line in it, in front of all others. known: of the latest asked for.
    """

    region: bytes
    base: int
    first: tuple[int, int]
    known: tuple[int, int] | None = None

    def at(self, offset: int) -> int:
        """The number of the line that begins there."""
        begin, line = self.first if self.known is None or self.known[0] > offset else self.known
        line += self.region.count(b"\n", begin - self.base, offset - self.base)
        self.known = offset, line
        return line

    def moved(self, offset: int, line: int) -> "Lines":
        """The same so many bytes and lines further on."""
        return Lines(self.region, self.base + offset, (self.first[0] + offset, self.first[1] + line))


class Run(NamedTuple):
    """Events of one kind, in log order, as many in one.

    offsets, lines: the place of each; lines are counted, or those of tables. cells: what they say. times: of each, as in
    ``Event``; empty until they are resolved.
    """

    kind: str
    source: str
    offsets: Sequence[int]
    lines: Lines | Sequence[int]
    cells: Metrics | Tables
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

    def dated(self, resolve: Callable[[Stamp | None], str | None]) -> "Run":
        """The same with their times."""
        return self._replace(times=[time for stamp, n in self.cells.stamps() for time in [resolve(stamp)] * n])

    def cut(self, begin: int, end: int) -> "Run":
        """Those from one to another; a table stays whole."""
        if begin == 0 and end == self.n:
            return self
        lines = self.lines if isinstance(self.lines, Lines) else self.lines[begin:end]
        return Run(self.kind, self.source, self.offsets[begin:end], lines, self.cells.cut(begin, end), self.times[begin:end])

    def moved(self, offset: int, line: int) -> "Run":
        """The same so many bytes and lines further on."""
        lines = self.lines.moved(offset, line) if isinstance(self.lines, Lines) else [one + line for one in self.lines]
        return self._replace(offsets=[one + offset for one in self.offsets] if offset else self.offsets, lines=lines)


class Stretch(NamedTuple):
    """All that stands between two records, as runs: one of each kind, whose events may stand between those of another."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> int:
        """The offset of its first event."""
        return min(run.offsets[0] for run in self.runs)

    @property
    def last(self) -> int:
        """The offset of its last event."""
        return max(run.offsets[-1] for run in self.runs)

    def events(self) -> list[Event]:
        """All of them, in log order."""
        return sorted((event for run in self.runs for event in run.events()), key=attrgetter("offset"))

    def without(self, offsets: Sequence[int]) -> Iterator["Stretch"]:
        """What stands between some of its events, which are given by their offsets, ascending; it may be nothing."""
        for after, before in pairwise([-1, *offsets, self.last + 1]):
            parts = [(run, bisect_right(run.offsets, after), bisect_left(run.offsets, before)) for run in self.runs]
            yield Stretch(tuple(run.cut(begin, end) for run, begin, end in parts if begin < end))

    def moved(self, offset: int, line: int) -> "Stretch":
        """The same so many bytes and lines further on."""
        return Stretch(tuple(run.moved(offset, line) for run in self.runs)) if offset or line else self


def stretches_of(source: str, rows: Sequence[Rows], tables: Sequence[TableRows], borders: Iterable[int], line: int = 0) -> list[Stretch]:
    """Metric lines and tables as stretches, in log order.

    borders: the offsets where other records begin, which no stretch spans; nor does one span two blocks. line: so many more
    lines were counted than there are.
    """
    cuts = sorted({*borders, *(part.base for part in rows), *(table.base for table in tables)})
    found: dict[int, list[Run]] = {}
    for run in [*_metric_runs(source, rows, cuts, line), *_table_runs(source, tables, cuts, line)]:
        found.setdefault(bisect_right(cuts, run.offsets[0]), []).append(run)
    return [Stretch(tuple(runs)) for _, runs in sorted(found.items(), key=itemgetter(0))]


def _metric_runs(source: str, rows: Sequence[Rows], cuts: Sequence[int], line: int) -> Iterator[Run]:
    together: dict[tuple[str, int], list[Rows]] = {}
    for part in filter(attrgetter("offsets"), map(real_quotes, rows)):
        together.setdefault((part.by.rule.event, part.base), []).append(part)
    for (kind, base), parts in together.items():
        found = [one for part in parts for one in zip(part.offsets, part.lines, part.forms, strict=True)]
        offsets, texts, forms = zip(*sorted(found, key=itemgetter(0)), strict=True)
        known = min(part.known for part in parts)
        lines = Lines(parts[0].region, base, (known[0], known[1] - line))
        for begin, end in _between(offsets, cuts):
            yield Run(kind, source, offsets[begin:end], lines, Metrics(texts[begin:end], forms[begin:end]))


def _table_runs(source: str, tables: Sequence[TableRows], cuts: Sequence[int], line: int) -> Iterator[Run]:
    together: dict[str, list[TableRows]] = {}
    for table in sorted(tables, key=attrgetter("span")):
        together.setdefault(table.kind, []).append(table)
    for kind, alike in together.items():
        for begin, end in _between([table.span[0] for table in alike], cuts):
            some = alike[begin:end]
            offsets = [table.offsets[index] for table in some for index in table.at]
            yield Run(kind, source, offsets, [table.lines[index] - line for table in some for index in table.at], Tables(some))


def _between(offsets: Sequence[int], cuts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The offsets that stand between two cuts, as begin and end."""
    return pairwise(sorted({0, len(offsets), *(bisect_left(offsets, cut) for cut in cuts)}))


def _numbers(cells: list[bytes]) -> Sequence[float | None]:
    """Each cell as a finite number; None for one that is none."""
    try:
        values = list(map(float, cells))
    except ValueError:
        return [number(decode(cell)) for cell in cells]
    return values if isfinite(sum(values)) else [number(decode(cell)) for cell in cells]

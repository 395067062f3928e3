"""Metric lines added up: what a report needs of the thousands of lines that were read in bulk."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby, islice, pairwise
from math import inf
from operator import itemgetter, ne
from typing import NamedTuple

from recompile_watch.core.counters import Count, telling
from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.rows import TEN_SECONDS, RowForm, Rows, by_form, counters
from recompile_watch.core.sightings import Sighting, TableRows, decode, number

MARK_KINDS = frozenset({"model_load", "compile_mode", "gpu_memory"})  # lines of one sum lie between two events of these

# The fields that name and hold a value of which a report only wants the latest.
LATEST = {"strategy_daily_return": ("strategy", "return"), "validation_loss": ("target", "value")}


@dataclass(slots=True)
class Memory:
    """GPU memory of one stage of a model, in MB of 1e6 bytes. offset, line, stamp: of its first line.

    highest, last: peaks. last_offset: of the line that shows the last one.
    """

    stage: str | None
    model: str | None
    offset: int
    line: int
    stamp: Stamp | None
    highest: float | None = None
    last: float | None = None
    last_offset: int = 0
    n: int = 0


# The lines of ten seconds: their time as printed (rounded down), how many, and the highest GPU memory by model.
Moment = tuple[Stamp, int, Mapping[str | None, float]]


class Sums(NamedTuple):
    """Metric lines of one kind in one stretch of a log.

    offset, last_offset, stamps, times: of the first and the last (with a time).
    memory: by stage and model. counts: the call counters that may tell a latency.
    quotes: real ones by symbol. latest: the latest value by symbol and name. moments: the lines by time, and ``dated`` with
    their time resolved.
    """

    kind: str
    source: str
    n: int
    offset: int
    last_offset: int
    stamps: tuple[Stamp | None, Stamp | None]
    memory: list[Memory]
    counts: list[Count]
    quotes: Mapping[str | None, int]
    latest: Mapping[tuple[object, object], object]
    moments: list[Moment]
    times: tuple[str | None, str | None] = (None, None)
    dated: Sequence[tuple[str, int, Mapping[str | None, float]]] = ()

    def event(self, line: int, offset: int, time: str | None, **fields: object) -> Event:
        """The event that one of its lines stands for."""
        return Event(self.kind, self.source, line, offset, time, None, None, None, None, None, None, (), False, {**EXTRA_FIELDS[self.kind], **fields})


class _Part(NamedTuple):
    """Rows of one rule. groups: the rows of each form. peaks: GPU memory of each, minus infinity where it shows none; empty for other kinds."""

    rows: Rows
    groups: list[list[int]]
    peaks: list[float]


Seen = Sighting | TableRows | Sums


def added_up(seen: list[Sighting | TableRows], rows: list[Rows], tables: list[TableRows], source: str, *, adds_up: bool = True) -> list[Seen]:
    """Everything in the order of the log; the rows added up between the events that must see them in order. adds_up: of tables the latest values."""
    found: list[Seen] = []
    all_tables = [*(item for item in seen if isinstance(item, TableRows)), *tables]
    shared = _shared_lines(seen) if all_tables else frozenset()
    for kind in LATEST if adds_up else ():
        tables_of_kind = sorted((table for table in all_tables if table.kind == kind), key=offset_of)
        groups = groupby(tables_of_kind, key=lambda table: table.span[0] in shared)
        found += [_latest([*group]) for is_shared, group in groups if not is_shared]
    marks = [(item.event.offset, item.event.line) for item in seen if isinstance(item, Sighting) and item.event.kind in MARK_KINDS]
    for item in [*seen, *tables]:
        if not adds_up or not isinstance(item, TableRows) or item.kind not in LATEST:
            found.append(item)
        elif item.span[0] in shared:
            found.append(_latest([item]))
    for stretch in _stretches(rows, marks):
        found.append(_sum(stretch, source))
    return sorted(found, key=offset_of) if rows or all_tables else found


def _shared_lines(seen: list[Sighting | TableRows]) -> frozenset[int]:
    """The lines in which several things begin; there each keeps its place."""
    return frozenset(one for one, other in pairwise(sorted(map(offset_of, seen))) if one == other)


def _stretches(rows: list[Rows], marks: list[tuple[int, int]]) -> Iterable[list[Rows]]:
    """The rows of one kind that lie between two marks."""
    stretches: dict[tuple[str, int], list[Rows]] = {}
    for part in (part for item in map(real_quotes, rows) for part in item.split(marks)):
        stretches.setdefault((part.by.rule.event, bisect_left(marks, (part.offsets[0], 0))), []).append(part)
    return stretches.values()


def offset_of(item: Seen) -> int:
    """Where it begins in the log."""
    match item:
        case Sums():
            return item.offset
        case TableRows():
            return item.span[0]
        case _:
            return item.event.offset


def _sum(parts: list[Rows], source: str) -> Sums:
    kind = parts[0].by.rule.event
    first, last = min(parts, key=lambda rows: rows.offsets[0]), max(parts, key=lambda rows: rows.offsets[-1])
    taken = [_Part(rows, by_form(rows.forms), _peaks(rows) if kind == "gpu_memory" else []) for rows in parts]
    memory = [one for part in taken for one in _memory(part)] if kind == "gpu_memory" else []
    counts = [count for rows in parts if rows.forms[0].counts for count in _counts(rows)]
    quotes = Counter(form.symbol for rows in parts for form in rows.forms) if kind == "quote" else {}
    n = sum(len(rows.offsets) for rows in parts)
    memory.sort(key=lambda one: one.offset)
    counts.sort(key=itemgetter(0))
    offsets, stamps = (first.offsets[0], last.offsets[-1]), (first.stamp(0), last.stamp(-1))
    return Sums(kind, source, n, *offsets, stamps, memory, telling(counts), quotes, {}, _moments(taken))


def _peaks(rows: Rows) -> list[float]:
    cells = rows.column("peak_mb")
    if not b"".join(cells).translate(None, b"0123456789."):
        try:
            peaks = list(map(float, cells))
        except ValueError:  # an empty cell, or two points in one
            peaks = [inf]
        if inf not in peaks:
            return peaks
    return [-inf if (value := _number(cell)) is None else value for cell in cells]


def _moments(parts: list[_Part]) -> list[Moment]:
    """The rows by the time that their headers print, with the highest of their peaks, if they have any."""
    counts: dict[Stamp, int] = {}
    highest: dict[Stamp, dict[str | None, float]] = {}
    for part in parts:
        runs = _runs(part)
        for stamp, begin, end in runs:
            counts[stamp] = counts.get(stamp, 0) + end - begin
        if part.peaks:
            _see_peaks(part, runs, highest)
    return [(stamp, n, highest.get(stamp, {})) for stamp, n in counts.items()]


def _runs(part: _Part) -> list[tuple[Stamp, int, int]]:
    """The ten seconds in which the rows were written, each with the begin and end of its rows."""
    rows, _, _ = part
    keys: list[object] = [line[:TEN_SECONDS] for line in rows.lines]
    if len({form.header.is_utc for form in _forms(part)}) > 1:
        keys = [(key, form.header.is_utc) for key, form in zip(keys, rows.forms, strict=True)]
    begins = [0, *compress(range(1, len(keys)), map(ne, keys, islice(keys, 1, None)))]
    return [(rows.forms[begin].header.ten_seconds(rows.lines[begin]), begin, end) for begin, end in pairwise([*begins, len(keys)])]


def _see_peaks(part: _Part, runs: list[tuple[Stamp, int, int]], highest: dict[Stamp, dict[str | None, float]]) -> None:
    """Takes in the highest peak of each run of rows, by model."""
    rows, _, peaks = part
    models = {form.model for form in _forms(part)}
    for model in models:
        mine = peaks if len(models) == 1 else [peak if form.model == model else -inf for peak, form in zip(peaks, rows.forms, strict=True)]
        for stamp, begin, end in runs:
            peak, by_model = max(mine[begin:end]), highest.setdefault(stamp, {})
            if peak > by_model.get(model, -inf):
                by_model[model] = peak


def _forms(part: _Part) -> Iterable[RowForm]:
    return (part.rows.forms[indexes[0]] for indexes in part.groups)


def of_table(table: TableRows) -> Sums:
    """One table of such a kind, with its time resolved, as a sum."""
    dated: list[tuple[str, int, Mapping[str | None, float]]] = [] if table.time is None else [(table.time, len(table.at), {})]
    return _latest([table])._replace(times=(table.time, table.time), moments=[], dated=dated)


def _latest(tables: list[TableRows]) -> Sums:
    """Tables of one kind, in log order, as one sum."""
    dated = [table for table in tables if table.stamp is not None] or tables
    first, last, latest = dated[0], dated[-1], dict[tuple[object, object], object]()
    name, value = LATEST[first.kind]
    for table in tables:
        latest.update(zip(zip(table.column("symbol"), table.column(name), strict=True), table.column(value), strict=True))
    count = sum(len(table.at) for table in tables)
    span = (first.span[0], last.span[1] - 1)
    no_peaks: Mapping[str | None, float] = {}
    moments = [(table.stamp, len(table.at), no_peaks) for table in tables if table.stamp is not None]
    return Sums(first.kind, first.source, count, *span, (first.stamp, last.stamp), [], [], {}, latest, moments)


def _memory(part: _Part) -> list[Memory]:
    by_names: dict[tuple[str | None, str | None], list[list[int]]] = {}
    for indexes in part.groups:
        form = part.rows.forms[indexes[0]]
        by_names.setdefault((form.stage, form.model), []).append(indexes)
    return [_one_memory(part, *names, groups) for names, groups in by_names.items()]


def _one_memory(part: _Part, stage: str | None, model: str | None, groups: list[list[int]]) -> Memory:
    """The memory of the rows of several forms that name the same."""
    rows, _, peaks = part
    first, n = min(indexes[0] for indexes in groups), sum(map(len, groups))
    highest = max(max(map(peaks.__getitem__, indexes)) for indexes in groups)
    if highest == -inf:
        return Memory(stage, model, rows.offsets[first], rows.line(first), rows.stamp(first), n=n)
    last = max(next((index for index in reversed(indexes) if peaks[index] > -inf), 0) for indexes in groups)
    return Memory(stage, model, rows.offsets[first], rows.line(first), rows.stamp(first), highest, peaks[last], rows.offsets[last], n)


def _counts(rows: Rows) -> Iterator[Count]:
    for index, calls, settings in counters(rows.lines, rows.forms, range(len(rows.lines))):
        form = rows.forms[index]
        yield rows.offsets[index], form.header.stamp(rows.lines[index]), calls, form.model, form.symbol, settings


def real_quotes(rows: Rows) -> Rows:
    """Without the quotes that have a zero side: they are none."""
    if rows.by.rule.event != "quote":
        return rows
    sides = zip(rows.column("bid"), rows.column("ask"), strict=True)
    wrong = {index for index, (bid, ask) in enumerate(sides) if not (_is_price(bid) and _is_price(ask))}
    return rows.without(wrong) if wrong else rows


def _is_price(cell: bytes) -> bool:
    value = _number(cell)
    return value is not None and value > 0


def _number(cell: bytes) -> float | None:
    return number(decode(cell))

"""Metric lines added up: what a report needs of the thousands of lines that were read in bulk."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter, ne
from typing import NamedTuple

from recompile_watch.core.counters import Count, telling
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.rows import Rows
from recompile_watch.core.sightings import Sighting, TableRows, decode, number, typed

MARK_KINDS = frozenset({"model_load", "compile_mode", "gpu_memory"})  # lines of one sum lie between two events of these


_COUNTER = ("count", "num_samples", "samples_per_batch")
_EXACT_DIGITS = 19  # no number with fewer is too large
# The fields that name and hold a value of which a report only wants the latest.
_LATEST = {"strategy_daily_return": ("strategy", "return"), "validation_loss": ("target", "value")}


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


class Sums(NamedTuple):
    """Metric lines of one kind in one stretch of a log.

    offset, last_offset, stamps, times: of the first and the last (with a time).
    memory: by stage and model. counts: the call counters that may tell a latency.
    quotes: real ones by symbol. latest: the latest value by symbol and name.
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
    times: tuple[str | None, str | None] = (None, None)


Seen = Sighting | TableRows | Sums


def added_up(seen: list[Sighting | TableRows], rows: list[Rows], tables: list[TableRows], source: str) -> list[Seen]:
    """Everything in the order of the log; the rows added up between the events that must see them in order."""
    found: list[Seen] = []
    all_tables = [*(item for item in seen if isinstance(item, TableRows)), *tables]
    for kind in _LATEST:  # in front of what else stands in the same line
        found += _latest([table for table in all_tables if table.kind == kind])
    marks = [(item.event.offset, item.event.line) for item in seen if isinstance(item, Sighting) and item.event.kind in MARK_KINDS]
    found += [item for item in [*seen, *tables] if not isinstance(item, TableRows) or item.kind not in _LATEST]
    for stretch in _stretches(rows, marks):
        found.append(_sum(stretch, source))
    return sorted(found, key=offset_of) if rows or all_tables else found


def _stretches(rows: list[Rows], marks: list[tuple[int, int]]) -> Iterable[list[Rows]]:
    """The rows of one kind that lie between two marks."""
    stretches: dict[tuple[str, int], list[Rows]] = {}
    for part in (part for item in map(_real_quotes, rows) for part in item.split(marks)):
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
    memory = [one for rows in parts for one in _memory(rows)] if kind == "gpu_memory" else []
    counts = [count for rows in parts if rows.by.counts for count in _counts(rows)]
    quotes = Counter(form.symbol for rows in parts for form in rows.forms) if kind == "quote" else {}
    n = sum(len(rows.offsets) for rows in parts)
    memory.sort(key=lambda one: one.offset)
    counts.sort(key=itemgetter(0))
    stamps = first.stamp(0), last.stamp(-1)
    return Sums(kind, source, n, first.offsets[0], last.offsets[-1], stamps, memory, telling(counts), quotes, {})


def _latest(tables: list[TableRows]) -> list[Sums]:
    """Tables of one kind as one sum."""
    if not tables:
        return []
    tables = sorted(tables, key=offset_of)
    dated = [table for table in tables if table.stamp is not None] or tables
    first, last, latest = dated[0], dated[-1], dict[tuple[object, object], object]()
    name, value = _LATEST[first.kind]
    for table in tables:
        latest.update(zip(zip(table.column("symbol"), table.column(name), strict=True), table.column(value), strict=True))
    count = sum(len(table.at) for table in tables)
    span = (first.span[0], last.span[1] - 1)
    return [Sums(first.kind, first.source, count, *span, (first.stamp, last.stamp), [], [], {}, latest)]


def _memory(rows: Rows) -> list[Memory]:
    by_names: dict[tuple[str | None, str | None], list[list[int]]] = {}
    for indexes in rows.by_form():
        form = rows.forms[indexes[0]]
        by_names.setdefault((form.stage, form.model), []).append(indexes)
    return [_one_memory(rows, *names, groups) for names, groups in by_names.items()]


def _one_memory(rows: Rows, stage: str | None, model: str | None, groups: list[list[int]]) -> Memory:
    """The memory of the rows of several forms that name the same."""
    first, n = min(indexes[0] for indexes in groups), sum(map(len, groups))
    peaks = [peak for indexes in groups if (peak := _peak(rows, indexes)) is not None]
    highest = max((peak for peak, _, _ in peaks), default=None)
    _, at, last = max(peaks, key=itemgetter(1), default=(None, 0, None))
    return Memory(stage, model, rows.offsets[first], rows.line(first), rows.stamp(first), highest, last, rows.offsets[at], n)


def _peak(rows: Rows, indexes: list[int]) -> tuple[float, int, float] | None:
    """The highest peak of rows of one form; the row with the last one, and that. None when they show no number."""
    cut = rows.forms[indexes[0]].numbers["peak_mb"]
    cells = [rows.lines[index][cut] for index in indexes]
    if not cells[0].translate(None, b"0123456789.") and len(cells[0]) < _EXACT_DIGITS:  # they are as long, and order as their texts do
        highest, last = _number(max(cells)), _number(cells[-1])
        return None if highest is None or last is None else (highest, indexes[-1], last)
    values = [(value, index) for cell, index in zip(cells, indexes, strict=True) if (value := _number(cell)) is not None]
    return (max(values)[0], values[-1][1], values[-1][0]) if values else None


def _counts(rows: Rows) -> list[Count]:
    """The counters; of lines that only differ in their count only the first is looked at."""
    pairs = list(zip(rows.lines, rows.forms, strict=True))
    keys = [(form.symbol, form.header, line[: form.header.size], line[form.settings]) for line, form in pairs]
    found: list[Count] = []
    for index in [0, *compress(range(1, len(keys)), map(ne, keys, keys[1:]))]:
        line, form = pairs[index]
        calls, number, batch = [_int(line[form.numbers[name]]) for name in _COUNTER]
        if calls is not None:
            found.append((rows.offsets[index], form.header.stamp(line), calls, form.model, form.symbol, (number, batch)))
    return found


def _real_quotes(rows: Rows) -> Rows:
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


def _int(cell: bytes) -> int | None:
    if cell.isdigit() and len(cell) < 19:
        return int(cell)
    value = typed(decode(cell), "int")
    return value if isinstance(value, int) else None

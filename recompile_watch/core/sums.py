"""Metric lines added up: what a report needs of the thousands of lines that were read in bulk."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice, pairwise
from operator import itemgetter, ne
from typing import NamedTuple

from recompile_watch.core.counters import Count, telling
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.rows import TEN_SECONDS, RowForm, Rows
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


class _Alike(NamedTuple):
    """Rows of one form, in log order.

    offsets, lines: of each. first: index of the first one in ``rows``. runs: the ten seconds in which they were written,
    with the begin and end of the rows of each. peaks: the highest of each run, None where it shows none.
    """

    rows: Rows
    form: RowForm
    first: int
    offsets: Sequence[int]
    lines: Sequence[bytes]
    runs: list[tuple[Stamp, int, int]]
    peaks: list[float | None]


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
    alike = [group for rows in parts for group in _by_form(rows)]
    memory = _memory(alike) if kind == "gpu_memory" else []
    counts = [count for rows in parts if rows.by.counts for count in _counts(rows)]
    quotes = Counter(form.symbol for rows in parts for form in rows.forms) if kind == "quote" else {}
    n = sum(len(rows.offsets) for rows in parts)
    counts.sort(key=itemgetter(0))
    offsets, stamps = (first.offsets[0], last.offsets[-1]), (first.stamp(0), last.stamp(-1))
    return Sums(kind, source, n, *offsets, stamps, memory, telling(counts), quotes, {}, _moments(alike))


def _by_form(rows: Rows) -> Iterable[_Alike]:
    """The rows of each form."""
    for indexes in rows.by_form():
        form = rows.forms[indexes[0]]
        lines = [rows.lines[index] for index in indexes]
        keys = [line[:TEN_SECONDS] for line in lines]
        begins = [0, *compress(range(1, len(keys)), map(ne, keys, islice(keys, 1, None)))]
        runs = [(form.header.ten_seconds(lines[begin]), begin, end) for begin, end in pairwise([*begins, len(lines)])]
        yield _Alike(rows, form, indexes[0], [rows.offsets[index] for index in indexes], lines, runs, _peaks(form, lines, runs))


def _peaks(form: RowForm, lines: list[bytes], runs: list[tuple[Stamp, int, int]]) -> list[float | None]:
    cut = form.numbers.get("peak_mb")
    if cut is None:
        return [None] * len(runs)
    cells = [line[cut] for line in lines]
    return [_highest(cells[begin:end]) for _, begin, end in runs]


def _highest(cells: list[bytes]) -> float | None:
    """The highest number in cells of one form; None when they show none."""
    if not cells[0].translate(None, b"0123456789.") and len(cells[0]) < _EXACT_DIGITS:  # they are as long, and order as their texts do
        return _number(max(cells))
    return max((value for cell in cells if (value := _number(cell)) is not None), default=None)


def _moments(alike: list[_Alike]) -> list[Moment]:
    """The rows by the time that their headers print, with the highest of their peaks, if they have any."""
    counts: dict[Stamp, int] = {}
    highest: dict[Stamp, dict[str | None, float]] = {}
    for group in alike:
        model = group.form.model
        for (stamp, begin, end), peak in zip(group.runs, group.peaks, strict=True):
            counts[stamp] = counts.get(stamp, 0) + end - begin
            if peak is not None:
                by_model = highest.setdefault(stamp, {})
                by_model[model] = max(peak, by_model.get(model, peak))
    return [(stamp, n, highest.get(stamp, {})) for stamp, n in counts.items()]


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
    no_peaks: Mapping[str | None, float] = {}
    moments = [(table.stamp, len(table.at), no_peaks) for table in tables if table.stamp is not None]
    return [Sums(first.kind, first.source, count, *span, (first.stamp, last.stamp), [], [], {}, latest, moments)]


def _memory(alike: list[_Alike]) -> list[Memory]:
    by_names: dict[tuple[str | None, str | None], list[_Alike]] = {}
    for group in alike:
        by_names.setdefault((group.form.stage, group.form.model), []).append(group)
    return sorted((_one_memory(*names, groups) for names, groups in by_names.items()), key=lambda one: one.offset)


def _one_memory(stage: str | None, model: str | None, groups: list[_Alike]) -> Memory:
    """The memory of the rows of several forms that name the same."""
    first = min(groups, key=lambda group: group.offsets[0])
    highest = max((peak for group in groups for peak in group.peaks if peak is not None), default=None)
    last_offset, last = max((found for group in groups if (found := _last_peak(group)) is not None), default=(0, None))
    line, stamp, n = first.rows.line(first.first), first.rows.stamp(first.first), sum(len(group.lines) for group in groups)
    return Memory(stage, model, first.offsets[0], line, stamp, highest, last, last_offset, n)


def _last_peak(group: _Alike) -> tuple[int, float] | None:
    """The last peak that the rows show, and the offset of its line in front."""
    cut = group.form.numbers["peak_mb"]
    pairs = zip(reversed(group.offsets), reversed(group.lines), strict=True)
    return next(((offset, value) for offset, line in pairs if (value := _number(line[cut])) is not None), None)


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

"""Metric lines added up: what a report needs of the thousands of lines that were read in bulk."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import inf
from operator import itemgetter, ne
from typing import NamedTuple

from recompile_watch.core.bulk import BulkReader, Rows, ten_seconds
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.sightings import Sighting, TableRows, decode, number, typed

MARK_KINDS = frozenset({"model_load", "compile_mode", "gpu_memory"})  # lines of one sum lie between two events of these


# The fields that name and hold a value of which a report only wants the latest.
_LATEST = {"strategy_daily_return": ("strategy", "return"), "validation_loss": ("target", "value")}

# A call counter as a usage line shows it: offset, time as printed, calls, model, symbol, (number of samples, samples per batch).
# A plain tuple, of which many go from one process to another.
Count = tuple[int, tuple[str, str], int, str | None, str | None, tuple[int | None, int | None]]


@dataclass(slots=True)
class Memory:
    """GPU memory of one stage of a model, in MB of 1e6 bytes. offset, line, stamp: of its first line."""

    stage: str | None
    model: str | None
    offset: int
    line: int
    stamp: Stamp | None
    highest: float | None = None
    last: float | None = None
    n: int = 0


# The lines of ten seconds: their time as printed (rounded down), how many, and the highest GPU memory by model.
Moment = tuple[Stamp, int, Mapping[str | None, float]]


class Sums(NamedTuple):
    """Metric lines of one kind in one stretch of a log.

    offset, last_offset, stamps, times: of the first and the last (with a time).
    memory: by stage and model. counts: the call counters, but for those that say the same moment again.
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


Seen = Sighting | TableRows | Sums


def added_up(seen: list[Sighting | TableRows], rows: list[Rows], tables: list[TableRows], reader: BulkReader | None) -> list[Seen]:
    """Everything in the order of the log; the rows added up between the events that must see them in order."""
    if reader is None:
        return [*seen]
    found: list[Seen] = []
    all_tables = [*(item for item in seen if isinstance(item, TableRows)), *tables]
    for kind in _LATEST:  # in front of what else stands in the same line
        found += _latest([table for table in all_tables if table.kind == kind])
    marks = [(item.event.offset, item.event.line) for item in seen if isinstance(item, Sighting) and item.event.kind in MARK_KINDS]
    found += [item for item in seen if not isinstance(item, TableRows)]
    found += [table for table in all_tables if table.kind not in _LATEST]
    for stretch in _stretches(rows, marks):
        found.append(_sum(stretch, reader))
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


def _sum(parts: list[Rows], reader: BulkReader) -> Sums:
    kind = parts[0].by.rule.event
    first, last = min(parts, key=lambda rows: rows.offsets[0]), max(parts, key=lambda rows: rows.offsets[-1])
    stamps = reader.stamp(first.headers[0]), reader.stamp(last.headers[-1])
    peaks = [_peaks(rows) for rows in parts] if kind == "gpu_memory" else []
    memory = [one for rows, numbers in zip(parts, peaks, strict=False) for one in _memory(rows, numbers, reader)]
    counts = [count for rows in parts if "count" in rows.by.names for count in _counts(rows, reader)]
    quotes = Counter(symbol for rows in parts for symbol in rows.column("symbol")) if kind == "quote" else {}
    n = sum(len(rows.offsets) for rows in parts)
    memory.sort(key=lambda one: one.offset)
    offsets = first.offsets[0], last.offsets[-1]
    moments = _moments(parts, peaks)
    return Sums(kind, reader.source, n, *offsets, stamps, memory, sorted(counts, key=itemgetter(0)), _texts(quotes), {}, moments)


def _moments(parts: list[Rows], peaks: list[list[float]]) -> list[Moment]:
    """The rows by the time that their headers print, with the highest of their ``peaks``, if they have any."""
    counts: dict[Stamp, int] = {}
    highest: dict[Stamp, dict[str | None, float]] = {}
    for index, rows in enumerate(parts):
        runs = _runs(rows.headers)
        for stamp, begin, end in runs:
            counts[stamp] = counts.get(stamp, 0) + end - begin
        if peaks:
            _see_peaks(rows.column("model"), peaks[index], runs, highest)
    return [(stamp, n, highest.get(stamp, {})) for stamp, n in counts.items()]


def _runs(headers: list[bytes]) -> list[tuple[Stamp, int, int]]:
    """The times of the headers, each with the begin and end of the rows that share it."""
    begins: list[int] = []
    stamps: list[Stamp] = []
    last = b"", b""
    for begin in [0, *compress(range(1, len(headers)), map(ne, headers, headers[1:]))]:  # most lines have the header of the line before
        header = headers[begin]
        key = header[:18], header[19:20]
        if key != last:
            begins.append(begin)
            stamps.append(ten_seconds(header))
            last = key
    return list(zip(stamps, begins, [*begins[1:], len(headers)], strict=True))


def _see_peaks(
    models: Sequence[bytes | None], peaks: list[float], runs: list[tuple[Stamp, int, int]], highest: dict[Stamp, dict[str | None, float]]
) -> None:
    """Takes in the highest peak of each run of rows, by model."""
    distinct = set(models)
    for model in distinct:
        mine = peaks if len(distinct) == 1 else [peak if one == model else -inf for one, peak in zip(models, peaks, strict=True)]
        name = _text(model)
        for stamp, begin, end in runs:
            peak, by_model = max(mine[begin:end]), highest.setdefault(stamp, {})
            if peak > by_model.get(name, -inf):
                by_model[name] = peak


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
    count = sum(len(table.rows) for table in tables)
    span = (first.span[0], last.span[1] - 1)
    no_peaks: Mapping[str | None, float] = {}
    moments = [(table.stamp, len(table.rows), no_peaks) for table in tables if table.stamp is not None]
    return [Sums(first.kind, first.source, count, *span, (first.stamp, last.stamp), [], [], {}, latest, moments)]


def _peaks(rows: Rows) -> list[float]:
    """The peak of each row; minus infinity where it shows none."""
    cells = rows.column("peak_mb")
    try:
        numbers = list(map(float, cells))  # type: ignore[arg-type]
    except (ValueError, TypeError):  # a cell that is no number, or none at all
        numbers = [inf]
    if inf not in numbers:
        return numbers
    return [-inf if (value := _number(cell)) is None else value for cell in cells]


def _memory(rows: Rows, peaks: list[float], reader: BulkReader) -> list[Memory]:
    keys = list(zip(rows.column("stage"), rows.column("model"), strict=True))
    by_key: dict[tuple[bytes | None, bytes | None], list[float]] = {key: [] for key in set(keys)}
    if len(by_key) == 1:
        by_key[keys[0]] = peaks
    else:
        for key, peak in zip(keys, peaks, strict=True):
            by_key[key].append(peak)
    found = []
    for (stage, model), mine in by_key.items():
        first, highest = keys.index((stage, model)), max(mine)
        last = next((peak for peak in reversed(mine) if peak > -inf), None)
        stamp = reader.stamp(rows.headers[first])
        shown = highest if highest > -inf else None
        found.append(Memory(_text(stage), _text(model), rows.offsets[first], rows.line(first), stamp, shown, last, len(mine)))
    return found


def _counts(rows: Rows, reader: BulkReader) -> list[Count]:
    """The counters; of lines that only differ in their count only the first is looked at."""
    settings = list(zip(*map(rows.column, ("num_samples", "samples_per_batch", "symbol")), strict=True))
    read = {(number, batch, symbol): ((_int(number), _int(batch)), _text(symbol)) for number, batch, symbol in set(settings)}
    keys = list(zip(settings, rows.headers, strict=True))
    calls_of, model = rows.column("count"), _text(rows.column("model")[0])
    found: list[Count] = []
    for index in [0, *compress(range(1, len(keys)), map(ne, keys, keys[1:]))]:
        calls = _int(calls_of[index])
        if calls is not None:
            key, header = keys[index]
            numbers, symbol = read[key]
            stamp = reader.stamp(header)
            assert stamp is not None  # a row without one is none
            found.append((rows.offsets[index], (stamp.form, stamp.text), calls, model, symbol, numbers))
    return found


def _real_quotes(rows: Rows) -> Rows:
    """Without the quotes that have a zero side: they are none."""
    if rows.by.rule.event != "quote":
        return rows
    sides = zip(rows.column("bid"), rows.column("ask"), strict=True)
    wrong = {index for index, (bid, ask) in enumerate(sides) if not (_is_price(bid) and _is_price(ask))}
    return rows.without(wrong) if wrong else rows


def _is_price(cell: bytes | None) -> bool:
    value = _number(cell)
    return value is not None and value > 0


def _number(cell: bytes | None) -> float | None:
    return None if cell is None else number(decode(cell))


def _texts(counts: Mapping[bytes | None, int]) -> dict[str | None, int]:
    texts: dict[str | None, int] = {}
    for cell, count in counts.items():
        text = _text(cell)
        texts[text] = texts.get(text, 0) + count
    return texts


def _text(cell: bytes | None) -> str | None:
    return None if cell is None else decode(cell).strip()


def _int(cell: bytes | None) -> int | None:
    if cell is not None and cell.isdigit() and len(cell) < 19:
        return int(cell)
    value = None if cell is None else typed(decode(cell), "int")
    return value if isinstance(value, int) else None

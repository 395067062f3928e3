"""Tables that the bot prints: each row becomes an event of its own."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from math import inf
from typing import NamedTuple

from recompile_watch.core.digits import TEXT_TO_ZERO, make_room
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.rules import Rule
from recompile_watch.core.sightings import TableRows, number

_TABLE_FIELDS = {
    "Return": "return", "Sharpe": "sharpe", "FinalDay": "final_day", "AnnualRet": "annual_return", "ForecastRet": "forecast_return",
    "Final Day": "final_day", "Annual Return": "annual_return",
}  # fmt: skip
_DASHES = re.compile(r"\s*(?:-{2,}(?:\s+-{2,})+|={2,}(?:\s+={2,})+)\s*", re.ASCII)
# A number, or what stands where there is none. The end of a log may cut off the digits of its exponent.
_VALUE = re.compile(
    r"[-+\u2212]?(?:\d[\d.,]*|\.\d+)(?:e[-+]?\d*)?%?|[-+]?(?:nan|inf|infinity)|[-\u2013\u2014]{1,3}|n/?a|none|null", re.ASCII | re.IGNORECASE
)
_JSON = '"{}[]'


class Cells(NamedTuple):
    """What a table says: its fields by name, and the index of each row's text."""

    columns: Mapping[str, Sequence[object]]
    at: Sequence[int]


def table_of(
    rule: Rule, source: str, stamp: Stamp | None, texts: list[str], fixed: Mapping[str, object], lines: Sequence[int], span: tuple[int, int]
) -> TableRows:
    """The table that a rule's reader finds in ``texts``; the other arguments as in ``TableRows``."""
    columns, at = TABLES[rule.reader or ""](texts)
    return TableRows(rule.event, source, stamp, fixed, columns, at, lines, span)


_LAST_NUMBER = re.compile(r"-?\d+(?P<rest>\.\d*)?$", re.ASCII)
_DECIMALS = re.compile(r"\.\d+", re.ASCII)


def without_cut_number(texts: list[str]) -> list[str]:
    """The table's texts without a number at the very end that has fewer decimals than those in front of it: ``0.01`` of ``0.0122``."""
    last = _LAST_NUMBER.search(texts[-1])
    others = _DECIMALS.findall("\n".join([*texts[:-1], texts[-1][: last.start()]])) if last is not None else []
    if last is None or not others or len(last["rest"] or "") >= max(map(len, others)):
        return texts
    return [*texts[:-1], texts[-1][: last.start()]]


class _Columns(NamedTuple):
    """The columns of a text table. cuts: from the begin of each to that of the next. cells: where the cells of a row stand, by its shape."""

    names: Sequence[str]
    cuts: Sequence[slice]
    cells: dict[str, Sequence[slice]]


@lru_cache(maxsize=64)
def _columns(header: str, dashes: str) -> _Columns | None:
    """The columns of a text table, cut where the row of dashes says, so that names may hold spaces; None below no such row.

    A cell that sticks out into the gap goes to the column it begins in.
    """
    if _DASHES.fullmatch(dashes) is None:
        return None
    starts = [match.start() for match in re.finditer("-+|=+", dashes)]
    line = header.expandtabs()
    cuts = {line[a:b].strip(): slice(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)}
    return _Columns([*cuts], [*cuts.values()], {})


def _cells(line: str, shape: str, columns: _Columns, *, is_last: bool) -> list[str] | None:
    """As ``_row``; rows of one shape have their cells in the same places."""
    known = columns.cells.get(shape)
    if known is not None:
        return [line[place] for place in known]
    cells = _row(line, columns.cuts, is_last=is_last)
    if cells is not None and any(cells[1:]):
        places = [_stripped(line, cut) for cut in columns.cuts]
        if [line[place] for place in places] == cells:
            make_room(columns.cells)
            columns.cells[shape] = places
    return cells


def _stripped(line: str, cut: slice) -> slice:
    """The cut without the blanks around what stands in it."""
    text = line[cut]
    start = cut.start + len(text) - len(text.lstrip())
    return slice(start, start + len(text.strip()))


def _row(line: str, cuts: Sequence[slice], *, is_last: bool) -> list[str] | None:
    """The cells of a row, a name and at least one value behind it; None for a line that is none, such as JSON.

    Where a border runs through a word, or a cell holds two values, the values are counted from the right.
    is_last: the end of the log may have cut its first value, so that the name is whole.
    """
    cells = [line[cut].strip() for cut in cuts]
    name, *values = cells
    if name == "" or name[0] in _JSON:
        return None
    words = line.split()
    if words == cells and _VALUE.fullmatch(values[-1]) is not None:  # most rows
        return cells
    is_torn = any(not line[cut.start - 1 : cut.start].isspace() and line[cut.start : cut.start + 1].strip() for cut in cuts[1:])
    if is_torn or any(" " in value and _are_values(value.split()) for value in values):
        values = words[1 - len(cuts) :]
        return [" ".join(words[: 1 - len(cuts)]), *values] if len(words) >= len(cuts) and _are_values(values) else None
    if any(map(_VALUE.fullmatch, values)):
        return cells
    return cells if is_last and not any(values) and len(line) >= cuts[1].start else None


def _are_values(words: Sequence[str]) -> bool:
    return all(map(_VALUE.fullmatch, words))


def _body(texts: list[str]) -> tuple[int, dict[str, Sequence[str]]]:
    """The index of a table's first row, and its columns by name; the rows end in front of a line that is none."""
    index, columns = 0, None
    for index, text in enumerate(texts):
        columns = _columns(texts[index - 1], text) if "--" in text or "==" in text else None
        if columns is not None:
            break
    if columns is None or not index:
        return 0, {}
    lines = texts[index + 1 :]
    shapes = "\n".join(lines).translate(TEXT_TO_ZERO).split("\n")
    found = (_cells(line, shape, columns, is_last=number == len(lines)) for number, (line, shape) in enumerate(zip(lines, shapes, strict=False), 1))
    rows = [*takewhile(bool, found)]
    return index + 1, dict(zip(columns.names, zip(*filter(None, rows), strict=True), strict=True)) if rows else {}


def _strategies(texts: list[str]) -> Cells:
    begin, columns = _body(texts)
    first = next(iter(columns.values()), [])
    strategies = first
    if "Strategy" in columns and columns["Strategy"] is not first:
        strategies = [name or other for name, other in zip(columns["Strategy"], first, strict=True)]
    numbers = {field: _numbers(columns[name]) for name, field in _TABLE_FIELDS.items() if name in columns}
    return Cells({"strategy": strategies, **numbers}, range(begin, begin + len(strategies)))


_TARGETS = {f"{target}{ending}": target.lower() for target in ("Close", "High", "Low") for ending in (" Val Loss", "")}


def _validation_losses(texts: list[str]) -> Cells:
    begin, columns = _body(texts)
    metrics, values = columns.get("Metric", []), _numbers(columns.get("Value", []))
    rows = [(index, _TARGETS[metric], value) for index, (metric, value) in enumerate(zip(metrics, values, strict=False), begin) if metric in _TARGETS]
    return Cells({"target": [target for _, target, _ in rows], "value": [value for _, _, value in rows]}, [index for index, _, _ in rows])


_STRATEGY_LINE = re.compile(
    r"Average (?P<name>.+?)(?: Strategy)? (?P<what>Sharpe|Final Day Return|Return): (?P<value>[-+]?[\d.,]+(?:e[-+]?\d+)?|nan)\s*$", re.ASCII
)
_LINE_FIELDS = {"Return": 1, "Sharpe": 2, "Final Day Return": 3}


def _strategy_lines(texts: list[str]) -> Cells:
    """The backtest of 2024, before the table: ``Average Simple Strategy Return: -0.0176``, three lines a strategy."""
    found: dict[str, tuple[int, list[object]]] = {}
    for index, text in enumerate(texts):
        line = _STRATEGY_LINE.search(text)
        if line is not None:
            name = line["name"]
            strategy = "Buy & Hold" if name == "Buy and Hold" else name.removesuffix(" Buy and Hold")
            values = found.setdefault(strategy, (index, [strategy, None, None, None]))[1]
            values[_LINE_FIELDS[line["what"]]] = number(line["value"])
    columns = zip(*(values for _, values in found.values()), strict=True)
    return Cells(dict(zip(("strategy", "return", "sharpe", "final_day"), columns, strict=False)), [index for index, _ in found.values()])


_NOT_DAILY_RETURNS = frozenset({"annual", "composite"})  # annualised, and a score
_RETURNS = re.compile(r"returns(?:: |\[)(?P<pairs>(?:[ ,]*\w+=[^\s\]|,]+)*)")
_PAIR = re.compile(r"(\w+)=([-+\u2212]?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?|nan)")


def _daily_returns(texts: list[str]) -> Cells:
    """The ``returns: avg=0.017 … maxdiff=0.017`` line of a symbol's analysis, or its compact form."""
    pairs: list[tuple[str, str]] = []
    at: list[int] = []
    for index, text in enumerate(texts):
        line = _RETURNS.search(text) if "returns" in text else None
        if line is not None:
            pairs += [pair for pair in _PAIR.findall(line["pairs"]) if pair[0] not in _NOT_DAILY_RETURNS]
            at += [index] * (len(pairs) - len(at))
    return Cells({"strategy": [name for name, _ in pairs], "return": _numbers([value for _, value in pairs])}, at)


def _numbers(cells: Sequence[str]) -> list[float | None]:
    """Each cell as a number; None for one that is none."""
    try:
        values = [None if cell == "-" else float(cell) for cell in cells]
    except ValueError:
        return [_number(cell) for cell in cells]
    return [number(cell) for cell in cells] if inf in values or -inf in values else values


def _number(cell: str) -> float | None:
    """A cell as a number, a percentage as a fraction; None when it is none."""
    cell = cell.replace("\u2212", "-")
    return number(cell[:-1] + "e-2") if cell.endswith("%") else number(cell)


TABLES: dict[str, Callable[[list[str]], Cells]] = {
    "strategy_table": _strategies,
    "strategy_lines": _strategy_lines,
    "validation_losses": _validation_losses,
    "daily_returns": _daily_returns,
}

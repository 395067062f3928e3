"""Tables that the bot prints: each row becomes an event of its own."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.rules import Rule
from recompile_watch.core.sightings import TableRows, number

_TABLE_FIELDS = {
    "Return": "return", "Sharpe": "sharpe", "FinalDay": "final_day", "AnnualRet": "annual_return", "ForecastRet": "forecast_return",
    "Final Day": "final_day", "Annual Return": "annual_return",
}  # fmt: skip
_DASHES = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*", re.ASCII)
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


@lru_cache(maxsize=64)
def _columns(header: str, dashes: str) -> dict[str, slice] | None:
    """The columns of a text table by name, cut where the dash row says, so that names may hold spaces; None below no dash row.

    A cell that sticks out into the gap goes to the column it begins in.
    """
    if _DASHES.fullmatch(dashes) is None:
        return None
    starts = [match.start() for match in re.finditer("-+", dashes)]
    line = header.expandtabs()
    cuts = [slice(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return {line[cut].strip(): cut for cut in cuts}


def _is_row(cells: tuple[str, ...]) -> bool:
    """True for a name with a cell behind it; a line of JSON has no name."""
    return cells[0] != "" and cells[0][0] not in _JSON and any(cells[1:])


def _body(texts: list[str]) -> tuple[int, dict[str, list[str]]]:
    """The index of a table's first row, and its columns by name; the rows end where one has no name, no cell behind it, or is JSON."""
    index, cuts = 0, None
    for index, text in enumerate(texts):
        cuts = _columns(texts[index - 1], text) if "--" in text else None
        if cuts is not None:
            break
    if cuts is None or not index:
        return 0, {}
    lines = texts[index + 1 :]
    columns = {name: [line[cut].strip() for line in lines] for name, cut in cuts.items()}
    first, *others = columns.values()
    end = next((at for at, row in enumerate(zip(first, *others, strict=True)) if not _is_row(row)), len(first))
    behind_name = list(cuts.values())[1].start
    if end == len(first) - 1 and _is_row((first[end], "-")) and len(lines[end]) >= behind_name:
        end += 1  # the log ends inside of its first number, so that the name is whole
    if end < len(first):
        columns = {name: cells[:end] for name, cells in columns.items()}
    return index + 1, columns


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
_PAIR = re.compile(r"(\w+)=(-?\d+(?:\.\d+)?(?:e-?\d+)?|nan)")


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


def _numbers(cells: list[str]) -> list[float | None]:
    """Each cell as a number; None for one that is none."""
    try:
        values = [None if cell == "-" else float(cell) for cell in cells]
    except ValueError:
        return [number(cell) for cell in cells]
    return [number(cell) for cell in cells] if inf in values or -inf in values else values


TABLES: dict[str, Callable[[list[str]], Cells]] = {
    "strategy_table": _strategies,
    "strategy_lines": _strategy_lines,
    "validation_losses": _validation_losses,
    "daily_returns": _daily_returns,
}

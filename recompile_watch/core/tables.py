"""Tables that the bot prints: each row becomes an event of its own."""

import re
from collections.abc import Callable, Iterator

from recompile_watch.core.records import Record
from recompile_watch.core.sightings import Fields, decode, typed

Row = tuple[int, Fields]
_TABLE_FIELDS = {
    "Return": "return", "Sharpe": "sharpe", "FinalDay": "final_day", "AnnualRet": "annual_return", "ForecastRet": "forecast_return",
    "Final Day": "final_day", "Annual Return": "annual_return",
}  # fmt: skip


def table_rows(texts: list[bytes]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a text table with a dash row under its header: (index of the text, column name to cell).

    Columns are cut where the dash row says, so that names may hold spaces; a cell that sticks out into the gap
    goes to the column it begins in.
    """
    dash = next((i for i, text in enumerate(texts) if re.fullmatch(rb"\s*-{2,}(?:\s+-{2,})+\s*", text)), None)
    if not dash:
        return []
    starts = [m.start() for m in re.finditer(rb"-+", texts[dash])]
    columns = [slice(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    header = decode(texts[dash - 1].expandtabs())
    names = [header[column].strip() for column in columns]
    rows = []
    for index, text in enumerate(texts[dash + 1 :], dash + 1):
        line = decode(text)
        cells = [line[column].strip() for column in columns]
        if not cells[0]:
            break
        rows.append((index, dict(zip(names, cells, strict=True))))
    return rows


def _strategies(record: Record, fields: Fields) -> Iterator[Row]:
    for index, row in table_rows(record.texts):
        cells = dict(fields)
        for name, cell in row.items():
            if name in _TABLE_FIELDS:
                cells[_TABLE_FIELDS[name]] = _number(cell)
        cells["strategy"] = row.get("Strategy") or next(iter(row.values()))
        yield index, cells


def _number(cell: str) -> float | None:
    value = typed(cell, "float")
    return value if isinstance(value, float) else None


def _validation_losses(record: Record, fields: Fields) -> Iterator[Row]:
    for index, row in table_rows(record.texts):
        target = row.get("Metric", "").removesuffix(" Val Loss")
        if target in ("Close", "High", "Low"):
            yield index, {**fields, "target": target.lower(), "value": _number(row.get("Value", ""))}


_STRATEGY_LINE = re.compile(rb"Average (?P<name>.+?)(?: Strategy)? (?P<what>Sharpe|Final Day Return|Return): (?P<value>-?[\d.]+|nan)\s*$")
_LINE_FIELDS = {b"Return": "return", b"Sharpe": "sharpe", b"Final Day Return": "final_day"}


def _strategy_lines(record: Record, fields: Fields) -> Iterator[Row]:
    """The backtest of 2024, before the table: ``Average Simple Strategy Return: -0.0176``, three lines a strategy."""
    rows: dict[str, Row] = {}
    for index, text in enumerate(record.texts):
        line = _STRATEGY_LINE.search(text)
        if line is not None:
            name = decode(line["name"])
            strategy = "Buy & Hold" if name == "Buy and Hold" else name.removesuffix(" Buy and Hold")
            cells = rows.setdefault(strategy, (index, {**fields, "strategy": strategy}))[1]
            cells[_LINE_FIELDS[line["what"]]] = _number(decode(line["value"]))
    yield from rows.values()


_NOT_DAILY_RETURNS = frozenset({"annual", "composite"})  # annualised, and a score
_RETURNS = re.compile(rb"returns(?:: |\[)(?P<pairs>[^\]|\n]*)")
_PAIR = re.compile(r"(\w+)=(-?\d+(?:\.\d+)?(?:e-?\d+)?|nan)")


def _daily_returns(record: Record, fields: Fields) -> Iterator[Row]:
    """The ``returns: avg=0.017 … maxdiff=0.017`` line of a symbol's analysis, or its compact form."""
    for index, text in enumerate(record.texts):
        line = _RETURNS.search(text) if b"returns" in text else None
        if line is None:
            continue
        for name, value in _PAIR.findall(decode(line["pairs"])):
            if name not in _NOT_DAILY_RETURNS:
                yield index, {"symbol": fields.get("symbol"), "strategy": name, "return": _number(value)}


TABLES: dict[str, Callable[[Record, Fields], Iterator[Row]]] = {
    "strategy_table": _strategies,
    "strategy_lines": _strategy_lines,
    "validation_losses": _validation_losses,
    "daily_returns": _daily_returns,
}


def place_of(record: Record, index: int) -> tuple[int, int]:
    """Line number and offset of one of the record's texts."""
    return record.at[index] if index < len(record.at) else (record.line, record.offset)


def is_cut_row(record: Record, index: int) -> bool:
    """True for a last row that the end of the input cuts."""
    return record.cut and record.unterminated and index == len(record.texts) - 1

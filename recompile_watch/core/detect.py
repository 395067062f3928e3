"""Records become events: the fields that a rule's patterns found, and the readers of the forms that need code.

An event leaves here without its time (only ``context`` knows year and zone) and without what only neighbouring
events can tell, such as whether a limit refused the recompile.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from recompile_watch.core.causes import parse_reason
from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.core.prefixes import Stamp
from recompile_watch.core.records import Record
from recompile_watch.core.rules import Ruleset, captures

Fields = dict[str, object]
_NOT_EXTRA = frozenset({"function", "file", "line_no", "compile_id", "reason", "entry"})
_CACHED_LINES = 50_000
_REASON_LINE = re.compile(rb"\s*- (?:(?=!?\d{1,9}/\d{1,9}(?:/\d+)?(?:_\d+)?:(?: |$))|(?!User stack trace:| {2,}\S))")
_ENTRY_START = re.compile(rb"\s- (?=!?\d{1,9}/\d{1,9}(?:/\d+)?:(?: |$))")
_FRAME = re.compile(rb"File \"(?P<file>[^\"\n]+)\", (?:line (?P<line>\d+), )?in (?P<function>[^\n]+?)(?=\s{2,}|\n|$| [a-z_]+ ?[=(.])")
_INDENTED = re.compile(rb"\n(?=\S)")


class Sighting(NamedTuple):
    """An event that still lacks its time, with the times as printed."""

    event: Event
    stamp: Stamp | None
    outer_stamp: Stamp | None
    rule: str
    headed: bool


class Detector:
    """Turns closed records of one source into sightings."""

    def __init__(self, rules: Ruleset, source: str) -> None:
        self._source = source
        self._inner = tuple(rule for rule in rules.rules if rule.anywhere)
        self._reasons: dict[bool, dict[bytes, tuple[Reason, ...]]] = {}

    def sightings(self, record: Record) -> list[Sighting]:
        """The events of one record, in the order of their lines; empty when it proves to be only a quotation."""
        reader = _READERS.get(record.rule.reader or "", _read_plain)
        found = reader(self, record, _fields(record))
        if record.rule.inside:
            found += self._inside(record)
        return found

    def _inside(self, record: Record) -> list[Sighting]:
        """Events that another rule finds inside the record's message, such as torch's error in the bot's words."""
        message = record.message()
        for rule in self._inner:
            if rule is record.rule or not any(literal in message for literal in rule.literals):
                continue
            match = rule.pattern.search(message)
            if match is not None:
                inner = Record(rule, match, record.line, record.offset, record.head, record.stamp, [message], record.at, cut=record.cut)
                return _READERS.get(rule.reader or "", _read_plain)(self, inner, _fields(inner))
        return []

    def sighting(
        self, record: Record, fields: Mapping[str, object], *, reasons: tuple[Reason, ...] = (), partial: bool | None = None,
        place: tuple[int, int] | None = None,
    ) -> Sighting:  # fmt: skip
        """One event of the record: known fields go where they belong, all others become the kind's extra fields."""
        rule, head = record.rule, record.head
        extra = {**EXTRA_FIELDS.get(rule.event, {}), **rule.values}
        for name, value in fields.items():
            if name not in _NOT_EXTRA:
                extra[name] = value
        compile_id = fields.get("compile_id") or (head.compile_id.decode() if head.compile_id else None)
        if not reasons and fields.get("reason") is not None:
            reasons = (Reason(_text(fields.get("entry")), str(fields["reason"]).strip(), "other"),)
        if partial is None:
            partial = (record.cut and record.unterminated) or any(fields.get(name) is None for name in rule.needs)
        line, offset = place or (record.line, record.offset)
        line_no = fields.get("line_no")
        event = Event(
            rule.event, self._source, line, offset, None, head.rank, head.pid, _text(compile_id), _text(fields.get("function")),
            _text(fields.get("file")), line_no if isinstance(line_no, int) else None, reasons, partial, extra,
        )  # fmt: skip
        return Sighting(event, record.stamp, head.outer_stamp, rule.id, head.headed)

    def reasons(self, lines: list[bytes], function: str | None) -> Iterator[Reason]:
        """The reasons on the lines of a recompile block, remembered: a storm repeats each line up to the limit."""
        known = self._reasons.setdefault(function == "forward", {})
        found = list(map(known.get, lines))
        if None in found:
            if len(known) >= _CACHED_LINES:
                known.clear()
            for index, reasons in enumerate(found):
                if reasons is None:
                    found[index] = known[lines[index]] = tuple(_parse_reason_line(lines[index], function))
        return chain.from_iterable(reasons or () for reasons in found)


def _parse_reason_line(line: bytes, function: str | None) -> Iterator[Reason]:
    for part in _ENTRY_START.split(line) if line.count(b" - ") > 1 else (line,):
        start = _REASON_LINE.match(part)
        if start is not None and part[start.end() :].strip():
            yield parse_reason(decode(part[start.end() :]), function)
        elif part[:1].isdigit() or part[:1] == b"!":
            yield parse_reason(decode(part), function)


def decode(text: bytes) -> str:
    """Log bytes as text; what is not UTF-8 becomes the replacement character."""
    return text.decode("utf-8", "replace")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _fields(record: Record) -> Fields:
    """What the rule's patterns found in the record, typed."""
    rule = record.rule
    fields: Fields = {}
    groups = captures(record.match) if record.match is not None else {}
    if rule.finds:
        message = record.message()
        for pattern in rule.finds:
            match = pattern.search(message)
            if match is not None:
                groups.update((name, value) for name, value in captures(match).items() if value is not None)
    for name, value in groups.items():
        fields[name] = None if value is None else typed(decode(value), "int" if name == "line_no" else rule.types.get(name, "str"))
    return fields


def typed(text: str, kind: str) -> object:
    """A captured text as its type; None when it is no such value (``-`` in a table, an overlong number)."""
    text = text.strip()
    try:
        match kind:
            case "int":
                return int(text) if len(text) < 19 else None
            case "float" | "optional_float":
                return float(text.replace(",", ""))
            case "bool":
                return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(text.lower())
    except ValueError:
        return None
    return text


def frames(message: bytes) -> list[tuple[str, int | None, str]]:
    """The stack frames in a message, outermost first: (file, line, function)."""
    return [(decode(m["file"]), int(m["line"]) if m["line"] else None, decode(m["function"]).strip()) for m in _FRAME.finditer(message)]


def _read_plain(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    return [detector.sighting(record, fields)]


def _read_recompile(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    """A recompile block of any version: one reason per cache entry, newest first."""
    function = _text(fields.get("function"))
    reasons: list[Reason] = []
    if record.match is not None:
        for line in _reasons_on_head(record.texts[0][record.match.end() :]):
            reasons += detector.reasons([line], function)
    reasons += detector.reasons(record.texts[1:] if record.match is not None else record.texts, function)
    if any(reason.entry is not None for reason in reasons):  # then the others are lines of a user stack
        reasons = [reason for reason in reasons if reason.entry is not None]
    index = _index(record)
    cut = (record.cut and record.unterminated) or ((record.cut or record.torn) and index is not None and len(reasons) < index)
    partial = cut or (record.rule.event == "recompile" and (not reasons or record.match is None or function is None))
    fields = {"function": None, "file": None, "line_no": None, **fields}
    return [detector.sighting(record, fields, reasons=tuple(reasons), partial=partial)]


def _reasons_on_head(rest: bytes) -> list[bytes]:
    """Reasons that stand behind the head on the same line: newlines lost, or the tuple repr of torch 2.1."""
    old = re.search(rb"triggered by the following guard failures?: (?P<list>.+)", rest, re.DOTALL)
    if old is None:
        parts = _ENTRY_START.split(rest)
        return parts[1:] if len(parts) > 1 else [b"- " + p for p in re.split(rb"\s{2,}- (?!  )", rest)[1:]]
    text = old["list"].rstrip(b"\"')")
    items = re.findall(rb"(?:\"((?:[^\"\\]|\\.)+)\"|'((?:[^'\\]|\\.)+)')(?=, |\])", text) if text.startswith(b"[") else []
    return [b"- " + (a or b).replace(b"\\'", b"'") for a, b in items] or [b"- " + text.replace(b"\\'", b"'").lstrip(b"[")]


def _index(record: Record) -> int | None:
    """How many entries the frame has, by the compile id that is being tried: ``[6/8]`` has eight."""
    cid = record.head.compile_id
    tail = cid.rpartition(b"/")[2].partition(b"_")[0] if cid and b"/" in cid else b""
    return int(tail) if tail.isdigit() else None


def _read_limit_hit(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    if not (record.head.headed or record.cut) and fields.get("function") is None:
        return []  # somebody quotes the first line
    raw = fields.pop("reason", None)
    function = _text(fields.get("function"))
    reasons: tuple[Reason, ...] = ()
    if isinstance(raw, str):
        text = re.split(r"\s+(?:User stack trace:|[Tt]o log all recompilation|[Tt]o diagnose recompilation)", raw, maxsplit=1)[0].strip()
        items = re.findall(r"\"([^\"]+)\"|'((?:[^'\\]|\\.)+)'", text) if text.startswith("[") else []
        reasons = tuple(parse_reason(a or b, function) for a, b in items) or (parse_reason(text, function),)
    partial = any(fields.get(name) is None for name in record.rule.needs) or (not record.ended and (record.cut or not reasons))
    return [detector.sighting(record, fields, reasons=reasons, partial=partial)]


def _read_graph_break(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    message = record.message()
    # Dynamo's own frames come behind "Traceback" in torch before 2.6; the user's are those in front of it.
    user = frames(message.partition(b"Traceback (most recent call last):")[0] or message)
    same = [frame for frame in user if fields.get("file") in (None, frame[0]) and fields.get("line_no") in (None, frame[1])]
    if same:
        fields["file"], fields["line_no"], fields["function"] = same[-1]
    function = _text(fields.get("function"))
    if function is not None:
        fields["function"] = function
    reason = fields.get("reason")
    if isinstance(reason, str):
        fields["reason"] = _first_reason_line(reason)
    partial = fields.get("file") is None or (record.cut and record.unterminated)
    return [detector.sighting(record, fields, partial=partial)]


def _first_reason_line(reason: str) -> str:
    """torch's short name of the break: the line below the 2.13 introduction, else the first line."""
    lines = [line.strip() for line in reason.split("\n") if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Encountered graph break when attempting to trace"):
        return lines[1]
    if len(lines) > 1 and lines[0].endswith("Graph break encountered:"):
        return lines[1]
    return lines[0] if lines else ""


def _read_cudagraph_skip(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    message = re.sub(r"\s+\n", "\n", decode(record.message()))
    found = re.search(r"(?:skipping|disabling) cudagraphs due to (?P<reason>.*)", message, re.DOTALL)
    reason = found["reason"] if found else ""
    while (again := re.match(r"(?:skipping|disabling) cudagraphs due to ", reason)) is not None:
        reason = reason[again.end() :]
    head, tail, _ = reason.partition("Found from")
    head = head.strip().split("\n")[0]
    if tail:
        head = head.removesuffix(".").rstrip()
    instances = re.search(r"\s*\((\d{1,9}) instances?\)", head)
    if instances:
        head = head[: instances.start()] + head[instances.end() :]
    fields["instances"] = int(instances[1]) if instances else None
    fields["reason"] = head.strip()
    stack = frames(record.message())
    if stack:
        fields["file"], fields["line_no"], fields["function"] = stack[-1]
    partial = not head.strip() or (record.cut and record.unterminated) or (bool(tail) and not stack)
    return [detector.sighting(record, fields, partial=partial)]


def _read_overwritten(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    """The frames inside ``Stack trace: {…}. To prevent overwriting``; the last one made the output."""
    message = record.message()
    begin = record.match.start() if record.match is not None else 0
    body = message[begin:].partition(b"To prevent overwriting")
    stack = frames(re.sub(rb"\.\s*$", b"", body[0]))
    if stack:
        fields["file"], fields["line_no"], fields["function"] = stack[-1]
    return [detector.sighting(record, fields, partial=not body[1] and b"This can happen" not in message)]


def _read_exception(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    name = fields.get("exception")
    if isinstance(name, str):
        fields["exception"] = name.rpartition(".")[2]
    if fields.get("function") is None:
        code = _FROM_USER_CODE.search(record.message())
        stack = frames(code[0]) if code else []
        if stack:
            fields["file"], fields["line_no"], fields["function"] = stack[-1]
    return [detector.sighting(record, fields)]


_FROM_USER_CODE = re.compile(rb"from user code:\n(?:\s+[^\n]*\n?)+")


def _read_limit_error(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    fields.setdefault("limit", None)
    return _read_exception(detector, record, fields)


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


def _read_strategy_table(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    found = []
    for index, row in table_rows(record.texts):
        cells: Fields = {_TABLE_FIELDS[name]: typed(cell, "float") for name, cell in row.items() if name in _TABLE_FIELDS}
        strategy = row.get("Strategy") or next(iter(row.values()))
        place, cut = _place(record, index), _is_cut_row(record, index)
        found.append(detector.sighting(record, {**fields, "strategy": strategy, **cells}, place=place, partial=cut))
    return found


def _read_validation_losses(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    found = []
    for index, row in table_rows(record.texts):
        target = re.fullmatch(r"(Close|High|Low) Val Loss", row.get("Metric", ""))
        if target:
            cells: Fields = {**fields, "target": target[1].lower(), "value": typed(row.get("Value", ""), "float")}
            found.append(detector.sighting(record, cells, place=_place(record, index), partial=_is_cut_row(record, index)))
    return found


def _place(record: Record, index: int) -> tuple[int, int] | None:
    return record.at[index] if index < len(record.at) else None


def _is_cut_row(record: Record, index: int) -> bool:
    return record.cut and record.unterminated and index == len(record.texts) - 1


_STRATEGY_LINE = re.compile(rb"Average (?P<name>.+?)(?: Strategy)? (?P<what>Sharpe|Final Day Return|Return): (?P<value>-?[\d.]+|nan)\s*$")
_LINE_FIELDS = {b"Return": "return", b"Sharpe": "sharpe", b"Final Day Return": "final_day"}


def _read_strategy_lines(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    """The backtest of 2024, before the table: ``Average Simple Strategy Return: -0.0176``, three lines a strategy."""
    rows: dict[str, tuple[int, Fields]] = {}
    for index, text in enumerate(record.texts):
        line = _STRATEGY_LINE.search(text)
        if line is not None:
            name = decode(line["name"])
            strategy = "Buy & Hold" if name == "Buy and Hold" else name.removesuffix(" Buy and Hold")
            rows.setdefault(strategy, (index, {}))[1][_LINE_FIELDS[line["what"]]] = typed(decode(line["value"]), "float")
    return [
        detector.sighting(record, {**fields, "strategy": strategy, **cells}, place=_place(record, index), partial=_is_cut_row(record, index))
        for strategy, (index, cells) in rows.items()
    ]


_NOT_DAILY_RETURNS = frozenset({"annual", "composite"})  # annualised, and a score


def _read_daily_returns(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    """The ``returns: avg=0.017 … maxdiff=0.017`` line of a symbol's analysis, or its compact form."""
    found = []
    for index, text in enumerate(record.texts):
        line = re.search(rb"returns(?:: |\[)(?P<pairs>[^\]|\n]*)", text)
        if line is None:
            continue
        for name, value in re.findall(r"(\w+)=(-?\d+(?:\.\d+)?(?:e-?\d+)?|nan)", decode(line["pairs"])):
            if name in _NOT_DAILY_RETURNS:
                continue
            cells = {"symbol": fields.get("symbol"), "strategy": name, "return": typed(value, "float")}
            found.append(detector.sighting(record, cells, place=_place(record, index)))
    return found


def _read_quote(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    bid, ask = fields.get("bid"), fields.get("ask")
    if not (isinstance(bid, float) and isinstance(ask, float) and bid > 0 and ask > 0):
        return []
    spread = round((ask / bid - 1) * 10_000, 4)
    return [detector.sighting(record, {**fields, "spread_bps": spread})]


def _read_profiler(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    """CompileProfiler's report: its recompilation table as ``[{function, file, line_no, recompiles, reasons}]``."""
    message = decode(record.message())
    recompiles: list[dict[str, object]] = []
    for line in message.split("\n"):
        row = re.match(r"\s*'(?P<function>[^']+)' \((?P<file>.+?):(?P<line>\d+)\)\s+(?P<count>\d+)\s*(?P<reason>.*)", line)
        if row:
            reasons = [row["reason"].strip()] if row["reason"].strip() else []
            recompiles.append(
                {"function": row["function"], "file": row["file"], "line_no": int(row["line"]), "recompiles": int(row["count"]), "reasons": reasons}
            )
        elif recompiles and re.match(r"\s{20,}\S", line):
            known = recompiles[-1]["reasons"]
            assert isinstance(known, list)
            known.append(line.strip())
    return [detector.sighting(record, {**fields, "recompiles": recompiles})]


def _read_compile_times(detector: Detector, record: Record, fields: Fields) -> list[Sighting]:
    """``TorchDynamo compilation metrics``: the seconds of the outermost phase, summed over its compiles."""
    for text in record.texts:
        row = re.match(rb"\s*_compile(?:\.compile_inner|\.<locals>\.compile_inner)?[, ]\s*(?P<seconds>[\d., ]+)$", text)
        if row:
            seconds = sum(float(value) for value in re.findall(rb"\d+\.\d+", row["seconds"]))
            return [detector.sighting(record, {**fields, "seconds": round(seconds, 6)})]
    return []


_READERS: dict[str, Callable[[Detector, Record, Fields], list[Sighting]]] = {
    "recompile": _read_recompile,
    "limit_hit": _read_limit_hit,
    "limit_error": _read_limit_error,
    "graph_break": _read_graph_break,
    "cudagraph_skip": _read_cudagraph_skip,
    "overwritten": _read_overwritten,
    "exception": _read_exception,
    "strategy_table": _read_strategy_table,
    "strategy_lines": _read_strategy_lines,
    "validation_losses": _read_validation_losses,
    "daily_returns": _read_daily_returns,
    "quote": _read_quote,
    "profiler_table": _read_profiler,
    "compile_times": _read_compile_times,
}


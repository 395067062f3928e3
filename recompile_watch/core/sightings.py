"""Sightings: events that still lack what only their neighbourhood can tell, and how one is made of a record's fields."""

from collections.abc import Mapping, Sequence
from math import isinf
from typing import NamedTuple

from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.records import Record
from recompile_watch.core.rules import Rule, captures, ends_of
from recompile_watch.core.source_lines import torch_of
from recompile_watch.core.versions import surer

Fields = dict[str, object]
_NUMBERS = frozenset({"int", "float", "optional_float"})
_NOT_EXTRA = frozenset({"function", "file", "line_no", "compile_id", "reason", "entry"})


class Sighting(NamedTuple):
    """An event that still lacks its time, with the times as printed, and the channel on which it came (see ``Piece``).

    is_torchs: torch's own prefix stood in front of it.
    """

    event: Event
    stamp: Stamp | None
    outer_stamp: Stamp | None
    rule: str
    is_torchs: bool
    channel: bytes = b""


class TableRows(NamedTuple):
    """The rows of one table, for an analysis: as many events in one.

    stamp, time: the table's, as printed and resolved. fixed: the event's further fields that all rows share.
    columns: the fields in which they differ, by name. at: index of each row's text. lines: line number of each text of
    the table. span: the offsets where the table begins and ends. offsets, base: of each text, and of the block in which they
    stand, where the table was read in bulk. outer_stamp: the carrier's time.
    """

    kind: str
    source: str
    stamp: Stamp | None
    fixed: Mapping[str, object]
    columns: Mapping[str, Sequence[object]]
    at: Sequence[int]
    lines: Sequence[int]
    span: tuple[int, int]
    time: str | None = None
    offsets: Sequence[int] = ()
    base: int = 0
    outer_stamp: Stamp | None = None

    def column(self, name: str) -> Sequence[object]:
        """One field of all rows."""
        return self.columns[name] if name in self.columns else [self.fixed.get(name)] * len(self.at)

    def row(self, number: int) -> Fields:
        """The fields of one row."""
        return {**self.fixed, **{name: cells[number] for name, cells in self.columns.items()}}


def sighting(
    source: str, record: Record, fields: Mapping[str, object], *, reasons: tuple[Reason, ...] = (), partial: bool | None = None,
    place: tuple[int, int] | None = None,
) -> Sighting:  # fmt: skip
    """One event of the record: known fields go where they belong, all others become the kind's extra fields."""
    rule, head = record.rule, record.head
    compile_id = fields.get("compile_id") or (head.compile_id.decode() if head.compile_id else None)
    if not reasons and fields.get("reason") is not None:
        reasons = (Reason(text_or_none(fields.get("entry")), str(fields["reason"]).strip(), "other"),)
    if partial is None:
        partial = (record.cut and record.unterminated) or any(fields.get(name) is None for name in rule.needs)
    line, offset = place or (record.line, record.offset)
    line_no = fields.get("line_no")
    extra = extra_fields(rule, fields)
    if head.torch and (version := torch_of(head.torch)) is not None:
        extra["torch"] = surer(version, extra.get("torch"))
    rank = head.rank if record.rank is None else record.rank
    event = Event(
        rule.event, source, line, offset, None, rank, head.pid, text_or_none(compile_id), text_or_none(fields.get("function")),
        text_or_none(fields.get("file")), line_no if isinstance(line_no, int) else None, reasons, partial, extra,
        "" if rule.severity == "info" else rule.id,
    )  # fmt: skip
    return Sighting(event, record.stamp, head.outer_stamp, rule.id, bool(head.torch), head.channel)


def extra_fields(rule: Rule, fields: Mapping[str, object]) -> Fields:
    """The further fields of an event of this rule; those that the log does not show are None."""
    extra = {**EXTRA_FIELDS.get(rule.event, {}), **rule.values}
    for name, value in fields.items():
        if name not in _NOT_EXTRA:
            extra[name] = value
    return extra


def captured_fields(record: Record) -> Fields:
    """What the rule's patterns found in the record, typed."""
    rule = record.rule
    groups = captures(record.match) if record.match is not None else {}
    if rule.finds:
        message = record.message()
        for pattern in rule.finds:
            match = pattern.search(message)
            if match is not None:
                groups.update((name, value) for name, value in captures(match).items() if value is not None)
    return typed_fields(rule, groups)


def cut_values(record: Record) -> list[str]:
    """The fields whose number the end of the log may have cut: not even the end of the line stands behind it; and whose word a torn line has cut."""
    if not record.unterminated:
        return []
    message = record.message()
    found = [record.match if len(record.texts) == 1 else None, *(pattern.search(message) for pattern in record.rule.finds)]
    ends = (len(message), len(message.lstrip()))  # the pattern of a bare line saw it without its blanks
    numbers = {name for name, kind in record.rule.types.items() if kind in _NUMBERS}
    names: dict[str, bytes] = {}
    for match in filter(None, found):
        at = ends_of(match)
        names |= {name: text for name, text in captures(match).items() if text and at[name] in ends}
    return [name for name, text in names.items() if name in numbers or (record.torn and b" " not in text)]


def typed_fields(rule: Rule, groups: Mapping[str, bytes | None]) -> Fields:
    """What a rule's pattern captured, each as the type that the rule gives it."""
    types = {**rule.types, "line_no": "int"}
    return {name: None if value is None else typed(decode(value), types.get(name, "str")) for name, value in groups.items()}


def typed(text: str, kind: str) -> object:
    """A captured text as its type; None when it is no such value (``-`` in a table, a number without bounds)."""
    text = text.strip()
    try:
        match kind:
            case "int":
                return int(text) if len(text) < 19 else None
            case "float" | "optional_float":
                value = float(text.replace(",", ""))
                return None if isinf(value) else value
            case "lower":
                return text.lower()
            case "flag":
                return True  # the text stands there
            case "bool":
                return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(text.lower())
    except ValueError:
        return None
    return text


def number(text: str) -> float | None:
    """A text as a finite number; None when it is none."""
    value = typed(text, "float")
    return value if isinstance(value, float) else None


def decode(text: bytes) -> str:
    """Log bytes as text; what is not UTF-8 becomes the replacement character."""
    return text.decode("utf-8", "replace")


def text_or_none(value: object) -> str | None:
    """The value if it is a text."""
    return value if isinstance(value, str) else None

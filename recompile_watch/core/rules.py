"""Rules: what messages mean, as data.

A rule names the event it yields, a literal that every first line of it must contain, a pattern (RE2) for that
first line, how the record goes on and ends, and patterns that find fields anywhere in the joined record. It
carries samples that must and must not match. The files are TOML; docs/rules.md has the reference.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol, cast

import re2

from recompile_watch.core.definitions import PATTERN_KEYS, definitions_of, without_references
from recompile_watch.core.errors import RuleError
from recompile_watch.core.late import late

SEVERITIES = ("info", "warning", "critical")
READERS = frozenset(
    {
        "recompile", "autograd_miss", "limit_hit", "limit_error", "graph_break", "cudagraph_skip", "overwritten", "exception", "traceback", "trailed",
        "titled", "strategy_table", "strategy_lines", "validation_losses", "daily_returns", "quote", "profiler_table", "compile_times",
    }
)  # fmt: skip
_TYPES = {"int", "float", "bool", "flag", "str", "lower", "optional_float"}
_KEYS = {
    "id": str, "event": str, "title": str, "severity": str, "why": str, "docs": str, "torch": str,
    "literal": (str, list), "pattern": str, "anywhere": bool, "continues": list, "indented": bool, "leads": str, "ends": str, "orphan": str,
    "prefix": str, "unless": list, "second": str, "finds": list, "types": dict, "values": dict, "needs": list, "reader": str, "inside": bool,
    "after_blank": bool, "fallback": bool, "gives_way": bool, "bulk": bool, "max_lines": int, "match": list, "no_match": list,
}  # fmt: skip
_REQUIRED = ("id", "event", "title", "severity", "why", "literal", "pattern")
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 16 << 20
MIN_LITERAL_BYTES = 3
_MAX_TOLD = 100  # characters of a wrong pattern


class Named(Protocol):
    """A pattern as its matches know it: the number of each named group."""

    @property
    def groupindex(self) -> "Mapping[bytes, int]": ...


class Match(Protocol):
    """What a pattern found; the part of ``re.Match`` that RE2 shares."""

    @property
    def re(self) -> Named: ...
    def start(self, group: int | str = 0) -> int: ...
    def end(self, group: int | str = 0) -> int: ...
    def group(self, group: int | str = 0) -> bytes: ...
    def groupdict(self) -> "Mapping[bytes, bytes | None]": ...


class Pattern(Protocol):
    """A compiled RE2 pattern over bytes."""

    @property
    def match(self) -> Callable[[bytes], Match | None]: ...
    @property
    def search(self) -> Callable[[bytes], Match | None]: ...


def captures(match: Match) -> dict[str, bytes | None]:
    """The named groups of a match (RE2 names them in bytes when the pattern is bytes)."""
    return {name.decode(): value for name, value in match.groupdict().items()}


def ends_of(match: Match) -> dict[str, int]:
    """Where each named group ends; -1 where it found nothing."""
    return {name.decode(): match.end(number) for name, number in match.re.groupindex.items()}


@dataclass(frozen=True, slots=True)
class Sample:
    """One text that a rule must match, with the event fields expected of it."""

    text: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Rule:
    """One detection rule.

    literals: every first line holds at least one of them (case matters).
    pattern, text: matched at the start of the message of the first line (searched in it when ``anywhere``), and its source.
    prefix: torch's own prefix must hold it as well. unless: a first line of which any part fits is none of its messages.
    continues: lines that go on with a record that has no torch prefix; with one, every line of the same prefix goes on.
    leads: a line behind which the next one goes on with the record, whatever it is.
    indented: instead, lines without any prefix that begin with two blanks; where these were stripped, ``second`` and ``continues``
    tell them. ends: the last line of a record.
    orphan: a line that can only come from the middle of such a record (its head is cut off).
    second: the line behind the head, by which a record is known whose other lines have lost torch's prefix, or whose head
    stands behind a header that nothing else tells.
    finds: searched in the joined record; named groups become fields. types, values: of fields; fixed fields.
    needs: fields without which the record is partial. inside: the record may hold an exception that is an event of its own.
    after_blank: the time stands on the line before, whose own message is empty. fallback: tried after all other rules.
    gives_way: its record ends where a line is the head of another one, of a rule that is tried before it.
    bulk: it fires on very many lines, each a record of its own, so a report reads it in bulk. max_lines: of a record.
    is_mute: it takes its lines and gives no events.
    """

    id: str
    event: str
    title: str
    severity: str
    why: str
    literals: tuple[bytes, ...]
    pattern: Pattern
    source: str
    anywhere: bool = False
    prefix: Pattern | None = None
    unless: Pattern | None = None
    continues: Pattern | None = None
    leads: Pattern | None = None
    ends: Pattern | None = None
    orphan: Pattern | None = None
    second: Pattern | None = None
    finds: tuple[Pattern, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    reader: str | None = None
    inside: bool = False
    after_blank: bool = False
    fallback: bool = False
    gives_way: bool = False
    bulk: bool = False
    indented: bool = False
    text: bytes = b""
    max_lines: int = 2000
    docs: str | None = None
    torch: str | None = None
    matches: tuple[Sample, ...] = ()
    refuses: tuple[str, ...] = ()
    is_mute: bool = False


@dataclass(frozen=True)
class Ruleset:
    """All rules in force, in order; ids are unique, a later rule replaces an earlier one of the same id."""

    rules: tuple[Rule, ...]

    def only(self, is_wanted: Callable[[str], bool]) -> "Ruleset":
        """The same rules; those for kinds of events that nobody wants still take their lines, and give no events."""
        return Ruleset(tuple(rule if is_wanted(rule.event) else replace(rule, is_mute=True) for rule in self.rules))

    @cached_property
    def literals(self) -> tuple[bytes, ...]:
        """Every literal once, in a fixed order."""
        return tuple(dict.fromkeys(literal for rule in self.rules for literal in rule.literals))

    @cached_property
    def by_literal(self) -> list[list[int]]:
        """For each literal the numbers of the rules that name it, in the order of ``literals``."""
        numbers = {literal: number for number, literal in enumerate(self.literals)}
        table: list[list[int]] = [[] for _ in numbers]
        for index, rule in enumerate(self.rules):
            for literal in rule.literals:
                table[numbers[literal]].append(index)
        return table


def parse_rules(text: str, source: str) -> tuple[list[dict[str, object]], list[RuleError]]:
    """The entries of one TOML file that ``rule_of`` takes, and every mistake in it; ``source`` is the file's name for the messages."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [], [RuleError(f"{source}: not valid TOML: {error}")]
    unknown = [key for key in document if key not in ("rule", "define")]
    mistakes = [RuleError(f"{source}: unknown table '{key}', only [define] and [[rule]] are known") for key in unknown]
    table = document.get("define", {})
    if not isinstance(table, dict):
        return [], [*mistakes, RuleError(f"{source}: write [define] with one bracket")]
    known, wrong = definitions_of(table)
    mistakes += [RuleError(f"{source}: {text}") for text in wrong]
    entries = document.get("rule", [])
    if not isinstance(entries, list):
        return [], [*mistakes, RuleError(f"{source}: write [[rule]] with two brackets")]
    right = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry.get("id"), str) else f"number {number}"
        whole, wrong = without_references(entry, known)
        found = [RuleError(f"{source}: rule {name}: {text}") for text in wrong or _mistakes(whole)]
        mistakes += found
        if not found:
            right.append(whole)
    return right, mistakes


def merge(groups: Iterable[Iterable[Rule]]) -> Ruleset:
    """One ruleset of several files; a later rule of the same id replaces the earlier one in its place."""
    by_id: dict[str, Rule] = {}
    for group in groups:
        for rule in group:
            by_id[rule.id] = rule
    return Ruleset(tuple(sorted(by_id.values(), key=lambda rule: (rule.fallback, rule.anywhere))))


def _mistakes(entry: dict[str, object]) -> list[str]:
    found = [f"key '{key}' is missing" for key in _REQUIRED if key not in entry]
    for key, value in entry.items():
        if key not in _KEYS:
            found.append(f"unknown key '{key}'")
        elif not isinstance(value, _KEYS[key]):  # type: ignore[arg-type]
            found.append(f"key '{key}' has the wrong type {type(value).__name__}")
    return found or [*_value_mistakes(entry), *_pattern_mistakes(entry), *_sample_mistakes(entry)]


def _value_mistakes(entry: dict[str, object]) -> list[str]:
    found = []
    if entry["severity"] not in SEVERITIES:
        found.append(f"key 'severity' must be one of {', '.join(SEVERITIES)}")
    if not str(entry["event"]).isidentifier():
        found.append("key 'event' must be a name such as my_event")
    if "reader" in entry and entry["reader"] not in READERS:
        found.append(f"key 'reader': unknown reader '{entry['reader']}'")
    for literal in _texts(entry["literal"]):
        if len(literal.encode()) < MIN_LITERAL_BYTES:
            found.append(f"key 'literal': '{literal}' is too short, at least {MIN_LITERAL_BYTES} bytes keep reading fast")
        if any(character in literal for character in "\n\r\0\\\"'<>&"):
            found.append(f"key 'literal': {literal!r} holds a character that logs escape; choose another part of the line")
    if entry.get("bulk"):
        if "$" in str(entry["pattern"]):
            found.append("key 'bulk': a bulk rule's pattern has no '$', it is matched inside a block of lines")
        found += [
            f"key 'bulk': a bulk rule has no '{key}'"
            for key in ("continues", "indented", "leads", "ends", "finds", "anywhere", "prefix", "unless", "after_blank")
            if entry.get(key)
        ]
    if entry.get("indented") and entry.get("continues") and not entry.get("second"):
        found.append("key 'indented': leave out 'continues', the record goes on with indented lines only; or name the 'second' without its blanks")
    types = entry.get("types", {})
    assert isinstance(types, dict)
    values = entry.get("values", {})
    assert isinstance(values, dict)
    found += [f"key 'values.{name}': write a text, a number or a truth value" for name, value in values.items() if isinstance(value, list | dict)]
    found += [f"key 'types.{name}': unknown type '{kind}'" for name, kind in types.items() if kind not in _TYPES]
    return found


def _pattern_mistakes(entry: Mapping[str, object]) -> list[str]:
    found = []
    for key in PATTERN_KEYS:
        for pattern in _texts(entry.get(key, [])):
            try:
                compile_pattern(pattern)
            except re2.error as error:
                reason = error.args[0] if error.args else "not valid"
                told = reason.decode() if isinstance(reason, bytes) else str(reason)
                found.append(f"key '{key}': RE2 cannot use {_shortened(pattern)!r}: {_shortened(told)}")
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_TOLD else text[:_MAX_TOLD] + "…"


def _sample_mistakes(entry: dict[str, object]) -> list[str]:
    found = []
    for key, needed in (("match", "lines that must match"), ("no_match", "lines that must not match")):
        if not entry.get(key):
            found.append(f"key '{key}' is missing: a rule carries {needed}")
    samples = entry.get("match", [])
    assert isinstance(samples, list)
    if not all(isinstance(s, dict) and isinstance(s.get("line"), str) and isinstance(s.get("fields", {}), dict) for s in samples):
        found.append("key 'match': each sample is { line = '…', fields = { … } }")
    refused = entry.get("no_match", [])
    assert isinstance(refused, list)
    if not all(isinstance(text, str) for text in refused):
        found.append("key 'no_match': each sample is a text")
    return found


def rule_of(entry: Mapping[str, object], source: str) -> Rule:
    """The rule that an entry without mistakes describes."""
    text = {key: value for key, value in entry.items() if isinstance(value, str)}
    samples = entry.get("match", [])
    types, values = entry.get("types", {}), entry.get("values", {})
    assert isinstance(samples, list) and isinstance(types, dict) and isinstance(values, dict)
    limit = entry.get("max_lines", 2000)
    assert isinstance(limit, int)
    return Rule(
        id=text["id"], event=text["event"], title=text["title"], severity=text["severity"], why=text["why"],
        literals=tuple(literal.encode() for literal in _texts(entry["literal"])),
        pattern=late_pattern(text["pattern"]), source=source, anywhere=bool(entry.get("anywhere", False)),
        prefix=late_pattern(text["prefix"]) if "prefix" in text else None, unless=_alternatives(_texts(entry.get("unless", []))),
        continues=_alternatives(_texts(entry.get("continues", []))),
        leads=late_pattern(text["leads"]) if "leads" in text else None,
        ends=late_pattern(text["ends"]) if "ends" in text else None,
        orphan=late_pattern(text["orphan"]) if "orphan" in text else None,
        second=late_pattern(text["second"]) if "second" in text else None,
        finds=tuple(late_pattern(pattern) for pattern in _texts(entry.get("finds", []))),
        types=types, values=values, needs=tuple(_texts(entry.get("needs", []))), reader=text.get("reader"),
        inside=bool(entry.get("inside", False)), fallback=bool(entry.get("fallback", False)), bulk=bool(entry.get("bulk", False)),
        gives_way=bool(entry.get("gives_way", False)), indented=bool(entry.get("indented", False)),
        text=text["pattern"].encode(), after_blank=bool(entry.get("after_blank", False)), max_lines=limit,
        docs=text.get("docs"), torch=text.get("torch"),
        matches=tuple(Sample(sample["line"], sample.get("fields", {})) for sample in samples),
        refuses=tuple(_texts(entry.get("no_match", []))),
    )  # fmt: skip


def _texts(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value] if isinstance(value, list) else []


def _alternatives(patterns: list[str]) -> Pattern | None:
    return late_pattern("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def late_pattern(source: str) -> Pattern:
    """A pattern that is compiled when it is first used: few rules and cases concern one log."""
    return late(partial(compile_pattern, source))


def compile_pattern(pattern: str) -> Pattern:
    """The pattern over bytes. Raises re2.error."""
    return cast(Pattern, re2.compile(pattern.encode(), _OPTIONS))

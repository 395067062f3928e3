"""Metric lines in bulk: rules that fire on very many lines are read with one pass over a block.

The bot writes three lines of GPU memory for each of its two thousand forecasts a symbol. For a report only their
columns matter, so no record and no event is made of them. Events of a bulk rule that are wanted one by one
(``events``) go the ordinary way; both give the same numbers.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from recompile_watch.core.prefix_grammar import DIALECT_HEADERS, Stamp
from recompile_watch.core.rules import Rule, Ruleset
from recompile_watch.core.scan import Matcher

_HEADER = re.compile(b"(?:" + b"|".join(DIALECT_HEADERS) + b")")
_STAMP = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?")
_REST = rb"[^\n\r\x00\x1b&]*\n"
_MAX_HEADERS = 100_000


class BulkPattern(NamedTuple):
    """A bulk rule's pattern for the message and the rest of its line. names: of its columns."""

    rule: Rule
    pattern: re.Pattern[bytes]
    names: tuple[str, ...]


class Rows(NamedTuple):
    """Lines of one bulk rule, in log order.

    line: of the first one, or before it. offsets, stamps: of each line. values: what the pattern captured in it.
    """

    bulk: BulkPattern
    line: int
    offsets: list[int]
    stamps: list[Stamp]
    values: list[tuple[bytes | None, ...]]

    @property
    def offset(self) -> int:
        """The offset of the first line."""
        return self.offsets[0]

    def column(self, name: str) -> list[bytes | None] | None:
        """One column, or None when the rule captures no such field."""
        if name not in self.bulk.names:
            return None
        index = self.bulk.names.index(name)
        return [row[index] for row in self.values]

    def cut(self, begin: int, end: int) -> "Rows":
        """The rows from one index to another."""
        return self._replace(offsets=self.offsets[begin:end], stamps=self.stamps[begin:end], values=self.values[begin:end])

    def without(self, indexes: Iterable[int]) -> "Rows":
        """The rows but for some."""
        left_out = set(indexes)
        wanted = [index for index in range(len(self.values)) if index not in left_out]
        return self._replace(
            offsets=[self.offsets[i] for i in wanted], stamps=[self.stamps[i] for i in wanted], values=[self.values[i] for i in wanted]
        )

    def split(self, offsets: list[int]) -> list["Rows"]:
        """The rows cut in front of each of the offsets (ascending)."""
        bounds = [0, *(bisect_left(self.offsets, offset) for offset in offsets), len(self.offsets)]
        return [self.cut(a, b) for a, b in pairwise(bounds) if a < b]


class MetricRows(NamedTuple):
    """Rows with their times known: what an analysis takes instead of as many events."""

    kind: str
    source: str
    rows: Rows
    first_time: str | None
    last_time: str | None


class MetricTable(NamedTuple):
    """The rows of one table with its time: what an analysis takes instead of as many events.

    rows: line number, offset and the further fields of each row's event.
    """

    kind: str
    source: str
    time: str | None
    rows: list[tuple[int, int, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Bulk:
    """Everything for reading metric lines in bulk: the patterns by literal, and a matcher for all other literals.

    The matcher's marks are the literals of the patterns.
    """

    patterns: tuple[tuple[bytes, BulkPattern], ...]
    matcher: Matcher

    @classmethod
    def of(cls, rules: Ruleset, matcher: Callable[[list[bytes], list[bytes]], Matcher]) -> "Bulk":
        """The bulk reading of a ruleset; only a rule with one literal that no other rule names takes part."""
        literals = rules.literals()
        patterns = []
        for literal, owners in zip(literals, rules.by_literal(), strict=True):
            rule = rules.rules[owners[0]]
            if len(owners) == 1 and rule.bulk and rule.literals == (literal,):
                patterns.append((literal, _bulk_pattern(rule)))
        marks = [literal for literal, _ in patterns]
        return cls(tuple(patterns), matcher([literal for literal in literals if literal not in marks], marks))


class BulkReader:
    """Finds the metric lines of a block; remembers the headers it has seen."""

    def __init__(self, bulk: Bulk) -> None:
        self._bulk = bulk
        self._headers: dict[bytes, Stamp | None] = {}

    def rows(self, region: bytes, marks: set[int], offset: int, line: int) -> list[Rows] | None:
        """All lines of bulk rules in a region of whole lines, which begins at ``offset`` and ``line``.

        marks: the numbers of the patterns whose literal it holds. None when a literal of one stands in any other
        line: then the ordinary way must look at them all.
        """
        found = []
        for mark in sorted(marks):
            literal, pattern = self._bulk.patterns[mark]
            rows = self._matched(pattern, region, offset, line)
            if rows is None or len(rows.values) != region.count(literal):
                return None
            if rows.values:
                found.append(rows)
        return found

    def _matched(self, bulk: BulkPattern, region: bytes, offset: int, line: int) -> Rows | None:
        matches = list(bulk.pattern.finditer(region))
        if not matches:
            return Rows(bulk, line, [], [], [])
        rfind, headers = region.rfind, self._headers
        ends = [match.start() for match in matches]
        starts = [rfind(b"\n", 0, end) + 1 for end in ends]
        found = [region[start:end] for start, end in zip(starts, ends, strict=True)]
        stamps = list(map(headers.get, found))
        if None in stamps:
            for index, stamp in enumerate(stamps):
                if stamp is None:
                    stamps[index] = headers.get(found[index]) or self._learned(found[index])
        known = [stamp for stamp in stamps if stamp is not None]
        if len(known) < len(stamps):
            return None
        return Rows(bulk, line, [start + offset for start in starts], known, [match.groups() for match in matches])

    def _learned(self, header: bytes) -> Stamp | None:
        match = _HEADER.fullmatch(header)
        text = (match["utc"] or match["local"]) if match else None
        if match is None or text is None or _STAMP.fullmatch(text) is None:
            return None
        stamp = Stamp("zoned", text.decode() + "+00:00") if match["utc"] else Stamp("local", text.decode())
        if len(self._headers) >= _MAX_HEADERS:
            self._headers.clear()
        self._headers[header] = stamp
        return stamp


def _bulk_pattern(rule: Rule) -> BulkPattern:
    pattern = re.compile(rule.text + _REST)
    names = sorted(pattern.groupindex, key=pattern.groupindex.__getitem__)
    return BulkPattern(rule, pattern, tuple(names))

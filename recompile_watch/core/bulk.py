"""Metric lines in bulk: rules that fire on very many lines are read with one match a line, prefix included.

The bot writes three lines of GPU memory for each of its two thousand forecasts a symbol. For a report only their
columns matter, so no record and no event is made of them. Events of a bulk rule that are wanted one by one
(``events``) go the ordinary way; both give the same numbers.
"""

import re
from bisect import bisect_left
from typing import NamedTuple

from recompile_watch.core.prefixes import LEVEL
from recompile_watch.core.rules import Rule, Ruleset

# The bot's file dialect (three zones) and its loguru dialect, as `prefixes` knows them, colours included.
_HEADERS = (
    rb"(?P<utc>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC \| [^|\n]{1,40}E[SD]T \| [^|\n]{1,40}NZ[SD]T \| [^\s:|]{1,120}:[^:\s|]{1,120}:\d{1,9} "
    rb"(?:\x1b\[\d{1,3}m)?" + LEVEL + rb"(?:\x1b\[0m)? \| ",
    rb"(?P<local>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \| " + LEVEL + rb" *\| [\w.<>]{1,120}:[^:\s]{1,120}:\d{1,9} - ",
)
_REST = rb"[^\n\r\x00\x1b&]*\n"


class BulkPattern(NamedTuple):
    """A bulk rule with the header in front of it, as one pattern for the whole line."""

    rule: Rule
    pattern: re.Pattern[bytes]
    utc: int
    local: int
    names: tuple[str | None, ...]


class Rows(NamedTuple):
    """Lines of one bulk rule, in log order.

    offset, line: of the first one, or near it. offsets: of each line. values: what the pattern captured in each;
    ``bulk`` names the columns.
    """

    bulk: BulkPattern
    offset: int
    line: int
    offsets: list[int]
    values: list[tuple[bytes | None, ...]]

    def column(self, name: str) -> list[bytes | None] | None:
        """One column, or None when the rule captures no such field."""
        if name not in self.bulk.names:
            return None
        index = self.bulk.names.index(name)
        return [row[index] for row in self.values]

    def split(self, offsets: list[int]) -> list["Rows"]:
        """The rows cut in front of each of the offsets (ascending)."""
        bounds = [0, *(bisect_left(self.offsets, offset) for offset in offsets), len(self.offsets)]
        return [
            Rows(self.bulk, self.offsets[a], self.line, self.offsets[a:b], self.values[a:b])
            for a, b in zip(bounds, bounds[1:], strict=False) if a < b
        ]  # fmt: skip


class MetricRows(NamedTuple):
    """Rows with their times known: what an analysis takes instead of as many events."""

    kind: str
    source: str
    rows: Rows
    first_time: str | None
    last_time: str | None


def bulk_patterns(rules: Ruleset) -> dict[int, BulkPattern]:
    """The bulk patterns by the number of their literal, for the literals that no other rule names."""
    patterns: dict[int, BulkPattern] = {}
    for number, owners in enumerate(rules.by_literal()):
        if len(owners) == 1 and rules.rules[owners[0]].bulk:
            patterns[number] = _bulk_pattern(rules.rules[owners[0]])
    return patterns


def _bulk_pattern(rule: Rule) -> BulkPattern:
    pattern = re.compile(b"(?:" + b"|".join(_HEADERS) + b")(?:" + rule.text + b")" + _REST)
    names: list[str | None] = [None] * pattern.groups
    for name, index in pattern.groupindex.items():
        names[index - 1] = name
    return BulkPattern(rule, pattern, names.index("utc"), names.index("local"), tuple(names))

"""Findings become the blocks of the text report: what belongs together for a reader stands in one block."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from recompile_watch.core.findings import Finding

# One function's recompiles and its limit are one story; so are all symbols without a real quote, and all
# errors that the bot prints.
_BY_FUNCTION = frozenset({"recompile", "recompile_limit_hit", "recompile_limit_error"})
_BY_KIND = frozenset({"synthetic_quote", "inverted_prediction", "bot_error"})
# Graph breaks that one and the same change takes away: a line of the program that leads into a package, where each of many lines breaks.
_OF_ONE_CHANGE = "graph_break"
_PLACE = re.compile(r":\d+\b")


@dataclass(frozen=True, slots=True)
class Block:
    """The finding that gives the block its title, and the others of the same story."""

    head: Finding
    others: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, the head first."""
        return (self.head, *self.others)

    @property
    def count(self) -> int:
        """Events of the head's kind."""
        return sum(finding.count for finding in self.findings if finding.kind == self.head.kind)


_AGAIN = " compiled again"  # behind the name in the title of a recompile


def blocks_of(findings: Iterable[Finding]) -> list[Block]:
    """The blocks, in the order of their worst finding."""
    grouped: dict[tuple[object, ...], list[Finding]] = {}
    at: dict[tuple[str, int], tuple[object, ...]] = {}
    for finding in findings:
        story = _story(finding)
        place = (finding.evidence[0].source, finding.evidence[0].line) if finding.evidence else None
        if place is not None and finding.kind == "forecast_failure":
            story = at.get(place, story)  # the bot's words for an error of torch that stands in the same record
        elif place is not None:
            at.setdefault(place, story)
        grouped.setdefault(story, []).append(finding)
    return [Block(group[0], tuple(group[1:])) for group in grouped.values()]


def title_of(block: Block) -> str:
    """The head's title, or one for all of them."""
    head, count = block.head, len(block.findings)
    if not block.others or {finding.kind for finding in block.findings} != {head.kind}:
        return head.title
    match head.kind:
        case "synthetic_quote":
            symbols = ", ".join(sorted({symbol for finding in block.findings for symbol in finding.symbols}))
            return f"{count} symbols are priced without a real quote: {symbols}"
        case "bot_error":
            return f"The bot reports {block.count} errors"
        case "graph_break":
            return f"{head.title}, and {count - 1} more that the same change takes away"
        case "recompile" if _AGAIN in head.title:
            return f"{head.title.partition(_AGAIN)[0]}{_AGAIN} {block.count} times, for {count} reasons"
    return f"{head.title}, and {count - 1} more like it"


def _story(finding: Finding) -> tuple[object, ...]:
    if not finding.counts:  # accepted, or gone: not part of what happens now
        return ("aside", finding.id)
    if finding.kind in _BY_FUNCTION and finding.function:
        return ("function", finding.function, finding.file)
    if finding.kind in _BY_KIND:
        return (finding.kind, finding.severity)
    if finding.kind == _OF_ONE_CHANGE and finding.advice and _PLACE.search(finding.advice[0].apply):
        return ("change", finding.severity, finding.advice[0].apply)
    return (finding.id,)

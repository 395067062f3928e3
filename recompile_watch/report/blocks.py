"""Findings become the blocks of the text report: what belongs together for a reader stands in one block."""

from collections.abc import Iterable
from dataclasses import dataclass

from recompile_watch.core.findings import Finding

# One function's recompiles and its limit are one story; so are all symbols without a real quote.
_BY_FUNCTION = frozenset({"recompile", "recompile_limit_hit"})
_BY_KIND = frozenset({"synthetic_quote", "inverted_prediction"})


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


def blocks_of(findings: Iterable[Finding]) -> list[Block]:
    """The blocks, in the order of their worst finding."""
    grouped: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(_story(finding), []).append(finding)
    return [Block(group[0], tuple(group[1:])) for group in grouped.values()]


def title_of(block: Block) -> str:
    """The head's title, or one for all of them."""
    kinds = {finding.kind for finding in block.findings}
    if not block.others:
        return block.head.title
    if kinds == {"synthetic_quote"}:
        symbols = ", ".join(sorted({symbol for finding in block.findings for symbol in finding.symbols}))
        return f"{len(block.findings)} symbols are priced without a real quote: {symbols}"
    if kinds == {"recompile"}:
        return f"{block.head.function or 'A function'} compiled again {block.count} times, for {len(block.findings)} reasons"
    if len(kinds) == 1:
        return f"{block.head.title}, and {len(block.others)} more like it"
    return block.head.title


def _story(finding: Finding) -> tuple[object, ...]:
    if finding.kind in _BY_FUNCTION and finding.function:
        return ("function", finding.function, finding.file)
    if finding.kind in _BY_KIND:
        return (finding.kind, finding.severity)
    return (finding.id,)

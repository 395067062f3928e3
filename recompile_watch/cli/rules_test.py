"""``recompile-watch rules test LOG``: what each rule, on its own, finds in a log."""

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.cli.times import zone_of
from recompile_watch.config import load_rules
from recompile_watch.core.context import Item
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.errors import SourceError
from recompile_watch.core.events import Event
from recompile_watch.core.evidence import evidence_text
from recompile_watch.core.rules import Rule, Ruleset
from recompile_watch.core.scan import LiteralMatcher
from recompile_watch.core.times import TimeOptions
from recompile_watch.report.safe import safe
from recompile_watch.sources.find import SourceFile, find_sources
from recompile_watch.sources.read import read_blocks

_EXAMPLES = 3
_EXAMPLE_CHARS = 110
_WIDTH = 120


@dataclass(slots=True)
class _Yield:
    """What one rule gave."""

    rule: Rule
    count: int = 0
    examples: list[Event] = field(default_factory=list)

    def add(self, items: Sequence[Item]) -> None:
        """Counts the events of the rule's own kind."""
        own = [item for item in items if isinstance(item, Event) and item.kind == self.rule.event]
        self.count += len(own)
        self.examples += own[: _EXAMPLES - len(self.examples)]


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints a block for each rule that found something; the others by name behind them."""
    rules = load_rules([Path(folder) for folder in arguments.rules]).rules
    sources, errors = find_sources([arguments.log])
    if errors:
        raise SourceError("\n".join(str(error) for error in errors))
    yields = [_Yield(rule) for rule in rules]
    for source in sources:
        _read(source, yields)
    write_result(_shown(yields, arguments.log), None)
    return exit_status.OK if any(one.count for one in yields) else exit_status.UNKNOWN


def _read(source: SourceFile, yields: list[_Yield]) -> None:
    """Each rule in an engine of its own, so that one rule cannot hide what another one matches."""
    zone, _ = zone_of(None)
    engines = []
    for one in yields:
        ruleset = Ruleset((one.rule,))
        engines.append((one, SourceEngine(source.path, ruleset, LiteralMatcher(ruleset.literals), TimeOptions(zone=zone))))
    for block in read_blocks(source):
        for one, engine in engines:
            one.add(engine.feed(block))
    for one, engine in engines:
        one.add(engine.end())


def _shown(yields: list[_Yield], log: str) -> str:
    lines = []
    for one in sorted(yields, key=lambda one: -one.count):
        if one.count:
            lines.append(f"{one.count:>8}  {one.rule.id}  ({one.rule.event}, {one.rule.severity})")
            for event in one.examples:
                lines.append(f"          {safe(event.source, 200)}:{event.line}  {safe(evidence_text(event), _EXAMPLE_CHARS)}")
    silent = [one.rule.id for one in yields if not one.count]
    if not lines:
        lines.append(f"no rule found anything in {safe(log, 200)}")
    if silent:
        lines += textwrap.wrap(f"{'nothing':>8}  {', '.join(silent)}", _WIDTH, subsequent_indent=" " * 10, break_on_hyphens=False)
    return "\n".join(lines) + "\n"

"""``recompile-watch rules check``: every sample of every rule, run through the engine."""

import argparse
import math
from datetime import date
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.config import read_rules, shipped_rules
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.errors import RuleError
from recompile_watch.core.events import Event
from recompile_watch.core.findings import Wording
from recompile_watch.core.rules import Rule, Ruleset, Sample, merge
from recompile_watch.core.scan import LiteralMatcher
from recompile_watch.core.times import TimeOptions
from recompile_watch.report.safe import safe

_NULL = "null"  # TOML has none
_LAST_DAY = date(2099, 12, 31)


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Checks the rules; raises RuleError with every mistake."""
    own = read_rules([Path(folder) for folder in arguments.folders] or [shipped_rules()])
    shipped = read_rules([shipped_rules()]) if arguments.folders else []
    ruleset = merge([*shipped, *own])
    checked = merge(own).rules
    mistakes = failures(ruleset, checked)
    if mistakes:
        raise RuleError("\n".join(mistakes))
    samples = sum(len(rule.matches) + len(rule.refuses) for rule in checked)
    write_result(f"{len(checked)} rules are valid; all {samples} samples behave as they say\n", None)
    return exit_status.OK


def failures(ruleset: Ruleset, checked: tuple[Rule, ...]) -> list[str]:
    """What is wrong with the samples of the rules ``checked``, one line each.

    All of ``ruleset`` is in force: a more specific rule may take a text that the rule alone would match.
    """
    matcher = LiteralMatcher(ruleset.literals)
    wording = Wording(ruleset)
    found = []
    for rule in checked:
        where = f"{rule.source}: rule {rule.id}"
        for number, sample in enumerate(rule.matches, 1):
            wrong = _mismatch(rule, sample, _events(ruleset, matcher, sample.text))
            if wrong:
                found.append(f"{where}: key 'match' number {number}: {wrong}")
        alone = Ruleset((rule,))
        own = LiteralMatcher(rule.literals)
        for number, text in enumerate(rule.refuses, 1):
            if _is_own(rule, _events(alone, own, text)) and _is_own(rule, _events(ruleset, matcher, text), wording):
                found.append(f"{where}: key 'no_match' number {number}: gives a {rule.event} event: {safe(text, 120)}")
    return found


def _events(ruleset: Ruleset, matcher: LiteralMatcher, text: str) -> list[Event]:
    engine = SourceEngine("sample", ruleset, matcher, TimeOptions(modified_on=_LAST_DAY))
    data = text if text.endswith("\n") else text + "\n"
    return [item for item in engine.feed(data.encode()) + engine.end() if isinstance(item, Event)]


def _is_own(rule: Rule, events: list[Event], wording: Wording | None = None) -> bool:
    """True when one of the events can be this rule's."""
    return any(event.kind == rule.event and (wording is None or rule in wording.rules_for(event)) for event in events)


def _mismatch(rule: Rule, sample: Sample, events: list[Event]) -> str | None:
    """What is wrong, or None: of the events of the rule's kind exactly one must have the fields expected."""
    seen = [event for event in events if event.kind == rule.event]
    if not seen:
        return f"gives no {rule.event} event: {safe(sample.text.strip(), 120)}"
    wrong = [_differences(sample, event) for event in seen]
    agreeing = [difference for difference in wrong if not difference]
    if not agreeing:
        return min(wrong, key=len)
    if len(agreeing) > 1:
        return f"gives {len(agreeing)} {rule.event} events with these fields, not one: {safe(sample.text.strip(), 120)}"
    return None


def _differences(sample: Sample, event: Event) -> str:
    """``limit is 8, not 9, and pid is …``; empty when the event has the fields expected."""
    parts = []
    for name, expected in sample.fields.items():
        actual = _field(event, name)
        if not _is_equal(actual, None if expected == _NULL else expected):
            parts.append(f"{name} is {safe(repr(actual), 120)}, not {safe(repr(expected), 120)}")
    return " and ".join(parts)


def _field(event: Event, name: str) -> object:
    """The event's field of that name; ``reason`` and ``entry`` are those of its first reason."""
    if name in event.extra:
        return event.extra[name]
    first = event.reasons[0] if event.reasons else None
    if name in ("reason", "entry", "cause"):
        return None if first is None else {"reason": first.text, "entry": first.entry, "cause": first.cause}[name]
    if name == "reasons":
        return [reason.text for reason in event.reasons]
    return getattr(event, name, None)


def _is_equal(actual: object, expected: object) -> bool:
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, int | float) and isinstance(expected, int | float):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(actual, list | tuple) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(_is_equal, actual, expected))
    return actual == expected

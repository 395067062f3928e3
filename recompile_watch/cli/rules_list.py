"""``recompile-watch rules list`` and ``rules show``."""

import argparse
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.cli.parsing import nearest
from recompile_watch.config import load_rules
from recompile_watch.core.errors import UsageError
from recompile_watch.core.likeness import close_matches
from recompile_watch.core.rules import Rule
from recompile_watch.report.json import json_text
from recompile_watch.report.safe import plain, safe


def run(arguments: argparse.Namespace, name: tuple[str, ...]) -> int:
    """Prints the rules, or one of them."""
    rules = load_rules([Path(folder) for folder in arguments.rules]).rules
    if name == ("rules", "show"):
        write_result(_shown(_named(rules, arguments.id)), None)
    elif arguments.json:
        write_result(json_text([_as_json(rule) for rule in rules]) + "\n", None)
    else:
        write_result(_table(rules), None)
    return exit_status.OK


def _as_json(rule: Rule) -> dict[str, object]:
    literals = [literal.decode("utf-8", "replace") for literal in rule.literals]
    return {"id": rule.id, "event": rule.event, "severity": rule.severity, "title": rule.title, "literal": literals, "file": rule.source}


def _table(rules: tuple[Rule, ...]) -> str:
    rows = [("ID", "EVENT", "SEVERITY", "TITLE"), *((safe(r.id), safe(r.event), r.severity, safe(r.title)) for r in rules)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d}\n" for a, b, c, d in rows)


def _named(rules: tuple[Rule, ...], rule_id: str) -> Rule:
    for rule in rules:
        if rule.id == rule_id:
            return rule
    ids = [rule.id for rule in rules]
    part = [name for name in ids if rule_id in name]
    hint = f"did you mean {', '.join(part[:5])}?" if part else nearest(rule_id, ids) if close_matches(rule_id, ids, 0.5) else ""
    raise UsageError(f"no rule '{rule_id}'; {hint or 'recompile-watch rules list shows all of them'}")


def _shown(rule: Rule) -> str:
    facts = [
        ("id", rule.id), ("event", rule.event), ("severity", rule.severity), ("title", rule.title), ("why", rule.why), ("torch", rule.torch),
        ("docs", rule.docs), ("file", rule.source), ("literal", " | ".join(literal.decode("utf-8", "replace") for literal in rule.literals)),
        ("pattern", _pattern(rule)), ("reader", rule.reader),
        ("values", ", ".join(f"{name} = {value}" for name, value in rule.values.items())),
    ]  # fmt: skip
    lines = [f"{name + ':':<10}{safe(str(value), 4000)}" for name, value in facts if value]
    for sample in rule.matches:
        fields = ", ".join(f"{key} = {safe(str(value))}" for key, value in sample.fields.items())
        lines += ["", f"matches, with {fields}:" if fields else "matches:", *_indented(sample.text)]
    for text in rule.refuses:
        lines += ["", "does not match:", *_indented(text)]
    return "\n".join(lines) + "\n"


def _pattern(rule: Rule) -> str:
    pattern = getattr(rule.pattern, "pattern", b"")
    return pattern.decode("utf-8", "replace") if isinstance(pattern, bytes) else str(pattern)


def _indented(text: str) -> list[str]:
    return [f"  {plain(line)}" for line in text.strip("\n").split("\n")]

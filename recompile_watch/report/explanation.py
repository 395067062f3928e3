"""What ``recompile-watch explain`` prints: a cause, remedy, setting or kind of event in plain words."""

import textwrap
from collections.abc import Iterable

from recompile_watch.core.remedies import Case, Catalog, Look, Remedy
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.versions import ANY_VERSION
from recompile_watch.core.wording import CAUSES, PATTERNS, cause_means

WIDTH = 96
# What stands for the words in braces where no log fills them in.
EXAMPLES = {
    "function": "f", "place": "model.py:105", "guard": "kv_cache._current_idx[7] == 0", "reason": "what torch names", "attribute": "self.index",
    "tensor": "x", "mark_dynamic": "torch._dynamo.mark_dynamic(x, 0)", "mark_unbacked": "torch._dynamo.decorators.mark_unbacked(x, 0)",
    "sources": "L['kv_cache']._current_idx[7]", "source_pattern": r"L\['kv_cache'\]\._current_idx\[.*\]", "variants": "12", "limit": "16",
    "printed_limit": "8", "raised_limit": "64", "made_at": "at model.py:211", "break_at": "append, line 25 of cache.py",
    "disable_line": "export TOTO_DISABLE_COMPILE=1", "setting": "TORCHDYNAMO_RECOMPILE_LIMIT",
    "instead": "What to do instead stands beside each name.",
}  # fmt: skip


def explained_cause(cause: str, catalog: Catalog) -> str:
    """A class of guard failures: what it is, what it costs, what to do in each case."""
    words = CAUSES.get(cause, "torch names a guard of a class that is not known here")
    look = catalog.looks.get(cause, Look(()))
    shown = "\n".join(["In the log:", *(f"  {text}" for text in look.texts)]) if look.texts else ""
    parts = [f"{cause}: {words}", shown, _wrapped(cause_means(cause))]
    cases = [case for case in catalog.cases if cause in case.causes]
    return _joined([*parts, *(_case(case, catalog) for case in cases), _wrapped(f"Does not help: {look.never}") if look.never else ""])


def explained_kind(kind: str, rules: Ruleset, catalog: Catalog) -> str:
    """A kind of event: which messages show it, why it matters, what to do."""
    mine = [rule for rule in rules.rules if rule.event == kind]
    whys = list(dict.fromkeys(rule.why for rule in mine))
    shown = [f"  {rule.id}: {rule.title}" for rule in mine[:12]]
    more = [f"  … and {len(mine) - 12} more; recompile-watch rules list shows all"] if len(mine) > 12 else []
    parts = [f"{kind}: an event", *(_wrapped(why) for why in whys[:3]), "\n".join(["Rules that find it:", *shown, *more])]
    cases = [case for case in catalog.cases if kind in case.kinds and not case.causes]
    return _joined([*parts, *(_case(case, catalog) for case in cases)])


def explained_remedy(key: str, catalog: Catalog) -> str:
    """A remedy in all its forms."""
    forms = [remedy for remedy in catalog.remedies if remedy.key == key]
    used = sorted({cause for case in catalog.cases if key in case.remedies for cause in case.causes})
    parts = [f"{key}: a remedy"]
    parts += [_remedy(remedy) for remedy in forms]
    return _joined([*parts, f"Fits: {', '.join(used)}" if used else ""])


def explained_setting(name: str, catalog: Catalog) -> str:
    """A setting that torch reads, or a name that it does not."""
    instead = catalog.ineffective.get(name)
    if instead is not None:
        return _joined([f"{name}: no torch reads this", _wrapped(instead)])
    setting = catalog.settings[name]
    words = {"env": "an environment variable", "config": "a configuration key", "call": "a function", "argument": "an argument"}[setting.kind]
    parts = [f"{name}: {words}, from torch {setting.since[0]}.{setting.since[1]} on"]
    parts += [f"Sets {setting.sets}." if setting.sets else "", _wrapped(setting.note or "")]
    used = [remedy.key for remedy in catalog.remedies if name in remedy.settings]
    return _joined([*parts, f"Used by: {', '.join(dict.fromkeys(used))}" if used else ""])


def case_words(case: Case) -> str:
    """When a case fits: its patterns in words, else its name."""
    when = " and ".join(PATTERNS[pattern] for pattern in sorted(case.patterns))
    return f"when {when}" if when else case.id.replace("_", " ").replace(".", ", ")


def case_remedies(case: Case, catalog: Catalog) -> list[Remedy]:
    """The remedies of a case in order, each in the form for its kind of event."""
    kind = min(case.kinds, default="")
    return [remedy for key in case.remedies if (remedy := catalog.remedy(key, kind, ANY_VERSION)) is not None]


def _case(case: Case, catalog: Catalog) -> str:
    remedies = [f"  {number}. {remedy.title}  [{remedy.key}]" for number, remedy in enumerate(case_remedies(case, catalog), 1)]
    return "\n".join([f"What to do ({case_words(case)}):", *remedies])


def _remedy(remedy: Remedy) -> str:
    facts = (
        ("paste", example(remedy.apply)), ("where", example(remedy.where)), ("torch", remedy.torch_text),
        ("then", "restart the process" if remedy.restart else None), ("expect", example(remedy.expect)),
        ("caution", example(remedy.caution or "")), ("known", remedy.verified), ("docs", remedy.docs),
    )  # fmt: skip
    return "\n".join([remedy.title, *(_wrapped(value, f"  {name + ':':<9}") for name, value in facts if value)])


def example(text: str) -> str:
    """A remedy's text with examples in place of what a log would show."""
    return text.format_map(EXAMPLES)


def _wrapped(text: str, head: str = "") -> str:
    return textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False, break_on_hyphens=False)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"

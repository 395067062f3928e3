"""The guide as Markdown, made of the same data as the advice: causes, remedies, settings by version, and how to see and stop recompiles."""

from collections.abc import Callable, Iterable

from recompile_watch.core.models import MODES, Model, ModelSetting, caution_of
from recompile_watch.core.remedies import Case, Catalog, Remedy
from recompile_watch.core.rules import SEVERITIES, Rule, Ruleset
from recompile_watch.core.versions import dotted
from recompile_watch.core.wording import CAUSES, cause_means
from recompile_watch.report.explanation import DOES_WORDS, by_default, case_remedies, case_words, default_words, example, id_words, pattern_words

_INTRODUCTION = """\
# Guide

Why `torch.compile` compiles again, what it costs, and what to do. This page is made of the data that `recompile-watch analyze` advises from
(`recompile-watch explain --guide`); how each remedy is known stands in [remedies.md](remedies.md).

## See what happens

torch prints nothing about recompiles until a limit is hit. Ask for the reasons, on standard error:

```
export TORCH_LOGS="recompiles,graph_breaks"   # torch 2.1 and newer
python serve.py 2>&1 | tee serve.log
recompile-watch analyze serve.log
```

An unknown name in `TORCH_LOGS`, or an empty value, ends the program at `import torch`: use `recompiles` and `graph_breaks` (2.1 and newer),
`recompiles_verbose` (2.2 and newer), and not `cudagraphs` on 2.1 and 2.2. `TORCH_TRACE=folder` (2.3 and newer) writes everything that the
compiler did, for `recompile-watch analyze folder`.

## Lock compilation after warm-up

1. Run every variant once before the program goes live: all shapes (distinct sizes for distinct dimensions), dtypes, modes and flags.
2. In staging make a recompile an error: `torch.compiler.set_stance("fail_on_recompile")` (2.6 and newer).
3. In production let new variants run in eager mode: `torch.compiler.set_stance("eager_on_recompile")` (2.6 and newer).

## Causes
"""
_MESSAGES = """\
## Messages

What torch says besides the reasons of recompiles: limits, graph breaks, CUDA graphs, failures. Of several rows the first that fits counts;
`recompile-watch explain "a line of your log"` shows what to paste.
"""
_REMARKS = """\
## Messages that are no finding

What torch's compiler also prints. Nothing compiled again and nothing broke, so no report counts it.

| the message contains | what it means | what to do |
| --- | --- | --- |
"""
_TEXTS, _TEXT_LINES, _LINE_CHARS = 4, 3, 150  # so much of what a message looks like


def guide(rules: Ruleset, catalog: Catalog) -> str:
    """The whole page."""
    causes, messages = (_cause(cause, catalog) for cause in CAUSES), (_message(kind, rules, catalog) for kind in _kinds(rules, catalog))
    return "\n".join([_INTRODUCTION, *causes, _MESSAGES, *messages, _remarks(catalog), *_models(catalog), _settings(catalog)])


def _cause(cause: str, catalog: Catalog) -> str:
    look = catalog.looks.get(cause)
    lines = [f"### `{cause}`", "", f"{CAUSES[cause][0].upper()}{CAUSES[cause][1:]}.", ""]
    if look is not None:
        lines += ["```", *look.texts, "```", ""]
    lines += [cause_means(cause), ""]
    cases = [case for case in catalog.cases if cause in case.causes]
    for case, when in zip(cases, _apart(cases, case_words), strict=True):
        lines += [*_case(case, when, catalog), ""]
    if look is not None and look.never:
        lines += [f"**Does not help:** {look.never}", ""]
    return "\n".join(lines)


def _remarks(catalog: Catalog) -> str:
    return _REMARKS + "".join(f"| ``{one.text}`` | {one.means} | {one.do} |\n" for one in catalog.remarks)


def _apart(cases: list[Case], words: Callable[[Case], str]) -> list[str]:
    """When each of the cases fits; with the rest of its name where several would read alike, for they differ in what torch says."""
    when = [words(case) for case in cases]
    return [one if when.count(one) == 1 else f"{one}: {id_words(case.id.partition('.')[2])}" for case, one in zip(cases, when, strict=True)]


def _case(case: Case, when: str, catalog: Catalog) -> list[str]:
    lines = [f"**What to do** ({when}):", ""]
    for number, remedy in enumerate(case_remedies(case, catalog), 1):
        forms = {example(form.apply): form for form in _forms(remedy, catalog)}
        lines.append(f"{number}. {remedy.title} (`{remedy.name}`): {', or '.join(map(_form, forms, forms.values()))}")
    return lines


def _forms(remedy: Remedy, catalog: Catalog) -> list[Remedy]:
    """A remedy in each of its forms, that for the newest versions of torch first."""
    forms = [one for one in catalog.remedies if one.name == remedy.name and one.kinds == remedy.kinds]
    return sorted(forms, key=lambda one: one.torch.first, reverse=True)


def _form(text: str, remedy: Remedy) -> str:
    since = "" if remedy.torch_text in (">=2.0", ">=2.1") else f" (torch {remedy.torch_text})"
    return f"``{text}``{since}"


def _kinds(rules: Ruleset, catalog: Catalog) -> list[str]:
    """The kinds of torch's messages that have advice without a guard, the most severe first."""
    worst = {rule.event: rule.severity for rule in reversed(rules.rules) if _of_torch(rule)}
    told = set().union(*(case.kinds for case in catalog.cases if not case.causes))
    return sorted(told.intersection(worst), key=lambda kind: (-SEVERITIES.index(worst[kind]), kind))


def _of_torch(rule: Rule) -> bool:
    return rule.id.startswith("torch.")


def _message(kind: str, rules: Ruleset, catalog: Catalog) -> str:
    """A kind: what it looks like, why it matters, and for each case what to do."""
    mine = [rule for rule in rules.rules if rule.event == kind and _of_torch(rule)]
    shown = [line[:_LINE_CHARS].rstrip() for rule in mine[:_TEXTS] for line in rule.matches[0].text.splitlines()[:_TEXT_LINES] if line.strip()]
    lines = [f"### `{kind}`", "", "```", *shown, "```", "", *dict.fromkeys(rule.why for rule in mine[:_TEXTS]), ""]
    lines += ["| when | what to do, in this order |", "| --- | --- |"]
    cases = [case for case in catalog.cases if kind in case.kinds and not case.causes]
    for case, when in zip(cases, _apart(cases, _when), strict=True):
        titles = [f"{remedy.title} (`{remedy.name}`)" for remedy in case_remedies(case, catalog, kind)]
        lines.append(f"| {when} | {'<br>'.join(titles)} |")
    return "\n".join([*lines, ""])


def _when(case: Case) -> str:
    """When a case fits: its patterns in words, else what its name says behind the kind."""
    return pattern_words(case) or id_words(case.id.partition(".")[2]) or "else"


def _models(catalog: Catalog) -> list[str]:
    """What the wrappers of the known models read; nothing where no model is known."""
    models = catalog.models.models
    if not models:
        return []
    words = (
        "These profiles ship; write your own as [models.md](models.md) says. A variable is taken over when a process starts: set it where the\n"
        "process is started, and start it again. Lines to paste hold whatever was set before.\n"
    )
    return ["## Models", "", words, *(_model(model) for model in models), *_program(catalog)]


def _model(model: Model) -> str:
    lines = [f"### {model.title}", "", by_default(model), "", "| mode | what to paste |", "| --- | --- |"]
    lines += [f"| {mode} | {'<br>'.join(f'`{line}`' for line in pasted)} |" for mode in MODES if (pasted := model.lines_for(mode))]
    lines += ["", *_variables(model.settings, model.title)]
    return "\n".join([*lines, *([model.caution, ""] if model.caution else [])])


def _program(catalog: Catalog) -> list[str]:
    return ["\n".join(["### The program around them", "", *_variables(catalog.models.program, "the program")])] if catalog.models.program else []


def _variables(settings: Iterable[ModelSetting], of: str) -> list[str]:
    lines = ["| variables, the first wins | what it does | default | read | beware |", "| --- | --- | --- | --- | --- |"]
    for setting in settings:
        names = ", ".join(f"`{name}`" for name in setting.names)
        at = f"at {setting.read}" + (f", {setting.where}" if setting.where else "")
        lines.append(f"| {names} | {DOES_WORDS[setting.does].format(of=of)} | {default_words(setting)} | {at} | {caution_of(setting)} |")
    return [*lines, ""]


def _settings(catalog: Catalog) -> str:
    lines = ["## Settings that torch reads", "", "| setting | kind | since torch | what it sets |", "| --- | --- | --- | --- |"]
    for setting in catalog.settings.values():
        words = " ".join(text for text in (setting.sets and f"{setting.sets}.", setting.note) if text)
        lines.append(f"| `{setting.name}` | {setting.kind} | {dotted(setting.since)} | {words} |")
    lines += ["", "## Names that no torch reads", "", "| name | instead |", "| --- | --- |"]
    lines += [f"| `{name}` | {instead} |" for name, instead in catalog.ineffective.items()]
    lines += ["", f"torch's compiler reads {len(catalog.known)} further variables; they are no mistake, and none of them is advised."]
    return "\n".join(lines) + "\n"

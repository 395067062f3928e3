"""The guide as Markdown, made of the same data as the advice: causes, remedies, settings by version, and how to see and stop recompiles."""

from recompile_watch.core.remedies import Case, Catalog
from recompile_watch.core.wording import CAUSES, cause_means
from recompile_watch.report.explanation import case_remedies, case_words, example

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

An unknown name in `TORCH_LOGS` ends the program at `import torch`: use `recompiles` and `graph_breaks` (2.1 and newer), `recompiles_verbose`
(2.2 and newer), and not `cudagraphs` on 2.1. `TORCH_TRACE=folder` (2.3 and newer) writes everything that the compiler did, for
`recompile-watch analyze folder`.

## Lock compilation after warm-up

1. Run every variant once before the program goes live: all shapes (distinct sizes for distinct dimensions), dtypes, modes and flags.
2. In staging make a recompile an error: `torch.compiler.set_stance("fail_on_recompile")` (2.7 and newer).
3. In production let new variants run in eager mode: `torch.compiler.set_stance("eager_on_recompile")` (2.7 and newer).

## Causes
"""


def guide(catalog: Catalog) -> str:
    """The whole page."""
    parts = [_INTRODUCTION, *(_cause(cause, catalog) for cause in CAUSES), _settings(catalog)]
    return "\n".join(parts)


def _cause(cause: str, catalog: Catalog) -> str:
    look = catalog.looks.get(cause)
    lines = [f"### `{cause}`", "", f"{CAUSES[cause][0].upper()}{CAUSES[cause][1:]}.", ""]
    if look is not None:
        lines += ["```", *look.texts, "```", ""]
    lines += [cause_means(cause), ""]
    for case in (case for case in catalog.cases if cause in case.causes):
        lines += [*_case(case, catalog), ""]
    if look is not None and look.never:
        lines += [f"**Does not help:** {look.never}", ""]
    return "\n".join(lines)


def _case(case: Case, catalog: Catalog) -> list[str]:
    lines = [f"**What to do** ({case_words(case)}):", ""]
    for number, remedy in enumerate(case_remedies(case, catalog), 1):
        since = f", torch {remedy.torch_text}" if remedy.torch_text != ">=2.1" else ""
        lines.append(f"{number}. {remedy.title} (`{remedy.key}`{since}): ``{example(remedy.apply)}``")
    return lines


def _settings(catalog: Catalog) -> str:
    lines = ["## Settings that torch reads", "", "| setting | kind | since torch | what it sets |", "| --- | --- | --- | --- |"]
    for setting in catalog.settings.values():
        words = " ".join(text for text in (setting.sets and f"{setting.sets}.", setting.note) if text)
        lines.append(f"| `{setting.name}` | {setting.kind} | {setting.since[0]}.{setting.since[1]} | {words} |")
    lines += ["", "## Names that no torch reads", "", "| name | instead |", "| --- | --- |"]
    lines += [f"| `{name}` | {instead} |" for name, instead in catalog.ineffective.items()]
    return "\n".join(lines) + "\n"

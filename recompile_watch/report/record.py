"""A decision record: which mode each model should run in, why, on what evidence, and when to look again. Markdown, to be kept."""

from collections.abc import Sequence

from recompile_watch.core.analysis import Report
from recompile_watch.core.decision import Decision
from recompile_watch.core.findings import Evidence, Finding
from recompile_watch.report.markdown import code, lines_block, plain_text, sources_text
from recompile_watch.report.safe import safe

MAX_ROWS = 20


def record_of(report: Report, measured: Sequence[str], *, made_at: str, tool_version: str) -> str:
    """The record of all models that the evidence names; without any it says that nothing is decided.

    measured: the diagnoses that were read, as the user named them.
    """
    modes = ", ".join(f"{plain_text(decision.model)} {plain_text(decision.mode)}" for decision in report.decisions)
    torch = f", torch {plain_text(report.torch_version)}" if report.torch_version else ""
    parts = [f"# torch.compile: {modes or 'undecided'}", f"Made {made_at} by recompile-watch {tool_version}{torch}."]
    parts += [f"> {plain_text(problem)}" for problem in report.problems]
    if not report.decisions:
        parts.append("Nothing in the evidence names a model: give a log of its loading, or a diagnosis with `--diagnosis MODEL=FILE`.")
    for decision in report.decisions:
        parts += _decision(decision, [finding for finding in report.findings if finding.counts and _concerns(finding, report.decisions, decision)])
    read = [*([sources_text(report)] if report.sources else []), *(f"* diagnosis: {code(name)}" for name in measured)]
    parts += ["## What was read", "\n".join(read)] if read else []
    return "\n\n".join(parts) + "\n"


def _concerns(finding: Finding, decisions: Sequence[Decision], decision: Decision) -> bool:
    """What names no model counts where only one could be meant."""
    return finding.severity != "info" and (finding.model == decision.model or (finding.model is None and len(decisions) == 1))


def _decision(decision: Decision, findings: Sequence[Finding]) -> list[str]:
    parts = [f"## {plain_text(decision.model)}: {plain_text(decision.mode)}", f"Confidence: {plain_text(decision.confidence)}."]
    if decision.settings:
        parts += ["Settings, to be in force before the process starts:", lines_block(decision.settings)]
    parts += _list("### For", decision.because) + _list("### Against", decision.against)
    parts += ["### Evidence", _evidence(findings)] if findings else []
    conditions = [f"| `{safe(one.check)}` | {plain_text(f'{one.relation} {one.value}')} | {plain_text(one.text)} |" for one in decision.revisit_when]
    return [*parts, "### Look again when", "\n".join(["| quantity | is | that is |", "| --- | --- | --- |", *conditions])] if conditions else parts


def _list(title: str, texts: Sequence[str]) -> list[str]:
    return [title, "\n".join(f"* {plain_text(text)}" for text in texts)] if texts else []


def _evidence(findings: Sequence[Finding]) -> str:
    rows = [
        f"| {finding.count} | {plain_text(finding.title)} | {finding.first_time or ''} | {' '.join(map(_place, finding.evidence[:1]))} |"
        for finding in findings[:MAX_ROWS]
    ]
    cut = [f"\n… and {len(findings) - MAX_ROWS} more; `recompile-watch analyze` has them all."] if len(findings) > MAX_ROWS else []
    return "\n".join(["| times | what | since | where |", "| ---: | --- | --- | --- |", *rows, *cut])


def _place(evidence: Evidence) -> str:
    return code(f"{evidence.source}:{evidence.line}".replace("|", "\\|"))

"""The report as Markdown: for an issue, a pull request, a wiki page."""

import re
from collections.abc import Iterable, Mapping
from textwrap import indent

from recompile_watch.core.advice import Advice
from recompile_watch.core.analysis import Report
from recompile_watch.core.decision import Decision
from recompile_watch.core.findings import Finding, is_expected
from recompile_watch.report.safe import safe
from recompile_watch.report.words import doubles_text

MAX_FINDINGS = 50
MAX_ROWS = 100
_MAX_TEXT = 2000
# Markup characters get a backslash; what would be HTML, a mention or a link an entity.
_HARMLESS = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]()#+!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"})
_MARKS = {"critical": "🔴 critical", "warning": "🟠 warning", "info": "note"}


def report_to_markdown(report: Report, *, generated_at: str, tool_version: str) -> str:
    """The whole report; long tables are cut with a count."""
    shown = [finding for finding in report.findings if finding.counts and finding.severity != "info"]
    others = [finding for finding in report.findings if finding not in shown]
    parts = [f"# torch.compile: {report.status}", _head(report, generated_at, tool_version)]
    parts += [f"> {plain_text(problem)}" for problem in report.problems]
    parts += [_finding(finding) for finding in shown[:MAX_FINDINGS]]
    if len(shown) > MAX_FINDINGS:
        parts.append(f"… and {len(shown) - MAX_FINDINGS} more findings; `--format json` has all of them.")
    parts += [_decision(decision) for decision in report.decisions]
    parts += _notes(others)
    parts += _returns(report)
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Report, generated_at: str, tool_version: str) -> str:
    torch = f", torch {plain_text(report.torch_version)}" if report.torch_version else ""
    return f"recompile-watch {tool_version}, {generated_at}{torch}\n\n{sources_text(report)}"


def sources_text(report: Report) -> str:
    """The logs that were read, a line each."""
    sources = []
    for source in report.sources:
        read = f"* {code(source.facts.path)}: {source.facts.lines} lines, {source.first_time or '?'} to {source.last_time or '?'}"
        sources.append("; ".join([read, *map(plain_text, doubles_text(source))]))
    return "\n".join([*sources[:MAX_ROWS], *([f"* … and {len(sources) - MAX_ROWS} more sources"] if len(sources) > MAX_ROWS else [])])


def _finding(finding: Finding) -> str:
    times = "once" if finding.count == 1 else f"{finding.count} times"
    span = f", {finding.first_time}" if finding.first_time else ""
    span += f" to {finding.last_time}" if finding.last_time != finding.first_time else ""
    facts = [
        code(_place(finding)) if finding.file else "", f"{times}{span}", plain_text(finding.model or ""),
        finding.baseline and f"{finding.baseline} since the baseline",
        f"{finding.headroom.entries} of {finding.headroom.limit} entries" if finding.headroom and finding.headroom.limit else "",
    ]  # fmt: skip
    lines = [
        f"## {_MARKS[finding.severity]}: {plain_text(finding.title)}",
        " · ".join(fact for fact in facts if fact),
        plain_text(finding.consequence),
    ]
    if finding.evidence:
        lines.append(block("\n".join(f"line {place.line} of {safe(place.source, 200)}: {safe(place.text)}" for place in finding.evidence)))
    lines += [_advice(number, advice) for number, advice in enumerate(finding.advice, 1)]
    return "\n\n".join(lines)


def _advice(number: int, advice: Advice) -> str:
    title = f"**{'Do this' if number == 1 else 'Or'}: {plain_text(advice.title)}**{' (then restart)' if advice.restart else ''}"
    facts = [
        f"Where: {plain_text(advice.where)}",
        f"Expect: {plain_text(advice.expect)}",
        f"torch {plain_text(advice.torch)}; {plain_text(advice.verified)}",
    ]
    facts += [f"Caution: {plain_text(advice.caution)}"] if advice.caution else []
    facts += [f"<{advice.docs}>"] if advice.docs else []
    return "\n\n".join([title, block(safe(advice.apply, _MAX_TEXT)), "\n".join(f"* {fact}" for fact in facts)])


def _decision(decision: Decision) -> str:
    lines = [f"## {plain_text(decision.model)}: {decision.mode}", f"Confidence: {plain_text(decision.confidence)}"]
    lines.append(
        "\n".join([*(f"* for: {plain_text(text)}" for text in decision.because), *(f"* against: {plain_text(text)}" for text in decision.against)])
    )
    lines += [lines_block(decision.settings)] if decision.settings else []
    lines.append("Look again when " + "; ".join(plain_text(one.text) for one in decision.revisit_when) + ".")
    return "\n\n".join(lines)


def _notes(findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    cut = [f"… and {len(findings) - MAX_ROWS} more notes"] if len(findings) > MAX_ROWS else []
    return ["## Notes", "\n".join(map(_note, findings[:MAX_ROWS])), *cut]


def _note(finding: Finding) -> str:
    """One line, and below it what may be done first, where anything may."""
    facts = [f"{finding.count}×", plain_text(finding.title), code(_place(finding)) if finding.file else "", plain_text(_state(finding))]
    line = f"* {' · '.join(fact for fact in facts if fact)}"
    if is_expected(finding.advice) or not finding.advice:
        return line
    first = finding.advice[0]
    what = f"{plain_text(first.title)}:\n\n{block(safe(first.apply, _MAX_TEXT))}"
    return f"{line}\n\n{indent(what, '  ')}\n"


def _place(finding: Finding) -> str:
    return f"{finding.file}:{finding.line_no}" if finding.line_no is not None else finding.file or ""


def _state(finding: Finding) -> str:
    if finding.baseline == "gone":
        return "gone since the baseline"
    return f"accepted until {finding.accepted_until}" if finding.accepted_until else ""


def _returns(report: Report) -> list[str]:
    rows = report.series.strategy_return
    if not rows:
        return []
    lines = [_row(row.values) for row in rows[-MAX_ROWS:]]
    cut = [f"\n{len(rows) - MAX_ROWS} earlier rows are left out; `--format json` has them."] if len(rows) > MAX_ROWS else []
    return ["## Returns", "\n".join(["| symbol | strategy | return | Sharpe |", "| --- | --- | ---: | ---: |", *lines, *cut])]


def _row(values: Mapping[str, object]) -> str:
    cells = [
        plain_text(str(values.get("symbol"))),
        plain_text(str(values.get("strategy"))),
        _number(values.get("return")),
        _number(values.get("sharpe")),
    ]
    return f"| {' | '.join(cells)} |"


def _number(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else "–"


def plain_text(text: str) -> str:
    """Text of a log as text: nothing in it is markup."""
    return safe(text, _MAX_TEXT).translate(_HARMLESS).replace("://", "&#58;//").replace("www.", "www&#46;")


def code(text: str) -> str:
    """Text of a log as code."""
    text = safe(text, _MAX_TEXT)
    ticks = "`" * (max(map(len, re.findall(r"`+", text)), default=0) + 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def lines_block(lines: Iterable[str]) -> str:
    """Lines to paste, as a block of code."""
    return block("\n".join(safe(line, _MAX_TEXT) for line in lines))


def block(text: str) -> str:
    """Text of a log as a block of code, whatever fences are in it."""
    fence = "`" * max(3, max(map(len, re.findall(r"`+", text)), default=0) + 1)
    return f"{fence}\n{text}\n{fence}"

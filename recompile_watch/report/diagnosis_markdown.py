"""A diagnosis as Markdown, for an issue or a decision record; nothing in it is markup but what is written here."""

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.report.diagnosis_arms import arms_of, asked_of
from recompile_watch.report.diagnosis_rows import HEADER, control_text, facts_of, log_of, problems_of, rows_of, skipped_of
from recompile_watch.report.diagnosis_sketch import sketch
from recompile_watch.report.markdown import block, lines_block, plain_text

_MAX_TEXT = 2000


def diagnosis_to_markdown(diagnosis: Diagnosis, *, generated_at: str, tool_version: str) -> str:
    """The whole of it."""
    verdict = diagnosis.judgement.verdict
    title = f"run {plain_text(verdict.choose)}" if verdict.choose else "inconclusive"
    parts = [f"# Eager against compiled: {title}", f"recompile-watch {tool_version}, {generated_at}", plain_text(" · ".join(facts_of(diagnosis)))]
    parts += [f"> {plain_text(problem)}" for problem in problems_of(diagnosis)]
    parts += [f"> The timed stage is still to come: {plain_text(diagnosis.postponed)}"] if diagnosis.postponed else []
    points = [f"* Confidence: {plain_text(verdict.confidence)}"]
    points += [f"* for: {plain_text(text)}" for text in verdict.because] + [f"* against: {plain_text(text)}" for text in verdict.against]
    parts.append("\n".join(points))
    parts += [lines_block(verdict.settings)] if verdict.settings else []
    parts += ["Look again when " + "; ".join(plain_text(one.text) for one in verdict.revisit_when) + "."] if verdict.revisit_when else []
    rows = [" | ".join(plain_text(cell) for cell in row) for row in rows_of(diagnosis)]
    parts.append("\n".join([f"| {' | '.join(HEADER)} |", f"|{' --- |' * len(HEADER)}", *(f"| {row} |" for row in rows)]))
    drawn = sketch(arms_of(diagnosis), asked_of(diagnosis))
    parts += [f"Times as fast as eager, median and 95 % interval:\n\n{block(drawn)}"] if drawn else []
    parts += [plain_text(text) for text in (control_text(diagnosis),) if text]
    parts += ["\n".join(f"* not run: {plain_text(text)}" for text in skipped_of(diagnosis))] if skipped_of(diagnosis) else []
    parts += [_gates(diagnosis)]
    parts += ["What torch said:", block("\n".join(log_of(diagnosis)))] if log_of(diagnosis) else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _gates(diagnosis: Diagnosis) -> str:
    lines = [
        f"* {plain_text(judged.trial.name)}, {gate.gate}: {'passed' if gate.passed else '**not passed**'}, {plain_text(gate.detail)}"
        for judged in diagnosis.judgement.candidates
        for gate in judged.gates
    ]
    return "\n".join(["## Gates", "", *lines]) if lines else ""

"""A diagnosis as one page of HTML: the verdict first, then why, what was measured, when to measure again, and how it was measured.

What was not measured says so, with the reason; there is no chart of nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.trials import Status
from recompile_watch.core.verdict import Judged
from recompile_watch.report import diagnosis_charts as charts
from recompile_watch.report import diagnosis_tables as tables
from recompile_watch.report.diagnosis_arms import NAME_CHARS, Arm, arms_of, asked_of, unmeasured
from recompile_watch.report.diagnosis_rows import facts_of, log_of, problems_of
from recompile_watch.report.page import Frame, Part, page
from recompile_watch.report.safe import safe
from recompile_watch.report.times import thousands

_MAX_TEXT = 2000
_SAID_BELOW = "rejected: "  # each candidate with its gates has a place of its own
_Tiles = list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate's way through the gates. kind, word: of its badge. reasons: what was decided about it, and why. settings: to paste."""

    name: str
    kind: str
    word: str
    reasons: tuple[str, ...]
    gates: tuple[tuple[str, str, str], ...]
    settings: str


def diagnosis_to_html(diagnosis: Diagnosis, *, generated_at: str, tool_version: str) -> str:
    """The page. Two pages of one diagnosis differ in ``generated_at`` only."""
    verdict, arms = diagnosis.judgement.verdict, arms_of(diagnosis)
    tried = [_tried(one, verdict.choose) for one in diagnosis.judgement.candidates if one.trial.status is not Status.SKIPPED]
    skipped = tables.skipped_listing(diagnosis)
    parts = list(_parts(diagnosis, arms))
    status, word, subject = _head(diagnosis)
    contents = [("verdict", "Verdict", ""), *([("why", "Why", "")] if tried or skipped.rows else []), *((part.id, part.title, "") for part in parts)]
    frame = Frame(status, word, subject, " · ".join(facts_of(diagnosis)), contents, generated_at, tool_version)
    return page(
        "diagnosis.html", frame, title=_title(diagnosis, arms), numbers=_numbers(diagnosis, arms), confidence=safe(verdict.confidence),
        settings="\n".join(safe(line, _MAX_TEXT) for line in verdict.settings), because=[safe(text, _MAX_TEXT) for text in verdict.because],
        against=[safe(text, _MAX_TEXT) for text in verdict.against if not text.startswith(_SAID_BELOW)], problems=_problems(diagnosis), tried=tried,
        skipped=skipped, parts=parts, log="\n".join(log_of(diagnosis)),
    )  # fmt: skip


def _head(diagnosis: Diagnosis) -> tuple[str, str, str]:
    """The badge's kind and word, and the headline."""
    verdict, workload = diagnosis.judgement.verdict, safe(diagnosis.workload, NAME_CHARS)
    if verdict.is_decided:
        return "ok", "Decided", f"{workload}: run {safe(verdict.choose or '', NAME_CHARS)}"
    if diagnosis.problems:
        return "unknown", "Not measured", f"{workload}: keep eager"
    return "unknown", "Inconclusive", f"{workload}: keep eager for now"


def _problems(diagnosis: Diagnosis) -> list[str]:
    """Those that the verdict's reasons do not say, and why times are still to come."""
    later = [f"The timed stage is still to come: {diagnosis.postponed}"] if diagnosis.postponed else []
    return [safe(text, _MAX_TEXT) for text in (*problems_of(diagnosis), *later)]


def _title(diagnosis: Diagnosis, arms: list[Arm]) -> str:
    verdict = diagnosis.judgement.verdict
    if not verdict.is_decided:
        return "Undecided"
    ratio = next((arm.ratio for arm in arms if arm.is_chosen and not arm.is_eager), None)
    gain = "" if ratio is None else f": {ratio.value:.2f} times as fast as eager, between {ratio.low:.2f} and {ratio.high:.2f}"
    return f"Run {safe(verdict.choose or '', NAME_CHARS)}{gain}"


def _numbers(diagnosis: Diagnosis, arms: list[Arm]) -> _Tiles:
    """The tiles: what the choice brings and costs, how much was tried, and how fine the measurement is."""
    judged, effect = diagnosis.judgement.candidates, diagnosis.judgement.effect
    ran = [one for one in judged if one.trial.status is not Status.SKIPPED]
    chosen = next((one for one in ran if one.trial.name == diagnosis.judgement.verdict.choose), None)
    found = [] if chosen is None else _gains(chosen)
    found += [("candidates run", str(len(ran)), ""), ("of them rejected", str(sum(one.is_rejected for one in ran)), "")] if chosen is None else []
    timed = sum(bool(arm.times_ms) for arm in arms if not arm.is_eager)
    found += [("candidates timed", str(timed), "")] if chosen is None else []
    return [*found, ("smallest gain to be seen", "not measured" if effect is None else f"{100 * effect:.1f} %", "")]


def _gains(chosen: Judged) -> _Tiles:
    trial, ratio = chosen.trial, chosen.speedup
    tiles = [] if ratio is None else [("times as fast as eager", f"{ratio.value:.2f}", "ok")]
    tiles += [("recompiles", str(trial.structure.recompiles), "")] if trial.structure is not None else []
    tiles += [("error against eager", f"{trial.accuracy.mae_pct:.2g} %", "")] if trial.accuracy is not None else []
    tiles += [("first call", f"{trial.timing.first_call_s:.1f} s", "")] if trial.timing is not None else []
    return tiles + ([("calls until it pays", thousands(chosen.break_even_calls), "")] if chosen.break_even_calls is not None else [])


def _tried(one: Judged, choose: str | None) -> Tried:
    trial = one.trial
    reasons = tuple(safe(f"{gate.gate}: {gate.detail}", _MAX_TEXT) for gate in one.failures)
    if one.is_rejected:
        kind, word = "critical", "Rejected"
    elif one.speedup is None:
        kind, word, reasons = "unknown", "Not timed", ("it passes every gate that needs no stopwatch",)
    else:
        kind, word, reasons = "ok", "Chosen" if trial.name == choose else "Passes", ("it passes every gate",)
    gates = tuple(("✓" if gate.passed else "✗", safe(gate.gate, 40), safe(gate.detail, _MAX_TEXT)) for gate in one.gates)
    settings = "\n".join(safe(line, _MAX_TEXT) for line in trial.candidate.lines())
    return Tried(safe(trial.name, NAME_CHARS), kind, word, reasons, gates, settings)


def _parts(diagnosis: Diagnosis, arms: list[Arm]) -> Iterator[Part]:
    if arms:
        yield Part("candidates", "Candidates", "A dash is what was not measured.", tables=tables.candidates_listings(diagnosis))
    if any(arm.times_ms for arm in arms):
        yield from (_speedup(diagnosis, arms), _latency(diagnosis, arms), _calls(diagnosis, arms))
    else:
        yield Part("speedup", "Speed-up and latency", _not_measured(diagnosis, "no arm was timed"))
    compiled = [arm for arm in arms if arm.trial.structure is not None and arm.trial.structure.compiles_by_call]
    if compiled:
        yield Part("compilations", "Compilations", "", charts.compilations_chart(compiled), (tables.compilations_listing(compiled),))
    else:
        yield Part("compilations", "Compilations", _not_measured(diagnosis, "no candidate was run to its end"))
    if diagnosis.judgement.verdict.revisit_when:
        yield Part("revisit", "Look again when", tables=(tables.revisit_listing(diagnosis),))
    settings = (tables.settings_listing(diagnosis),) if arms else ()
    yield Part("provenance", "Provenance", tables=(tables.provenance_listing(diagnosis), *settings))


def _speedup(diagnosis: Diagnosis, arms: list[Arm]) -> Part:
    effect = diagnosis.judgement.effect
    untimed = tables.untimed_listing(arms)
    missing = (untimed,) if untimed.rows else ()
    if not any(arm.ratio is not None for arm in arms):
        return Part("speedup", "Speed-up", _not_measured(diagnosis, "too few calls were timed"), tables=missing)
    drawn = charts.speedup_chart(arms, effect, asked_of(diagnosis), safe(diagnosis.profile, 40))
    return Part("speedup", "Speed-up", "", drawn, (tables.speedup_listing(arms, effect),), missing)


def _latency(diagnosis: Diagnosis, arms: list[Arm]) -> Part:
    return Part("latency", "Latency", "", charts.latency_chart(arms, tables.clock_of(diagnosis)), (tables.latency_listing(arms),))


def _calls(diagnosis: Diagnosis, arms: list[Arm]) -> Part:
    timed = [arm for arm in arms if arm.times_ms and not arm.is_eager]
    if not timed:
        return Part("calls", "Call by call", _not_measured(diagnosis, "every candidate was rejected before it was timed"))
    return Part("calls", "Call by call", "", charts.calls_chart(timed, tables.clock_of(diagnosis)), tuple(map(tables.calls_listing, timed)))


def _not_measured(diagnosis: Diagnosis, otherwise: str) -> str:
    """``Not measured: structural stage only.``"""
    return f"Not measured: {(unmeasured(diagnosis) or otherwise).rstrip('.')}."

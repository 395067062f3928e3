"""What the text and the Markdown report of a diagnosis have in common: one row of cells a candidate, and the head's facts."""

import re
from collections.abc import Sequence

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.gates import hard_gates
from recompile_watch.core.statistics import median
from recompile_watch.core.trials import Status, Structure, Timing, Trial
from recompile_watch.core.verdict import Judged
from recompile_watch.report.safe import safe

HEADER = ("candidate", "result", "p50 ms", "speed-up [95 %]", "first call", "recompiles", "breaks", "limit", "error", "memory", "pays after")
NOTHING = "–"  # a cell of what was not measured
_MAX_BECAUSE = 300
_MAX_NAME = 120


def rows_of(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """Eager's row, and one for each candidate that was run."""
    eager = [_eager(diagnosis)] if diagnosis.eager is not None else []
    ran = [judged for judged in diagnosis.judgement.candidates if judged.trial.status is not Status.SKIPPED]
    return [*eager, *(_row(judged, judged.trial.name == diagnosis.judgement.verdict.choose) for judged in ran)]


def facts_of(diagnosis: Diagnosis) -> list[str]:
    """The conditions, in a few words each."""
    torch = f"torch {safe(diagnosis.torch_version)}" if diagnosis.torch_version else "torch unknown"
    facts = [safe(diagnosis.workload), safe(diagnosis.device), torch, f"profile {diagnosis.profile}", f"mode {diagnosis.mode}"]
    return [*facts, f"stage {diagnosis.stage}"] if diagnosis.stage != "both" else facts


def problems_of(diagnosis: Diagnosis) -> list[str]:
    """Those that the verdict's reasons do not say already."""
    return [text for text in diagnosis.problems if not any(text in reason for reason in diagnosis.judgement.verdict.because)]


def control_text(diagnosis: Diagnosis) -> str | None:
    """What eager against itself showed; None where it was not timed."""
    control, effect = diagnosis.judgement.control, diagnosis.judgement.effect
    if control is None or effect is None:
        return None
    clock = "processor time" if diagnosis.by_processor else "wall time"
    return f"eager against itself: {control}, so a gain of less than {100 * effect:.1f} % cannot be seen ({clock})"


def gain_text(diagnosis: Diagnosis) -> str | None:
    """What the choice gains: ``measured: 31 recompiles → 0, 1.49 times faster [1.47, 1.51]``; None for eager."""
    found = {judged.trial.name: judged for judged in diagnosis.judgement.candidates}
    chosen = found.get(diagnosis.judgement.verdict.choose or "")
    return None if chosen is None or chosen.speedup is None else f"measured: {', '.join(_effects(chosen, found.get('default')))}"


def summary_text(diagnosis: Diagnosis) -> str:
    """All of it in one sentence, for a message: ``31 recompiles → 0, 1.49 times faster [1.47, 1.51]; run variant:no-cache``.

    Where nothing compiled is chosen: what came closest, and why it is not.
    """
    verdict, candidates = diagnosis.judgement.verdict, diagnosis.judgement.candidates
    default = next((one for one in candidates if one.trial.name == "default"), None)
    shown = next((one for one in candidates if one.trial.name == verdict.choose), None) or _closest(candidates, default)
    words = ", ".join(_effects(shown, default)) if shown is not None else ""
    because = safe(verdict.because[0], _MAX_BECAUSE) if verdict.because else safe(verdict.confidence)
    name = safe(shown.trial.name, _MAX_NAME) if shown is not None else ""
    if shown is not None and verdict.choose == shown.trial.name:
        return f"{words}; run {name}" if words else f"run {name}: {because}"
    end = f"keep eager: {because}" if verdict.is_decided else f"not decided: {because}"
    return f"{words} with {name}; {end}" if words else end


def _closest(candidates: Sequence[Judged], default: Judged | None) -> Judged | None:
    """The candidate that recompiles least, and less than the default mode, of those that run as they should."""
    fine = [one for one in candidates if one.gates and all(gate.passed for gate in hard_gates(one.trial)) and one.trial.structure is not None]
    best = min(fine, key=_recompiles, default=None)
    return best if best is not None and default is not None and _recompiles(best) < _recompiles(default) else None


def _recompiles(one: Judged) -> int:
    return one.trial.structure.recompiles if one.trial.structure is not None else 0


def _effects(one: Judged, default: Judged | None) -> list[str]:
    """What a candidate changes, as far as it was measured."""
    found = []
    if default is not None and default.trial.structure is not None and one.trial.structure is not None and one is not default:
        found.append(f"{default.trial.structure.recompiles} recompiles → {one.trial.structure.recompiles}")
    if one.speedup is not None:
        found.append(f"{one.speedup.value:.2f} times faster [{one.speedup.low:.2f}, {one.speedup.high:.2f}]")
    return found


def log_of(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The lines of torch that matter, of the first candidate that has some; without the blanks in front of its source comments."""
    logs = [judged.trial.log for judged in diagnosis.judgement.candidates]
    return tuple(re.sub(r" {3,}#", "  #", safe(line)) for line in next((log for log in logs if log), ()))


def skipped_of(diagnosis: Diagnosis) -> list[str]:
    """Which candidates were not run, by reason."""
    names: dict[str, list[str]] = {}
    for one in diagnosis.judgement.candidates:
        if one.trial.status is Status.SKIPPED:
            names.setdefault(one.trial.reason, []).append(safe(one.trial.name))
    return [f"{', '.join(who)}: {safe(reason)}" for reason, who in names.items()]


def _eager(diagnosis: Diagnosis) -> tuple[str, ...]:
    trial = diagnosis.eager
    assert trial is not None
    result = "the control" if trial.has_succeeded else trial.status.value
    chosen = " *" if diagnosis.judgement.verdict.choose == "eager" else ""
    return (f"eager{chosen}", result, _ms(trial.timing, 1), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, _memory(trial), NOTHING)


def _row(judged: Judged, is_chosen: bool) -> tuple[str, ...]:
    trial, ratio = judged.trial, judged.speedup
    failed = [gate.gate for gate in judged.failures]
    result = trial.status.value if trial.status.value != "ok" else f"fails: {', '.join(failed)}" if failed else "passes"
    if trial.status.value == "ok" and not failed and (trial.timing is None or not trial.timing.pairs):
        result = "not timed"
    timing = trial.timing if trial.timing is not None and trial.timing.pairs else None
    speed = NOTHING if ratio is None else f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
    first = NOTHING if timing is None else f"{timing.first_call_s:.1f} s"
    if timing is not None and timing.first_call_cached_s is not None:
        first = f"{timing.first_call_s:.1f} ({timing.first_call_cached_s:.1f}) s"
    error = NOTHING if trial.accuracy is None else f"{trial.accuracy.mae_pct:.2g} %"
    pays = NOTHING if timing is None else "never" if judged.break_even_calls is None else f"{judged.break_even_calls} calls"
    name = safe(trial.name, 40) + (" *" if is_chosen else "")
    return (name, result, _ms(timing, 1), speed, first, *_counts(trial.structure), error, _memory(trial), pays)


def _counts(seen: Structure | None) -> tuple[str, str, str]:
    if seen is None:
        return (NOTHING, NOTHING, NOTHING)
    late = f" ({seen.late_recompiles} late)" if seen.late_recompiles else ""
    return (f"{seen.recompiles}{late}", str(seen.graph_breaks), str(seen.limit_hits))


def _ms(timing: Timing | None, arm: int) -> str:
    return f"{median([pair[arm] for pair in timing.pairs]):.3g}" if timing is not None and timing.pairs else NOTHING


def _memory(trial: Trial) -> str:
    return NOTHING if trial.peak_memory_mb is None else f"{trial.peak_memory_mb:.0f} MB"

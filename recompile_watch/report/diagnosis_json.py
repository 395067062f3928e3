"""A diagnosis as the JSON object of the contract (section 8)."""

from recompile_watch.core.candidates import Candidate
from recompile_watch.core.diagnosis import Diagnosis, Provenance
from recompile_watch.core.measured import SCHEMA
from recompile_watch.core.statistics import mad, median, percentile
from recompile_watch.core.trials import Accuracy, Structure, Timing, Trial
from recompile_watch.core.verdict import Judged, Verdict
from recompile_watch.report.diagnosis_rows import summary_text
from recompile_watch.report.safe import safe

_MAX_TEXT = 2000


def diagnosis_to_json(diagnosis: Diagnosis, *, generated_at: str, tool_version: str) -> dict[str, object]:
    """The diagnosis. generated_at: ISO 8601 with offset."""
    control, effect = diagnosis.judgement.control, diagnosis.judgement.effect
    return {
        "schema": SCHEMA,
        "generated_at": generated_at,
        "tool_version": tool_version,
        "workload": safe(diagnosis.workload),
        "device": safe(diagnosis.device),
        "torch_version": diagnosis.torch_version and safe(diagnosis.torch_version),
        "profile": diagnosis.profile,
        "mode": diagnosis.mode,
        "stage": diagnosis.stage,
        "clock": "processor" if diagnosis.by_processor else "wall",
        "seed": diagnosis.seed,
        "provenance": None if diagnosis.provenance is None else _provenance(diagnosis.provenance),
        "problems": [safe(problem, _MAX_TEXT) for problem in diagnosis.problems],
        "control": None
        if control is None
        else {"ratio": control.value, "ci_low": control.low, "ci_high": control.high, "minimum_detectable_effect": effect},
        "eager": None if diagnosis.eager is None else _eager(diagnosis.eager),
        "candidates": [_candidate(judged) for judged in diagnosis.judgement.candidates],
        "postponed": safe(diagnosis.postponed, _MAX_TEXT) or None,
        "verdict": {**_verdict(diagnosis.judgement.verdict), "summary": summary_text(diagnosis)},
    }


def _provenance(seen: Provenance) -> dict[str, object]:
    return {
        "python": safe(seen.python), "python_version": seen.python_version and safe(seen.python_version), "threads": seen.threads,
        "started_at": seen.started_at, "seconds": seen.seconds,
    }  # fmt: skip


def _eager(trial: Trial) -> dict[str, object]:
    return {
        "status": trial.status.value, "reason": safe(trial.reason, _MAX_TEXT), "success": f"{trial.calls_ok}/{trial.calls}",
        "peak_memory_mb": trial.peak_memory_mb, "median_ms": _median(trial.timing, 1), "per_call": _calls(trial.timing),
        "read_back": _read_back(trial), "process_s": trial.seconds,
    }  # fmt: skip


def _candidate(judged: Judged) -> dict[str, object]:
    trial = judged.trial
    return {
        "name": safe(trial.name),
        "settings": {name: safe(value) if isinstance(value, str) else value for name, value in _settings(trial.candidate).items()},
        "apply": [safe(line, _MAX_TEXT) for line in trial.candidate.lines()],
        "status": trial.status.value,
        "reason": safe(trial.reason, _MAX_TEXT),
        "structural": None if trial.structure is None else _structure(trial.structure),
        "timing": None if trial.timing is None or not trial.timing.pairs else _timing(judged, trial.timing),
        "accuracy": None if trial.accuracy is None else _accuracy(trial.accuracy),
        "peak_memory_mb": trial.peak_memory_mb,
        "success": f"{trial.calls_ok}/{trial.calls}",
        "gates": [{"gate": gate.gate, "passed": gate.passed, "detail": safe(gate.detail, _MAX_TEXT)} for gate in judged.gates],
        "log": [safe(line) for line in trial.log],
        "read_back": _read_back(trial),
        "process_s": trial.seconds,
    }


def _settings(candidate: Candidate) -> dict[str, object]:
    return candidate.settings()


def _read_back(trial: Trial) -> dict[str, str]:
    return {safe(name): safe(value) for name, value in trial.read_back}


def _structure(seen: Structure) -> dict[str, object]:
    return {
        "recompiles": seen.recompiles, "late_recompiles": seen.late_recompiles, "graph_breaks": seen.graph_breaks, "limit_hits": seen.limit_hits,
        "frames_compiled": seen.frames_compiled, "cudagraph_skips": seen.cudagraph_skips,
        "calls": seen.calls, "warmup_calls": seen.warmup_calls, "compiles_by_call": list(seen.compiles_by_call),
    }  # fmt: skip


def _timing(judged: Judged, timing: Timing) -> dict[str, object]:
    times, ratio = [pair.candidate_ms for pair in timing.pairs], judged.speedup
    return {
        "calls": len(times), "median_ms": median(times), "mad_ms": mad(times), "p95_ms": percentile(times, 95), "p99_ms": percentile(times, 99),
        "max_ms": max(times), "sigma_ms": timing.sigma_ms, "eager_median_ms": _median(timing, 0), "first_call_s": timing.first_call_s,
        "first_call_cached_s": timing.first_call_cached_s, "compile_s": timing.compile_s, "warmup_overhead_s": timing.overhead_s,
        "speedup": None if ratio is None else ratio.value, "ci_low": None if ratio is None else ratio.low,
        "ci_high": None if ratio is None else ratio.high, "break_even_calls": judged.break_even_calls, "per_call": _calls(timing),
        "warmup": [{"seconds": seconds, "compiles": compiles} for seconds, compiles in timing.warmup],
    }  # fmt: skip


def _median(timing: Timing | None, arm: int) -> float | None:
    return median([pair[arm] for pair in timing.pairs]) if timing is not None and timing.pairs else None


def _calls(timing: Timing | None) -> list[dict[str, object]]:
    """Every pair (of a limited number), for plots and for whoever wants to compute it again."""
    if timing is None:
        return []
    compiles = (*timing.compiles, *(0 for _ in timing.pairs))
    return [{"eager_ms": pair.eager_ms, "candidate_ms": pair.candidate_ms, "compiles": compiles[place]} for place, pair in enumerate(timing.pairs)]


def _accuracy(seen: Accuracy) -> dict[str, object]:
    return {
        "max_abs": seen.max_abs, "mae": seen.mae, "mae_pct": seen.mae_pct, "noise_floor_pct": seen.noise_floor_pct,
        "same_seed_delta": seen.same_seed_delta, "sigma_mae_pct": seen.sigma_mae_pct, "is_close": seen.is_close, "rmse_eager": seen.rmse_eager,
        "rmse_candidate": seen.rmse_candidate, "multiplier": seen.multiplier, "metric_pct": seen.metric_pct,
    }  # fmt: skip


def _verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "status": verdict.status,
        "choose": verdict.choose and safe(verdict.choose),
        "settings": [safe(line, _MAX_TEXT) for line in verdict.settings],
        "confidence": verdict.confidence,
        "because": [safe(text, _MAX_TEXT) for text in verdict.because],
        "against": [safe(text, _MAX_TEXT) for text in verdict.against],
        "revisit_when": [{"check": one.check, "relation": one.relation, "value": one.value, "text": one.text} for one in verdict.revisit_when],
    }

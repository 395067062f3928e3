"""The report as JSON (contract, section 5)."""

import json
import re
from collections.abc import Mapping
from math import isfinite

from recompile_watch.core.advice import Advice
from recompile_watch.core.analysis import Report, SourceReport
from recompile_watch.core.decision import Decision
from recompile_watch.core.findings import Finding
from recompile_watch.core.revisit import Condition
from recompile_watch.core.series import Latency, Numbers, StrategyRow
from recompile_watch.core.timeline import Timeline
from recompile_watch.report.safe import safe
from recompile_watch.report.times import moment_of

SCHEMA = "recompile-watch/analysis/1"
_MAX_PATH = 4096
# JSON escapes C0 only; these steer terminals or reorder text as well.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def json_text(value: object) -> str:
    """``value`` as JSON in readable Unicode; control and bidirectional characters are escaped, also lone surrogates.

    NaN and infinity, which are no JSON numbers, become null.
    """
    try:
        return escaped(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError:
        return escaped(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False))


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def escaped(text: str) -> str:
    """JSON text in which nothing steers a terminal."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def report_to_json(report: Report, *, generated_at: str, tool_version: str) -> dict[str, object]:
    """The report as the JSON object of the contract. generated_at: ISO 8601 with offset."""
    return {
        "schema": SCHEMA,
        "status": report.status,
        "generated_at": generated_at,
        "tool_version": tool_version,
        "torch_version": {"value": report.torch_version and safe(report.torch_version), "from": report.torch_version_from},
        "problems": [safe(problem, _MAX_PATH) for problem in report.problems],
        "sources": [_source(source) for source in report.sources],
        "unread": dict(report.unread),
        "counts": dict(report.counts),
        "findings": [_finding(finding) for finding in report.findings],
        "series": {**_series(report.series), "timeline": _timeline(report.timeline)},
        "decision": {"per_model": {safe(decision.model): _decision(decision) for decision in report.decisions}},
    }


def _source(source: SourceReport) -> dict[str, object]:
    facts = source.facts
    return {
        "path": facts.path, "bytes": facts.bytes, "lines": facts.lines, "first_time": source.first_time, "last_time": source.last_time,
        "unread": dict(facts.unread), "error": facts.error, "also_in": dict(source.also_in),
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, object]:
    headroom = finding.headroom
    return {
        "id": finding.id,
        "kind": finding.kind,
        "severity": finding.severity,
        "title": safe(finding.title),
        "model": _safe(finding.model),
        "function": _safe(finding.function),
        "file": _safe(finding.file, _MAX_PATH),
        "line_no": finding.line_no,
        "cause": _safe(finding.cause),
        "count": finding.count,
        "refused": finding.refused,
        "first_time": finding.first_time,
        "last_time": finding.last_time,
        "phase": finding.phase,
        "headroom": None if headroom is None else {"entries": headroom.entries, "limit": headroom.limit},
        "cost": {"compile_seconds": finding.compile_seconds},
        "evidence": [{"source": place.source, "line": place.line, "text": safe(place.text)} for place in finding.evidence],
        "consequence": safe(finding.consequence),
        "ranks": list(finding.ranks),
        "processes": list(finding.processes),
        "symbols": [safe(symbol) for symbol in finding.symbols],
        "advice": [_advice(advice) for advice in finding.advice],
        "baseline": finding.baseline,
        "accepted_until": finding.accepted_until,
    }


def _advice(advice: Advice) -> dict[str, object]:
    return {
        "remedy": advice.remedy, "form": advice.form or None, "title": safe(advice.title), "kind": advice.kind,
        "apply": safe(advice.apply, _MAX_PATH), "where": safe(advice.where, _MAX_PATH), "restart": advice.restart, "torch": advice.torch,
        "expect": safe(advice.expect), "verified": safe(advice.verified), "caution": _safe(advice.caution), "docs": advice.docs,
    }  # fmt: skip


def _decision(decision: Decision) -> dict[str, object]:
    return {
        "mode": decision.mode, "confidence": safe(decision.confidence), "because": [safe(text) for text in decision.because],
        "against": [safe(text) for text in decision.against], "settings": [safe(line, _MAX_PATH) for line in decision.settings],
        "revisit_when": [_condition(one) for one in decision.revisit_when],
    }  # fmt: skip


def _condition(one: Condition) -> dict[str, object]:
    return {"check": safe(one.check), "relation": safe(one.relation), "value": _data(one.value), "text": safe(one.text)}


def _series(numbers: Numbers) -> dict[str, object]:
    return {
        "strategy_return": [_row(row) for row in numbers.strategy_return],
        "strategy_rows_left_off": numbers.strategy_rows_left_off,
        "strategy_daily_return": [
            {"symbol": _data(symbol), "strategy": _data(strategy), "return": _data(value)}
            for (symbol, strategy), value in numbers.strategy_daily_return.items()
        ],
        "validation_loss": [
            {"symbol": _data(symbol), "target": _data(target), "value": _data(value)} for (symbol, target), value in numbers.validation_loss.items()
        ],
        "inference": {**_latency(numbers.inference), "models": {safe(name): _latency(one) for name, one in numbers.inference_by_model.items()}},
        "gpu_memory": {
            safe(stage): {"model": _safe(one.model), "max_peak_mb": one.max_peak_mb, "last_peak_mb": one.last_peak_mb, "n": one.n}
            for stage, one in numbers.gpu_memory.items()
        },
        "quotes": {"synthetic": _quotes(numbers.synthetic_quotes), "real": _quotes(numbers.real_quotes)},
    }


def _timeline(timeline: Timeline) -> dict[str, object]:
    return {
        "slice_seconds": timeline.length_s,
        "slices": [
            {
                "begin": moment_of(one.begin_s).isoformat(), "counts": dict(one.counts),
                "marks": [{"kind": kind, "model": safe(model), "n": n} for (kind, model), n in one.marks.items()],
                "gpu_peak_mb": {safe(model): peak for model, peak in one.gpu_peak_mb.items()},
                "inference": _latency(one.latency) if one.latency.n else None,
            }
            for one in timeline.slices
        ],
    }  # fmt: skip


def _row(row: StrategyRow) -> dict[str, object]:
    return {
        "time": row.time,
        "source": row.source,
        "line": row.line,
        **{name: safe(value) if isinstance(value, str) else value for name, value in row.values.items()},
    }


def _latency(latency: Latency) -> dict[str, object]:
    numbers = {"p50": latency.p50, "p95": latency.p95, "p99": latency.p99}
    return {**numbers, "n": latency.n, "derived": latency.derived, "unit": "milliseconds"}


def _quotes(by_symbol: Mapping[str, int]) -> dict[str, object]:
    return {safe(symbol): count for symbol, count in sorted(by_symbol.items())}


def _safe(text: str | None, limit: int = 400) -> str | None:
    return None if text is None else safe(text, limit)


def _data(value: object) -> object:
    return safe(value) if isinstance(value, str) else value

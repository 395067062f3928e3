"""A diagnosis, read back from its JSON report: whatever can be shown of a fresh one can be shown of a kept one."""

import json
from collections.abc import Mapping, Sequence
from math import inf
from typing import TypeAlias

from recompile_watch.core.candidates import EAGER, Candidate, parse_candidate
from recompile_watch.core.codec import from_json
from recompile_watch.core.diagnosis import Diagnosis, Provenance
from recompile_watch.core.errors import ConfigError, StoreError, UsageError
from recompile_watch.core.gates import Gate
from recompile_watch.core.measured import NO_REPORT, SCHEMA
from recompile_watch.core.statistics import Pair, Ratio
from recompile_watch.core.trials import MAX_CALLS, Accuracy, Status, Structure, Timing, Trial
from recompile_watch.core.verdict import Judged, Judgement, Verdict

_MOST = 1e12
_Part: TypeAlias = Mapping[str, object]
_ENDLESS = ("max_abs", "mae", "mae_pct", "noise_floor_pct", "same_seed_delta")  # infinite where the outputs have other shapes; null in JSON


def read_diagnosis(text: str, file: str) -> Diagnosis:
    """The diagnosis that a JSON report of diagnose holds. Raises ConfigError where it is none."""
    try:
        report = _part(json.loads(text, parse_constant=_no_number))
        if report["schema"] != SCHEMA:
            raise ValueError("another schema")
        return _diagnosis(report)
    except (ValueError, KeyError, TypeError, RecursionError, StoreError, UsageError):
        raise ConfigError(NO_REPORT.format(file=file)) from None


def _diagnosis(report: _Part) -> Diagnosis:
    control, eager = report["control"], report["eager"]
    judgement = Judgement(
        None if control is None else _ratio(_part(control), "ratio"),
        None if control is None else _bounded(_part(control)["minimum_detectable_effect"]),
        tuple(_judged(_part(one)) for one in _list(report["candidates"])),
        from_json(Verdict, {name: value for name, value in _part(report["verdict"]).items() if name != "summary"}),
    )
    provenance = report.get("provenance")
    return Diagnosis(
        _text(report["workload"]), _text(report["device"]), None if report["torch_version"] is None else _text(report["torch_version"]),
        _text(report["profile"]), _text(report["mode"]), _text(report["stage"]), report["clock"] == "processor", _int(report["seed"]),
        None if eager is None else _eager(_part(eager)), judgement, tuple(map(_text, _list(report["problems"]))),
        None if provenance is None else from_json(Provenance, provenance), _text(report.get("postponed") or ""),
    )  # fmt: skip


def _eager(part: _Part) -> Trial:
    pairs = _pairs(part["per_call"])
    return _trial(Candidate(EAGER), part, Timing(pairs, 0.0, 0.0) if pairs else None)


def _judged(part: _Part) -> Judged:
    timing = None if part["timing"] is None else _part(part["timing"])
    gates = tuple(from_json(Gate, gate) for gate in _list(part["gates"]))
    trial = _trial(parse_candidate(_text(part["name"])), part, None if timing is None else _timing(timing))
    if timing is None or timing["speedup"] is None:
        return Judged(trial, None, None, gates)
    break_even = timing["break_even_calls"]
    return Judged(trial, _ratio(timing, "speedup"), None if break_even is None else _int(break_even), gates)


def _trial(candidate: Candidate, part: _Part, timing: Timing | None) -> Trial:
    calls_ok, _, calls = _text(part["success"]).partition("/")
    memory, structure, accuracy, seconds = (part.get(name) for name in ("peak_memory_mb", "structural", "accuracy", "process_s"))
    return Trial(
        candidate, Status(_text(part["status"])), _text(part["reason"]), None if structure is None else _structure(structure), timing,
        None if accuracy is None else _accuracy(_part(accuracy)), None if memory is None else _float(memory), int(calls), int(calls_ok),
        tuple(map(_text, _list(part.get("log", [])))), tuple((name, _text(value)) for name, value in _part(part.get("read_back", {})).items()),
        None if seconds is None else _float(seconds),
    )  # fmt: skip


def _timing(part: _Part) -> Timing:
    cached_s, compile_s, sigma_ms = (None if part[name] is None else _float(part[name]) for name in ("first_call_cached_s", "compile_s", "sigma_ms"))
    calls = [_part(call) for call in _list(part["per_call"])]
    warmup = [_part(call) for call in _list(part["warmup"])]
    return Timing(
        _pairs(part["per_call"]), _float(part["first_call_s"]), _float(part["warmup_overhead_s"]), cached_s, compile_s, sigma_ms,
        tuple(_count(call["compiles"]) for call in calls), tuple((_bounded(call["seconds"]), _count(call["compiles"])) for call in warmup),
    )  # fmt: skip


def _structure(value: object) -> Structure:
    seen = from_json(Structure, value)
    if len(seen.compiles_by_call) > MAX_CALLS:
        raise ValueError("too many calls")
    for count in (*seen.compiles_by_call, *(value for name, value in _part(value).items() if name != "compiles_by_call")):
        _count(count)
    return seen


def _accuracy(part: _Part) -> Accuracy:
    return from_json(Accuracy, {name: inf if value is None and name in _ENDLESS else value for name, value in part.items()})


def _pairs(value: object) -> tuple[Pair, ...]:
    """The pairs of calls. A call takes some time: of a call of none there is no ratio."""
    pairs = tuple(Pair(_bounded(call["eager_ms"]), _bounded(call["candidate_ms"])) for call in map(_part, _list(value)))
    if any(time < 1 / _MOST for pair in pairs for time in pair):
        raise ValueError("no time")
    return pairs


def _ratio(part: _Part, name: str) -> Ratio:
    ratio = Ratio(_float(part[name]), _float(part["ci_low"]), _float(part["ci_high"]))
    if not 1 / _MOST < ratio.low <= ratio.value <= ratio.high < _MOST:
        raise ValueError("no interval")
    return ratio


def _part(value: object) -> _Part:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list) or len(value) > MAX_CALLS:
        raise TypeError("no list")
    return value


def _text(value: object) -> str:
    return from_json(str, value)


def _int(value: object) -> int:
    return from_json(int, value)


def _count(value: object) -> int:
    if not 0 <= _int(value) < _MOST:
        raise ValueError("no count")
    return _int(value)


def _bounded(value: object) -> float:
    """A time that can be drawn."""
    if not 0 <= _float(value) < _MOST:
        raise ValueError("no time")
    return _float(value)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _float(value: object) -> float:
    return from_json(float, value)

"""The verdict of a diagnosis, read back from its JSON report, becomes the decision for a model: a measurement outweighs what a log suggests."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from recompile_watch.core.candidates import EAGER, MODES
from recompile_watch.core.decision import Decision
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.revisit import Condition

SCHEMA = "recompile-watch/diagnosis/1"
NO_REPORT = "{file}: no report of diagnose; write one with 'recompile-watch diagnose --format json --output toto.json ...'"


def parse_diagnosis(text: str, file: str, model: str) -> Decision:
    """The decision that a diagnosis of the model's workload gives; ``undecided`` where it was inconclusive. Raises ConfigError."""
    try:
        return decision_of(json.loads(text), file, model)
    except (ValueError, RecursionError):
        raise ConfigError(NO_REPORT.format(file=file)) from None


def decision_of(report: object, file: str, model: str) -> Decision:
    """The same of a report that was read already. Raises ConfigError."""
    try:
        if not isinstance(report, Mapping) or report["schema"] != SCHEMA:
            raise KeyError("schema")
        return _decision(report, model)
    except (ValueError, KeyError, TypeError):
        raise ConfigError(NO_REPORT.format(file=file)) from None


def with_measured(decisions: Iterable[Decision], measured: Mapping[str, Decision]) -> tuple[Decision, ...]:
    """The decisions of a log with those that were measured in their place; an inconclusive one only adds its reason."""
    known = {decision.model: decision for decision in decisions}
    for model, decision in measured.items():
        before = known.get(model)
        if decision.mode == "undecided" and before is not None:
            known[model] = replace(before, against=(*before.against, *(f"a diagnosis did not decide: {reason}" for reason in decision.because[:1])))
        else:
            known[model] = decision if before is None else replace(decision, against=(*decision.against, *_concerns(before)))
    return tuple(known[model] for model in sorted(known))


def _decision(report: Mapping[str, object], model: str) -> Decision:
    verdict = report["verdict"]
    if not isinstance(verdict, dict):
        raise TypeError("verdict")
    choose = verdict["choose"]
    mode = "undecided" if choose is None else str(choose) if choose in (EAGER, *MODES) else "default"
    conditions = tuple(Condition(str(one["check"]), str(one["relation"]), _value(one["value"]), str(one["text"])) for one in verdict["revisit_when"])
    because, against, settings = (tuple(map(str, verdict[name])) for name in ("because", "against", "settings"))
    return Decision(model, mode, f"measured, {verdict['confidence']}", because, against, settings, conditions)


def _concerns(before: Decision) -> tuple[str, ...]:
    """What the log has against a mode that was measured to be good."""
    return tuple(f"the log: {reason}" for reason in before.because) if before.mode == EAGER else ()


def _value(value: object) -> float | str:
    if isinstance(value, str | float | int):
        return value
    raise TypeError("value")

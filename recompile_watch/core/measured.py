"""The verdict of a diagnosis, read back from its JSON report, becomes the decision for a model: a measurement outweighs what a log suggests."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from recompile_watch.core.candidates import EAGER, MODES, Candidate
from recompile_watch.core.decision import Decision, settings_for
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.remedies import Catalog
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


def with_measured(decisions: Iterable[Decision], measured: Mapping[str, Decision], catalog: Catalog) -> tuple[Decision, ...]:
    """The decisions of a log with those that were measured in their place; an inconclusive one only adds its reason.

    catalog: knows the models' own switches, which a diagnosis does not.
    """
    known = {decision.model: decision for decision in decisions}
    for model, decision in measured.items():
        before = known.get(model)
        if decision.mode == "undecided" and before is not None:
            known[model] = replace(before, against=(*before.against, *(f"a diagnosis did not decide: {reason}" for reason in decision.because[:1])))
        else:
            own = _by_own_switches(decision, catalog)
            known[model] = own if before is None else replace(own, against=(*own.against, *_concerns(before)))
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


def _by_own_switches(decision: Decision, catalog: Catalog) -> Decision:
    """A mode by itself is set by what the model's wrapper reads; other settings stand as they were measured."""
    is_mode = decision.mode in (EAGER, *MODES) and decision.settings == Candidate(decision.mode).lines()
    own = settings_for(decision.model, decision.mode, catalog) if is_mode else ()
    return replace(decision, settings=own) if own else decision


def _concerns(before: Decision) -> tuple[str, ...]:
    """What the log has against a mode that was measured to be good."""
    return tuple(f"the log: {reason}" for reason in before.because) if before.mode == EAGER else ()


def _value(value: object) -> float | str:
    if isinstance(value, str | float | int):
        return value
    raise TypeError("value")

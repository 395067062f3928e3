"""Which incident explains which, so that a person is told the cause and not each of its effects."""

from collections.abc import Iterable
from dataclasses import dataclass

from recompile_watch.core.casebook import Casebook
from recompile_watch.core.incidents import Incident
from recompile_watch.core.lifecycle import State
from recompile_watch.core.patterns import RESUMED

SLACK_S = 2.0  # one record of the log may carry a second of its own
WARM_UP_KINDS = frozenset({"recompile"})


@dataclass(frozen=True, slots=True)
class Explanation:
    """by, of: kinds. is_later: the effect begins after the cause. same: what both share: ``function`` or ``model``.

    causes: of the effect, those that count; empty for all.
    """

    by: frozenset[str]
    of: frozenset[str]
    same: str
    is_later: bool = True
    causes: frozenset[str | None] = frozenset()


_LIMIT = frozenset({"recompile_limit_hit", "recompile_limit_error"})
_COMPILED_AGAIN = frozenset({"recompile", "late_recompiles"})
EXPLANATIONS = (
    # What leads to a limit and what follows from it: the function's other inputs run in eager mode, without graphs.
    Explanation(_LIMIT, _COMPILED_AGAIN | {"headroom_low"}, "function", is_later=False),
    Explanation(_LIMIT, frozenset({"cudagraph_skip", "graph_break"}), "function"),
    Explanation(frozenset({"recompile_limit_error"}), frozenset({"recompile_limit_hit"}), "function", is_later=False),
    Explanation(frozenset({"headroom_low"}), _COMPILED_AGAIN, "function", is_later=False),
    Explanation(frozenset({"late_recompiles"}), frozenset({"recompile"}), "function", is_later=False),
    # After an overwritten output the next calls of the same process fail with a bare AssertionError.
    Explanation(
        frozenset({"cudagraph_overwritten_error"}), frozenset({"forecast_failure"}), "model",
        causes=frozenset({"cudagraph_overwritten", "assertion"}),
    ),
    Explanation(frozenset({"cudagraph_overwritten_error"}), frozenset({"compile_error"}), "model", causes=frozenset({"AssertionError"})),
    Explanation(frozenset({"out_of_memory"}), frozenset({"forecast_failure"}), "model", causes=frozenset({"out_of_memory"})),
    Explanation(frozenset({"out_of_memory"}), frozenset({"cpu_fallback"}), "model", causes=frozenset({"out_of_memory"})),
    Explanation(frozenset({"cpu_fallback"}), frozenset({"latency_high"}), "model"),
    Explanation(_LIMIT, frozenset({"latency_high"}), "model"),
    # Too many events of a kind say more than each of them.
    Explanation(frozenset({"too_many"}), frozenset({"bot_error", "forecast_failure", "compile_error"}), "subject", is_later=False),
)  # fmt: skip
_AS_CAUSE: dict[str, tuple[Explanation, ...]] = {
    kind: tuple(one for one in EXPLANATIONS if kind in one.by) for one in EXPLANATIONS for kind in one.by
}
_AS_EFFECT: dict[str, tuple[Explanation, ...]] = {
    kind: tuple(one for one in EXPLANATIONS if kind in one.of) for one in EXPLANATIONS for kind in one.of
}


def explainer_of(incident: Incident, casebook: Casebook) -> Incident | None:
    """The incident that explains this one; None where none does."""
    for one in _AS_EFFECT.get(incident.kind, ()):
        for cause in _candidates(one, one.by, incident, casebook):
            if _explains(one, cause, incident):
                return cause
    return None


def explained_by(incident: Incident, casebook: Casebook) -> Iterable[Incident]:
    """The open incidents that this one explains."""
    for one in _AS_CAUSE.get(incident.kind, ()):
        for effect in _candidates(one, one.of, incident, casebook):
            if effect.state is not State.RESOLVED and _explains(one, incident, effect):
                yield effect


def is_warm_up(incident: Incident) -> bool:
    """True for recompiles that all happened while the model warmed up: that is what warming up is for."""
    return incident.kind in WARM_UP_KINDS and incident.severity != "critical" and incident.phases == ["warmup"]


def _candidates(one: Explanation, kinds: frozenset[str], incident: Incident, casebook: Casebook) -> list[Incident]:
    """The incidents of these kinds that may be tied to this one, the oldest first."""
    if one.same != "function" or incident.function is None:
        return casebook.of_kinds(sorted(kinds))
    return [other for other in casebook.near(incident) if other.kind in kinds]


def _explains(one: Explanation, cause: Incident, effect: Incident) -> bool:
    if cause is effect or cause.state is State.RESOLVED:
        return False
    if one.is_later and effect.since < cause.since - SLACK_S:
        return False
    if one.causes and not {effect.words.cause, effect.subject} & one.causes:
        return False
    match one.same:
        case "function":
            return _same_function(cause, effect)
        case "subject":
            return cause.subject == effect.kind
    return cause.model == effect.model or cause.model is None or effect.model is None


def _same_function(cause: Incident, effect: Incident) -> bool:
    """The same function of the same file; what names none follows from the cause when both stand in the same log."""
    if effect.function is None:
        return bool(set(cause.sources) & set(effect.sources)) and (effect.model is None or effect.model == cause.model)
    return cause.function is not None and _base(cause.function) == _base(effect.function) and cause.file == effect.file


def _base(function: str) -> str:
    resumed = RESUMED.search(function)
    return resumed["name"] if resumed else function

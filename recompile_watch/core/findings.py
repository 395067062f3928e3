"""Findings: groups of events with a severity, ready to be shown.

Severity follows the measured counts (``docs/remedies.md``): one recompile of a size or a number is torch's normal
step to a dynamic graph; a third of the same guarded source, or half of the limit in use, is a warning; a limit hit is
critical.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recompile_watch.core.advice import Advice
from recompile_watch.core.env_check import NOTES
from recompile_watch.core.events import TORCH_KINDS, Event, is_accumulated
from recompile_watch.core.evidence import evidence_text
from recompile_watch.core.fingerprint import fingerprint, normalised
from recompile_watch.core.groups import Group, GroupKey
from recompile_watch.core.late import pattern
from recompile_watch.core.modes import COMPILED, EAGER
from recompile_watch.core.patterns import decisive_first
from recompile_watch.core.rules import SEVERITIES, Rule, Ruleset
from recompile_watch.core.titles import title_of
from recompile_watch.core.versions import DEFAULT_LIMIT, Version
from recompile_watch.core.wording import consequence_of

ALARM_RECOMPILES = 3
LOOP_BREAKS = 10
MANY_CUTS = 6  # graph breaks of one process: programs that were cut so often ran each step in seven graphs or more
BREAK_KIND = "graph_break"
LIMIT_KIND = "recompile_limit_hit"
_NUMBERED = pattern(r"\b[A-Za-z_]*\d\w*")  # inductor numbers its buffers and kernels: buf12, triton_poi_fused_3
_CRITICAL = frozenset({LIMIT_KIND, "recompile_limit_error", "recompile_forbidden", "cudagraph_overwritten_error"})
_WARNING = frozenset(
    {
        "cudagraph_skip", "cudagraph_dynamic_shapes_warning", "cudagraph_pending_backward_warning",
        "flex_attention_eager_fallback",
    }
)  # fmt: skip
# The fields by which problems of these kinds are told apart.
_TOLD_BY = {
    "recompile_forbidden": ("stance",), "synthetic_quote": ("symbol",), "inverted_prediction": ("symbol",), "mode_drift": ("title",),
    "compile_mode": ("model", "compiled", "mode"),
}  # fmt: skip
_CONTRADICTIONS = frozenset({"mode_drift", "limit_not_in_force"})  # two places that do not agree are one finding
# The events that only count or stand in a series; every other kind, a user's own included, becomes a finding, and of the
# times of compilations the long ones.
NO_FINDING = frozenset(
    {
        "compile_time", "quote", "strategy_return", "strategy_daily_return", "validation_loss", "gpu_memory", "inference", "order", "plan",
        "analysis_start", "warmup_done", "model_load",
    }
)  # fmt: skip
# In which order findings of the same severity are told: what stopped or changed the program first.
KIND_ORDER = (
    "recompile_limit_error", "cudagraph_overwritten_error", "recompile_forbidden", "compile_error", LIMIT_KIND, "out_of_memory", "cpu_fallback",
    "mode_drift", "forecast_failure", "inverted_prediction", "synthetic_account", "bot_error", "cudagraph_skip", "cudagraph_rerecord",
    "cudagraph_dynamic_shapes_warning", "cudagraph_pending_backward_warning", "flex_attention_eager_fallback", "recompile", "graph_break",
    "synthetic_quote",
)  # fmt: skip

# Advice that there is nothing to do: what calls for a deed is told before it.
EXPECTED = frozenset({"none_first_automatic_dynamic", "accept_none_once", "accept_first_step", "accept_graph_break", "accept_wrapper_break"})


@dataclass(frozen=True, slots=True)
class Headroom:
    """entries: compiled versions of the function in its fullest process. limit: how many it may have; None if unknown."""

    entries: int
    limit: int | None


class Cuts(NamedTuple):
    """The graph breaks of one process, and at how many places they are."""

    breaks: int
    places: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in a log and what stands there. line: 1-based."""

    source: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, or one fact worth knowing (severity ``info``).

    id: the fingerprint. count: events; of recompiles those that a limit refused stand in ``refused`` of the limit's
    finding instead. first_time, last_time: ISO 8601 with offset, None where the log has no times. phase: ``warmup``,
    ``steady`` or ``unknown``. compile_seconds: what its compiles took, where the log says so. ranks, processes:
    seen, at most 64 each. advice: the remedies, the one to do first. baseline: ``new``, ``worse``, ``same``, ``better``
    or ``gone`` against an earlier report. accepted_until: the last day on which a person's acceptance holds.
    """

    id: str
    kind: str
    severity: str
    title: str
    model: str | None
    function: str | None
    file: str | None
    line_no: int | None
    cause: str | None
    count: int
    refused: int
    first_time: str | None
    last_time: str | None
    phase: str
    headroom: Headroom | None
    compile_seconds: float | None
    evidence: tuple[Evidence, ...]
    consequence: str
    ranks: tuple[int, ...]
    processes: tuple[int, ...]
    symbols: tuple[str, ...]
    advice: tuple[Advice, ...] = ()
    baseline: str | None = None
    accepted_until: str | None = None

    @property
    def counts(self) -> bool:
        """True when it counts for the status: nobody accepted it, and it is not gone."""
        return self.accepted_until is None and self.baseline != "gone"


class Wording:
    """What the rules say about each kind of event: title, why it matters, severity."""

    def __init__(self, rules: Ruleset) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules.rules:
            self._rules.setdefault(rule.event, []).append(rule)

    def rules_for(self, event: Event) -> list[Rule]:
        """The rules that can have made an event: those of its kind whose fixed values agree best with its fields."""
        agreeing = [rule for rule in self._rules.get(event.kind, []) if all(event.extra.get(n) == v for n, v in rule.values.items())]
        most = max((len(rule.values) for rule in agreeing), default=0)
        return [rule for rule in agreeing if len(rule.values) == most]

    def _plain(self, group: Group) -> Rule | None:
        """The rule that says why it matters: of a failure the one that found it, else what holds for the kind in general, where a rule says that."""
        rules, event = self.rules_for(_worst(group)), group.first
        own = next((rule for rule in rules if rule.id == event.rule), None)
        general = next((rule for rule in rules if rule.id == f"torch.{event.kind}"), None)
        chosen = (own or general) if event.kind == "compile_error" else (general or own)
        return chosen or (rules[0] if rules else None)

    def severity(self, group: Group, headroom: Headroom | None) -> str:
        """How bad a group is."""
        kind = group.key.kind
        if kind in _CRITICAL:
            return "critical"
        if kind in _WARNING:
            return "warning"
        match kind:
            case "recompile":
                return _recompile_severity(group, headroom)
            case "graph_break" if group.worst_process >= LOOP_BREAKS:
                return "warning"
            case "compile_error" if group.first.extra.get("suppressed"):
                return "warning"
            case "compile_mode":
                return "info"
            case "ineffective_setting" if group.first.extra.get("cause") in NOTES:
                return "info"
        severities = [rule.severity for rule in self.rules_for(_worst(group))]
        return max(severities, key=SEVERITIES.index, default="warning")

    def finding(
        self, group: Group, headroom: Headroom | None, torch_version: Version | None, *, advice: tuple[Advice, ...] = (), model: str | None = None,
        is_raised: bool = False, cuts: Cuts | None = None,
    ) -> Finding:  # fmt: skip
        """The group as it is shown. is_raised: the recompile limit that it is about became an exception. cuts: graph breaks of its process."""
        key, first = group.key, group.first
        headroom = None if group.has_raised else headroom  # what raised left no entry
        has_line = first.line_no is not None
        plain = self._plain(group)
        severity = self.severity(group, headroom)
        beside = _filling(group, headroom) if severity == "warning" else ""
        if cuts is not None and cuts.breaks >= MANY_CUTS and not is_expected(advice):
            severity, beside = max(severity, "warning", key=SEVERITIES.index), _many_cuts(cuts)
        rule_title, rule_why = (plain.title, plain.why) if plain else (None, None)
        return Finding(
            id=fingerprint(key.kind, key.function, key.file, key.subject), kind=key.kind,
            severity=severity, title=title_of(group, rule_title),
            model=model, function=key.function, file=first.file, line_no=first.line_no if has_line else group.last.line_no,
            cause=cause_of(first), count=group.count, refused=group.refused, first_time=group.span.first, last_time=group.span.last,
            phase=group.phase, headroom=headroom, compile_seconds=None if group.seconds is None else round(group.seconds, 6),
            evidence=tuple(Evidence(event.source, event.line, evidence_text(event)) for event in group.evidence()),
            consequence=consequence_of(group, rule_why, torch_version, is_raised=is_raised) + beside,
            ranks=tuple(sorted(group.ranks)), processes=tuple(sorted(group.pids)), symbols=tuple(sorted(group.symbols)), advice=advice,
        )  # fmt: skip


def _worst(group: Group) -> Event:
    """The first event of a group; a break behind which torch could not resume, once only, is one of these."""
    is_skipped = group.values.get("skipped") and not group.first.extra.get("skipped")
    return group.first._replace(extra={**group.first.extra, "skipped": True}) if is_skipped else group.first


def is_expected(advice: Sequence[Advice]) -> bool:
    """True where there is nothing to do."""
    return bool(advice) and advice[0].name in EXPECTED


def _filling(group: Group, headroom: Headroom | None) -> str:
    """Why a recompile is a warning that happened less than three times."""
    if group.key.kind != "recompile" or group.worst_process >= ALARM_RECOMPILES or headroom is None:
        return ""
    limit = headroom.limit or DEFAULT_LIMIT
    return f" It is a warning for the limit's sake: {headroom.entries} of {limit} versions are in use; past the last, new inputs run in eager mode."


def _many_cuts(cuts: Cuts) -> str:
    """Why a graph break is a warning that alone would be a note."""
    at = f", at {cuts.places} places" if cuts.places > 1 else ""
    return f" It is one of {cuts.breaks} graph breaks in this process{at}."


def _recompile_severity(group: Group, headroom: Headroom | None) -> str:
    if group.has_raised:
        return "critical"
    limit = (headroom.limit if headroom else None) or DEFAULT_LIMIT
    is_filling = headroom is not None and headroom.entries >= -(-limit // 2)
    return "warning" if is_filling or group.worst_process >= ALARM_RECOMPILES else "info"


def group_key(event: Event) -> GroupKey:
    """Which problem an event belongs to."""
    kind, function = event.kind, event.function
    if kind == "recompile" and event.extra.get("refused"):
        kind = LIMIT_KIND
    return GroupKey(kind, function, event.file, _subject(kind, event))


def decided(event: Event) -> Event:
    """The event with the reason first that made torch compile again."""
    reasons = decisive_first(event.reasons) if event.kind in ("recompile", LIMIT_KIND) else event.reasons
    return event if reasons is event.reasons else event._replace(reasons=reasons)


def gathered(events: Iterable[Event]) -> list[Group]:
    """Events that no log printed, such as those of an env file, as groups; of a contradiction both sides are one."""
    groups: dict[GroupKey, Group] = {}
    for event in events:
        groups.setdefault(group_key(event), Group(group_key(event), event, event)).add(event, None)
    for group in groups.values():
        group.count = 1 if group.key.kind in _CONTRADICTIONS else group.count
    return list(groups.values())


def _subject(kind: str, event: Event) -> str:
    extra = event.extra
    reason = event.reasons[0].text if event.reasons else ""
    if kind in _TOLD_BY:
        return " ".join(str(extra.get(name)) for name in _TOLD_BY[kind])
    match kind:
        case "recompile_limit_hit" | "recompile_limit_error":
            # The reason differs from process to process; the problem is the function that is at its limit.
            which = "accumulated" if is_accumulated(extra.get("limit_name")) else ""
            return which if event.function or not reason else f"{which} {normalised(reason)}"
        case "compile_error":
            return f"{extra.get('exception')} {_NUMBERED.sub('N', normalised(str(extra.get('message') or '')))}".rstrip()
        case "forecast_failure":
            return f"{extra.get('model')} {extra.get('cause') or normalised(str(extra.get('message') or ''))}"
        case "out_of_memory" | "cpu_fallback":
            return " ".join(str(part) for part in (extra.get("model"), extra.get("cause")) if part is not None)
        case "ineffective_setting":
            return " ".join(str(extra[name]) for name in ("setting", "cause") if extra.get(name))
        case "recompile_limit_set" | "limit_not_in_force":
            return f"{extra.get('limit')} {extra.get('raised') or ''}".strip()
        case "graph_break" | "cudagraph_rerecord":
            place = f" line {event.line_no}" if kind == BREAK_KIND and event.function is None else ""  # no function: all that tells it is its place
            return normalised(_with_what_it_did(reason, extra)) + place
        case "flex_attention_eager_fallback" | "cudagraph_dynamic_shapes_warning" | "cudagraph_overwritten_error" | "profiler_report":
            return ""
    message = extra.get("message")
    return normalised(reason or (message if isinstance(message, str) else ""))


def _with_what_it_did(reason: str, extra: Mapping[str, object]) -> str:
    """A reason, with what torch met and what became of it."""
    return " ".join(str(part) for part in (reason, extra.get("operation"), "raised" if extra.get("raised") else None) if part)


def cause_of(event: Event) -> str | None:
    """The class of the newest guard failure; of other events the cause that their own field names."""
    if event.kind == "compile_mode":
        is_compiled = event.extra.get("compiled")
        return None if is_compiled is None else COMPILED if is_compiled else EAGER
    named = event.extra.get("cause")
    if isinstance(named, str):
        return named
    if event.reasons and event.kind in TORCH_KINDS:
        return event.reasons[0].cause
    return None


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Worst first; within a severity what calls for a deed, then what stopped the program, the most frequent, settings of a model before torch's."""
    rank = {kind: i for i, kind in enumerate(KIND_ORDER)}

    def place(f: Finding) -> tuple[int, bool, int, bool, int, str, str]:
        is_general = f.kind == "ineffective_setting" and f.model is None
        return -SEVERITIES.index(f.severity), is_expected(f.advice), rank.get(f.kind, len(KIND_ORDER)), is_general, -f.count, f.title, f.id

    return tuple(sorted(findings, key=place))


def severities(findings: tuple[Finding, ...]) -> Mapping[str, int]:
    """How many findings there are of each severity, worst first."""
    return {severity: sum(f.severity == severity for f in findings) for severity in reversed(SEVERITIES)}

"""Which mode a model should run in, as far as a log can tell: with reasons for and against, and when to look again.

A log shows troubles, never the time that eager would have taken: without a measurement no compiled mode is ever chosen
here, and without trouble the answer is *undecided*.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recompile_watch.core.candidates import DISABLE_ALL
from recompile_watch.core.findings import LIMIT_KIND, Finding
from recompile_watch.core.models import MODES
from recompile_watch.core.modes import COMPILED, EAGER, SHOW_COMPILED
from recompile_watch.core.profiles import MAX_RECOMPILES, PRODUCTION
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.revisit import Condition, newer_torch
from recompile_watch.core.versions import Version

_CRASHES = frozenset({"cudagraph_overwritten_error", "recompile_limit_error", "recompile_forbidden"})
_FAILED_BY_COMPILING = frozenset({"cudagraph_overwritten", "assertion"})
_OF_TORCH = frozenset({"recompile", LIMIT_KIND, "cudagraph_skip", "graph_break", "cudagraph_rerecord", "compile_error"}) | _CRASHES


@dataclass(frozen=True, slots=True)
class Decision:
    """The mode for one model: ``eager`` or ``undecided``. settings: the exact lines that bring it about."""

    model: str
    mode: str
    confidence: str
    because: tuple[str, ...]
    against: tuple[str, ...]
    settings: tuple[str, ...]
    revisit_when: tuple[Condition, ...]


@dataclass(slots=True)
class _Evidence:
    """What the log shows of one model.

    modes: in which it ran. loads: how often it was loaded, where the log says so. crashes: errors of torch. failures: forecasts that
    failed by them, the same calls in the bot's words. not_compiled: compilations that failed.
    """

    modes: set[str] = field(default_factory=set)
    loads: int = 1
    crashes: int = 0
    failures: int = 0
    not_compiled: int = 0
    limit_hits: list[str] = field(default_factory=list)
    recompiles: int = 0
    is_late: bool = False
    skips: int = 0

    @property
    def failed(self) -> int:
        """Calls that failed."""
        return max(self.crashes, self.failures)

    @property
    def recompiled(self) -> str:
        """How often it was compiled again, in words."""
        in_loads = f" in {self.loads} loads" if self.loads > 1 else ""
        return f"it was compiled again {_times(self.recompiles)}{in_loads}"


def decide(
    findings: Iterable[Finding], catalog: Catalog, loads: Mapping[str, int], torch_version: Version | None = None
) -> tuple[Decision, ...]:  # fmt: skip
    """One decision for each model that the log names, in the order of the names. loads: how often each was loaded, where that is known."""
    known = [finding for finding in findings if finding.baseline != "gone"]
    shows = _OF_TORCH | {"forecast_failure"}
    names = sorted({f.model for f in known if f.model and (f.kind == "compile_mode" or (f.kind in shows and catalog.model(f.model) is not None))})
    evidence = {name: _Evidence(loads=loads.get(name, 1)) for name in names}
    only = names[0] if len(names) == 1 else None
    for finding in known:
        name = finding.model or (only if finding.kind in _OF_TORCH else None)
        if name in evidence:
            _weigh(evidence[name], finding)
    return tuple(_decision(name, evidence[name], catalog, torch_version) for name in names)


def _weigh(evidence: _Evidence, finding: Finding) -> None:
    if finding.kind in SHOW_COMPILED and finding.kind != "compile_error":
        evidence.modes.add(COMPILED)
    match finding.kind:
        case "compile_mode" if finding.cause is not None:
            evidence.modes.add(finding.cause)
        case "compile_error":
            evidence.not_compiled += finding.count
        case "forecast_failure" if finding.cause in _FAILED_BY_COMPILING:
            evidence.failures += finding.count
        case kind if kind in _CRASHES:
            evidence.crashes += finding.count
        case "recompile_limit_hit":
            evidence.limit_hits.append(finding.function or "a function")
        case "recompile":
            evidence.recompiles += finding.count
            evidence.is_late = evidence.is_late or finding.phase == "steady"
        case "cudagraph_skip":
            evidence.skips += finding.count


def _decision(model: str, evidence: _Evidence, catalog: Catalog, torch_version: Version | None) -> Decision:
    because, conditions = _troubles(evidence)
    if not because:
        return _undecided(model, evidence)
    against = ["nothing in a log says how fast eager is: measure before this becomes permanent"]
    if (evidence.limit_hits or evidence.not_compiled) and not evidence.failed:
        against.append(f"the advice on the {_curable(evidence)} may cure it without giving up compilation")
    confidence = "medium: the troubles are in the log, the gain of compiling is not measured"
    if evidence.failed:
        confidence = "high: calls failed in this log"
    revisit = (*conditions, *_MEASURED, *newer_torch(torch_version))
    return Decision(model, EAGER, confidence, tuple(because), tuple(against), settings_for(model, EAGER, catalog), revisit)


def settings_for(model: str, mode: str, catalog: Catalog) -> tuple[str, ...]:
    """The exact lines that have a model run in a mode, by its own switches; empty where there are none, and for *undecided*.

    A model without a switch of its own becomes eager with its whole process.
    """
    if mode not in MODES:
        return ()
    profile = catalog.model(model)
    lines = profile.lines_for(mode) if profile is not None else ()
    return lines or ((DISABLE_ALL,) if mode == "eager" else ())


def _undecided(model: str, evidence: _Evidence) -> Decision:
    against = _concerns(evidence)
    if COMPILED in evidence.modes:
        because = ["it ran compiled, and the log shows no trouble with it" if not against else "it ran compiled, without trouble that decides alone"]
        because.append("no measurement says whether that is faster than eager, or as accurate")
    elif EAGER in evidence.modes:
        because = ["it ran in eager mode, so the log cannot show what compiling would do"]
    else:
        because = ["the log does not say whether it ran compiled"]
    return Decision(model, "undecided", "none: a log alone cannot prove a gain", tuple(because), tuple(against), (), _MEASURED)


def _concerns(evidence: _Evidence) -> list[str]:
    """What speaks against compiling, and is too little to decide."""
    found = [f"CUDA graphs were skipped {_times(evidence.skips)}: what they save is not there"] if evidence.skips else []
    return [*found, f"{evidence.recompiled}, some of it after warm-up, while calls waited"] if evidence.is_late else found


def _curable(evidence: _Evidence) -> str:
    return "limit hit" if evidence.limit_hits else "compilation that failed"


def _troubles(evidence: _Evidence) -> tuple[list[str], list[Condition]]:
    """Why it should not run compiled as it is, and what must be seen before it may."""
    because: list[str] = []
    conditions: list[Condition] = []
    if evidence.failed:
        because.append(f"compiled calls failed {_times(evidence.failed)}")
        conditions.append(Condition("success_rate", ">=", 1.0, "every call succeeds"))
    if evidence.not_compiled:
        because.append(f"compiling it failed {_times(evidence.not_compiled)}")
        conditions.append(Condition("compile_errors", "<", 1, "compiling succeeds"))
    if evidence.limit_hits:
        names = ", ".join(dict.fromkeys(evidence.limit_hits))
        because.append(f"the recompile limit was hit by {names}: what does not fit an entry runs in eager mode anyway")
        conditions.append(Condition("recompile_limit_hits", "<", 1, "no limit is hit"))
    if evidence.recompiles >= MAX_RECOMPILES * evidence.loads:
        because.append(evidence.recompiled)
        conditions.append(Condition("recompiles_per_load", "<", MAX_RECOMPILES, f"fewer than {MAX_RECOMPILES} recompiles per model load"))
    if evidence.is_late and because:
        because.append("some of its recompiles came after warm-up, while calls waited")
        conditions.append(Condition("late_recompiles", "<", 1, "no recompile after warm-up"))
    return because, conditions


_MEASURED = (
    Condition(
        "speedup_ci_low",
        ">=",
        PRODUCTION.min_speedup,
        f"measured at least {PRODUCTION.min_speedup:g} times faster than eager, lower end of the interval",
    ),
    Condition("mae_percent", "<", PRODUCTION.max_error_percent, f"the error against eager stays below {PRODUCTION.max_error_percent:g} %"),
)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"

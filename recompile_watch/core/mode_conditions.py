"""Drift: a model does not run as it is declared to."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from recompile_watch.core.events import Event
from recompile_watch.core.modes import EAGER, SHOW_COMPILED, agree, mode_shown, mode_words
from recompile_watch.core.shelves import Shelf
from recompile_watch.core.sight import NO_RULE, Sight, Unjudged
from recompile_watch.core.signals import Signal
from recompile_watch.core.watch_settings import DeclaredModel

SETTLES_S = 60.0  # after a load the line that says "compiled" follows within a second; eager says nothing


@dataclass(slots=True)
class Observed:
    """How a model was seen to run. declared: what that was compared with last. says_compiled: its loader prints a line when
    it compiles. settles_at: when a load without such a line means eager, on the steady clock."""

    is_drifting: bool = False
    says_compiled: bool = False
    settles_at: float | None = None
    declared: str | None = None


class DriftCondition:
    """Compares what is declared with what the log shows; what it does not show is no drift."""

    kinds = SHOW_COMPILED | {"compile_mode", "model_load"}

    def __init__(self, models: tuple[DeclaredModel, ...], parts: Mapping[str, object]) -> None:
        self._declared = {model.name: model.declared for model in models}
        self._observed = Shelf("drift", Observed, parts, 1_000, lambda observed: not observed.is_drifting)
        self.shelves = (self._observed,)
        if not models:
            self.kinds = frozenset()

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A line that shows how a model runs."""
        model = sight.model
        declared = self._declared.get(model or "")
        if model is None or declared is None:
            return
        observed = self._observed.get(model) or Observed()
        shown = mode_shown(event)
        observed.settles_at = sight.steady + SETTLES_S if event.kind == "model_load" else None
        if shown is not None and event.kind == "compile_mode":
            observed.says_compiled = observed.says_compiled or shown != EAGER
            yield from self._judge(observed, model, declared, shown)
        elif shown is not None and declared == EAGER and not observed.is_drifting:
            yield from self._judge(observed, model, declared, shown)
        self._observed.put(model, observed)

    def run(self, steady: float) -> Iterator[Signal]:
        """The models that were loaded a while ago and did not say that they compile."""
        for model, observed in list(self._observed.items()):
            if observed.settles_at is not None and steady >= observed.settles_at:
                observed.settles_at = None
                if observed.says_compiled and model in self._declared:
                    yield from self._judge(observed, model, self._declared[model], EAGER)
                self._observed.put(model, observed)

    def revise(self, sources: Collection[str]) -> Iterator[Unjudged]:
        """The models that drifted from what is declared of them no longer."""
        for model, observed in list(self._observed.items()):
            declared = self._declared.get(model)
            if observed.is_drifting and (declared is None or (observed.declared is not None and declared != observed.declared)):
                observed.is_drifting = False
                self._observed.put(model, observed)
                yield Unjudged(Signal("mode_drift", model, model=model, is_over=True), NO_RULE)

    def due(self) -> float | None:
        """The earliest such moment."""
        return min((one.settles_at for one in self._observed.values() if one.settles_at is not None), default=None)

    def _judge(self, observed: Observed, model: str, declared: str, shown: str) -> Iterator[Signal]:
        agrees = agree(declared, shown)
        if agrees is not observed.is_drifting:
            return
        observed.is_drifting, observed.declared = not agrees, declared
        is_eager = declared == EAGER
        remedies = ("disable_compile_for_model", "restart_to_apply") if is_eager else ("restart_to_apply",)
        yield Signal(
            "mode_drift", model, "warning", f"{model} is declared {declared}, but runs {mode_words(shown)}",
            "The setting is not in force in the running process: what it was meant to prevent can happen." if is_eager
            else "What was measured and decided does not hold for the running process.",
            model=model, cause=shown, is_over=agrees, remedies=remedies,
        )  # fmt: skip

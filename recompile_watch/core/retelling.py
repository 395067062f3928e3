"""Says of an incident what ``analyze`` would say: a small analysis of the events that are remembered."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from recompile_watch.core.advice import Advice, remedied
from recompile_watch.core.analysis import Analysis
from recompile_watch.core.events import TORCH_KINDS, Event
from recompile_watch.core.findings import Finding, group_key
from recompile_watch.core.groups import GroupKey
from recompile_watch.core.incidents import Incident, Remembered, Words
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.signals import Signal
from recompile_watch.core.story import Story
from recompile_watch.core.versions import ANY_VERSION, exactly, version_of


class Retelling:
    """Makes the words of incidents. torch_version: as the user names it."""

    def __init__(self, rules: Ruleset, catalog: Catalog, torch_version: str | None) -> None:
        self._rules, self._catalog, self._torch_version = rules, catalog, torch_version

    def without_advice(self) -> "Retelling":
        """One that says the same, but for the advice, which takes most of the time."""
        return Retelling(self._rules, replace(self._catalog, cases=()), self._torch_version)

    def model_of(self, event: Event) -> str | None:
        """The model that an event is about, by the models' profiles."""
        return self._catalog.models.of(event)

    def finding(self, incident: Incident, own: Sequence[Remembered], related: Iterable[Remembered], left_out: int) -> Finding | None:
        """The finding of an incident made of events. related: events of other incidents that belong to its story."""
        return self._finding(incident.key, own, related, left_out, incident.phases)

    def finding_of(self, item: Remembered) -> Finding | None:
        """The finding that one event makes by itself."""
        return self._finding(group_key(item.event), [item], (), 0, ())

    def advice_of_signal(self, signal: Signal, events: Sequence[Remembered], related: Iterable[Remembered]) -> tuple[Advice, ...]:
        """The advice that the remedies of a condition give, else the one for the event that raised it."""
        version = version_of(self._torch_version)
        torch = exactly(version) if version is not None else ANY_VERSION
        if signal.remedies:
            model = self._catalog.model(signal.model)
            story = Story(
                signal.kind, signal.cause, signal.function, signal.file, signal.line_no, signal.title, (), frozenset(),
                model=model, batch=self._catalog.models.batch_of(model),
            )  # fmt: skip
            return remedied(signal.remedies, story, self._catalog, torch)
        if events and events[-1].event.kind in TORCH_KINDS:
            found = self._finding(group_key(events[-1].event), events, related, 0, ())
            return found.advice if found is not None else ()
        return ()

    def _finding(
        self, key: GroupKey, own: Sequence[Remembered], related: Iterable[Remembered], left_out: int, phases: Sequence[str]
    ) -> Finding | None:
        by_number = {item.n: item.event for item in (*related, *own)}
        analysis = Analysis(self._rules)
        for _, event in sorted(by_number.items()):
            analysis.add(event)
        return analysis.finding(key, self._torch_version, self._catalog, left_out, phases)


def words_of(finding: Finding, count: int) -> Words:
    """What an incident takes from its finding."""
    headroom = finding.headroom
    return Words(
        finding.title, finding.consequence, finding.cause, finding.phase, headroom.entries if headroom else None,
        headroom.limit if headroom else None, finding.advice, count,
    )  # fmt: skip

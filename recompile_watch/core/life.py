"""What happens to an incident: it is seen, gets worse, ends, comes back, flaps; and when it has to be looked at next."""

from dataclasses import dataclass

from recompile_watch.core.incidents import MAX_TURNS, Acknowledgement, Incident
from recompile_watch.core.lifecycle import Happening, State, after
from recompile_watch.core.moments import Clock
from recompile_watch.core.rules import SEVERITIES
from recompile_watch.core.units import duration_text
from recompile_watch.core.watch_settings import LifeSettings

DOUBT_S = 300.0  # a fault of the watching that goes on is said again within a minute of a start
RELOADED = "its model was loaded again and ran without it"
GONE = "the condition is gone"


@dataclass(frozen=True, slots=True)
class Life:
    """The rules of an incident's life."""

    settings: LifeSettings

    def saw(self, incident: Incident, steady: float) -> bool:
        """Takes in another event. True when the incident came back after it had been over."""
        returned = incident.state is State.RESOLVED
        if returned or (incident.over_at is not None and steady >= incident.over_at):
            self._turn(incident, steady)
        if returned:
            incident.opened, incident.explained_by, incident.resolved_at, incident.ended_because = steady, None, None, None
        incident.state = after(incident.state, Happening.SEEN)
        incident.seen, incident.over_at, incident.loads = steady, None, 0
        return returned

    def worsened(self, incident: Incident, severity: str) -> bool:
        """Raises the severity. True when it is higher than before; it never falls while the incident lasts."""
        if SEVERITIES.index(severity) <= SEVERITIES.index(incident.severity):
            return False
        incident.severity = severity
        incident.state = after(incident.state, Happening.WORSENED)
        if incident.state is State.OPEN:
            incident.acknowledgement = None
        return True

    def over(self, incident: Incident, steady: float) -> None:
        """The condition is gone; the incident ends when it stays so."""
        if incident.over_at is None and incident.state is not State.RESOLVED:
            incident.over_at = steady

    def doubted(self, incident: Incident, steady: float) -> None:
        """Nobody knows whether the condition still holds: the incident ends unless it is seen again soon."""
        if incident.over_at is None and incident.state is not State.RESOLVED:
            incident.over_at = steady + DOUBT_S

    def reloaded(self, incident: Incident, clock: Clock) -> bool:
        """Its model was loaded. True when that ends it: a whole run between two loads went without it."""
        incident.loads += 1
        is_quiet = clock.steady - incident.seen >= self.settings.reload_resolves_after_s
        if incident.state is State.RESOLVED or incident.loads < 2 or not is_quiet:
            return False
        self.end(incident, clock, RELOADED)
        return True

    def review(self, incident: Incident, clock: Clock) -> bool:
        """Does what time alone brings: an acknowledgement that ends, an incident that is over. True when its state changed."""
        before = incident.state
        ack = incident.acknowledgement
        if ack is not None and ack.until is not None and clock.wall >= ack.until:
            incident.acknowledgement = None
            incident.state = after(incident.state, Happening.ACK_EXPIRED)
        end = self._end(incident)
        if end is not None and clock.steady >= end:
            quiet = f"no such event for {duration_text(self._quiet_s(incident.kind))}"
            self.end(incident, clock, GONE if incident.over_at is not None else quiet)
        return incident.state is not before

    def end(self, incident: Incident, clock: Clock, because: str) -> None:
        """Ends an incident."""
        incident.state = after(incident.state, Happening.ENDED)
        incident.over_at, incident.resolved_at, incident.ended_because = clock.steady, clock.wall, because
        incident.acknowledgement, incident.silences = None, []

    def is_forgotten(self, incident: Incident, clock: Clock) -> bool:
        """True when a resolved incident was over for long enough to be dropped."""
        return incident.state is State.RESOLVED and clock.steady >= (incident.over_at or 0.0) + self.settings.forget_after_s

    def acknowledge(self, incident: Incident, acknowledgement: Acknowledgement) -> None:
        """A person knows."""
        incident.acknowledgement = acknowledgement
        incident.state = after(incident.state, Happening.ACKNOWLEDGED)

    def silence(self, incident: Incident, name: str) -> None:
        """A silence covers it."""
        if name not in incident.silences:
            incident.silences.append(name)
        incident.state = after(incident.state, Happening.SILENCED)

    def unsilence(self, incident: Incident, name: str) -> bool:
        """A silence covers it no longer. True when it was the last one."""
        if name not in incident.silences:
            return False
        incident.silences.remove(name)
        if incident.silences or incident.state is not State.SILENCED:
            return False
        incident.state = after(incident.state, Happening.UNSILENCED)
        if incident.acknowledgement is not None:
            incident.state = after(incident.state, Happening.ACKNOWLEDGED)
        return True

    def due(self, incident: Incident, clock: Clock) -> float | None:
        """When ``review`` or forgetting has work, on the steady clock."""
        if incident.state is State.RESOLVED:
            return (incident.over_at or 0.0) + self.settings.forget_after_s
        ack = incident.acknowledgement
        dues = [self._end(incident), ack.until - clock.lost if ack is not None and ack.until is not None else None]
        return min((due for due in dues if due is not None), default=None)

    def _end(self, incident: Incident) -> float | None:
        """When it is over if nothing happens, on the steady clock."""
        if incident.state is State.RESOLVED:
            return None
        if incident.over_at is not None:
            return incident.over_at + (self.settings.flap_window_s if incident.is_flapping else self.settings.hold_s)
        return None if incident.is_lasting else incident.seen + self._quiet_s(incident.kind)

    def _quiet_s(self, kind: str) -> float:
        return {one.kind: one.after_s for one in self.settings.resolve_kinds}.get(kind, self.settings.resolve_after_s)

    def _turn(self, incident: Incident, steady: float) -> None:
        window = self.settings.flap_window_s
        recent = [turn for turn in incident.turns if steady - turn <= window]
        incident.turns = [*recent[-MAX_TURNS + 1 :], steady]
        incident.is_flapping = incident.is_flapping or len(incident.turns) >= self.settings.flap_turns
        if len(incident.turns) == 1:
            incident.is_flapping = False

"""The run queue: which incident is diagnosed, when, and when not again. One run at a time, the worst incident first."""

import hashlib
from collections.abc import Iterator
from typing import assert_never

from recompile_watch.core.agenda import Agenda
from recompile_watch.core.casebook import Casebook
from recompile_watch.core.diagnostic_runs import DiagnosticRun, Failed, Measurement, NotRun, RunEnd, RunOrder, RunState
from recompile_watch.core.incidents import Incident
from recompile_watch.core.inhibition import is_warm_up
from recompile_watch.core.lifecycle import State
from recompile_watch.core.moments import Clock
from recompile_watch.core.routing import is_held, rank
from recompile_watch.core.watch_settings import RunSettings

KEY = "runs/next"
MAX_FAILURES = 3
# What compiling does to a model: whether eager, or another setting, is better can be measured.
KINDS = frozenset(
    {
        "recompile", "recompile_limit_hit", "recompile_limit_error", "headroom_low", "late_recompiles", "graph_break", "compile_error",
        "cudagraph_skip", "cudagraph_overwritten_error", "cudagraph_rerecord", "latency_high",
    }
)  # fmt: skip
_LEAST = rank("warning")
_INTERRUPTED = Failed("the watch ended while it ran")


class RunQueue:
    """Decides which run begins. settings: None where no alert starts one. ``ordered``: runs that are to begin now.

    interrupted: marks of the runs that went on when the watch ended; their processes, if any are left, must end.
    """

    def __init__(self, settings: RunSettings | None, casebook: Casebook, clock: Clock, agenda: Agenda) -> None:
        self._settings, self._casebook, self._clock, self._agenda = settings, casebook, clock, agenda
        self.ordered: list[RunOrder] = []
        self._open = {one.id: one.run for one in casebook if one.run is not None and one.run.state in (RunState.WAITING, RunState.RUNNING)}
        self._free = max((one.run.ended for one in casebook if one.run is not None and one.run.ended is not None), default=None)
        self.interrupted = tuple(run.mark for run in self._open.values() if run.state is RunState.RUNNING)
        for incident, run in list(self._runs()):
            if settings is None:
                self._give_up(incident, run, "the configuration has no on_alert = true any more")
            elif run.state is RunState.RUNNING:
                self._put_off(incident, run, _INTERRUPTED)

    def consider(self, incident: Incident) -> None:
        """Lets an incident that is worth it wait for a run: when it is new, comes back or gets worse, and has cooled down."""
        run, settings = incident.run, self._settings
        if settings is None or incident.id in self._open or not _is_worth_it(incident, settings):
            return
        steady = self._clock.steady
        wanted = DiagnosticRun(steady, steady + settings.wait_s, incident.severity)
        if run is not None:
            if incident.opened <= run.wanted and rank(incident.severity) <= rank(run.severity):
                return
            wanted.due = max(wanted.due, (run.ended or 0.0) + settings.cooldown_s)
            wanted.measured, wanted.measured_at = run.measured, run.measured_at  # it stays true
        self._wait(incident, wanted)
        self._set()

    def run(self) -> None:
        """Orders the run that is due; drops what needs none any more."""
        steady = self._clock.steady
        due = [(incident, run) for incident, run in self._runs() if run.state is RunState.WAITING and run.due <= steady]
        wanted = []
        for incident, run in due:
            if incident.state in (State.RESOLVED, State.SILENCED) or incident.explained_by is not None:
                self._give_up(incident, run, "it was over, silenced or explained before it could be measured")
            else:
                wanted.append((incident, run))
        if wanted and not self._is_running and steady >= self._free_at:
            self._order(*min(wanted, key=lambda one: (-rank(one[0].severity), one[1].wanted, one[0].number)))
        self._set()

    def ended(self, incident: Incident, end: RunEnd) -> bool:
        """Takes how a run ended, also one that a person started. True when there is something to tell."""
        run = incident.run
        if not isinstance(end, Measurement) and (run is None or run.state is not RunState.RUNNING):
            return False
        self._free = self._clock.steady
        if not isinstance(end, Measurement):
            assert run is not None
            self._put_off(incident, run, end)
            is_new = run.state is RunState.GIVEN_UP and run.measured is None
        else:
            self._measured(incident, run or DiagnosticRun(self._clock.steady, self._clock.steady, incident.severity), end)
            is_new = True
        self._set()
        return is_new

    def forget(self, name: str) -> None:
        """A run of an incident that is not there any more has ended."""
        if self._open.pop(name, None) is not None:
            self._free = self._clock.steady
        self._set()

    def schedule(self) -> None:
        """Sets the agenda anew."""
        self._set()

    @property
    def _is_running(self) -> bool:
        return any(run.state is RunState.RUNNING for run in self._open.values())

    @property
    def _free_at(self) -> float:
        """When the next run may begin: runs are apart from each other."""
        return float("-inf") if self._free is None or self._settings is None else self._free + self._settings.pause_s

    def _runs(self) -> Iterator[tuple[Incident, DiagnosticRun]]:
        """What waits or runs."""
        for name in list(self._open):
            incident = self._casebook.get(name)
            if incident is None or incident.run is None:
                del self._open[name]
            else:
                yield incident, incident.run

    def _wait(self, incident: Incident, run: DiagnosticRun) -> None:
        run.state = RunState.WAITING
        incident.run = self._open[incident.id] = run
        self._casebook.touch(incident)

    def _order(self, incident: Incident, run: DiagnosticRun) -> None:
        run.state, run.started_at = RunState.RUNNING, self._clock.wall
        run.mark = hashlib.sha256(f"{incident.id}\0{self._clock.wall!r}".encode()).hexdigest()[:32]
        self.ordered.append(RunOrder(incident.id, run.mark, run.needs_gpu))
        self._casebook.touch(incident)

    def _measured(self, incident: Incident, run: DiagnosticRun, found: Measurement) -> None:
        """What was measured ends the run, unless the GPU was not free for the timed stage."""
        steady = self._clock.steady
        run.measured, run.measured_at, run.ended, run.why = found, self._clock.wall, steady, found.postponed or ""
        incident.run = run
        if found.postponed and self._settings is not None and self._is_in_time(run, self._settings):
            run.needs_gpu, run.due = True, steady + self._settings.pause_s
            self._wait(incident, run)
        else:
            self._close(incident, run, RunState.DONE)

    def _put_off(self, incident: Incident, run: DiagnosticRun, end: NotRun | Failed) -> None:
        """What was not run is tried again, until that has been tried for too long or too often."""
        run.why, settings = end.why, self._settings
        match end:
            case Failed():
                run.failures += 1
                is_over = end.is_final or run.failures >= MAX_FAILURES
            case NotRun():
                is_over = False
            case _:
                assert_never(end)
        if is_over or settings is None or not self._is_in_time(run, settings):
            self._give_up(incident, run, end.why)
            return
        run.due = self._clock.steady + settings.pause_s
        self._wait(incident, run)

    def _is_in_time(self, run: DiagnosticRun, settings: RunSettings) -> bool:
        return self._clock.steady - run.wanted < settings.give_up_s

    def _give_up(self, incident: Incident, run: DiagnosticRun, why: str) -> None:
        run.why, run.ended = why, self._clock.steady
        self._close(incident, run, RunState.GIVEN_UP)

    def _close(self, incident: Incident, run: DiagnosticRun, state: RunState) -> None:
        run.state, run.mark = state, ""
        self._open.pop(incident.id, None)
        self._casebook.touch(incident)

    def _set(self) -> None:
        dues = [run.due for run in self._open.values() if run.state is RunState.WAITING]
        self._agenda.set(KEY, max(min(dues), self._free_at) if dues and not self._is_running else None)


def _is_worth_it(incident: Incident, settings: RunSettings) -> bool:
    """True for what a person is alerted to and a measurement can answer."""
    return (
        incident.kind in KINDS
        and incident.model == settings.model
        and rank(incident.severity) >= _LEAST
        and incident.state is State.OPEN
        and not is_held(incident, warms_up=is_warm_up(incident))
    )

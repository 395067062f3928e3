"""The diagnostic: starts a fresh worker for each candidate, first for structure, then for time, and has the results judged.

Stage A (structural) runs on the CPU with ``backend="eager"``, two candidates at a time: counts are the same for every backend
and mode. Its processes are forked off one that has imported torch, which takes half of the time. Stage B (timed) runs one after the
other on the device asked for, and leaves out what stage A has rejected.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from recompile_watch.core.candidates import EAGER, MENDS, STRUCTURAL, VARIANT, WITHOUT_CUDAGRAPHS, Candidate, parse_candidate
from recompile_watch.core.diagnosis import Diagnosis, Provenance
from recompile_watch.core.gates import hard_gates
from recompile_watch.core.profiles import EFFORTS, Effort, Profile
from recompile_watch.core.statistics import SplitMix64
from recompile_watch.core.trials import Status, Trial
from recompile_watch.core.verdict import judge
from recompile_watch.respond.nursery import Nursery
from recompile_watch.respond.readings import Reading, computes_only, reading_of, timed
from recompile_watch.respond.worker_process import Launch, run_worker
from recompile_watch.respond.workspace import workspace

PARALLEL = 2
_DEFAULT = Candidate("default")
_NOT_RUN = "eager itself does not run"
_NOTHING_TO_MEND = "the default mode has no recompile and no graph break that it could mend"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where and how workers run. cpus: empty for all. gpu: its UUID; empty for the CPU. duty: share of the time that may be spent on calls."""

    python: str
    paths: tuple[str, ...]
    gpu: str = ""
    time_limit_s: float = 600.0
    nice: int = 10
    cpus: tuple[int, ...] = ()
    threads: int = 1
    memory_limit_mb: int | None = None
    memory_fraction: float | None = None
    duty: float = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be found out. target: ``module:factory``; name: what the user calls it. candidates: empty for the usual ones.

    advised: more candidates, from the advice on a log.
    """

    name: str
    target: str
    stage: str
    mode: str
    profile: Profile
    candidates: tuple[Candidate, ...] = ()
    advised: tuple[Candidate, ...] = ()
    seed: int = 0
    inputs: int = 4

    @property
    def effort(self) -> Effort:
        """Of its mode."""
        return EFFORTS[self.mode]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one worker is. total: 0 where it is not known."""

    candidate: str
    stage: str
    phase: str
    done: int
    total: int


Watch = Callable[[Progress], None]
Guard = Callable[[], str | None]


def diagnose(plan: Plan, surroundings: Surroundings, on_progress: Watch, guard: Guard) -> tuple[Diagnosis, str]:
    """The diagnosis, and everything that torch and the workload logged. guard: the reason to stop now, if there is one."""
    with workspace() as folder:
        return _Run(plan, surroundings, on_progress, guard, folder).result()


def not_run(plan: Plan, reason: str) -> Diagnosis:
    """The diagnosis of a plan that was not begun: inconclusive, for that reason."""
    judgement = judge(Trial(Candidate(EAGER), Status.SKIPPED, reason), (), plan.profile, SplitMix64(plan.seed))
    return Diagnosis(plan.name, "unknown", None, plan.profile.name, plan.mode, plan.stage, False, plan.seed, None, judgement, (reason,))


@dataclass(slots=True)
class _Run:
    """One diagnosis as it goes on. structures, times: readings by candidate."""

    plan: Plan
    surroundings: Surroundings
    on_progress: Watch
    guard: Guard
    folder: Path
    structures: dict[Candidate, Reading] = field(default_factory=dict)
    times: dict[Candidate, Reading] = field(default_factory=dict)
    skipped: dict[Candidate, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    nursery: Nursery | None = None
    fault: str = ""
    is_stopped: bool = False
    has_run: bool = False
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started_s: float = field(default_factory=time.monotonic)

    def result(self) -> tuple[Diagnosis, str]:
        wanted = list(self.plan.candidates) or self._usual()
        if self.plan.stage != "timed":
            wanted = self._probe(wanted)
        if self.plan.stage != "structural" and not self.fault:
            wanted = self._time(wanted)
        return self._judged([candidate for candidate in wanted if candidate.key != EAGER]), self._log()

    def _usual(self) -> list[Candidate]:
        names = [*self.plan.effort.modes[:1], *STRUCTURAL[1:], *self.plan.effort.modes[1:]]
        return list(dict.fromkeys([*map(parse_candidate, names), *self.plan.advised]))

    # Stage A

    def _probe(self, wanted: list[Candidate]) -> list[Candidate]:
        """Runs the structural stage; the candidates, with the workload's own variants where none were named."""
        own = [candidate for candidate in wanted if candidate.has_own_structure and candidate.key not in (_DEFAULT.key, EAGER)]
        early = own[:1]  # beside the default mode, whose result says whether the others can mend anything
        self.nursery = Nursery(self._launch(_DEFAULT, "structural", self.folder, 0)) if len(own) > 1 else None
        with ThreadPoolExecutor(PARALLEL) as pool:
            try:
                runs = [pool.submit(self._one, candidate, "structural") for candidate in early]
                default = self.structures[_DEFAULT] = self._one(_DEFAULT, "structural")
                if not self.plan.candidates:
                    own += [Candidate(VARIANT, name) for name in default.variants]
                    wanted = list(dict.fromkeys([*wanted, *own]))
                    self.skipped |= {candidate: _NOTHING_TO_MEND for candidate in own[1:] if candidate.key in MENDS and _is_calm(default)}
                runs += [pool.submit(self._one, candidate, "structural") for candidate in own[1:] if candidate not in self.skipped]
                for run in runs:
                    reading = run.result()
                    self.structures[reading.trial.candidate] = reading
            finally:
                self.stop.set()  # whatever else still runs when this is left early
                if self.nursery is not None:
                    self.nursery.close()
                    self.nursery = None
        self.stop.clear()
        return wanted

    # Stage B

    def _time(self, wanted: list[Candidate]) -> list[Candidate]:
        """Eager against itself first: without it nothing can be judged."""
        eager = Candidate(EAGER)
        self.times[eager] = self._one(eager, "timed")
        if not self.times[eager].trial.has_succeeded:
            return wanted
        if not self.plan.candidates and self.plan.stage == "timed":
            wanted = [*wanted, *(Candidate(VARIANT, name) for name in self.times[eager].variants)]
        for candidate in wanted:
            why = self.skipped.get(candidate) or self._needless(candidate, wanted)
            if why:
                self.skipped[candidate] = why
            elif candidate != eager and not self._is_rejected(candidate):
                self.times[candidate] = self._one(candidate, "timed")
        return wanted

    def _needless(self, candidate: Candidate, wanted: Sequence[Candidate]) -> str:
        """Why timing it would tell nothing new."""
        same = WITHOUT_CUDAGRAPHS.get(candidate.key)
        if same is not None and not self.surroundings.gpu and Candidate(same) in wanted:
            return f"without a GPU it is the same as {same}"
        own, default = self.structures.get(candidate), self.structures.get(_DEFAULT)
        if own is None or default is None or candidate == _DEFAULT or candidate.key == VARIANT or not candidate.has_own_structure:
            return ""
        if own.trial.has_succeeded and own.trial.structure == default.trial.structure and not self._is_rejected(_DEFAULT):
            return "it compiles exactly what the default mode does"
        return ""

    def _is_rejected(self, candidate: Candidate) -> bool:
        """True when its structure alone forbids it."""
        trial = self._structural_trial(candidate)
        return trial is not None and any(not gate.passed for gate in hard_gates(trial))

    def _structural_trial(self, candidate: Candidate) -> Trial | None:
        """Its own, or for a mode that of the default mode."""
        reading = self.structures.get(candidate if candidate.has_own_structure else _DEFAULT)
        return replace(reading.trial, candidate=candidate) if reading is not None else None

    # Both

    def _one(self, candidate: Candidate, stage: str) -> Reading:
        """One worker from start to end; with full caches once more where the start is to be known."""
        if self.fault:
            return Reading(Trial(candidate, Status.SKIPPED, self.fault if self.is_stopped else _NOT_RUN))
        with tempfile.TemporaryDirectory(dir=self.folder) as cache:
            reading = self._started(candidate, stage, Path(cache), self.plan.effort.pairs)
            timing = reading.trial.timing
            if stage == "timed" and self.plan.effort.has_cached_start and timing is not None and candidate.key != EAGER:
                again = self._started(candidate, stage, Path(cache), 0).trial
                if again.timing is not None:
                    cached_s = again.timing.first_call_s
                    reading = replace(reading, trial=replace(reading.trial, timing=replace(timing, first_call_cached_s=cached_s)))
        is_passing = reading.fault == "interpreter" and self.has_run  # it worked before
        self.has_run = self.has_run or reading.torch_version is not None
        if reading.fault and not self.fault and not is_passing:
            self.fault, self.is_stopped = reading.trial.reason, reading.fault == "guard"
        return reading

    def _started(self, candidate: Candidate, stage: str, cache: Path, pairs: int) -> Reading:
        launch = self._launch(candidate, stage, cache, pairs)

        def on_progress(record: Mapping[str, object]) -> None:
            done, total = (value if isinstance(value, int) else 0 for value in (record.get("done"), record.get("total")))
            self.on_progress(Progress(candidate.name, stage, str(record.get("phase"))[:40], done, total))

        # The default mode starts anew, to tell what is wrong with the interpreter, and so does what torch reads when it is imported.
        fork = self.nursery.fork if self.nursery is not None and candidate.key not in (_DEFAULT.key, "dynamic_sources") else None
        reading = reading_of(candidate, run_worker(launch, on_progress, self._why_stop, fork))
        self.on_progress(Progress(candidate.name, stage, reading.trial.status.value, 0, 0))
        return reading

    def _launch(self, candidate: Candidate, stage: str, cache: Path, pairs: int) -> Launch:
        gpu = self.surroundings.gpu if stage == "timed" else ""
        return Launch(self.surroundings.python, self._request(candidate, stage, pairs), cache, self.surroundings.time_limit_s, gpu=gpu)

    def _why_stop(self) -> str | None:
        return "the diagnostic was ended" if self.stop.is_set() else self.guard()

    def _request(self, candidate: Candidate, stage: str, pairs: int) -> dict[str, object]:
        around = self.surroundings
        return {
            "stage": stage, "name": candidate.name, "settings": candidate.settings(), "workload": self.plan.target, "paths": list(around.paths),
            "device": "cuda" if around.gpu and stage == "timed" else "cpu", "parent": os.getpid(), "nice": around.nice, "cpus": list(around.cpus),
            "threads": around.threads, "memory_limit_mb": around.memory_limit_mb, "memory_fraction": around.memory_fraction, "duty": around.duty,
            "seed": self.plan.seed, "inputs": self.plan.inputs, "pairs": pairs, "seeds": self.plan.effort.seeds if pairs else 0,
            "budget_s": around.time_limit_s / 4,
        }  # fmt: skip

    # The end

    def _judged(self, wanted: Sequence[Candidate]) -> Diagnosis:
        readings = [*self.times.values(), *self.structures.values()]
        version = next((reading.torch_version for reading in readings if reading.torch_version), None)
        device = next((reading.device for reading in readings if reading.device), "unknown")
        by_processor = not self.surroundings.gpu and self.surroundings.threads == 1 and computes_only(self.times.values())
        trials = {trial.candidate: trial for trial in timed(self.times.values(), by_processor=by_processor)}
        eager = trials.pop(Candidate(EAGER), None) if self.plan.stage != "structural" else self._eager_of_structure()
        if self.fault:
            eager = Trial(Candidate(EAGER), Status.SKIPPED if self.is_stopped else Status.FAILED, self.fault)
        found = [self._told_once(self._trial(candidate, trials)) for candidate in wanted]
        judgement = judge(
            eager, found, self.plan.profile, SplitMix64(self.plan.seed), torch_version=version, on_cpu=not self.surroundings.gpu
        )  # fmt: skip
        problems = (self.fault,) if self.fault else ()
        return Diagnosis(
            self.plan.name, device, version, self.plan.profile.name, self.plan.mode, self.plan.stage, by_processor, self.plan.seed, eager, judgement,
            problems, self._provenance(next((reading.python_version for reading in readings if reading.python_version), None)),
        )  # fmt: skip

    def _told_once(self, trial: Trial) -> Trial:
        """What is wrong with eager itself is told of eager, not of each candidate that met it first."""
        is_eagers = bool(self.fault) and not self.is_stopped and trial.reason == self.fault
        return replace(trial, status=Status.SKIPPED, reason=_NOT_RUN) if is_eagers else trial

    def _provenance(self, python_version: str | None) -> Provenance:
        started_at = self.started_at.isoformat(timespec="seconds")
        return Provenance(self.surroundings.python, python_version, self.surroundings.threads, started_at, time.monotonic() - self.started_s)

    def _eager_of_structure(self) -> Trial | None:
        """Every structural worker runs eager first: it succeeded where any of them got further."""
        if any(one.trial.calls or one.eager_calls for one in self.structures.values()):
            return Trial(Candidate(EAGER), Status.OK, calls=self.plan.inputs, calls_ok=self.plan.inputs)
        return next((replace(one.trial, candidate=Candidate(EAGER)) for one in self.structures.values()), None)

    def _trial(self, candidate: Candidate, trials: Mapping[Candidate, Trial]) -> Trial:
        structural = self._structural_trial(candidate)
        if candidate in trials:
            return trials[candidate]
        if candidate in self.skipped:
            return Trial(candidate, Status.SKIPPED, self.skipped[candidate], structural.structure if structural is not None else None)
        return structural or Trial(candidate, Status.SKIPPED, self.fault if self.is_stopped else _NOT_RUN)

    def _log(self) -> str:
        logs = [
            (f"{stage}, {one.trial.name}", one.log)
            for stage, group in (("structural", self.structures), ("timed", self.times))
            for one in group.values()
        ]
        return "".join(f"--- {title}\n{log.rstrip()}\n" for title, log in logs if log.strip())


def _is_calm(reading: Reading) -> bool:
    """True when it ran without a recompile, a graph break or a limit hit."""
    seen = reading.trial.structure
    return reading.trial.has_succeeded and seen is not None and not (seen.recompiles or seen.graph_breaks or seen.limit_hits)

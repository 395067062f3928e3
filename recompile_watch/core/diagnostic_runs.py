"""Runs: the diagnosis that an incident asks for, where it stands, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from recompile_watch.core.measured import SCHEMA

MAX_TEXT_CHARS = 700
_RAW = ("per_call", "warmup")  # single calls: most of a report, and of use only where it was written


class RunState(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a diagnosis found. text: one sentence. choose: the candidate to run, None where that is not decided.

    postponed: why the timed stage is still to come; None where all of it was done.
    """

    text: str
    choose: str | None = None
    postponed: str | None = None


@dataclass(frozen=True, slots=True)
class NotRun:
    """It could not be run now, such as on a GPU that is in use; later it may."""

    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It broke. is_final: it would break again."""

    why: str
    is_final: bool = False


RunEnd = Measurement | NotRun | Failed


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A run that is to begin now. mark: for the environment of its processes. needs_gpu: its structure is known already."""

    incident: str
    mark: str
    needs_gpu: bool


@dataclass(slots=True)
class DiagnosticRun:
    """The diagnosis of one incident. wanted, due, ended: since when, from when on, and when the latest ended, on the steady clock.

    severity: of the incident when it was wanted. started_at, measured_at: epoch seconds. why: it was put off, or given up.
    failures: how often it broke. needs_gpu: the structure is known, what is left is the time.
    """

    wanted: float
    due: float
    severity: str
    state: RunState = RunState.WAITING
    needs_gpu: bool = False
    failures: int = 0
    why: str = ""
    mark: str = ""
    started_at: float | None = None
    ended: float | None = None
    measured_at: float | None = None
    measured: Measurement | None = None

    @property
    def text(self) -> str | None:
        """What is said of it in a message; None while there is nothing to say."""
        if self.measured is not None:
            return self.measured.text
        return f"not measured: {self.why}" if self.state is RunState.GIVEN_UP else None


def run_row(run: DiagnosticRun | None) -> dict[str, str | float | None] | None:
    """The run as a JSON object, for the incident's row."""
    if run is None:
        return None
    return {
        "state": run.state.value, "why": run.why or None, "started_at": run.started_at if run.state is RunState.RUNNING else None,
        "measured_at": run.measured_at, "text": run.text, "choose": run.measured.choose if run.measured is not None else None,
    }  # fmt: skip


def end_of(report: Mapping[str, object]) -> Measurement | NotRun:
    """What a JSON report of ``diagnose`` says; one that the guard stopped says nothing yet. Raises ValueError where it is none."""
    verdict, eager, postponed = report.get("verdict"), report.get("eager"), report.get("postponed")
    if report.get("schema") != SCHEMA or not isinstance(verdict, Mapping):
        raise ValueError("no report of diagnose")
    if isinstance(eager, Mapping) and eager.get("status") == "skipped":
        return NotRun(str(eager.get("reason"))[:MAX_TEXT_CHARS])
    choose, is_open = verdict.get("choose"), verdict.get("status") != "decided"
    return Measurement(
        str(verdict.get("summary"))[:MAX_TEXT_CHARS], None if choose is None else str(choose)[:MAX_TEXT_CHARS],
        str(postponed)[:MAX_TEXT_CHARS] if postponed and is_open else None,
    )  # fmt: skip


def without_calls(report: Mapping[str, object]) -> dict[str, object]:
    """The report without its single calls, small enough to be kept and handed on."""
    return {name: _lean(value) for name, value in report.items()}


def _lean(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _lean(item) for name, item in value.items() if name not in _RAW}
    return [_lean(item) for item in value] if isinstance(value, list) else value

"""One whole diagnosis: what was measured, under which conditions, and the verdict."""

from dataclasses import dataclass

from recompile_watch.core.trials import Trial
from recompile_watch.core.verdict import Judgement


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where and when it was measured.

    python: the interpreter's path; python_version: what it says of itself, None where it said nothing. threads: of torch; 0 for its own
    choice. started_at: ISO 8601 with offset. seconds: of everything.
    """

    python: str
    python_version: str | None
    threads: int
    started_at: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """device: as torch names it. by_processor: the times are the processor's, not the clock's. eager: the control's own run.

    seed: of everything that is random in it. problems: why it was not measured as asked, in words. provenance: None where it was not
    recorded. postponed: why the timed stage was left out though a GPU is there; empty where it was not.
    """

    workload: str
    device: str
    torch_version: str | None
    profile: str
    mode: str
    stage: str
    by_processor: bool
    seed: int
    eager: Trial | None
    judgement: Judgement
    problems: tuple[str, ...] = ()
    provenance: Provenance | None = None
    postponed: str = ""

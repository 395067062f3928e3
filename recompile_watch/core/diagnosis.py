"""One whole diagnosis: what was measured, under which conditions, and the verdict."""

from dataclasses import dataclass

from recompile_watch.core.trials import Trial
from recompile_watch.core.verdict import Judgement


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """device: as torch names it. by_processor: the times are the processor's, not the clock's. eager: the control's own run.

    seed: of everything that is random in it. problems: why it was not measured as asked, in words. postponed: why the timed stage
    was left out though a GPU is there; empty where it was not.
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
    postponed: str = ""

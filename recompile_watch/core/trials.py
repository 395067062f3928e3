"""What was measured of one candidate in a fresh process, before anybody judges it. A part that was not measured is None, never zero."""

from dataclasses import dataclass, field
from enum import StrEnum

from recompile_watch.core.candidates import Candidate
from recompile_watch.core.statistics import Pair

MAX_CALLS = 2000  # of which each one is kept; an ordinary diagnosis has some dozens of calls before the pairs, and 360 pairs at most


class Status(StrEnum):
    """How a candidate's run ended."""

    OK = "ok"
    FAILED = "failed"  # calls raised errors
    INEFFECTIVE = "ineffective"  # a setting read back is not what was set
    SKIPPED = "skipped"  # not run, for the reason given
    TIMEOUT = "timeout"
    CRASHED = "crashed"  # the process died or said nothing that can be read


@dataclass(frozen=True, slots=True)
class Structure:
    """What compiling did, counted by torch itself.

    late_recompiles: after every input had been seen in a full quiet round. compiles_by_call: compilations that each of the first
    ``MAX_CALLS`` calls set off, in order; calls: how many calls there were; warmup_calls: how many of them before that quiet round's end.
    """

    recompiles: int
    late_recompiles: int
    graph_breaks: int
    limit_hits: int
    frames_compiled: int
    cudagraph_skips: int
    compiles_by_call: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    calls: int = field(default=0, compare=False, kw_only=True)
    warmup_calls: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long calls took.

    pairs: eager and candidate, measured in turn. first_call_s: with empty caches; first_call_cached_s: in a second process that finds
    them full. overhead_s: what warming up cost beyond as many calls of the same arm. sigma_ms: of the medians of rounds. compile_s: as
    torch counts it. compiles: compilations in each pair. warmup: seconds by the clock and compilations of each of the first
    ``MAX_CALLS`` calls before the pairs.
    """

    pairs: tuple[Pair, ...]
    first_call_s: float
    overhead_s: float
    first_call_cached_s: float | None = None
    compile_s: float | None = None
    sigma_ms: float | None = None
    compiles: tuple[int, ...] = ()
    warmup: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How the candidate's outputs differ from eager's for the same inputs and seeds.

    mae_pct: of the mean size of eager's output. noise_floor_pct: the same of eager with another seed; 0 for a model that draws nothing.
    same_seed_delta: the largest difference of eager repeated with the same seed. is_close: within the tolerance that torch's own tests use
    for the data type. rmse_eager, rmse_candidate: against a reference in double precision; multiplier: how much worse the candidate may be.
    metric_pct: by how much the workload's own error measure is worse. sigma_mae_pct: of mae_pct over seeds.
    """

    max_abs: float
    mae: float
    mae_pct: float
    noise_floor_pct: float
    same_seed_delta: float
    is_close: bool
    rmse_eager: float | None = None
    rmse_candidate: float | None = None
    multiplier: float = 2.0
    metric_pct: float | None = None
    sigma_mae_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate's run.

    calls, calls_ok: how many calls were made and how many succeeded. log: the lines of torch that matter. read_back: settings as the
    process read them, by name. seconds: of the whole process; None where that is not known.
    """

    candidate: Candidate
    status: Status
    reason: str = ""
    structure: Structure | None = None
    timing: Timing | None = None
    accuracy: Accuracy | None = None
    peak_memory_mb: float | None = None
    calls: int = 0
    calls_ok: int = 0
    log: tuple[str, ...] = ()
    read_back: tuple[tuple[str, str], ...] = ()
    seconds: float | None = None

    @property
    def name(self) -> str:
        """The candidate's name."""
        return self.candidate.name

    @property
    def has_succeeded(self) -> bool:
        """True when it ran and every call succeeded."""
        return self.status is Status.OK and self.calls > 0 and self.calls_ok == self.calls

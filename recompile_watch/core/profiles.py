"""What each use of a model asks of a compiled mode before it may replace eager, and how much is measured to find out.

The bounds of the log's decision are the production profile's.
"""

from dataclasses import dataclass
from enum import Enum

MAX_RECOMPILES = 10  # a model that compiles more often after its first calls is not worth its compiles until that is mended
MAX_ERROR_PERCENT = 5.0
MAX_MEMORY_RATIO = 1.5
EXPECTED_CALLS = 10_000  # calls of one process over which compiling must pay for itself


class Pick(Enum):
    """Which of the candidates that passed every gate to take."""

    FASTEST = "fastest"
    STEADIEST = "steadiest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Profile:
    """The bounds of one use. min_speedup: for the interval's lower end. max_error_percent: of the output, against eager's."""

    name: str
    min_speedup: float
    max_error_percent: float = MAX_ERROR_PERCENT
    pick: Pick = Pick.FASTEST
    expected_calls: int = EXPECTED_CALLS


PRODUCTION = Profile("production", 2.0)
BALANCED = Profile("balanced", 1.1)
ACCURACY = Profile("accuracy", 1.0, 0.1, Pick.STEADIEST)
RESEARCH = Profile("research", 1.0, pick=Pick.NONE)
MAX_PERFORMANCE = Profile("max-performance", 1.0)
PROFILES = {profile.name: profile for profile in (PRODUCTION, BALANCED, ACCURACY, RESEARCH, MAX_PERFORMANCE)}


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured. seeds: for the comparison of outputs. has_cached_start: a second process finds the caches full."""

    pairs: int
    seeds: int
    has_cached_start: bool
    modes: tuple[str, ...]


_ALL_MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
EFFORTS = {
    "quick": Effort(30, 1, False, ("default", "reduce-overhead")),
    "full": Effort(60, 3, True, _ALL_MODES),
    "production-check": Effort(120, 5, True, _ALL_MODES),
}

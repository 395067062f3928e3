"""The ``[diagnose]`` section of the configuration: which interpreter, which workload, and what the diagnostic may take of the machine."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class DiagnoseSettings:
    """What the section may hold.

    python: the interpreter of the worker; default the one that runs the program. workload: ``module:factory``. folder: where its module lies.
    allow_live_gpu: a GPU that others compute on may be used. profile: what is asked of a candidate. mode: how much is measured.
    time_limit_s: of one worker. cooldown_s: between two diagnoses of one incident. nice: 0 to 19. cpus: which ones; empty for all.
    threads: of torch; 0 for its own choice. memory_limit_bytes: of a worker's process, on the CPU. memory_fraction: of the GPU's memory.
    duty: share of the time that may be spent on calls. bot_log: where the bot prints its latencies; a run stops when they rise.
    on_alert: an alert about the model starts a diagnosis. model: whose workload it is, as incidents call it; on_alert needs it.
    wait_s: after an alert, so that the log tells what belongs to it. pause_s: between two runs that alerts start, also after a refused one.
    give_up_s: after an alert, when the GPU is never free. run_limit_s: of a whole run that an alert started.
    """

    python: str | None = None
    workload: str | None = None
    folder: str | None = None
    allow_live_gpu: bool = False
    profile: Literal["production", "balanced", "accuracy", "research", "max-performance"] = "production"
    mode: Literal["quick", "full", "production-check"] = "quick"
    time_limit_s: float = 600.0
    cooldown_s: float = 6 * 3600.0
    nice: int = 10
    cpus: tuple[int, ...] = ()
    threads: int = 1
    memory_limit_bytes: int | None = None
    memory_fraction: float | None = None
    duty: float = 1.0
    bot_log: str | None = None
    on_alert: bool = False
    model: str | None = None
    wait_s: float = 60.0
    pause_s: float = 900.0
    give_up_s: float = 12 * 3600.0
    run_limit_s: float = 2 * 3600.0

    def __post_init__(self) -> None:
        if not 0 <= self.nice <= 19:
            raise ValueError(f"nice is {self.nice}; write a number from 0 to 19")
        if not 0 <= self.threads <= 1024 or any(not 0 <= cpu <= 1024 for cpu in self.cpus):
            raise ValueError("threads and cpus are numbers from 0 to 1024")
        if self.on_alert and (self.workload is None or self.model is None):
            raise ValueError('on_alert measures a workload of a model; write both, such as workload = "bot_workload:make" and model = "toto"')
        for name, share in (("duty", self.duty), ("memory_fraction", self.memory_fraction)):
            if share is not None and not 0 < share <= 1:
                raise ValueError(f"{name} is {share}; write a share from 0.01 to 1.0")

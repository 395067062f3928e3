"""May the diagnostic use the GPU now? It is asked before every run and during it, and every no comes with its reason.

A GPU on which another process computes is live: it is left alone unless the configuration says otherwise, and even then
only while it has room and is not throttled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recompile_watch.core.errors import DiagnosisError

MIN_FREE_MB = 2048
MAX_BUSY_PERCENT = 30
# nvml.h, nvmlClocksEventReasons: heat and failing power. A power cap (0x4) is left out: a card at full load reaches it by itself.
_THROTTLE = {0x8: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}


class GuardError(DiagnosisError):
    """The GPU must not be used; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as it is now. users: processes that compute on it. throttled: why it runs slower than it could."""

    uuid: str
    name: str
    free_mb: float
    total_mb: float
    busy_percent: int
    users: tuple[int, ...]
    throttled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What is asked of a GPU. allows_live: it may be used beside other processes."""

    allows_live: bool = False
    min_free_mb: float = MIN_FREE_MB
    max_busy_percent: int = MAX_BUSY_PERCENT


def refusal(gpu: Gpu, settings: GuardSettings) -> str | None:
    """Why this GPU must not be used now; None when it may."""
    if gpu.users and not settings.allows_live:
        ids = ", ".join(map(str, gpu.users[:5]))
        return f"{gpu.name} is in use by process {ids}; set [diagnose] allow_live_gpu = true to measure beside it, or use --device cpu"
    if gpu.throttled:
        return f"{gpu.name} is throttled ({', '.join(gpu.throttled)}): times would mean nothing; try again when it is cool"
    if gpu.free_mb < settings.min_free_mb:
        return f"{gpu.name} has {gpu.free_mb:.0f} MB free; {settings.min_free_mb:.0f} are needed"
    if gpu.busy_percent > settings.max_busy_percent:
        return f"{gpu.name} is {gpu.busy_percent} % busy; at most {settings.max_busy_percent} % is allowed"
    return None


def trouble(gpu: Gpu, before: Gpu, settings: GuardSettings) -> str | None:
    """Why a run on it must stop now. Users are counted, not named: in a container the driver knows a worker by another process id."""
    if len(gpu.users) > len(before.users) + 1 and not settings.allows_live:
        return f"another process began to use {gpu.name}"
    return f"{gpu.name} is throttled ({', '.join(gpu.throttled)}): times would mean nothing" if gpu.throttled else None


class Nvml(Protocol):
    """What is used of nvidia-ml-py's module ``pynvml``."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetUUID(self, handle: object) -> str | bytes: ...
    def nvmlDeviceGetName(self, handle: object) -> str | bytes: ...
    def nvmlDeviceGetMemoryInfo(self, handle: object) -> "_Memory": ...
    def nvmlDeviceGetUtilizationRates(self, handle: object) -> "_Rates": ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence["_Process"]: ...
    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int: ...


class _Memory(Protocol):
    free: int
    total: int


class _Rates(Protocol):
    gpu: int


class _Process(Protocol):
    pid: int


def load_nvml() -> Nvml | None:
    """nvidia-ml-py, started; None where no NVIDIA driver is. Raises GuardError where there is one and the package is missing."""
    try:
        import pynvml
    except ImportError:
        if _has_driver():
            raise GuardError("a GPU is here, and nothing to watch it with: pip install 'recompile-watch[diagnose]', or use --device cpu") from None
        return None
    nvml: Nvml = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if _has_driver():
            raise GuardError(f"the GPU cannot be looked at ({error}); use --device cpu") from None
        return None
    return nvml


def gpus(nvml: Nvml) -> list[Gpu]:
    """All GPUs as they are now. Raises GuardError when the driver does not answer."""
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return [_gpu(nvml, handle) for handle in handles]
    except nvml.NVMLError as error:
        raise GuardError(f"the GPU cannot be looked at ({error}); use --device cpu") from None


def _gpu(nvml: Nvml, handle: object) -> Gpu:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    reasons = _optional(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle), 0)
    return Gpu(
        _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle)), memory.free / 1e6, memory.total / 1e6,
        _optional(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, 0),
        tuple(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)),
        tuple(words for bit, words in _THROTTLE.items() if reasons & bit),
    )  # fmt: skip


def _optional(nvml: Nvml, ask: Callable[[], int], otherwise: int) -> int:
    """Some cards (and MIG slices) do not tell how busy they are."""
    try:
        return ask()
    except nvml.NVMLError:
        return otherwise


def _has_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value

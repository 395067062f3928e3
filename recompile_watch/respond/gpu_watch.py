"""Chooses the GPU for a diagnosis, and looks at it while the diagnosis runs."""

import time

from recompile_watch.respond.gpu_guard import Gpu, GuardError, GuardSettings, Nvml, gpus, load_nvml, refusal, trouble

_LOOK_EVERY_S = 1.0


def gpu_to_use(device: str, settings: GuardSettings, nvml: Nvml | None = None) -> Gpu | None:
    """The first GPU that may be used; None for the CPU. device: ``auto``, ``cpu`` or ``cuda``. Raises GuardError with the reason why not."""
    if device == "cpu":
        return None
    nvml = nvml or load_nvml()
    found = gpus(nvml) if nvml is not None else []
    if not found:
        if device == "cuda":
            raise GuardError("no NVIDIA GPU is here; use --device cpu")
        return None
    reasons = []
    for gpu in found:
        reason = refusal(gpu, settings)
        if reason is None:
            return gpu
        reasons.append(reason)
    raise GuardError(reasons[0])


class GpuWatch:
    """Asked before each step of a run whether it may go on; looks at the GPU once a second at most."""

    def __init__(self, gpu: Gpu | None, settings: GuardSettings, nvml: Nvml | None = None) -> None:
        self._gpu, self._settings = gpu, settings
        self._nvml = nvml or (load_nvml() if gpu is not None else None)
        self._looked_at = 0.0
        self._reason: str | None = None

    def why_stop(self) -> str | None:
        """The reason to stop now; None to go on."""
        if self._gpu is None or self._nvml is None or self._reason is not None:
            return self._reason
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            self._reason = self._look(self._gpu, self._nvml)
        return self._reason

    def _look(self, before: Gpu, nvml: Nvml) -> str | None:
        try:
            now = next((gpu for gpu in gpus(nvml) if gpu.uuid == before.uuid), None)
        except GuardError as error:
            return str(error)
        return f"{before.name} is gone" if now is None else trouble(now, before, self._settings)

"""Tests of the GPU guard, the lock and the settings: every no comes with its reason."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from recompile_watch.config import load_diagnose_settings
from recompile_watch.core.errors import ConfigError, StoreError
from recompile_watch.respond import gpu_guard
from recompile_watch.respond.diagnose_settings import DiagnoseSettings
from recompile_watch.respond.gpu_guard import Gpu, GuardError, GuardSettings, gpus, load_nvml, refusal, trouble
from recompile_watch.respond.gpu_watch import GpuWatch, gpu_to_use
from recompile_watch.respond.run_lock import BusyError, cooldown_left_s, only_run, remember_run

IDLE = Gpu("GPU-1", "H200", 140_000, 150_000, 0, (), ())
LIVE = GuardSettings(allows_live=True)


class FakeError(Exception):
    """As NVMLError."""


@dataclass
class FakeNvml:
    """nvidia-ml-py with one card, or a driver that does not answer."""

    users: list[int] = field(default_factory=list)
    reasons: int = 0
    free: int = 140_000_000_000
    busy: int = 0
    is_broken: bool = False
    count: int = 1
    NVMLError: type[Exception] = FakeError

    def nvmlInit(self) -> None:
        if self.is_broken:
            raise FakeError("driver not loaded")

    def nvmlDeviceGetCount(self) -> int:
        self.nvmlInit()
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        return index

    def nvmlDeviceGetUUID(self, handle: object) -> str | bytes:
        return b"GPU-1"

    def nvmlDeviceGetName(self, handle: object) -> str | bytes:
        return "H200"

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> SimpleNamespace:
        return SimpleNamespace(free=self.free, total=150_000_000_000)

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> SimpleNamespace:
        if self.busy < 0:
            raise FakeError("not supported")
        return SimpleNamespace(gpu=self.busy)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in self.users]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int:
        return self.reasons


@pytest.mark.parametrize(
    ("gpu", "settings", "words"),
    [
        (IDLE, GuardSettings(), None),
        (replace(IDLE, users=(4711,)), GuardSettings(), "in use by process 4711; set [diagnose] allow_live_gpu = true"),
        (replace(IDLE, users=(4711,)), LIVE, None),
        (replace(IDLE, throttled=("hardware thermal",)), LIVE, "throttled (hardware thermal)"),
        (replace(IDLE, free_mb=500), LIVE, "500 MB free; 2048 are needed"),
        (replace(IDLE, busy_percent=80), LIVE, "80 % busy"),
    ],
)
def test_refusals(gpu: Gpu, settings: GuardSettings, words: str | None) -> None:
    """A live GPU without permission, a hot one, a full one, a busy one."""
    reason = refusal(gpu, settings)
    assert reason is None if words is None else reason is not None and words in reason


def test_trouble_during_a_run() -> None:
    """The worker itself is one user more; a second one, or heat, ends the run."""
    assert trouble(replace(IDLE, users=(1,)), IDLE, GuardSettings()) is None
    assert "another process" in (trouble(replace(IDLE, users=(1, 2)), IDLE, GuardSettings()) or "")
    assert trouble(replace(IDLE, users=(1, 2)), IDLE, LIVE) is None
    assert "throttled" in (trouble(replace(IDLE, throttled=("power brake",)), IDLE, LIVE) or "")


def test_a_gpu_is_read() -> None:
    """Bytes or text, a load that is not told, and bits that become words."""
    assert gpus(FakeNvml()) == [IDLE]
    assert gpus(FakeNvml(busy=-1, reasons=0x8 | 0x40))[0].throttled == ("hardware slowdown", "hardware thermal")


def test_the_choice_of_the_device() -> None:
    """The CPU needs no guard; without a GPU auto is the CPU and cuda an error; a refusal is an error that says why."""
    assert gpu_to_use("cpu", GuardSettings(), FakeNvml(users=[1])) is None
    assert gpu_to_use("auto", GuardSettings(), FakeNvml()) == IDLE
    assert gpu_to_use("auto", GuardSettings(), FakeNvml(count=0)) is None
    for fake, device, words in (
        (FakeNvml(count=0), "cuda", "no NVIDIA GPU"),
        (FakeNvml(users=[7]), "auto", "process 7"),
        (FakeNvml(is_broken=True), "auto", "driver"),
    ):
        with pytest.raises(GuardError, match=words):
            gpu_to_use(device, GuardSettings(), fake)


def test_the_watch_stays_with_its_reason() -> None:
    """Once it has said stop it says so again; a driver that goes away is a reason as well."""
    fake = FakeNvml()
    watch = GpuWatch(IDLE, GuardSettings(), fake)
    assert watch.why_stop() is None and GpuWatch(None, GuardSettings()).why_stop() is None
    fake.is_broken = True
    broken = GpuWatch(IDLE, GuardSettings(), fake)
    assert "cannot be looked at" in (broken.why_stop() or "") and "cannot be looked at" in (broken.why_stop() or "")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvidia-ml-py: no driver, no GPU; with a driver nothing may be done blindly."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(gpu_guard, "_has_driver", lambda: False)
    assert load_nvml() is None
    monkeypatch.setattr(gpu_guard, "_has_driver", lambda: True)
    with pytest.raises(GuardError, match="pip install"):
        load_nvml()


def test_one_run_at_a_time(tmp_path: Path) -> None:
    """A second process is refused while the first holds the lock, and not afterwards."""
    program = f"from pathlib import Path\nfrom recompile_watch.respond.run_lock import *\nwith only_run(Path({str(tmp_path)!r})): pass"
    with only_run(tmp_path):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "BusyError: another diagnostic is running" in done.stderr
        with pytest.raises(BusyError), only_run(tmp_path):
            pass
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    """One line, with the option that helps."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="--state-dir"), only_run(tmp_path / "file" / "below"):
        pass


def test_cooldown(tmp_path: Path) -> None:
    """The same incident waits; another does not; a clock set back, or a broken file, keeps nobody waiting for ever."""
    assert cooldown_left_s(tmp_path, "a", 1000.0, 60.0) == 0
    remember_run(tmp_path, "a", 1000.0)
    remember_run(tmp_path, "b", 500.0)
    assert [cooldown_left_s(tmp_path, name, 1020.0, 60.0) for name in "abc"] == [40.0, 0, 0]
    assert cooldown_left_s(tmp_path, "a", 900.0, 60.0) == 0
    (tmp_path / "diagnose-last.json").write_text("{")
    assert cooldown_left_s(tmp_path, "a", 1020.0, 60.0) == 0


def read_section(folder: Path, section: str) -> DiagnoseSettings:
    """The settings of a configuration file with this [diagnose] section."""
    file = folder / "c.toml"
    file.write_text(f"[diagnose]\n{section}")
    return load_diagnose_settings(file)


def test_settings(tmp_path: Path) -> None:
    """Durations, sizes and lists become numbers with a unit in their name."""
    section = 'python = "/srv/bot/.venv/bin/python"\ntime_limit = "15m"\nmemory_limit = "8GB"\ncpus = [2, 3]\nduty = 0.2\nprofile = "balanced"\n'
    assert read_section(tmp_path, section) == DiagnoseSettings(
        python="/srv/bot/.venv/bin/python", time_limit_s=900.0, memory_limit_bytes=8_000_000_000, cpus=(2, 3), duty=0.2, profile="balanced"
    )  # fmt: skip


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """Every wrong key in a line of its own, with what to write; a number out of its range as well."""
    section = 'pyton = "x"\ntime_limit = "soon"\nduty = "2"\nallow_live_gpu = "yes"\nmode = "slow"\ncpus = "all"\nmemory_limit = 8\n'
    with pytest.raises(ConfigError) as caught:
        read_section(tmp_path, section)
    lines = str(caught.value).split("\n")
    assert len(lines) == 7 and all("c.toml: diagnose." in line for line in lines)
    with pytest.raises(ConfigError, match="nice is -5"):
        read_section(tmp_path, "nice = -5\n")

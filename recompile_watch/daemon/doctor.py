"""Is everything in place? One look at each thing that the watch needs, with what to do where it is not."""

import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from recompile_watch.core.errors import RecompileWatchError
from recompile_watch.core.units import duration_text
from recompile_watch.daemon.control import ask, found_in
from recompile_watch.notify import check_receivers
from recompile_watch.sources.discover import Discovery
from recompile_watch.store import is_in_use
from recompile_watch.watch_config import SourceConfig, WatchConfig

OK, WEAK, BROKEN, UNKNOWN = "ok", "weak", "broken", "unknown"
QUIET_S = 86_400.0
MIN_FREE_BYTES = 200 << 20
_TORCH_VARIABLES = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCHDYNAMO_RECOMPILE_LIMIT")
_MAX_ENVIRONMENT = 1 << 20


@dataclass(frozen=True, slots=True)
class Check:
    """One look. state: ``ok``, ``weak``, ``broken`` or ``unknown``. text: what was seen and, where not ok, what to do."""

    what: str
    state: str
    text: str


def examine(config: WatchConfig, pid: int | None, *, now: float, environment: Mapping[str, str]) -> Iterator[Check]:
    """All checks, as they are made."""
    yield Check("config", OK, f"{config.file}: {len(config.sources)} sources, {len(config.receivers)} receivers")
    for source in config.sources:
        yield from _source(source, now)
    yield _torch_logs(pid) if pid is not None else Check("torch", UNKNOWN, "the bot's TORCH_LOGS are not known; name its process with --pid")
    yield from _receivers(config, environment)
    yield _state(config)
    yield _daemon(config)
    yield _clock(now)
    yield _interpreter(config)


def _source(source: SourceConfig, now: float) -> Iterator[Check]:
    what = f"source {source.name}"
    if source.origin.journal is not None:
        found = shutil.which("journalctl")
        yield Check(what, OK if found else BROKEN, f"the journal by {found}" if found else "journalctl is not installed; install systemd's tools")
        return
    if source.origin.stdin:
        yield Check(what, OK, "standard input of the watch")
        return
    found_paths = sorted({path for paths in Discovery(source.follow.paths, source.follow.excluded).look(()).by_pattern.values() for path in paths})
    files = [path for path in found_paths if Path(path).exists()]
    if not files:
        yield Check(what, BROKEN, f"{', '.join(source.follow.paths)} leads to no file; check the path and whether the bot writes there")
    for path in files[:20]:
        yield _file(what, path, now)
    if len(files) > 20:
        yield Check(what, OK, f"and {len(files) - 20} more files")


def _file(what: str, path: str, now: float) -> Check:
    try:
        facts = Path(path).stat()
    except OSError as error:
        return Check(what, BROKEN, f"{path}: {error.strerror}")
    if not stat.S_ISREG(facts.st_mode):
        return Check(what, WEAK, f"{path} is no regular file; name the log itself")
    if not os.access(path, os.R_OK):
        return Check(what, BROKEN, f"{path} cannot be read; let the user of the watch into its group")
    age_s = now - facts.st_mtime
    if age_s > QUIET_S:
        return Check(what, WEAK, f"{path} has not grown for {duration_text(age_s)}; is the bot running, and does it log there?")
    return Check(what, OK, f"{path}: {facts.st_size} bytes, last written {duration_text(max(age_s, 0))} ago")


def _torch_logs(pid: int) -> Check:
    try:
        with Path(f"/proc/{pid}/environ").open("rb") as stream:
            pairs = [pair.partition(b"=") for pair in stream.read(_MAX_ENVIRONMENT).split(b"\0")]
    except OSError as error:
        return Check("torch", UNKNOWN, f"the environment of process {pid} cannot be read ({error.strerror}); run the doctor as its user or as root")
    found = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace")[:200] for name, _, value in pairs}
    shown = ", ".join(f"{name}={found[name]}" for name in _TORCH_VARIABLES if name in found) or "none of torch's log settings"
    if "recompiles" not in found.get("TORCH_LOGS", "") and not found.get("TORCH_TRACE"):
        return Check("torch", WEAK, f"process {pid}: {shown}; start it with TORCH_LOGS=recompiles, or only limit hits are seen and no reasons")
    return Check("torch", OK, f"process {pid}: {shown}")


def _receivers(config: WatchConfig, environment: Mapping[str, str]) -> Iterator[Check]:
    if not config.receivers:
        yield Check("receivers", WEAK, "none: incidents are kept, and nobody is told; write a [[receiver]]")
    for trial in check_receivers(config.receivers, environment):
        text = f"{trial.words}; prove it with recompile-watch notify test" if trial.is_good else trial.words
        yield Check(f"receiver {trial.receiver}", OK if trial.is_good else BROKEN, text)


def _state(config: WatchConfig) -> Check:
    folder = config.state_folder
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        return Check("state", BROKEN, f"{folder} cannot be written; give it to the user of the watch")
    free = shutil.disk_usage(place).free
    if free < MIN_FREE_BYTES:
        return Check("state", WEAK, f"{folder}: only {free >> 20} MiB are free on its disk; make room")
    return Check("state", OK, f"{folder}: can be written, {free >> 30} GiB free")


def _daemon(config: WatchConfig) -> Check:
    folder = config.state_folder
    try:
        if not is_in_use(folder):
            return Check("watch", WEAK, "does not run; start it with systemctl start recompile-watch")
    except RecompileWatchError as error:
        return Check("watch", UNKNOWN, str(error))
    try:
        daemon = ask(found_in(folder), {"ask": "status"}).get("daemon")
    except RecompileWatchError as error:
        return Check("watch", BROKEN, str(error))
    return Check("watch", OK, f"runs as process {daemon.get('pid') if isinstance(daemon, Mapping) else '?'}")


def _clock(now: float) -> Check:
    if now < 1_700_000_000:
        return Check("clock", BROKEN, f"the clock shows {time.strftime('%Y-%m-%d', time.gmtime(now))}; set it, or every time in a message is wrong")
    is_synchronised = Path("/run/systemd/timesync/synchronized").exists() or Path("/run/chrony").exists()
    return Check(
        "clock",
        OK if is_synchronised else UNKNOWN,
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)) + ("" if is_synchronised else "; whether it is kept by NTP cannot be seen here"),
    )


def _interpreter(config: WatchConfig) -> Check:
    python = config.general.diagnose.python
    if python is None:
        return Check("diagnostic", UNKNOWN, "no [diagnose] python: the bot's interpreter, its torch and its GPU are not looked at")
    if not os.access(python, os.X_OK):
        return Check("diagnostic", BROKEN, f"{python} cannot be run; write the path of the bot's interpreter")
    return _torch_of(python)


def _torch_of(python: str) -> Check:
    """The torch of an interpreter, and the GPU that it sees; asked in a process of its own."""
    import subprocess

    program = "import torch; print(torch.__version__, torch.cuda.get_device_name(0) if torch.cuda.is_available() else 'no GPU')"
    try:
        answer = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("diagnostic", BROKEN, f"{python}: {type(error).__name__}; is it the bot's interpreter?")
    if answer.returncode:
        return Check("diagnostic", BROKEN, f"{python} has no torch; name the interpreter of the bot's virtual environment")
    return Check("diagnostic", OK, f"{python}: torch {answer.stdout.strip()[:200]}")

"""Is everything in place? One look at each thing that the watch needs, with what to do where it is not."""

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from recompile_watch.core.errors import RecompileWatchError
from recompile_watch.core.prefixes import peel
from recompile_watch.core.times import TimeOptions, TimeResolver
from recompile_watch.core.units import duration_text
from recompile_watch.daemon.bot_checks import examine_bot, torch_of
from recompile_watch.daemon.checks import BROKEN, OK, UNKNOWN, WEAK, Check
from recompile_watch.daemon.control import Answer, ask, found_in
from recompile_watch.notify import check_receivers
from recompile_watch.sources.discover import Discovery, obstacle
from recompile_watch.store import FILE_NAME, is_in_use
from recompile_watch.watch_config import SourceConfig, WatchConfig
from recompile_watch.zones import LocalZone

MIN_FREE_BYTES = 200 << 20
MAX_FILES = 20
_TAIL_BYTES = 1 << 16
_AHEAD_S = 60.0  # a line is written soon after its time is taken; so much may pass between two clocks
_QUARTER_S = 900.0  # zones differ by multiples of it
Streams = Sequence[Mapping[str, object]]


def examine(config: WatchConfig, pid: int | None, *, now: float, environment: Mapping[str, str]) -> Iterator[Check]:
    """All checks, as they are made. now: epoch seconds."""
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    yield Check("config", OK, f"{config.file}: {len(config.sources)} [[source]], {len(config.receivers)} [[receiver]]; looked at as {who}")
    daemon, check = _daemon(config)
    yield check
    progress = daemon.get("progress", {})
    silent_after_s = {source.name: source.silent_after_s for source in config.watch.sources}
    files: list[str] = []
    for source in config.sources:
        found = _files_of(source)
        files += found
        streams = progress.get(source.name) if isinstance(progress, Mapping) else None
        yield from _source(source, found, streams if isinstance(streams, list) else None, silent_after_s.get(source.name, 0.0), now)
    if pid is None:
        yield Check("bot", UNKNOWN, "its TORCH_LOGS and where it prints are not known; name its process with --pid")
    else:
        yield from examine_bot(pid, files, has_journal=any(source.origin.journal for source in config.sources))
    yield from _receivers(config, environment)
    yield _state(config, daemon)
    yield _clock(now)
    python = config.general.diagnose.python
    unnamed = Check("diagnostic", UNKNOWN, "no [diagnose] python: the bot's interpreter and its torch are not looked at")
    yield unnamed if python is None else torch_of(python)


def _daemon(config: WatchConfig) -> tuple[Answer, Check]:
    """What the running watch says of itself, nothing while none runs."""
    folder = config.state_folder
    try:
        if not is_in_use(folder):
            return {}, Check(
                "watch",
                WEAK,
                f"does not run; start it with recompile-watch watch --config {config.file}, or its unit with systemctl start recompile-watch",
            )
    except RecompileWatchError as error:
        return {}, Check("watch", UNKNOWN, str(error))
    try:
        answer = ask(found_in(folder), {"ask": "status"})
    except RecompileWatchError as error:
        return {}, Check("watch", BROKEN, str(error))
    daemon = answer.get("daemon")
    return answer, Check("watch", OK, f"runs as process {daemon.get('pid') if isinstance(daemon, Mapping) else '?'}")


def _files_of(source: SourceConfig) -> list[str]:
    if not source.origin.paths:
        return []
    found = Discovery(source.follow.paths, source.follow.excluded).look(()).by_pattern.values()
    return sorted({path for paths in found for path in paths if os.access(path, os.F_OK)})


def _source(source: SourceConfig, files: Sequence[str], streams: Streams | None, silent_after_s: float, now: float) -> Iterator[Check]:
    """A source as it is seen from here, and as the running watch sees it. streams: its progress there; None while none runs."""
    what = f"source {source.name}"
    problems = [str(stream["problem"]) for stream in streams or () if stream.get("problem")]
    yield from (Check(what, BROKEN, f"the running watch cannot read it: {problem}") for problem in problems[:MAX_FILES])
    if source.origin.journal is not None:
        found = shutil.which("journalctl")
        yield Check(what, OK if found else BROKEN, f"the journal by {found}" if found else "journalctl is not installed; install systemd's tools")
    elif source.origin.stdin:
        yield Check(what, OK, "standard input of the watch")
    elif not files:
        yield from (Check(what, BROKEN, f"{path} leads to no file; {obstacle(path)}") for path in source.follow.paths)
    elif streams is not None and not streams:
        hint = "in a unit, show it the folder with BindReadOnlyPaths= and give it the group with SupplementaryGroups="
        yield Check(what, BROKEN, f"{files[0]} is there, but the running watch sees no file; {hint}")
    elif not problems:
        yield from (_file(what, path, source, silent_after_s, now) for path in files[:MAX_FILES])
        if len(files) > MAX_FILES:
            yield Check(what, OK, f"and {len(files) - MAX_FILES} more files")


def _file(what: str, path: str, source: SourceConfig, silent_after_s: float, now: float) -> Check:
    try:
        facts = Path(path).stat()
        if not stat.S_ISREG(facts.st_mode):
            return Check(what, WEAK, f"{path} is no regular file; name the log itself")
        last = _last_time(path, source, facts.st_mtime)
    except PermissionError:
        return Check(what, BROKEN, f"{path} cannot be read; let the user of the watch into its group")
    except OSError as error:
        return Check(what, BROKEN, f"{path}: {error.strerror}")
    age_s = now - facts.st_mtime
    if age_s < -_AHEAD_S:
        return Check(what, WEAK, f"{path} was written {duration_text(-age_s)} in the future; set the clock here or on its file server (timedatectl)")
    if silent_after_s and age_s > silent_after_s:
        return Check(what, WEAK, f"{path} has not grown for {duration_text(age_s)}; is the bot running, and does it log there?")
    skew = None if last is None else _skew(last - facts.st_mtime, source)
    if skew is not None:
        return Check(what, WEAK, f"{path}: {skew}")
    return Check(what, OK, f"{path}: {facts.st_size} bytes, last written {duration_text(max(age_s, 0))} ago")


def _skew(ahead_s: float, source: SourceConfig) -> str | None:
    """What is wrong with the times in a log whose last dated line is so much ahead of its last change; None for nothing."""
    quarters = round(ahead_s / _QUARTER_S)
    far = duration_text(abs(ahead_s))
    if quarters and abs(ahead_s - quarters * _QUARTER_S) <= _AHEAD_S:
        zone = "the local zone" if source.zone is None else f'timezone = "{source.origin.timezone}"'
        return (
            f"its last line is dated {far} {'after' if ahead_s > 0 else 'before'} it was written, by {zone}; set the source's timezone to the bot's"
        )
    if ahead_s > _AHEAD_S:
        return f"its last line is dated {far} after it was written; set the clock of the bot's machine (timedatectl)"
    return None


def _last_time(path: str, source: SourceConfig, modified_at: float) -> float | None:
    """Epoch seconds of the last dated line of a log; None where none is dated."""
    with Path(path).open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = stream.read(_TAIL_BYTES).split(b"\n")
    day = datetime.fromtimestamp(modified_at, UTC).date()
    resolver = TimeResolver(TimeOptions(source.zone or LocalZone(), zone_is_given=source.zone is not None, modified_on=day))
    for line in reversed(lines):
        times = [resolver.resolve(piece.stamp, piece.outer_stamp) for piece in peel(line)]
        if times and times[-1] is not None:
            return datetime.fromisoformat(times[-1]).timestamp()
    return None


def _receivers(config: WatchConfig, environment: Mapping[str, str]) -> Iterator[Check]:
    if not config.receivers:
        yield Check("receivers", WEAK, "none: incidents are kept, and nobody is told; write a [[receiver]]")
    for trial in check_receivers(config.receivers, environment):
        text = f"{trial.words}; prove it with recompile-watch notify test" if trial.is_good else f"{trial.words}; see its address, and that it runs"
        yield Check(f"receiver {trial.receiver}", OK if trial.is_good else BROKEN, text)


def _state(config: WatchConfig, answer: Answer) -> Check:
    folder = config.state_folder
    daemon = answer.get("daemon")
    if isinstance(daemon, Mapping) and not daemon.get("healthy"):
        return Check("state", BROKEN, f"{folder}: the running watch cannot write it; make room, or give it to the user of the watch")
    place = next(parent for parent in (folder, *folder.parents) if os.access(parent, os.F_OK))
    if not place.is_dir():
        return Check("state", BROKEN, f"{folder}: {place} is no folder; correct state_dir")
    if os.path.lexists(folder) and not os.access(folder, os.X_OK):
        return Check("state", BROKEN, f"{folder} cannot be entered by this user; give it to the user of the watch, or run the doctor as root")
    unwritable = [path for path in (place, *([folder / FILE_NAME] if os.access(folder / FILE_NAME, os.F_OK) else ())) if not os.access(path, os.W_OK)]
    if unwritable:
        return Check("state", BROKEN, f"{unwritable[0]} cannot be written; give it to the user of the watch")
    free = shutil.disk_usage(place).free
    if free < MIN_FREE_BYTES:
        return Check("state", WEAK, f"{folder}: only {free >> 20} MiB are free on its disk; make room")
    return Check("state", OK, f"{folder}: can be written, {free >> 30} GiB free")


def _clock(now: float) -> Check:
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < 1_700_000_000:
        return Check("clock", BROKEN, f"the clock shows {text[:10]}; set it, or every time in a message is wrong")
    match _is_synchronised():
        case True:
            return Check("clock", OK, text)
        case False:
            return Check("clock", WEAK, f"{text}, and nothing keeps it right; turn on NTP with timedatectl set-ntp true")
    return Check("clock", UNKNOWN, f"{text}; whether it is kept right cannot be seen here")


def _is_synchronised() -> bool | None:
    """Whether NTP keeps the clock, as systemd says; None where it cannot be asked."""
    try:
        command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(said)

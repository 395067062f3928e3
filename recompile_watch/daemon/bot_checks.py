"""What is to be seen of the program that is watched: the environment of its process, where its messages go, its torch."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recompile_watch.daemon.checks import BROKEN, OK, UNKNOWN, WEAK, Check

_SHOWN = ("TORCH_LOGS", "TORCH_LOGS_OUT", "TORCH_TRACE", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCHDYNAMO_RECOMPILE_LIMIT")
_SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
_OFF = frozenset({"", "0", "false", "False"})
_MAX_ENVIRONMENT = 1 << 20
_TORCH_S = 120.0
_STANDARD_ERROR = 2
# A count and no name: a name would make a context on the bot's GPU, which takes some hundred megabytes of it.
_PROGRAM = "import torch; print(f'{torch.__version__}, GPUs: {torch.cuda.device_count()}')"
_NO_TORCH = "No module named 'torch'"


def examine_bot(pid: int, files: Sequence[str], *, has_journal: bool) -> Iterator[Check]:
    """Looks at the bot's process. files: the logs that are followed. has_journal: a journal is followed as well."""
    try:
        environment = _read(f"/proc/{pid}/environ")
    except FileNotFoundError:
        yield Check("bot", BROKEN, f"no process {pid} runs; name the bot's own with --pid")
        return
    except OSError as error:
        yield Check("bot", UNKNOWN, f"process {pid} cannot be looked at ({error.strerror}); run the doctor as its user or as root")
        return
    if not environment:  # as one that has ended and was not waited for, or that is being started
        yield Check("bot", UNKNOWN, f"process {pid} shows no environment; see that it runs, and ask again")
        return
    pairs = [pair.partition(b"=") for pair in environment.split(b"\0")]
    found = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace")[:200] for name, _, value in pairs}
    yield _torch_logs(pid, found, files)
    if found.get("TORCH_LOGS_OUT") is None:
        yield _standard_error(pid, files, has_journal=has_journal)


def torch_of(python: str) -> Check:
    """The torch of an interpreter; asked in a process of its own, which touches no GPU."""
    if not os.access(python, os.X_OK):
        return Check("diagnostic", BROKEN, f"{python} cannot be run; write the path of the bot's interpreter")
    # Code of the bot's: neither with root's rights nor with what lies in this folder.
    owner = Path(python).lstat()
    user, group, groups = (owner.st_uid, owner.st_gid, ()) if os.geteuid() == 0 else (None, None, None)
    command = [python, "-c", _PROGRAM]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_TORCH_S, check=False, cwd="/", user=user, group=group, extra_groups=groups
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("diagnostic", BROKEN, f"{python}: {type(error).__name__}; is it the bot's interpreter?")
    if not answer.returncode and answer.stdout:
        return Check("diagnostic", OK, f"{python}: torch {answer.stdout.strip()[:200]}")
    if _NO_TORCH in answer.stderr:
        return Check("diagnostic", BROKEN, f"{python} has no torch; write [diagnose] python with the path in the bot's virtual environment")
    last = (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[-1]
    return Check("diagnostic", BROKEN, f"{python} cannot import torch ({last[:200]}); mend it, or name the interpreter that the bot runs with")


def _torch_logs(pid: int, found: Mapping[str, str], files: Sequence[str]) -> Check:
    shown = f"process {pid}: " + (", ".join(f"{name}={found[name]}" for name in _SHOWN if name in found) or "none of torch's log settings")
    off = [name for name in _SWITCHES if found.get(name, "") not in _OFF]
    out = found.get("TORCH_LOGS_OUT")
    if off:
        return Check("bot", WEAK, f"{shown}; it compiles nothing, so there is nothing to watch; unset {off[0]} if it should")
    if out is not None and not _is_among(out, files):
        return Check("bot", BROKEN, f"{shown}; torch writes into that file, which no source follows; name it in a [[source]]")
    if "recompiles" not in found.get("TORCH_LOGS", "") and not found.get("TORCH_TRACE"):
        return Check("bot", WEAK, f"{shown}; start it with TORCH_LOGS=recompiles, else only limit hits are seen and no reasons")
    return Check("bot", OK, shown)


def _standard_error(pid: int, files: Sequence[str], *, has_journal: bool) -> Check:
    """Where torch's messages go: it prints them on standard error."""
    try:
        target = str(Path(f"/proc/{pid}/fd/{_STANDARD_ERROR}").readlink())
    except FileNotFoundError:
        return Check("bot", BROKEN, f"process {pid} has closed its standard error, where torch prints; start it with 2>> bot.log")
    except OSError as error:
        return Check("bot", UNKNOWN, f"where process {pid} prints cannot be seen ({error.strerror}); run the doctor as its user or as root")
    said = f"process {pid} prints its errors, and so torch's messages, to {target}"
    if _is_among(f"/proc/{pid}/fd/{_STANDARD_ERROR}", files):
        return Check("bot", OK, f"{said}, which is followed")
    if target.startswith("socket:") and has_journal:
        return Check("bot", OK, f"{said}, as units do whose journal is followed")
    if target.startswith(("pipe:", "socket:")):
        return Check("bot", UNKNOWN, f"{said}; see that the program at its other end writes into a followed log")
    if target.startswith(("/dev/null", "/dev/pts/", "/dev/tty")):
        return Check("bot", BROKEN, f"{said}, where nobody finds them; start it with 2>&1 | tee -a bot.log")
    return Check("bot", BROKEN, f"{said}, which no source follows; name that file in a [[source]]")


def _is_among(path: str, files: Sequence[str]) -> bool:
    """True when a path leads to one of the files."""
    try:
        return any(Path(path).samefile(file) for file in files)
    except OSError:
        return False


def _read(path: str) -> bytes:
    with Path(path).open("rb") as stream:
        return stream.read(_MAX_ENVIRONMENT)

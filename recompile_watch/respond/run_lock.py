"""One diagnostic at a time on a machine, and not again and again for the same incident."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recompile_watch.core.errors import StoreError

_LOCK, _LAST = "diagnose.lock", "diagnose-last.json"
_MAX_REMEMBERED = 1000


class BusyError(StoreError):
    """Another diagnostic is running."""


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Holds the lock while inside. Raises BusyError where another process has it, StoreError where the folder cannot be used."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be used ({error.strerror}); name another folder with --state-dir") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError(f"another diagnostic is running (lock {folder / _LOCK}); wait for its end") from None
        yield
    finally:
        os.close(lock)


def cooldown_left_s(folder: Path, fingerprint: str, now: float, cooldown_s: float) -> float:
    """Seconds until this incident may be diagnosed again; 0 when now. now: seconds since the epoch."""
    last = _remembered(folder).get(fingerprint)
    return 0.0 if last is None or last > now else max(0.0, last + cooldown_s - now)


def remember_run(folder: Path, fingerprint: str, now: float) -> None:
    """Notes that this incident was diagnosed."""
    runs = sorted({**_remembered(folder), fingerprint: now}.items(), key=lambda run: run[1])[-_MAX_REMEMBERED:]
    part = folder / f".{_LAST}.{os.getpid()}"
    part.write_text(json.dumps(dict(runs)))
    part.replace(folder / _LAST)


def _remembered(folder: Path) -> dict[str, float]:
    with suppress(OSError, ValueError):
        runs = json.loads((folder / _LAST).read_text())
        if isinstance(runs, dict):
            return {str(name): float(time) for name, time in runs.items() if isinstance(time, int | float)}
    return {}

"""The shipped rules as they were read before, kept in a folder of the user's own: reading TOML takes as long as a thirtieth of a large log.

Nothing of a log is kept. What cannot be read or trusted counts as not there; what cannot be written is not kept.
"""

import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from recompile_watch import __version__

_FILE = "rules.json"
_MAX_BYTES = 16 << 20


State = list[list[object]]


def state_of(files: Sequence[Path]) -> State | None:
    """What tells whether something has changed: the program's version; name, size and time of each file. None if a file is gone."""
    try:
        states = [(str(file), os.stat(file)) for file in files]  # noqa: PTH116 (pathlib costs start-up time)
    except OSError:
        return None
    return [[__version__], *([name, state.st_size, state.st_mtime_ns] for name, state in states)]


def kept(state: State | None) -> object | None:
    """What ``keep`` was given for files in this state, if nobody else may have written it."""
    folder = _own_folder()
    if folder is None or state is None:
        return None
    try:
        file = os.open(f"{folder}/{_FILE}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as stream:
            if not _is_own(os.fstat(file), stat.S_IFREG):
                return None
            known = json.loads(stream.read(_MAX_BYTES))
        return known["entries"] if known["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep(state: State | None, entries: object) -> None:
    """Keeps what files in this state hold, whole or not at all."""
    with suppress(OSError):
        text = json.dumps({"state": state, "entries": entries})
        folder = _own_folder(make=True)
        if folder is None:
            return
        part = f"{folder}/{_FILE}.{os.getpid()}"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as stream:
            stream.write(text)
        os.replace(part, f"{folder}/{_FILE}")  # noqa: PTH105


def _own_folder(*, make: bool = False) -> str | None:
    """The folder, if it is this user's own and nobody else may write to it."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    folder = f"{base if base.startswith('/') else os.path.expanduser('~/.cache')}/recompile-watch"  # noqa: PTH111
    try:
        if make:
            os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103
        return folder if _is_own(os.stat(folder), stat.S_IFDIR) else None  # noqa: PTH116
    except OSError:
        return None


def _is_own(state: os.stat_result, kind: int) -> bool:
    return stat.S_IFMT(state.st_mode) == kind and state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

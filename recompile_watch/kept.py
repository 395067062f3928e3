"""What takes long to make at every start, kept in a folder of the user's own: the shipped rules and remedies as they were read, literals compiled.

Nothing of a log is kept. What cannot be read or trusted counts as not there; what cannot be written is not kept.
"""

import json
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

from recompile_watch import __version__

_MAX_BYTES = 16 << 20
_MAX_KEPT = 4  # of one name: several installations, or rules of the user's own beside the shipped ones, take turns

Json = TypeVar("Json", bound=dict[str, Any])
State = list[object]  # of JSON; in its first line a file says what it was made from


def state_of(files: Sequence[Path]) -> State | None:
    """What tells whether files have changed: name, size and time of each. None if one is gone."""
    try:
        states = [(str(file), os.stat(file)) for file in files]  # noqa: PTH116 (pathlib costs start-up time)
    except OSError:
        return None
    return [[name, state.st_size, state.st_mtime_ns] for name, state in states]


def kept(name: str, state: State | None) -> bytes | None:
    """What ``keep`` was given under this name for this state, by this version, if nobody else may have written it."""
    folder = _own_folder()
    if folder is None or state is None:
        return None
    line = _line_of(state)
    try:
        file = os.open(f"{folder}/{_tagged(name, line)}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as stream:
            if not _is_own(os.fstat(file), stat.S_IFREG):
                return None
            return stream.read(_MAX_BYTES) if stream.readline(_MAX_BYTES) == line else None
    except OSError:
        return None


def keep(name: str, state: State | None, content: bytes) -> None:
    """Keeps what something in this state makes, whole or not at all."""
    if state is None:
        return
    with suppress(OSError):
        folder = _own_folder(make=True)
        if folder is None:
            return
        line = _line_of(state)
        part = f"{folder}/{name}.{os.getpid()}"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
            stream.write(line + content)
        os.replace(part, f"{folder}/{_tagged(name, line)}")  # noqa: PTH105
        for old in sorted(Path(folder).glob(_tagged(name)), key=lambda file: file.stat().st_mtime_ns)[:-_MAX_KEPT]:
            old.unlink()


def read_once(name: str, files: Sequence[Path], read: Callable[[], Json]) -> Json:
    """A mapping of JSON that ``read`` makes of the files, or what was kept of it while they did not change."""
    state = state_of(files)
    content = kept(name, state)
    try:
        known = None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        known = None
    if isinstance(known, dict):
        return cast(Json, known)
    made = read()
    keep(name, state, json.dumps(made).encode())
    return made


def _tagged(name: str, line: bytes | None = None) -> str:
    """The name of the file for a state, by its first line; without one a pattern for the files of all states."""
    stem, ending = os.path.splitext(name)  # noqa: PTH122
    return f"{stem}-{'*' if line is None else f'{crc32(line):08x}'}{ending}"


def _line_of(state: State) -> bytes:
    return json.dumps([__version__, *state]).encode() + b"\n"


def _own_folder(*, make: bool = False) -> str | None:
    """The folder, if it is this user's own and nobody else may write to it."""
    folder = os.environ.get("CACHE_DIRECTORY") or ""  # of a systemd unit
    if not folder.startswith("/"):
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

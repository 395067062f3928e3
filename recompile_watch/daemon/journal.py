"""The watch's own log: events named ``noun_verbed`` with their fields, one line each, to standard error.

On a terminal a line for people, in colour unless ``NO_COLOR`` says otherwise; elsewhere a JSON object, and for journald its priority
in front of it (``<4>``, sd-daemon(3)). Secrets and control characters are taken out of every text before anything else is done with it.

By hand and not with structlog: for the handful of events there are it gives nothing more, and it takes 7.6 MB of the daemon's memory
(a seventh of it) and 75 ms of its start, because it loads asyncio, logging and rich (structlog 26.1).
"""

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import TextIO

from recompile_watch.report.safe import safe

REPEAT_S = 60.0  # the same event is told again after so long, with the number left out
MAX_TEXT_CHARS = 1_000
_COLOURS = {3: "31", 4: "33", 6: "36"}


class Level(IntEnum):
    """How bad an event is, by syslog's numbers."""

    ERROR = 3
    WARNING = 4
    INFO = 6


class Journal:
    """Writes the watch's own events; what comes too often is counted. It fails silently: a full disk must not end the watch."""

    def __init__(self, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> None:
        self._stream = stream or sys.stderr
        self._told: dict[str, tuple[float, int]] = {}
        self._is_terminal = self._stream.isatty()
        self._has_colour = self._is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        self._has_priority = _is_journald(self._stream, environment.get("JOURNAL_STREAM", ""))

    def told(self, event: str, **fields: object) -> None:
        """Something that happened as it should."""
        self._tell(Level.INFO, event, fields)

    def warned(self, event: str, **fields: object) -> None:
        """Something that a person should look at."""
        self._tell(Level.WARNING, event, fields)

    def failed(self, event: str, error: BaseException, **fields: object) -> None:
        """A fault of ours, with the lines of our own code that led to it."""
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(traceback.extract_tb(error.__traceback__)[-6:]))
        self._tell(Level.ERROR, event, {"error": type(error).__name__, "text": str(error), "where": where, **fields})

    def _tell(self, level: Level, event: str, fields: Mapping[str, object]) -> None:
        now = time.monotonic()
        told_at, left_out = self._told.get(event, (None, 0))
        if told_at is not None and now - told_at < REPEAT_S:
            self._told[event] = (told_at, left_out + 1)
            return
        self._told[event] = (now, 0)
        shown = {name: _shown(value) for name, value in {**fields, **({"left_out": left_out} if left_out else {})}.items()}
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(self._line(level, event, shown) + "\n")
            self._stream.flush()

    def _line(self, level: Level, event: str, fields: Mapping[str, object]) -> str:
        at = datetime.now(UTC)
        if not self._is_terminal:
            text = json.dumps({"at": at.isoformat(timespec="milliseconds"), "level": level.name.lower(), "event": event, **fields})
            return f"<{level}>{text}" if self._has_priority else text
        name = f"{level.name.lower():<7}"
        name = f"\x1b[{_COLOURS[level]}m{name}\x1b[0m" if self._has_colour else name
        return " ".join([f"{at:%H:%M:%S} {name} {event}", *(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())])


def _shown(value: object) -> object:
    """A field's value without secrets and control characters; a line break in it becomes a blank."""
    return value if value is None or isinstance(value, bool | int | float) else safe(str(value), MAX_TEXT_CHARS)


def _is_journald(stream: TextIO, names: str) -> bool:
    """Whether a stream leads to journald, which says so with the device and inode of its socket, ``9:2400793`` (systemd.exec(5))."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return names == f"{status.st_dev}:{status.st_ino}"

"""The watch's own log: one line of key=value pairs to standard error, or JSON; no secrets, no log text that could forge a line."""

import json
import sys
import time
import traceback
from typing import TextIO

REPEAT_S = 60.0  # the same event is told again after so long, with the number left out


class Journal:
    """Writes the watch's own events; what comes too often is counted."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._told: dict[str, tuple[float, int]] = {}

    def told(self, event: str, **fields: object) -> None:
        """One event, named ``noun_verbed``."""
        now = time.monotonic()
        before = self._told.get(event)
        if before is not None and now - before[0] < REPEAT_S:
            self._told[event] = (before[0], before[1] + 1)
            return
        self._told[event] = (now, 0)
        if before is not None and before[1]:
            fields["left_out"] = before[1]
        text = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in fields.items())
        self._stream.write(f"{event} {text}\n")
        self._stream.flush()

    def failed(self, event: str, error: BaseException, **fields: object) -> None:
        """A fault of ours, with the lines of our own code that led to it."""
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(traceback.extract_tb(error.__traceback__)[-6:]))
        self.told(event, error=type(error).__name__, text=str(error)[:300], where=where, **fields)

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
        at, left_out = self._told.get(event, (-REPEAT_S, 0))
        if now - at < REPEAT_S and left_out >= 0 and event in self._told:
            self._told[event] = (at, left_out + 1)
            return
        self._told[event] = (now, 0)
        if left_out:
            fields["left_out"] = left_out
        text = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in fields.items())
        self._stream.write(f"{event} {text}\n")
        self._stream.flush()

    def failed(self, event: str, error: BaseException, **fields: object) -> None:
        """A fault of ours, with the lines of our own code that led to it."""
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(traceback.extract_tb(error.__traceback__)[-6:]))
        self.told(event, error=type(error).__name__, text=str(error)[:300], where=where, **fields)

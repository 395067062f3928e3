"""Watches the bot's own latency in its log while the diagnostic runs beside it: when calls become slower, the run has to stop."""

import time
from pathlib import Path

from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.errors import SourceError
from recompile_watch.core.events import Event
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.core.statistics import median
from recompile_watch.core.times import TimeOptions

MAX_RISE = 1.5  # times the median from before the run
_WINDOW_BYTES = 4 << 20  # read again at each look: pairs of lines that make a call lie far apart
_BEFORE_CALLS = 500
_RECENT_CALLS = 3  # one figure in the bot's log stands for ten seconds of calls
_MIN_CALLS = 3
_LOOK_EVERY_S = 1.0


class LatencyWatch:
    """Asked before each step of a run whether it may go on. Raises SourceError at once where the log shows no latency to compare with."""

    def __init__(self, path: Path, rules: Ruleset, matcher: Matcher) -> None:
        self._path, self._rules, self._matcher, self._looked_at = path, rules, matcher, 0.0
        self._start = self._size()
        before = [ms for _, ms in self._calls()]
        if len(before) < _MIN_CALLS:
            raise SourceError(
                f"{path}: shows {len(before)} calls of the bot with their time; {_MIN_CALLS} are needed to see whether they become slower"
            )
        self.usual_ms = median(before[-_BEFORE_CALLS:])

    def why_stop(self) -> str | None:
        """The reason to stop now; None to go on. Looks into the log once a second at most."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_EVERY_S:
            return None
        self._looked_at = now
        return self.look()

    def look(self) -> str | None:
        """Takes in what the bot has logged since, and compares."""
        try:
            recent = [ms for offset, ms in self._calls() if offset >= self._start][-_RECENT_CALLS:]
        except SourceError as error:
            return str(error)
        if len(recent) < _MIN_CALLS or median(recent) <= MAX_RISE * self.usual_ms:
            return None
        return f"the bot's own calls take {median(recent):.0f} ms now, {self.usual_ms:.0f} ms before: the diagnostic gives way"

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError as error:
            raise SourceError(f"{self._path}: cannot be read ({error.strerror}); [diagnose] bot_log names the bot's log") from None

    def _calls(self) -> list[tuple[int, float]]:
        """Offset and milliseconds of the calls in the last part of the log; a log that became shorter began anew."""
        size = self._size()
        if size < self._start:
            self._start = 0
        begin = max(0, size - _WINDOW_BYTES)
        try:
            with self._path.open("rb") as file:
                file.seek(begin)
                block = file.read(size - begin)
        except OSError as error:
            raise SourceError(f"{self._path}: cannot be read ({error.strerror}); [diagnose] bot_log names the bot's log") from None
        engine = SourceEngine(str(self._path), self._rules, self._matcher, TimeOptions())
        calls = [event for event in engine.feed(block) + engine.end() if isinstance(event, Event) and event.kind == "inference"]
        times = [(begin + event.offset, event.extra.get("milliseconds")) for event in calls]
        return [(offset, float(ms)) for offset, ms in times if isinstance(ms, int | float) and ms > 0]

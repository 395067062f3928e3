"""systemd's journal as a source: `journalctl` follows it in a child process, its JSON lines become chunks.

Each line is one entry as `journalctl -o json` prints it; the engine reads time, process and text from it. The position is the
cursor of the last entry given, by which reading goes on after a restart without giving that entry again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.follow import BUDGET_BYTES, News
from recompile_watch.sources.marks import Chunk, GenerationStarted, Mark
from recompile_watch.sources.stream import Clock, Pause, Troubles

STREAM = "journal"
_READ_BYTES = 1 << 16
_LONGEST_ENTRY_BYTES = 8 << 20
_ERROR_BYTES = 4096
_CURSOR = re.compile(rb'"__CURSOR":"([^"\\]+)"')
_WRITTEN = re.compile(r";t=([0-9a-f]{1,14});")  # microseconds since the epoch, in a cursor


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """One source that is a journal.

    name: the configured name of the source. units: unit names, as `journalctl --unit` takes them; all of them when empty.
    matches: journal fields such as `_SYSTEMD_UNIT=bot.service`, taken as they are (`--unit` also shows what systemd says of it).
    namespace: a journal namespace, the default one when None. folder: a folder with journal files, the system's when None.
    start: where to begin at the very first start.
    """

    name: str
    units: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    namespace: str | None = None
    folder: str | None = None
    start: Literal["end", "begin"] = "end"


class Journal:
    """Follows the journal.

    mark: the one kept of it, None at the very first start. command: what to run for `journalctl`. A child that ends is started
    again at the last cursor, after a pause that grows. fd: of the child's output, for a loop to wait on; None while none runs.
    """

    def __init__(self, settings: JournalSettings, mark: Mark | None = None, command: Sequence[str] = ("journalctl",)) -> None:
        self._settings, self._command = settings, tuple(command)
        self._cursor = mark.cursor if mark is not None else None
        self._given = (0, 0) if mark is None else (mark.position, mark.lines)
        self._cursors: dict[int, str] = {}
        self._is_told = False
        self._clock, self._pause, self._troubles = Clock(), Pause(), Troubles()
        self._child: subprocess.Popen[bytes] | None = None
        self._gap: list[Trouble] = []
        self._held = self._said = b""
        self._resumed_at = self._cursor
        self.has_more = False

    @property
    def fd(self) -> int | None:
        """The descriptor that has something to read when entries came."""
        return self._child.stdout.fileno() if self._child is not None and self._child.stdout is not None else None

    def poll(self, now: float, budget_bytes: int = BUDGET_BYTES) -> list[News]:
        """The entries that came since the last call; never waits for any. `now`: epoch seconds."""
        self._clock.advance(now)
        heard: list[News] = []
        if not self._is_told:
            if self._cursor is None and self._settings.start == "end":
                self._cursor = f"@{int(now)}"  # no entry to come after, so a time: nothing is skipped when the child must start again
            self._cursors[self._given[0]] = self._cursor or ""
            heard.append(GenerationStarted(STREAM, 1, *self._given))
            self._is_told = True
        if self._child is None and self._clock.seconds >= self._pause.until:
            self._start()
        if self._child is not None:
            heard += self._read(self._child, budget_bytes)
        gap, self._gap = self._gap, []
        return [*heard, *gap, *self._troubles.news()]

    def mark(self, position: int, lines: int) -> Mark:
        """The mark for a position that is the end of an entry given, or before the first."""
        at = max((known for known in self._cursors if known <= position), default=None)
        for known in [known for known in self._cursors if at is not None and known < at]:
            del self._cursors[known]
        return Mark(STREAM, 1, 0, 0, 0, "", position, 0, "", lines, cursor=self._cursors.get(at) or None if at is not None else None)

    def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _arguments(self) -> list[str]:
        settings = self._settings
        # --follow alone means this boot only; with --merge entries written before a reboot are read too.
        arguments = [*self._command, "--output=json", "--follow", "--merge", "--lines=all", "--all", "--no-pager", "--quiet"]
        if self._cursor is not None:
            # Not --after-cursor: where that entry is gone it begins somewhere else without a word, and systemd 252 skips one more entry.
            arguments.append(f"--since={self._cursor}" if self._is_a_time else f"--cursor={self._cursor}")
        arguments += [f"--unit={unit}" for unit in settings.units]
        arguments += [f"--namespace={settings.namespace}"] if settings.namespace else []
        arguments += [f"--directory={settings.folder}"] if settings.folder else []
        return arguments + list(settings.matches)

    @property
    def _is_a_time(self) -> bool:
        """True while no entry was given yet, so that there is none to go on from."""
        return self._cursor is not None and self._cursor.startswith("@")

    def _start(self) -> None:
        if shutil.which(self._command[0]) is None:
            self._fail(f"{self._command[0]} is not installed; install systemd or follow a log file instead")
            return
        child = subprocess.Popen(self._arguments(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None and child.stderr is not None
        os.set_blocking(child.stdout.fileno(), False)
        os.set_blocking(child.stderr.fileno(), False)
        self._child, self._held, self._said = child, b"", b""
        self._resumed_at = None if self._is_a_time else self._cursor

    def _read(self, child: subprocess.Popen[bytes], budget_bytes: int) -> list[News]:
        assert child.stdout is not None and child.stderr is not None
        self._said = (self._said + _read_all(child.stderr.fileno(), _ERROR_BYTES)[0])[-_ERROR_BYTES:]
        raw, is_ended = _read_all(child.stdout.fileno(), budget_bytes)
        self.has_more = len(raw) >= budget_bytes
        heard = self._chunks(self._held + raw)
        if is_ended:
            self._end(child)
        elif raw:
            self._recover()
        return heard

    def _chunks(self, held: bytes) -> list[News]:
        end = held.rfind(b"\n") + 1
        self._held = held[end:] if len(held) - end < _LONGEST_ENTRY_BYTES else b""
        if not end:
            return []
        payload = held[:end]
        if self._resumed_at is not None:
            first, _, later = payload.partition(b"\n")
            if _cursor_of(first) == self._resumed_at:
                payload = later  # the last entry that was given before
            else:
                self._tell_gap(self._resumed_at)
            self._resumed_at = None
        if not payload:
            return []
        start, lines = self._given
        position = start
        for line in payload.split(b"\n")[:-1]:
            position += len(line) + 1
            cursor = _cursor_of(line)
            if cursor is not None:
                self._cursors[position] = self._cursor = cursor
        self._given = position, lines + payload.count(b"\n")
        return [Chunk(STREAM, 1, start, lines + 1, payload)]

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """It ended: rotated or vacuumed away under it, killed, or not allowed."""
        said = self._said
        self.close()
        text = said.decode("utf-8", "backslashreplace").strip().splitlines()
        if self._cursor is not None and b"cursor" in said.lower():
            self._tell_gap(self._cursor)
            self._cursor = None
        self._fail(f"journalctl ended: {text[-1] if text else f'status {child.returncode}'}; add the user to the group systemd-journal")

    def _tell_gap(self, cursor: str) -> None:
        """The entry was vacuumed away: what is there now is younger."""
        written = _WRITTEN.search(cursor)
        of = f" (of {datetime.fromtimestamp(int(written[1], 16) / 1e6, UTC).isoformat(timespec='seconds')})" if written else ""
        text = f"the journal no longer has the last entry read{of}; entries after it may be lost; let journald keep more (SystemMaxUse=)"
        self._gap = [Trouble(TroubleKind.GAP, STREAM, text)]

    def _fail(self, text: str) -> None:
        self._pause.lengthen(self._clock.seconds)
        self._troubles.begin(TroubleKind.UNREADABLE, STREAM, f"the journal cannot be read: {text}")

    def _recover(self) -> None:
        self._pause.reset()
        self._troubles.end(TroubleKind.UNREADABLE, STREAM, "the journal can be read again")


def _read_all(fd: int, most_bytes: int) -> tuple[bytes, bool]:
    """What is there to read, up to `most_bytes`, and whether the other side closed it."""
    pieces: list[bytes] = []
    left_bytes = most_bytes
    while left_bytes > 0:
        try:
            piece = os.read(fd, min(_READ_BYTES, left_bytes))
        except BlockingIOError:
            return b"".join(pieces), False
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        left_bytes -= len(piece)
    return b"".join(pieces), False


def _cursor_of(line: bytes) -> str | None:
    """The entry's cursor; quotes inside of a value are escaped, so that no message can pretend to be one."""
    found = _CURSOR.search(line)
    return found[1].decode("ascii", "replace") if found else None

"""systemd's journal as a source: `journalctl` follows it in a child process, its JSON lines become chunks.

Each line is one entry as `journalctl -o json` prints it; the engine reads time, process and text from it. The position is the
cursor of the last entry given, by which reading goes on after a restart without giving that entry again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.follow import BUDGET_BYTES, Heard
from recompile_watch.sources.marks import Chunk, GenerationStarted, Mark
from recompile_watch.sources.stream import Clock, Pause, Troubles

STREAM = "journal"
_READ_BYTES = 1 << 16
_LONGEST_ENTRY_BYTES = 8 << 20
_ERROR_BYTES = 4096


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
    start: str = "end"


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
        self._is_first = mark is None
        self._is_told = False
        self._clock, self._pause, self._troubles = Clock(), Pause(), Troubles()
        self._child: subprocess.Popen[bytes] | None = None
        self._held = b""
        self.has_more = False

    @property
    def fd(self) -> int | None:
        """The descriptor that has something to read when entries came."""
        return self._child.stdout.fileno() if self._child is not None and self._child.stdout is not None else None

    def poll(self, now: float, budget_bytes: int = BUDGET_BYTES) -> list[Heard]:
        """The entries that came since the last call; never waits for any. `now`: epoch seconds."""
        self._clock.advance(now)
        heard: list[Heard] = []
        if not self._is_told:
            heard.append(GenerationStarted(STREAM, 1, *self._given))
            self._is_told = True
        if self._child is None and self._clock.seconds >= self._pause.until:
            self._start()
        if self._child is not None:
            heard += self._read(self._child, budget_bytes)
        return heard + self._troubles.news()

    def mark(self, position: int, lines: int) -> Mark:
        """The mark for a position that is the end of an entry given, or before the first."""
        for known in [known for known in self._cursors if known < position]:
            del self._cursors[known]
        cursor = self._cursors.get(position, self._cursor if position == self._given[0] else None)
        return Mark(STREAM, 1, 0, 0, 0, "", position, 0, "", lines, cursor=cursor)

    def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _arguments(self) -> list[str]:
        settings = self._settings
        arguments = [*self._command, "--output=json", "--follow", "--all", "--no-pager", "--quiet"]
        if self._cursor is not None:
            arguments += [f"--after-cursor={self._cursor}", "--lines=all"]
        else:
            arguments.append("--lines=0" if self._is_first and settings.start == "end" else "--lines=all")
        arguments += [f"--unit={unit}" for unit in settings.units]
        arguments += [f"--namespace={settings.namespace}"] if settings.namespace else []
        arguments += [f"--directory={settings.folder}"] if settings.folder else []
        return arguments + list(settings.matches)

    def _start(self) -> None:
        if shutil.which(self._command[0]) is None:
            self._fail(f"{self._command[0]} is not installed; install systemd or follow a log file instead")
            return
        child = subprocess.Popen(self._arguments(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None and child.stderr is not None
        os.set_blocking(child.stdout.fileno(), False)
        os.set_blocking(child.stderr.fileno(), False)
        self._child, self._held = child, b""

    def _read(self, child: subprocess.Popen[bytes], budget_bytes: int) -> list[Heard]:
        assert child.stdout is not None
        raw, is_ended = _read_all(child.stdout.fileno(), budget_bytes)
        self.has_more = len(raw) >= budget_bytes
        heard = self._chunks(self._held + raw)
        if is_ended:
            self._end(child)
        elif raw:
            self._recover()
        return heard

    def _chunks(self, held: bytes) -> list[Heard]:
        end = held.rfind(b"\n") + 1
        self._held = held[end:] if len(held) - end < _LONGEST_ENTRY_BYTES else b""
        if not end:
            return []
        position, lines = self._given
        payload = held[:end]
        chunk = Chunk(STREAM, 1, position, lines + 1, payload)
        for line in payload.splitlines(keepends=True):
            position += len(line)
            cursor = _cursor_of(line)
            if cursor is not None:
                self._cursors[position] = self._cursor = cursor
        self._given = position, lines + payload.count(b"\n")
        return [chunk]

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """It ended: rotated or vacuumed away under it, killed, or not allowed."""
        assert child.stderr is not None
        said, _ = _read_all(child.stderr.fileno(), _ERROR_BYTES)
        self.close()
        text = said.decode("utf-8", "backslashreplace").strip().splitlines()
        if self._cursor is not None and b"cursor" in said.lower():
            self._lose_cursor()
        self._fail(f"journalctl ended: {text[-1] if text else f'status {child.returncode}'}; add the user to the group systemd-journal")

    def _lose_cursor(self) -> None:
        """The entry was vacuumed away: what is there now is younger."""
        self._cursor, self._is_first = None, False
        self._troubles.once(Trouble(TroubleKind.GAP, STREAM, "the journal no longer has the last entry read; entries after it may be lost"))

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
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    cursor = entry.get("__CURSOR") if isinstance(entry, dict) else None
    return cursor if isinstance(cursor, str) else None

"""Standard input as a source: chunks of whole lines as they come, until its writer ends it."""

from __future__ import annotations

import os

from recompile_watch.sources.follow import BUDGET_BYTES, News
from recompile_watch.sources.marks import Chunk, GenerationEnded, GenerationStarted

STREAM = "-"
_READ_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 1 << 20


class LiveInput:
    """Reads a pipe, a terminal or a file given as standard input, never waiting for it.

    There is nothing to come back to after a restart, so it has no marks. fd: its descriptor, for a loop to wait on; it becomes
    non-blocking. is_ended: its writer closed it; nothing more comes.
    """

    def __init__(self, fd: int = 0) -> None:
        self.fd = fd
        self.is_ended = False
        self.has_more = False
        self._held = b""
        self._position = self._lines = 0
        self._is_started = False
        os.set_blocking(fd, False)

    def poll(self, budget_bytes: int = BUDGET_BYTES) -> list[News]:
        """What came since the last call; the last item is a GenerationEnded once it is ended. Raises OSError."""
        if self.is_ended:
            return []
        heard: list[News] = [] if self._is_started else [GenerationStarted(STREAM, 1, 0, 0)]
        self._is_started = True
        raw = self._read(budget_bytes)
        held = self._held + raw
        end = len(held) if self.is_ended or len(held) - held.rfind(b"\n") > _LONGEST_LINE_BYTES else held.rfind(b"\n") + 1
        self._held = held[end:]
        if end:
            heard.append(Chunk(STREAM, 1, self._position, self._lines + 1, held[:end]))
            self._position += end
            self._lines += held.count(b"\n", 0, end)
        if self.is_ended:
            heard.append(GenerationEnded(STREAM, 1))
        return heard

    def _read(self, budget_bytes: int) -> bytes:
        pieces: list[bytes] = []
        left_bytes = budget_bytes
        while left_bytes > 0:
            try:
                piece = os.read(self.fd, min(_READ_BYTES, left_bytes))
            except BlockingIOError:
                break
            if not piece:
                self.is_ended = True
                break
            pieces.append(piece)
            left_bytes -= len(piece)
        self.has_more = left_bytes <= 0
        return b"".join(pieces)

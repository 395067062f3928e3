"""A log that is copied and then cut: once it is cut, the copy is all that is left, and what was written in between is in none.

So how far a copy goes is noted while both are there: one that is shorter than what was given would not be known again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.content import open_content
from recompile_watch.sources.generation import Generation
from recompile_watch.sources.identity import copied_bytes
from recompile_watch.sources.siblings import family_of, folder_stamps

TICK_S = 0.01  # the times of files lag behind the clock by up to a tick of the kernel


@dataclass(frozen=True, slots=True)
class Noted:
    """When it was looked for copies last. log: which generation, in what state. stamps: of the folders; none where they may not tell of all."""

    log: tuple[int, tuple[int, int, int]] = (0, (-1, 0, 0))
    stamps: tuple[int, ...] = ()


def note_copies(noted: Noted, log: Generation, folders: Sequence[str], now: float) -> Noted:
    """After reading: notes how far that goes which lies beside `log` and is a copy of it. now: epoch seconds. Raises OSError."""
    state = log.number, log.seen
    if state == noted.log or not log.is_as_seen():
        return noted
    stamps = folder_stamps(log.stream, folders)
    if stamps != noted.stamps or log.number != noted.log[0]:
        siblings = family_of(log.stream, folders).members
        log.note_copy(max((_copied_bytes(log, sibling.path) for sibling in siblings if not sibling.is_packed), default=0))
    return Noted(state, stamps if max(stamps) / 1e9 < now - TICK_S else ())


def _copied_bytes(log: Generation, path: str) -> int:
    try:
        copy = open_content(path)
    except (OSError, SourceError):
        return 0
    try:
        return copied_bytes(log.content, copy)
    finally:
        copy.close()

"""A log that is copied and then cut: once it is cut, the copy is all that is left, and what was written in between is in none.

So how far a copy goes is noted while both are there: one that is shorter than what was given would not be known again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from recompile_watch.sources.families import names_by_stem
from recompile_watch.sources.generation import Generation
from recompile_watch.sources.identity import copied_bytes_at, kept_time_s
from recompile_watch.sources.rotation import oldest_first, parse_rotated_name
from recompile_watch.sources.siblings import family_of, folder_stamps, places_of
from recompile_watch.sources.stream import Noted, Stream

TICK_S = 0.01  # the times of files lag behind the clock by up to a tick of the kernel
_Names = dict[str, dict[str, list[str]]]  # by folder and live log


def note_copies(streams: Iterable[Stream], folders: Sequence[str], now: float) -> None:
    """After reading: notes how far that goes which lies beside a log and is a copy of it. now: epoch seconds.

    A log that did not change costs nothing; one that did, a `stat` of its folder and of its youngest sibling; and a folder in which
    something was made, renamed or removed, one listing.
    """
    names: _Names = {}
    for stream in streams:
        log = stream.current
        if log is not None and (log.number, log.seen) != stream.noted.log:
            with suppress(OSError):  # told when it is read
                stream.noted = _look_beside(stream.noted, log, folders, names, now)


def _look_beside(noted: Noted, log: Generation, folders: Sequence[str], names: _Names, now: float) -> Noted:
    if not log.is_as_seen():
        return noted
    stamps = folder_stamps(log.stream, folders)
    path = noted.sibling if stamps == noted.stamps else _youngest(log.stream, folders, names)
    status = os.stat(path) if path is not None else None
    state = (status.st_ino, status.st_ctime_ns) if status is not None else (0, 0)
    if log.number != noted.log[0] or (path, state) != (noted.sibling, noted.sibling_state):
        is_other = status is not None and (status.st_dev, status.st_ino) != log.file_key  # the log itself, renamed just now
        log.note_copy(copied_bytes_at(log.content, path) if path is not None and is_other else 0)
    seen = log.number, log.seen
    is_settled = max(*stamps, state[1]) / 1e9 < now - TICK_S
    return Noted(seen, stamps, path, state) if is_settled else Noted(seen, sibling=path)


def _youngest(path: str, folders: Sequence[str], names: _Names) -> str | None:
    """The sibling that was made last, by its name: a copy that is made now; packed ones are made of such."""
    for folder, live in places_of(path, folders):
        if folder not in names:
            names[folder] = names_by_stem(folder)
        rotated = [name for name in names[folder].get(live, ()) if name != live and not parse_rotated_name(name).is_packed]
        if rotated:
            return os.path.join(folder, oldest_first(rotated)[-1])
    return None


def lose_name(reading: Generation, folders: Sequence[str]) -> None:
    """The file of `reading` was deleted: its packed copy, made before, is all by which it can be known again. Raises OSError."""
    since_s = kept_time_s(reading.modified_ns)
    siblings = family_of(reading.stream, folders).members
    packed = [sibling.path for sibling in siblings if sibling.is_packed and kept_time_s(sibling.modified_ns) >= since_s]
    reading.lose_name(max((copied_bytes_at(reading.content, path) for path in packed), default=0))

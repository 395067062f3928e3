"""Stored marks become generations again: their files are found by inode, by content in copies, or are gone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from recompile_watch.core.heard import TroubleKind
from recompile_watch.sources.content import Content, open_content
from recompile_watch.sources.follow_settings import FollowSettings
from recompile_watch.sources.identity import is_telling, is_weak, kept_time_s, open_holding
from recompile_watch.sources.marks import GenerationEnded, Mark
from recompile_watch.sources.opening import shown, source_error
from recompile_watch.sources.roster import Roster, holds_at
from recompile_watch.sources.siblings import Family, family_of
from recompile_watch.sources.stream import Clock, Stream, Troubles

RETRY_S = 10.0


class Resumption:
    """Takes reading up where marks stand. give: takes what is to be returned by the poll."""

    def __init__(self, settings: FollowSettings, clock: Clock, troubles: Troubles, roster: Roster, give: Callable[[GenerationEnded], None]) -> None:
        self._settings, self._clock, self._troubles, self._roster, self._give = settings, clock, troubles, roster, give

    def resume(self, stream: Stream, status: os.stat_result | None) -> None:
        """Finds the files of the stored marks again. Raises OSError where the path's own cannot be opened."""
        if self._clock.seconds < stream.resume_at:
            return
        stream.resume_at = 0.0
        for mark in list(stream.pending):
            if _is_at(mark, status) and self._reopen_own(stream, mark):
                stream.pending.remove(mark)
        if not stream.pending and not stream.older:  # the path's own file was all that was sought
            return
        family = family_of(stream.path, self._settings.rotated_folders)
        weak = [mark for mark in stream.pending if is_weak(mark)]
        strong = [mark for mark in stream.pending if not is_weak(mark)]
        for marks in (strong, weak):  # what little is known of a weak one fits many a file, as the copy of a strong one
            self._resume_rotated(stream, marks, family, status)
        stream.older.sort(key=lambda reading: reading.number)
        stream.put_in_order(family.keys())

    def _resume_rotated(self, stream: Stream, marks: Sequence[Mark], family: Family, status: os.stat_result | None) -> None:
        """By content only what was not found by inode, or a file would be taken for another's copy."""
        sought: list[Mark] = []
        for mark in marks:
            # Of an empty file there is nothing to know it by: its inode may be another's by now.
            # One of which only a size is known was a rotated file that could not be read: it is never the path's own.
            has_face = bool(mark.head_bytes or mark.size_bytes)
            place = family.place_of(mark.file_key) if has_face and not _is_at(mark, status) else None
            try:
                if place is None or not self._reopen_older(stream, mark, family, place):
                    sought.append(mark)
            except OSError as error:
                stream.resume_at = self._clock.seconds + RETRY_S
                self._troubles.begin(TroubleKind.UNREADABLE, place or stream.path, str(source_error(place or stream.path, error)))
        for mark in sought:
            self._resume_copy(stream, mark, family, status)
            stream.pending.remove(mark)
            stream.unfound.append(mark)

    def _reopen_own(self, stream: Stream, mark: Mark) -> bool:
        """The path's own file. A weak mark's is read as a new one, but only when it can be: the path may leave it before.

        Raises OSError when it cannot be read now.
        """
        if is_weak(mark):
            open_content(stream.path).close()
            return False
        return self._reopen(stream, mark, stream.path)

    def _is_its_own(self, stream: Stream, mark: Mark, family: Family, place: str) -> bool:
        """A weak mark's inode may have been used again; a rotated file that has another time is read as one never seen.

        So is one that goes on after what was read to its end, which shows now that it can be read. Raises OSError when it cannot.
        """
        times = {sibling.path: sibling.modified_ns for sibling in family.members}
        return not is_weak(mark) or (times.get(place, mark.modified_ns) == mark.modified_ns and self._roster.elder_at(stream, place) is None)

    def _reopen_older(self, stream: Stream, mark: Mark, family: Family, place: str) -> bool:
        """One that was rotated away. Raises OSError when it cannot be read now: it waits, and holds nothing up."""
        if not self._is_its_own(stream, mark, family, place):
            return False
        is_same = self._reopen(stream, mark, place)
        self._troubles.end(TroubleKind.UNREADABLE, place, f"{shown(place)} can be read again")
        if is_same:
            stream.pending.remove(mark)
            if is_weak(mark):  # while it was sought, what had its time was taken for its copy
                stream.unfound.append(mark)
        return is_same

    def _resume_copy(self, stream: Stream, mark: Mark, family: Family, status: os.stat_result | None) -> None:
        home = self._roster.home(stream, mark, family)
        if home is not None:
            self._take_up(stream, mark, home[1], is_current=False, is_complete=True)
            return
        if status is not None and self._settings.on_replace == "continue" and is_telling(mark) and self._reopen(stream, mark, stream.path):
            return
        place = stream.path if _is_at(mark, status) else family.place_of(mark.file_key)
        can_tell = place is not None and bool(mark.head_bytes) and os.access(place, os.R_OK, effective_ids=True)
        is_changed = place is not None and can_tell and not holds_at(place, mark)
        if (not is_weak(mark) or is_changed or place is None) and not self._is_another(stream, mark, family):
            self._troubles.gap(stream, mark, "went while nobody watched: its file is gone or holds something else")
        if stream.last is None or stream.last.generation <= mark.generation:
            stream.last = mark
        self._roster.lost[stream.path, mark.generation] = mark
        self._give(GenerationEnded(stream.path, mark.generation))

    def _is_another(self, stream: Stream, mark: Mark, family: Family) -> bool:
        """What little was seen is that of a file which is read as one never seen, or goes on after what was read to its end."""
        if not is_weak(mark):
            return False
        if mark.head_bytes:
            return any(holds_at(sibling.path, mark) for sibling in family.members if sibling.modified_ns >= mark.modified_ns)
        packed = [sibling for sibling in family.members if sibling.is_packed and kept_time_s(sibling.modified_ns) == kept_time_s(mark.modified_ns)]
        return any(self._roster.packed_elder(stream, sibling.path) is not None for sibling in packed)

    def _reopen(self, stream: Stream, mark: Mark, path: str) -> bool:
        """Reads on after `mark` in the file at `path` if that still holds it."""
        content = open_holding(path, mark)
        if content is None:
            return False
        status = content.status()
        if self._roster.is_open((status.st_dev, status.st_ino)):
            content.close()
            return False
        self._take_up(stream, mark, content, is_current=path == stream.path, is_complete=False)
        return True

    def _take_up(self, stream: Stream, mark: Mark, content: Content, *, is_current: bool, is_complete: bool) -> None:
        reading = self._roster.open(stream.path, mark.generation, content)
        reading.continue_after(mark)
        reading.saw(mark.size_bytes, mark.modified_ns)
        if mark.counted_bytes is not None:
            reading.counted_to = mark.counted_bytes
        is_short = content.status().st_size < mark.position  # a copy, or packed
        reading.is_complete, reading.modified_ns = is_complete or is_short or not content.is_growing, mark.modified_ns
        reading.is_current = False
        if is_current and stream.current is None:
            stream.current, reading.is_current = reading, True
        else:
            stream.older.append(reading)
        self._roster.finished.pop((stream.path, mark.generation), None)


def _is_at(mark: Mark, status: os.stat_result | None) -> bool:
    """The file of `mark` has the device and inode of this status."""
    return status is not None and (status.st_dev, status.st_ino) == mark.file_key

"""Which generations a followed path has: found again after a restart, rotated away, cut short, replaced, missed, new."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial

from recompile_watch.core.errors import SourceError
from recompile_watch.core.heard import TroubleKind
from recompile_watch.sources.content import Content, open_content
from recompile_watch.sources.follow_settings import FollowSettings
from recompile_watch.sources.generation import Generation
from recompile_watch.sources.identity import is_telling, is_weak, open_holding
from recompile_watch.sources.late import LATE_S, grown
from recompile_watch.sources.marks import Chunk, FileKey, GenerationEnded, GenerationStarted, Mark
from recompile_watch.sources.opening import shown, source_error
from recompile_watch.sources.resume import RETRY_S, Resumption
from recompile_watch.sources.roster import Roster, holds_at
from recompile_watch.sources.siblings import Family, Sibling, family_of, missed
from recompile_watch.sources.stream import Clock, Stream, Troubles

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
Given = Chunk | GenerationStarted | GenerationEnded


class Lineage:
    """Keeps the generations of all streams of one source in step with the files on the disk.

    give: takes what is to be returned by the poll, in order.
    """

    def __init__(self, settings: FollowSettings, clock: Clock, troubles: Troubles, roster: Roster, give: Callable[[Given], None]) -> None:
        self._settings, self._clock, self._troubles, self._give = settings, clock, troubles, give
        self._roster = roster
        self._resumption = Resumption(settings, clock, troubles, roster, give)
        self.streams: dict[str, Stream] = {}
        self.now = 0.0

    def reconcile(self, stream: Stream) -> None:
        """Finds out what the path leads to now. Raises OSError and SourceError."""
        status = _status(stream.path)
        if not self._is_parked(stream, status):
            stream.parked = None
            if stream.pending:
                self._resumption.resume(stream, status)
            if stream.unfound:
                oldest = min(stream.unfound, key=lambda mark: mark.modified_ns)
                self._read_missed(stream, oldest, family_of(stream.path, self._settings.rotated_folders), None)
                stream.unfound.clear()
            self._follow_path(stream, status)
        if self._clock.seconds >= stream.late.due:
            stream.late.due = self._clock.seconds + LATE_S
            self._read_late(stream)

    def _follow_path(self, stream: Stream, status: os.stat_result | None) -> None:
        current, key = stream.current, (status.st_dev, status.st_ino) if status else None
        if current is not None and key == current.file_key:
            return
        if current is not None and current.was_filled(current.content.status(), self._clock.seconds):
            self.refilled(stream, current)
            current = stream.current
        if current is not None and not current.is_itself():
            self.cut(stream, current)
            current = stream.current
        if current is not None and not self._leaves(stream, current, status):
            return
        if key is not None:
            self._arrive(stream, key)
        elif self._may_have_missed(stream):
            self.catch_up(stream)

    def cut(self, stream: Stream, reading: Generation) -> None:
        """The file of `reading` was cut short in place: what was not read may stand in a copy; what is there now is new."""
        mark, live, was_current = reading.mark(reading.position, reading.lines), reading.content, reading.is_current
        family = family_of(stream.path, self._settings.rotated_folders)
        self._drop_copies(stream)
        home = self._roster.home(stream, mark, family)
        if was_current:
            self._retire(stream, reading)
        if home is not None:
            reading.move_to(home[1])
            self._roster.hold(reading)
        new = self._roster.open(stream.path, 0, live)  # its number comes after those of the missed ones, which are older
        new.look_at_head()
        self._read_missed(stream, mark, family, home[0].path if home else None, beside=new)
        self._begin_with(stream, new, is_current=was_current)
        if not was_current:
            stream.older.insert(stream.older.index(reading) + 1, new)
            stream.put_in_order(family.keys())
        if home is None:
            self._troubles.gap(stream, mark, "was cut short in place, and no copy of it was left")
            self._finish(stream, reading, is_gone=True)

    def refilled(self, stream: Stream, reading: Generation) -> None:
        """The file of `reading`, of which nothing was given, has changed: what came and went in it may stand in copies, or it is one."""
        mark = reading.mark(0, 0)
        if not reading.is_itself():  # what it holds now may have been packed already, and is no other's
            self.cut(stream, reading)
            return
        if reading.is_current:
            self._read_missed(stream, mark, family_of(stream.path, self._settings.rotated_folders), None)
        else:
            self._drop_copies(stream)

    def _drop_copies(self, stream: Stream) -> None:
        """What was empty when it was found, as a copy that is being made, is not read on its own."""
        for reading in list(stream.older):
            is_unread = not reading.position and reading.content.is_growing
            if is_unread and self._roster.is_being_copied(stream, reading):
                self._finish(stream, reading, is_gone=True)
                reading.content.close()

    def end(self, stream: Stream, reading: Generation) -> None:
        """Everything of `reading` was given but an unfinished last line, which is given now. Raises OSError."""
        rest = reading.rest()
        if rest is not None:
            self._give(rest)
        content = reading.content
        self._finish(stream, reading, is_gone=False)
        content.close()

    def park(self, stream: Stream, reading: Generation) -> None:
        """Closes a file that is read to its end and quiet, to be opened again when it changes."""
        stream.pending = [reading.mark(reading.position, reading.lines)]
        stream.parked = _stamp(reading.content.status())
        self.drop(stream, reading)
        self._roster.finished[stream.path, reading.number] = reading

    def drop(self, stream: Stream, reading: Generation) -> None:
        """Closes the file of `reading` and takes it out of the stream."""
        self._roster.let_go(reading)
        self._take_out(stream, reading)
        reading.content.close()

    def _is_parked(self, stream: Stream, status: os.stat_result | None) -> bool:
        return stream.parked is not None and status is not None and stream.parked == _stamp(status)

    def _read_late(self, stream: Stream) -> None:
        """What was written to files after they were given up and committed: or a kill would find two marks in one file."""
        elders = self._roster.elders(stream.path)
        if any(self._roster.is_uncommitted(elder) for elder in elders.values()):
            return
        waiting = {mark.file_key for mark in stream.pending}
        packed_elder = partial(self._roster.packed_elder, stream)
        for sibling in grown(stream.late, stream.path, self._settings.rotated_folders, elders, packed_elder) if elders else ():
            if sibling.file_key not in waiting and not self._roster.is_open(sibling.file_key):
                self._begin_missed(stream, sibling)

    def _leaves(self, stream: Stream, current: Generation, status: os.stat_result | None) -> bool:
        """The path no longer leads to the current file; False where that was replaced by one that goes on with it."""
        current.links = current.content.status().st_nlink
        if status is not None and current.links == 0 and self._may_continue(mark := current.mark(current.position, current.lines)):
            if not current.is_drained:
                return False
            content = open_holding(stream.path, mark)
            if content is not None:
                self._replace(current, content)
                return False
        self._retire(stream, current)
        self.catch_up(stream)
        return True

    def _replace(self, current: Generation, content: Content) -> None:
        self._roster.let_go(current)
        current.content.close()
        current.move_to(content)
        current.is_complete = False
        self._roster.hold(current)

    def _arrive(self, stream: Stream, key: FileKey) -> None:
        """The path leads to a file that is not the current one."""
        owner = self._roster.owner(key)
        if owner is not None:
            if owner.stream == stream.path and owner in stream.older:  # it came back, as a link that is set back
                self._come_back(stream, owner)
            return
        if any(key == mark.file_key for other in self.streams.values() for mark in other.pending):
            return  # the rotated file of another path, which is found again first
        self.catch_up(stream)  # first, as this file may not be readable
        content = open_content(stream.path)
        status = content.status()
        if self._roster.is_open((status.st_dev, status.st_ino)):
            content.close()
            return
        if not content.is_growing:
            content.close()
            raise SourceError(f"{shown(stream.path)}: is packed, which no program writes to; read it with `recompile-watch analyze`")
        copied = self._roster.read_in_copy(stream, content)
        if copied is not None:
            self._replace(copied, content)
            self._come_back(stream, copied)
            return
        elder = self._roster.elder_in(key, content)
        if elder is not None and status.st_size <= elder.position:
            content.close()
            stream.parked = _stamp(status)
            return
        if elder is not None and self._roster.is_uncommitted(elder):
            content.close()
            return
        self._begin(stream, content, is_current=True, elder=elder)

    def _come_back(self, stream: Stream, reading: Generation) -> None:
        stream.older.remove(reading)
        stream.current, reading.is_current, reading.is_complete = reading, True, False

    def _may_have_missed(self, stream: Stream) -> bool:
        """While the path leads nowhere: something changed in its folder, or nobody looked there for a while."""
        stamp = _modified_ns(os.path.dirname(stream.path))
        is_news = stamp != stream.folder_stamp or self._clock.seconds >= stream.catch_up_at
        if is_news:
            stream.folder_stamp, stream.catch_up_at = stamp, self._clock.seconds + self._settings.discovery_s
        return is_news

    def catch_up(self, stream: Stream) -> None:
        """Reads the siblings that are younger than the newest content known."""
        newest = stream.newest_open()
        if newest is not None and newest.content.is_growing:
            newest.grow_head()  # what was written to it since the last look tells it from others
        mark = stream.reference()
        if mark is None:
            return
        family = family_of(stream.path, self._settings.rotated_folders)
        is_open = any(reading.number == mark.generation for reading in stream.generations())
        self._read_missed(stream, mark, family, self._home_in(stream, family, mark, is_open=is_open))

    def _home_in(self, stream: Stream, family: Family, mark: Mark, *, is_open: bool) -> str | None:
        """The path at which what `mark` stands in lies now, by device and inode, else by its content."""
        place = family.place_of(mark.file_key)
        if place is not None and (is_open or (not is_weak(mark) and holds_at(place, mark))):
            return place
        home = self._roster.home(stream, mark, family)
        if home is None:
            return None
        home[1].close()
        return home[0].path

    def _read_missed(self, stream: Stream, mark: Mark, family: Family, home: str | None, *, beside: Generation | None = None) -> None:
        """Generations that came and went between two looks."""
        waiting = {pending.file_key for pending in stream.pending}
        siblings, is_missing = missed(family, mark, home, lambda key: self._roster.is_open(key) or key in waiting)
        for sibling in siblings:
            if sibling.path != home and os.path.realpath(sibling.path) != os.path.realpath(stream.path):
                self._begin_missed(stream, sibling, beside)
        stream.put_in_order(family.keys())
        if is_missing and stream.gap_after != mark.generation:
            stream.gap_after = mark.generation
            self._troubles.gap(stream, mark, "was rotated more than once between two looks, and one of the rotated files is gone")

    def _begin_missed(self, stream: Stream, sibling: Sibling, beside: Generation | None = None) -> None:
        """Reads a rotated file from its beginning, unless it is what another generation holds (`beside` among them)."""
        try:
            content = open_content(sibling.path)
        except FileNotFoundError:
            self._troubles.gap(stream, Mark(stream.path, 0, *sibling.file_key, 0, "", 0, 0, "", 0), f"lost {shown(sibling.path)} before it was read")
            return
        except OSError as error:
            self._put_off(stream, sibling, error)
            return
        if self._roster.is_copy(stream, sibling, beside):  # its generation finds it when it needs it
            content.close()
            return
        elder = self._roster.elder_of(stream, sibling.path, content)
        has_nothing_new = content.is_growing and elder is not None and content.status().st_size <= elder.position
        if has_nothing_new or (elder is not None and self._roster.is_uncommitted(elder)):
            content.close()
            return
        reading = self._begin(stream, content, is_current=False, elder=elder)
        reading.is_complete = not content.is_growing
        stream.older.append(reading)

    def _put_off(self, stream: Stream, sibling: Sibling, error: OSError) -> None:
        """A rotated file that cannot be read now becomes a mark at its beginning, to be found again later.

        Even where its number is that of one that was read: only its bytes tell whether it is that one.
        """
        stream.newest += 1
        status = os.stat(sibling.path)
        mark = Mark(stream.path, stream.newest, *sibling.file_key, 0, "", 0, 0, "", 0, status.st_size, status.st_mtime_ns)
        stream.pending.append(mark)
        stream.resume_at = self._clock.seconds + RETRY_S
        self._troubles.begin(TroubleKind.UNREADABLE, sibling.path, str(source_error(sibling.path, error)))
        self._give(GenerationStarted(stream.path, mark.generation, mark.position, mark.lines))

    def _begin(self, stream: Stream, content: Content, *, is_current: bool, elder: Mark | None = None) -> Generation:
        reading = self._roster.open(stream.path, 0, content)
        if elder is not None:
            reading.continue_after(elder)
        elif stream.first_size is not None:
            _start_by_policy(reading, min(stream.first_size, content.status().st_size), self._settings.start)
        stream.first_size = None
        reading.look_at_head()
        self._begin_with(stream, reading, is_current=is_current)
        return reading

    def _begin_with(self, stream: Stream, reading: Generation, *, is_current: bool) -> None:
        stream.newest += 1
        reading.number, reading.is_current = stream.newest, is_current
        if is_current:
            stream.current = reading
        self._give(GenerationStarted(stream.path, reading.number, reading.position, reading.lines))

    def _retire(self, stream: Stream, current: Generation) -> None:
        stream.current, current.is_current, current.was_current, current.quiet_since = None, False, True, self._clock.seconds
        at = len(stream.older)
        while at and stream.older[at - 1].modified_ns > current.modified_ns:
            at -= 1
        stream.older.insert(at, current)

    def _finish(self, stream: Stream, reading: Generation, *, is_gone: bool) -> None:
        """Nothing more comes of it; its file, unless gone, is remembered."""
        self._roster.let_go(reading)
        self._take_out(stream, reading)
        mark = reading.mark(reading.position, reading.lines, ended_at=self.now)
        reading.is_void = is_gone
        if not is_gone:
            self._roster.remember(mark)
        if stream.last is None or stream.last.generation <= mark.generation:
            stream.last = mark
        self._roster.finished[stream.path, reading.number] = reading
        self._give(GenerationEnded(stream.path, reading.number))

    def _take_out(self, stream: Stream, reading: Generation) -> None:
        stream.hole_bytes += reading.hole_bytes
        if stream.current is reading:
            stream.current = None
        elif reading in stream.older:
            stream.older.remove(reading)

    def _may_continue(self, mark: Mark) -> bool:
        return self._settings.on_replace == "continue" and is_telling(mark)


def _status(path: str) -> os.stat_result | None:
    """What the path leads to; None for nothing. Raises OSError when that cannot be told."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _modified_ns(folder: str) -> int | None:
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return None


def _start_by_policy(reading: Generation, size_bytes: int, start: str) -> None:
    """Where reading begins at the very first start, in a file of this size then."""
    if start == "begin":
        reading.backlog_end = size_bytes
        return
    from_bytes = max(0, size_bytes - reading.block_bytes)
    end = reading.content.read(from_bytes, size_bytes - from_bytes)
    line_start = end.rfind(b"\n") + 1
    reading.start_at(from_bytes + line_start if line_start or not from_bytes else size_bytes, 0)
    reading.counted_to = 0

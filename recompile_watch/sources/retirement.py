"""What has served: followed paths whose files are long gone, and the marks of rotated files that are.

Whatever of it still lies on the disk is kept, however old: without its mark it would be read, and told, once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.follow_settings import FollowSettings
from recompile_watch.sources.identity import open_holding
from recompile_watch.sources.marks import FileKey, Mark, outlived
from recompile_watch.sources.roster import Roster
from recompile_watch.sources.siblings import family_of
from recompile_watch.sources.stream import Stream

LOOKS = 16  # paths looked at in one call, each in its own folder


@dataclass(frozen=True, slots=True)
class Retired:
    """What a store may delete. streams: with everything that is kept of them. marks: of streams that go on."""

    streams: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()


class Retirement:
    """Looks for what has served, a few paths a call, in turn."""

    def __init__(self, settings: FollowSettings, streams: dict[str, Stream], roster: Roster) -> None:
        self._settings, self._streams, self._roster = settings, streams, roster
        self._given_up: list[str] = []
        self._next = 0

    def look(self, now: float, keep_s: float) -> Retired:
        """What has served now, which is forgotten here. keep_s: how long something must be gone."""
        marks: list[Mark] = []
        for stream in list(self._turn()):
            if not _is_idle(stream) or os.path.lexists(stream.path):
                stream.gone_at = None
            elif now - self._gone_since(stream, now) > keep_s and self._is_gone(stream):
                self._give_up(stream)
                continue
            marks += self._served(stream, now, keep_s)
        for mark in marks:
            self._roster.forget(mark)
        streams, self._given_up = tuple(self._given_up), []
        return Retired(streams, tuple(marks))

    def make_room(self, now: float) -> bool:
        """Gives up the path whose file has been gone for longest; False when all are still there."""
        candidates = (stream for stream in self._streams.values() if _is_idle(stream))
        for stream in sorted(candidates, key=lambda stream: self._gone_since(stream, now)):
            if self._is_gone(stream):
                self._give_up(stream)
                return True
        return False

    def _turn(self) -> Iterator[Stream]:
        names = list(self._streams)
        self._next = self._next if self._next < len(names) else 0
        for name in islice(names, self._next, self._next + LOOKS):
            yield self._streams[name]
        self._next += LOOKS

    def _is_gone(self, stream: Stream) -> bool:
        """It stems from a pattern, nothing of it waits, and neither its file nor a rotated one that could be taken for a log is there."""
        if stream.path in self._settings.paths or os.path.lexists(stream.path) or self._roster.is_held(stream.path):
            return False
        family = family_of(stream.path, self._settings.rotated_folders)
        return all(sibling.is_packed for sibling in family.members)

    def _gone_since(self, stream: Stream, now: float) -> float:
        """When its last file ended, else when it was first seen to be gone."""
        if stream.last is not None and stream.last.ended_at is not None:
            return stream.last.ended_at
        stream.gone_at = now if stream.gone_at is None else stream.gone_at
        return stream.gone_at

    def _give_up(self, stream: Stream) -> None:
        del self._streams[stream.path]
        self._roster.forget_all(stream.path)
        self._given_up.append(stream.path)

    def _served(self, stream: Stream, now: float, keep_s: float) -> list[Mark]:
        """Its marks that tell nothing more: of files that are gone, but never the newest, which says that the path is known."""
        ended = self._roster.ended(stream.path)
        old = [mark for mark in outlived(ended, now, keep_s) if mark.generation != stream.newest]
        if not old:
            return []
        places = self._places(stream)
        return [mark for mark in old if mark.file_key not in places or not _may_hold(places[mark.file_key], mark)]

    def _places(self, stream: Stream) -> dict[FileKey, str]:
        """The files beside the path, and those of the other paths: a rotated file may match a pattern under its new name."""
        found: dict[FileKey, str] = {}
        for path in self._streams:
            try:
                status = os.stat(path)
            except OSError:
                continue
            found[status.st_dev, status.st_ino] = path
        family = family_of(stream.path, self._settings.rotated_folders)
        return found | {key: path for path, key in family.keys_by_path.items()}


def _is_idle(stream: Stream) -> bool:
    return stream.newest_open() is None and not stream.pending and not stream.unfound


def _may_hold(path: str, mark: Mark) -> bool:
    """The file still holds what was read of it, as far as can be told; its number alone may be another's by now."""
    try:
        content = open_holding(path, mark)
    except FileNotFoundError:
        return False
    except (OSError, SourceError):
        return True
    if content is not None:
        content.close()
    return content is not None

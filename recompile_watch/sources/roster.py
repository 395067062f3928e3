"""Which files are being read, and which were read to their end: so that none is read twice under whatever name."""

from __future__ import annotations

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.content import Content
from recompile_watch.sources.generation import Generation
from recompile_watch.sources.identity import holds, is_weak, open_holding
from recompile_watch.sources.marks import Mark
from recompile_watch.sources.stream import Clock, Stream

FileKey = tuple[int, int]


class Roster:
    """The files of one source, by device and inode.

    Those that were read to their end are remembered until `forget`, which is for files that are gone.
    finished: generations that ended, until they are released. lost: marks whose file was not found again, likewise.
    """

    def __init__(self, block_bytes: int, clock: Clock) -> None:
        self._block_bytes, self._clock = block_bytes, clock
        self._owners: dict[FileKey, Generation] = {}
        self._elders: dict[str, list[Mark]] = {}
        self.finished: dict[tuple[str, int], Generation] = {}
        self.lost: dict[tuple[str, int], Mark] = {}

    @property
    def open_count(self) -> int:
        """Files held open."""
        return len(self._owners)

    def is_open(self, key: FileKey) -> bool:
        """The file is being read."""
        return key in self._owners

    def owner(self, key: FileKey) -> Generation | None:
        """The generation that reads this file."""
        return self._owners.get(key)

    def hold(self, reading: Generation) -> None:
        """`reading` has its file from now on."""
        self._owners[reading.file_key] = reading

    def let_go(self, reading: Generation) -> None:
        """`reading` has its file no longer."""
        if self._owners.get(reading.file_key) is reading:
            del self._owners[reading.file_key]

    def open(self, path: str, number: int, content: Content) -> Generation:
        """A generation that reads this content from its beginning."""
        status = content.status()
        reading = Generation(path, number, content, status.st_dev, status.st_ino, block_bytes=self._block_bytes)
        reading.quiet_since = self._clock.seconds
        self.hold(reading)
        return reading

    def remember(self, ended: Mark) -> None:
        """A generation that was read to its end: its file is not read again."""
        self._elders.setdefault(ended.stream, []).append(ended)

    def ended(self, path: str) -> list[Mark]:
        """The generations of a path that were read to their end."""
        return list(self._elders.get(path, ()))

    def forget(self, ended: Mark) -> None:
        """Its file is gone for good."""
        self._elders[ended.stream].remove(ended)

    def forget_all(self, path: str) -> None:
        """All files of a path are gone for good."""
        self._elders.pop(path, None)

    def is_held(self, path: str) -> bool:
        """Something of the path waits to be released."""
        return any(name == path for name, _ in (*self.finished, *self.lost))

    def elder_in(self, key: FileKey, content: Content) -> Mark | None:
        """The mark of the generation that was read to its end in this very file; its number may be used again by another."""
        for elders in self._elders.values():
            for elder in reversed(elders):
                if elder.file_key == key and elder.head_bytes and holds(content, elder):
                    return elder
        return None

    def packed_elder(self, stream: Stream, path: str) -> Mark | None:
        """The mark of the generation that was read to its end in the file that was packed into this one."""
        return next((mark for mark in self._elders.get(stream.path, ()) if holds_at(path, mark)), None)

    def is_copy(self, stream: Stream, path: str) -> bool:
        """The file holds what a generation that is being read has given, and perhaps more."""
        marks = [reading.mark(reading.position, reading.lines) for reading in stream.generations()]
        return any(not is_weak(mark) and holds_at(path, mark) for mark in marks)

    def is_packed_copy(self, stream: Stream, path: str, beside: Generation | None = None, own: Mark | None = None) -> bool:
        """The file that was packed into this one is being read still, or waits to be found again (`own` apart)."""
        open_ones = [*stream.generations(), *([beside] if beside is not None else [])]
        marks = [reading.mark(reading.position, reading.lines) for reading in open_ones]
        return any(holds_at(path, mark) for mark in [*marks, *(mark for mark in stream.pending if mark is not own)])


def holds_at(path: str, mark: Mark) -> bool:
    """The file at `path` holds what `mark` saw; False where it cannot be read, as an inode alone may be another's by now."""
    if not mark.head_bytes:
        return False
    try:
        content = open_holding(path, mark)
    except (OSError, SourceError):
        return False
    if content is not None:
        content.close()
    return content is not None

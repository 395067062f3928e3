"""Which files are being read, and which were read to their end: so that none is read twice under whatever name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.content import Content, open_content
from recompile_watch.sources.generation import Generation
from recompile_watch.sources.identity import copied_bytes, copied_bytes_at, holds, is_copy_of, is_weak, open_if
from recompile_watch.sources.marks import FORGET_BEYOND, FileKey, Mark
from recompile_watch.sources.siblings import Family, Sibling, home_of
from recompile_watch.sources.stream import Clock, Stream


class Roster:
    """The files of one source, by device and inode.

    Those that were read to their end are remembered until `forget`, which is for files that are gone.
    finished: generations that ended, until they are released. lost: marks whose file was not found again, likewise.
    """

    def __init__(self, block_bytes: int, clock: Clock) -> None:
        self._block_bytes, self._clock = block_bytes, clock
        self._owners: dict[FileKey, Generation] = {}
        self._elders: dict[str, list[Mark]] = {}
        self._missed: dict[str, list[Mark]] = {}
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

    def miss(self, lost: Mark) -> None:
        """A generation whose file was not found again: by it no file is known, for its inode may be another's."""
        self._missed.setdefault(lost.stream, []).append(lost)

    def ended(self, path: str) -> list[Mark]:
        """The generations of a path that were read to their end or lost."""
        return [*self._elders.get(path, ()), *self._missed.get(path, ())]

    def forget(self, ended: Mark) -> None:
        """Its file is gone for good."""
        for known in (self._elders, self._missed):
            if ended in known.get(ended.stream, ()):
                known[ended.stream].remove(ended)

    def forget_all(self, path: str) -> None:
        """All files of a path are gone for good."""
        self._elders.pop(path, None)
        self._missed.pop(path, None)

    def is_uncommitted(self, elder: Mark) -> bool:
        """It was read to its end, but a store may still hold an earlier mark of it."""
        return (elder.stream, elder.generation) in self.finished

    def is_held(self, path: str) -> bool:
        """Something of the path waits to be released."""
        return any(name == path for name, _ in (*self.finished, *self.lost))

    def elders(self, path: str) -> dict[FileKey, Mark]:
        """The files of this stream that were read to their end last, of a bounded number."""
        return {mark.file_key: mark for mark in self._telling(path)[-FORGET_BEYOND:]}

    def elder_in(self, key: FileKey, content: Content) -> Mark | None:
        """The mark of the generation that was read to its end in this very file; its number may be used again by another."""
        elders = (elder for path in self._elders for elder in reversed(self._telling(path)))
        return next((elder for elder in elders if elder.file_key == key and holds(content, elder)), None)

    def elder_of(self, stream: Stream, path: str, content: Content) -> Mark | None:
        """The mark of the generation that was read to its end in this file, or in the one that was packed into it. Raises OSError."""
        status = content.status()
        return self.elder_in((status.st_dev, status.st_ino), content) if content.is_growing else self.packed_elder(stream, path)

    def elder_at(self, stream: Stream, path: str) -> Mark | None:
        """As `elder_of`, of the file at `path`. Raises OSError and SourceError when it cannot be read."""
        content = open_content(path)
        try:
            return self.elder_of(stream, path, content)
        finally:
            content.close()

    def packed_elder(self, stream: Stream, path: str) -> Mark | None:
        """The mark of the generation that was read to its end in the file that was packed into this one."""
        found = (mark for mark in self._telling(stream.path) if holds_at(path, mark))
        return max(found, key=lambda mark: mark.position, default=None)

    def _telling(self, path: str) -> list[Mark]:
        """The marks of a path by which a file is known again."""
        return [mark for mark in self._elders.get(path, ()) if not is_weak(mark)]

    def is_copy(self, stream: Stream, sibling: Sibling, beside: Generation | None = None) -> bool:
        """The file is a copy, packed or not, of another that is being read (`beside` too), or that waits to be found again."""
        weak = [mark for mark in stream.pending if is_weak(mark)]
        is_one = any(_is(sibling.path, partial(is_copy_of, modified_ns=sibling.modified_ns, mark=mark)) for mark in weak)
        return is_one or self._is_copy_by_bytes(stream, sibling, beside)

    def _is_copy_by_bytes(self, stream: Stream, sibling: Sibling, beside: Generation | None) -> bool:
        """It holds what was given of one of them, or one of them, or the path's file, begins with all that it holds."""
        open_ones = [*stream.generations(), *([beside] if beside is not None else [])]
        others = [reading for reading in open_ones if reading.file_key != sibling.file_key]
        marks = [*stream.pending, *(reading.mark(reading.position, reading.lines) for reading in others)]
        if any(not is_weak(mark) and holds_at(sibling.path, mark) for mark in marks):
            return True
        plain = [reading.content for reading in others if reading.content.is_growing]
        return any(copied_bytes_at(content, sibling.path) for content in plain) or _is_beginning(sibling.path, stream.path)

    def is_being_copied(self, stream: Stream, reading: Generation) -> bool:
        """What came into the file of `reading` is a copy of another that is being read."""
        others = [other for other in stream.generations() if other is not reading]
        marks = [other.mark(other.position, other.lines) for other in others]
        if any(not is_weak(mark) and holds(reading.content, mark) for mark in marks):
            return True
        return any(copied_bytes(other.content, reading.content) for other in others if other.content.is_growing)

    def read_in_copy(self, stream: Stream, content: Content) -> Generation | None:
        """What is read in a copy of the path's own `content`, which could not be read when the copy was found. Raises OSError."""
        others = [reading for reading in stream.older if not reading.was_current and not reading.is_complete and reading.content.is_growing]
        return next((reading for reading in others if copied_bytes(content, reading.content)), None)

    def home(self, stream: Stream, mark: Mark, family: Family) -> tuple[Sibling, Content] | None:
        """As `home_of`, in files that are not read; what is told by its time alone must not be another's by its bytes."""

        def is_taken(sibling: Sibling) -> bool:
            if self.is_open(sibling.file_key):
                return True
            is_known = is_weak(mark) and self._is_copy_by_bytes(stream, sibling, None)
            return is_known or (is_weak(mark) and self.packed_elder(stream, sibling.path) is not None)

        return home_of(mark, family, is_taken)


def _is_beginning(copy_path: str, path: str) -> bool:
    """The file at `path` begins with all that `copy_path` holds; False where it cannot be read."""
    try:
        return _is(path, lambda content: copied_bytes_at(content, copy_path) > 0)
    except (OSError, SourceError):
        return False


def _is(path: str, is_wanted: Callable[[Content], bool]) -> bool:
    content = open_if(path, is_wanted)
    if content is not None:
        content.close()
    return content is not None


def holds_at(path: str, mark: Mark) -> bool:
    """The file at `path` holds what `mark` saw; False where it cannot be read, as an inode alone may be another's by now."""
    try:
        return _is(path, partial(holds, mark=mark))
    except (OSError, SourceError):
        return False

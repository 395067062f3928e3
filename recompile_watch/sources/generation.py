"""One generation of a file: from the first byte to the last, in whole lines, each once."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import Enum, auto

from recompile_watch.sources.content import Content
from recompile_watch.sources.identity import SIGNATURE_BYTES, digest, given_end, has_before, holds
from recompile_watch.sources.marks import Around, Chunk, FileKey, Mark

BLOCK_BYTES = 1 << 20
# Given bytes that are kept for excerpts, as the file may have been cut by then.
_KEPT_BYTES = 64 << 10
HOLE = b"\0" * 64


class Outcome(Enum):
    """What looking for the next chunk came to, when it was none."""

    NOTHING = auto()  # no whole line, for now
    WORKED = auto()  # on the way: lines counted, a hole skipped
    FIRST_BYTES = auto()  # nothing was given of the file and it has changed: it may have been filled, copied and cut meanwhile
    NAMELESS = auto()  # its last name is gone: of its file, only what was packed or copied before will be left
    CUT = auto()  # the file no longer holds what was read: cut short in place, perhaps filled again


@dataclass(slots=True)
class Generation:
    """Reading of one generation. position: of the first byte not given; lines: line feeds before it.

    is_current: the path leads to its file; was_current: it did, as far as this run saw. is_complete: nobody writes to its file any
    more: a copy, or packed. is_void: it ended, and what was read of it is on no disk any more. backlog_end: bytes before it were there
    at the very first start. counted_to: line feeds are counted up to here, the rest up to the position before anything is given.
    links: names of its file. modified_ns: its time when it was last seen under the path, or looked at first, with a name.
    quiet_since: the watch's clock at the last growth; last_growth_at: epoch seconds.

    _recent: the last bytes given, which end at _given_to; NULs that were skipped may follow. _kept: the stored mark, whose signature
    is the better one while it saw more of the file. _copied: how far a copy goes that was seen, and the signature of its end.
    """

    stream: str
    number: int
    content: Content
    device: int
    inode: int
    position: int = 0
    lines: int = 0
    head: bytes = b""
    is_current: bool = True
    was_current: bool = False
    is_complete: bool = False
    is_void: bool = False
    block_bytes: int = BLOCK_BYTES
    backlog_end: int = 0
    counted_to: int = 0
    size_bytes: int = 0
    modified_ns: int = 0
    links: int = 1
    quiet_since: float = 0.0
    last_growth_at: float | None = None
    hole_bytes: int = 0
    _recent: bytes = b""
    _given_to: int = 0
    _kept: Mark | None = None
    _copied: tuple[int, str] = (0, "")
    _is_nameless: bool = False
    _is_in_hole: bool = False
    _is_drained: bool = False
    _seen: tuple[int, int, int] = (-1, 0, 0)
    _announced_at: float = -1.0

    @property
    def file_key(self) -> FileKey:
        """Device and inode."""
        return self.device, self.inode

    @property
    def is_drained(self) -> bool:
        """Nothing but the start of a line is left, as far as the last look showed."""
        return self._is_drained

    def start_at(self, position: int, lines: int, given: int | None = None) -> None:
        """Begins at `position`, which must be the start of a line; before it, all after `given` was a hole. Raises OSError."""
        self.position, self.lines, self.counted_to = position, lines, position
        self._given_to = position if given is None else given
        self._recent = self.content.read(max(0, self._given_to - SIGNATURE_BYTES), min(self._given_to, SIGNATURE_BYTES))

    def continue_after(self, mark: Mark) -> None:
        """Begins where `mark` stands, of which this content is known to hold everything. Raises OSError."""
        self.head = self.content.read(0, SIGNATURE_BYTES)
        given = min(given_end(mark), mark.position)
        # Up to the bytes before it only: a packed content reads forward, and a mark without them fits any file.
        self.content.seek(max(0, given - SIGNATURE_BYTES), mark.position)
        self.start_at(mark.position, mark.lines, given)
        if len(self._recent) < min(given, SIGNATURE_BYTES):  # the copy that was seen, which ends before that
            self._recent, self._given_to = b"", 0
        self._kept, self._copied = mark, (mark.copied_bytes, mark.copied_hash)

    def saw(self, size_bytes: int, modified_ns: int) -> None:
        """What the file was like when it was looked at last, by an earlier run."""
        self._seen = (size_bytes, modified_ns, 0)

    @property
    def seen(self) -> tuple[int, int, int]:
        """Its file's size and times when it was looked at last."""
        return self._seen

    def is_as_seen(self) -> bool:
        """Its file has a name and has not changed since. Raises OSError."""
        return not self._is_nameless and self._seen == _stamp(self.content.status())

    def look_at_head(self) -> None:
        """Takes the signature of what is there already. Raises OSError."""
        status = self.content.status()
        self.head = self.head or self.content.read(0, SIGNATURE_BYTES)
        self.size_bytes = status.st_size
        if status.st_nlink:
            self.modified_ns = status.st_mtime_ns
        self._seen = _stamp(status)

    def move_to(self, content: Content) -> None:
        """The same bytes go on in another file, which a packed content gets ready for. Raises OSError."""
        status = content.status()
        self.head = content.read(0, SIGNATURE_BYTES)
        self.content, self.device, self.inode = content, status.st_dev, status.st_ino
        self._seen, self._is_drained, self.is_complete, self._is_nameless = (-1, 0, 0), False, True, False

    def look(self, now: float, clock: float) -> Chunk | Outcome:
        """The next chunk, at most one block of the file. Raises OSError."""
        if not self.content.is_growing:
            return self._look_at_packed()
        status = self.content.status()
        stamp = _stamp(status)
        if self.is_complete and status.st_size <= self.position:
            self._is_drained = True
            return Outcome.NOTHING
        if status.st_size < max(self.position, len(self._known_head())):
            return Outcome.CUT
        is_news = stamp != self._seen
        if self.was_filled(status, clock):
            return Outcome.FIRST_BYTES
        is_idle = self._is_drained and not is_news
        block = b"" if is_idle else self.content.read(self.position, self.block_bytes)
        # After reading, not before: had the file been cut meanwhile, the block could mix two generations.
        if not self._is_itself(is_news=is_news):
            return Outcome.CUT
        if not status.st_nlink and not self._is_nameless:
            return Outcome.NAMELESS
        if status.st_size > self.size_bytes:
            self.quiet_since, self.last_growth_at = clock, now
        self._seen, self.size_bytes, self.links = stamp, status.st_size, status.st_nlink
        if self.is_current and status.st_nlink:  # what old writers do to it later says nothing of the files that came after it
            self.modified_ns = status.st_mtime_ns
        if self.counted_to < self.position:
            return self._count()
        return Outcome.NOTHING if is_idle else self._chunk_of(block, status.st_size)

    def lose_name(self, copied_bytes: int) -> None:
        """Its file was deleted, of which a packed copy holds so much; 0 for none. Raises OSError."""
        self.note_copy(copied_bytes or self._given_to)  # what comes after that is in no copy
        self._is_nameless = True

    def note_copy(self, copied_bytes: int) -> None:
        """A copy holds so much of its file. Raises OSError."""
        start = max(0, copied_bytes - SIGNATURE_BYTES)
        self._copied = copied_bytes, digest(self.content.read(start, copied_bytes - start)) if copied_bytes else ""

    def was_filled(self, status: os.stat_result, clock: float) -> bool:
        """Nothing was given of the file yet, and it has changed since it was looked at; said once a poll at most."""
        is_same = self._seen[:2] == (status.st_size, status.st_mtime_ns)
        if self.is_complete or self.position or self._seen[0] < 0 or is_same or self._announced_at == clock:
            return False
        self._announced_at = clock
        return True

    def rest(self) -> Chunk | None:
        """The last line of a generation that ended without a line feed, and nothing more after it. Raises OSError."""
        text = self.content.read(self.position, self.block_bytes).rstrip(b"\0")
        return self._give(text) if text else None

    def mark(self, position: int, lines: int, ended_at: float | None = None) -> Mark:
        """The mark for a position at or before what was given."""
        is_counting = self.counted_to < position
        head, tail = self.head[: self._given_to or None], self._recent[-SIGNATURE_BYTES:]
        mark = Mark(
            self.stream, self.number, self.device, self.inode, len(head), digest(head), position, len(tail), digest(tail),
            self.lines if is_counting else lines, self.size_bytes, self.modified_ns, ended_at,
            counted_bytes=self.counted_to if is_counting else None, given=self._given_to, copied_bytes=self._copied[0], copied_hash=self._copied[1],
        )  # fmt: skip
        kept = self._kept
        if kept is None or not self._is_behind(kept):
            return mark
        return replace(
            mark, head_bytes=kept.head_bytes, head_hash=kept.head_hash, tail_bytes=kept.tail_bytes, tail_hash=kept.tail_hash, given=kept.given
        )

    def _is_behind(self, kept: Mark | None) -> bool:
        """An earlier run was given more of the file."""
        return kept is not None and kept.given > self._given_to

    def excerpt(self, offset: int, before_lines: int, after_lines: int, side_bytes: int) -> Around | None:
        """Lines around the one in which `offset` stands; None where they are gone."""
        start = max(0, offset - side_bytes)
        text = self._text(start, offset + side_bytes)
        if text is None or offset - start >= len(text):
            return None
        before = text[: offset - start].split(b"\n")
        after = text[offset - start :].split(b"\n")
        if len(after) > 1:  # what follows the last line feed is a part of a line
            after.pop()
        if start and len(before) > 1:  # what comes before the first is one too
            start += len(before[0]) + 1
            before = before[1:]
        left_out = before[: max(0, len(before) - 1 - before_lines)]
        kept = before[len(left_out) :]
        lines = (*kept[:-1], kept[-1] + after[0], *after[1 : 1 + after_lines])
        return Around(start + sum(len(line) + 1 for line in left_out), lines, len(kept) - 1)

    def _text(self, start: int, end: int) -> bytes | None:
        """The bytes from `start` to `end` or what there is of them, as they were given."""
        kept_from, kept = self.recent()
        if kept_from <= start:
            return kept[start - kept_from : end - kept_from]
        try:
            text = self.content.read(start, min(end, self.position) - start) if self.content.is_growing else b""
            return text if text and self._is_itself(is_news=False) else None
        except OSError:
            return None

    def recent(self) -> tuple[int, bytes]:
        """The last bytes given, and the offset of the first of them."""
        return self._given_to - len(self._recent), self._recent

    def _is_itself(self, *, is_news: bool) -> bool:
        """The bytes before the position are still there; with news the first bytes too, of which more are then known."""
        tail = self._recent[-SIGNATURE_BYTES:]
        if tail and self.content.read(self._given_to - len(tail), len(tail)) != tail:
            return False
        if self._copied[0] > self._given_to and not has_before(self.content, *self._copied):
            return False
        if self._kept is not None and self._is_behind(self._kept) and not holds(self.content, self._kept):
            return False
        return not is_news or self.grow_head()

    def is_itself(self) -> bool:
        """The file still holds what was read of it. Raises OSError."""
        status = self.content.status()
        is_long_enough = status.st_size >= max(self.position, len(self._known_head()))
        return not self.content.is_growing or (is_long_enough and self._is_itself(is_news=True))

    def grow_head(self) -> bool:
        """Takes the signature of more first bytes; False where those known are no longer there. Raises OSError."""
        head = self.content.read(0, SIGNATURE_BYTES)
        if not head.startswith(self._known_head()):
            return False
        self.head = head
        return True

    def _known_head(self) -> bytes:
        """The first bytes that must stay. Those not given yet may change: a program that starts again removes its half line."""
        return self.head[: self.position or None]

    def _count(self) -> Outcome:
        block = self.content.read(self.counted_to, min(BLOCK_BYTES, self.position - self.counted_to))
        self.lines += block.count(b"\n")
        self.counted_to += len(block)
        return Outcome.WORKED if block else Outcome.CUT

    def _look_at_packed(self) -> Chunk | Outcome:
        if not self.content.seek(self.position, BLOCK_BYTES):
            return Outcome.WORKED
        block = self.content.read(self.position, self.block_bytes)
        at_end = self.position + len(block) if len(block) < self.block_bytes else self.position + len(block) + 1
        self.size_bytes = max(self.size_bytes, self.position + len(block))
        return self._chunk_of(block, at_end)

    def _chunk_of(self, block: bytes, size_bytes: int) -> Chunk | Outcome:
        """The whole lines of `block`, which stands at the position of a file of this size."""
        reaches_end = self.position + len(block) >= size_bytes
        self._is_drained = reaches_end
        if b"\0" in block:
            return self._chunk_before_hole(block, reaches_end)
        self._is_in_hole = False
        return self._chunk_of_text(block, is_cut_off=not reaches_end)

    def _chunk_of_text(self, text: bytes, *, is_cut_off: bool) -> Chunk | Outcome:
        end = text.rfind(b"\n") + 1
        if end:
            return self._give(text[:end] if end < len(text) else text)
        if text and is_cut_off:
            return self._give(text)
        return Outcome.NOTHING

    def _chunk_before_hole(self, block: bytes, reaches_end: bool) -> Chunk | Outcome:
        """Holes are what a writer leaves that goes on at its old offset after the file was cut, and power cuts leave."""
        starts_in_hole = block[0] == 0 and (self.position == 0 or self._is_in_hole)
        start = 0 if starts_in_hole else block.find(HOLE)
        if start < 0:
            self._is_in_hole = False
            return self._chunk_of_text(block, is_cut_off=not reaches_end)
        after = len(block) - len(block[start:].lstrip(b"\0"))
        may_be_filled = after == len(block) and reaches_end
        if start:
            self._is_drained = may_be_filled
            end = block.rfind(b"\n", 0, start) + 1
            if end:
                return self._give(block[:end])
            return Outcome.NOTHING if may_be_filled else self._give(block[:start])
        if may_be_filled:
            return Outcome.NOTHING
        self._is_in_hole, self._is_drained = after == len(block), False
        self.hole_bytes += after
        self._pass(after)
        return Outcome.WORKED

    def _give(self, payload: bytes) -> Chunk:
        if self.position < self.backlog_end < self.position + len(payload):
            payload = payload[: payload.find(b"\n", self.backlog_end - self.position - 1) + 1] or payload
            self._is_drained = False
        chunk = Chunk(self.stream, self.number, self.position, self.lines + 1, payload, self.position < self.backlog_end)
        self.lines += payload.count(b"\n")
        skipped = b"\0" * min(self.position - self._given_to, SIGNATURE_BYTES)
        self._recent = payload[-_KEPT_BYTES:] if len(payload) >= _KEPT_BYTES else (self._recent + skipped + payload)[-_KEPT_BYTES:]
        self._pass(len(payload))
        self._given_to = self.position
        return chunk

    def _pass(self, count: int) -> None:
        self.position += count
        self.counted_to = self.position


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns

"""Source files become blocks of bytes: unpacked, in UTF-8 where they were UTF-16, otherwise byte for byte."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from recompile_watch.sources.limits import ReadLimits, Unread
from recompile_watch.sources.opening import (
    STANDARD_INPUT,
    STANDARD_INPUT_FD,
    OpenFile,
    first_bytes,
    opened,
    read_some,
    source_error,
)
from recompile_watch.sources.sniff import (
    HEAD_BYTES,
    MAGIC_BYTES,
    Compression,
    Encoding,
    compression_of,
    encoding_of,
)
from recompile_watch.sources.source_file import SourceFile
from recompile_watch.sources.unpack import unpack
from recompile_watch.sources.utf16 import utf8_from_utf16

__all__ = ["ReadLimits", "Unread", "is_quiet", "plain_size", "read_blocks", "read_range"]

_DEFAULT_LIMITS = ReadLimits()
_UTF8_BOM_BYTES = 3
_QUIET_S = 1.0


@dataclass(slots=True)
class _Progress:
    """Bytes taken from the disk so far, of all members, and who wants to know."""

    on_progress: Callable[[int], None] | None
    taken_bytes: int = 0

    def add(self, count: int) -> None:
        self.taken_bytes += count
        if self.on_progress is not None:
            self.on_progress(self.taken_bytes)


def read_blocks(
    source: SourceFile,
    *,
    limits: ReadLimits = _DEFAULT_LIMITS,
    unread: Unread | None = None,
    on_progress: Callable[[int], None] | None = None,
    on_member: Callable[[str], None] | None = None,
) -> Iterator[bytes]:
    """The bytes of `source` in non-empty blocks of about `limits.block_bytes`; streams as they come.

    Packing is told by the first bytes, never by the name. Byte order marks are dropped and UTF-16 becomes UTF-8, so offsets in
    the blocks are offsets on disk only where `plain_size` is not None. A member of a family that did not end in a line break
    gets one. What could not be read is counted in `unread`; a file that is gone is counted there too (`vanished`).
    `on_progress` gets the number of bytes taken from the disk since the beginning, comparable with `source.size_bytes`.
    `on_member` gets the path of each member whose blocks come next.

    Raises SourceError, from the first `next()` on, for what cannot be opened or fails while it is read.
    """
    counted = unread if unread is not None else Unread()
    progress = _Progress(on_progress)
    ends_mid_line = False
    for path in source.family:
        is_first = True
        for block in _member_blocks(path, limits, counted, progress):
            if is_first and ends_mid_line:
                yield b"\n"
            if is_first and on_member is not None:
                on_member(path)
            is_first = False
            yield block
            ends_mid_line = not block.endswith(b"\n")


def is_quiet(source: SourceFile) -> bool:
    """True when `source` is standard input and nothing more came for a second: the other end is alive and waits, as `tail -f` does."""
    if source.path != STANDARD_INPUT:
        return False
    try:
        return not select.select([STANDARD_INPUT_FD], [], [], _QUIET_S)[0]
    except OSError:  # a system that selects no files
        return False


def plain_size(source: SourceFile) -> int | None:
    """Size in bytes if `source` may be read in parts with `read_range`, else None.

    That is: one regular file, not packed, not UTF-16, without a byte order mark. None also when it cannot be opened.
    """
    if len(source.family) != 1 or source.path == STANDARD_INPUT:
        return None
    path = source.family[0]
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        head = first_bytes(path, HEAD_BYTES)
    except OSError:
        return None
    is_packed = compression_of(head) is not Compression.PLAIN
    has_no_true_size = len(head) > status.st_size  # /proc says 0
    if is_packed or has_no_true_size or encoding_of(head) is not Encoding.BYTES:
        return None
    return status.st_size


def read_range(path: str, start: int, end: int | None, *, block_bytes: int = _DEFAULT_LIMITS.block_bytes) -> Iterator[bytes]:
    """The bytes of a plain file from offset `start` up to `end` (not included), in non-empty blocks.

    `end` None means up to the end, at most the default growth past the size at opening. A file that is shorter than `end`
    simply ends: compare what came with what was asked for. Raises SourceError, from the first `next()` on.
    """
    try:
        with opened(path, fifo_wait_s=0) as file:
            limit = (file.size_bytes or 0) + _DEFAULT_LIMITS.growth_bytes if end is None else end
            while start < limit:
                block = os.pread(file.fd, min(block_bytes, limit - start), start)
                if not block:
                    return
                start += len(block)
                yield block
    except OSError as error:
        raise source_error(path, error) from error


def _member_blocks(path: str, limits: ReadLimits, unread: Unread, progress: _Progress) -> Iterator[bytes]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(opened(path, fifo_wait_s=limits.fifo_wait_s))
        except OSError as error:
            _count_or_raise(path, error, unread)
            return
        chunks = _chunks(path, file, limits, unread, progress)
        # A live stream may pause after its first bytes: wait for no more of them than the magic numbers need.
        yield from _decoded(chunks, MAGIC_BYTES if file.size_bytes is None else HEAD_BYTES, limits, unread)


def _decoded(chunks: Iterator[bytes], head_bytes: int, limits: ReadLimits, unread: Unread) -> Iterator[bytes]:
    head, chunks = _peek(chunks, head_bytes)
    head, blocks = _peek(unpack(chunks, compression_of(head), limits, unread), head_bytes)
    match encoding_of(head):
        case Encoding.BYTES:
            return blocks
        case Encoding.UTF8_WITH_BOM:
            return _without_start(blocks, _UTF8_BOM_BYTES)
        case Encoding.UTF16_LE | Encoding.UTF16_BE as encoding:
            return utf8_from_utf16(blocks, encoding, unread)


def _chunks(path: str, file: OpenFile, limits: ReadLimits, unread: Unread, progress: _Progress) -> Iterator[bytes]:
    """What stands on the disk, as it stands there. The loop that everything passes through: one read, one yield."""
    if file.first:
        progress.add(len(file.first))
        yield file.first
    room_bytes = None if file.size_bytes is None else file.size_bytes + limits.growth_bytes
    while room_bytes is None or room_bytes > 0:
        want_bytes = limits.block_bytes if room_bytes is None else min(limits.block_bytes, room_bytes)
        try:
            chunk = read_some(file.fd, want_bytes)
        except OSError as error:
            _count_or_raise(path, error, unread)
            return
        if not chunk:
            break
        if room_bytes is not None:
            room_bytes -= len(chunk)
        progress.add(len(chunk))
        yield chunk
    _count_change(file, limits, unread)


def _count_change(file: OpenFile, limits: ReadLimits, unread: Unread) -> None:
    """Counts what the file's size at the end of reading says about the reading.

    Not seen: a file cut short and written past its old size between two reads.
    """
    if file.size_bytes is None:
        return
    size_now_bytes = os.fstat(file.fd).st_size
    if size_now_bytes < file.size_bytes:
        unread.add("shrunk_while_read")
    elif size_now_bytes > file.size_bytes + limits.growth_bytes:
        unread.add("grew_past_limit")


def _count_or_raise(path: str, error: OSError, unread: Unread) -> None:
    if error.errno not in (errno.ENOENT, errno.ESTALE):  # ESTALE: deleted on the NFS server
        raise source_error(path, error) from error
    unread.add("vanished")


def _peek(chunks: Iterator[bytes], least_bytes: int) -> tuple[bytes, Iterator[bytes]]:
    """The first `least_bytes` bytes or more (fewer at the end), and an iterator that still gives every chunk."""
    taken: list[bytes] = []
    taken_bytes = 0
    for chunk in chunks:
        taken.append(chunk)
        taken_bytes += len(chunk)
        if taken_bytes >= least_bytes:
            break
    return b"".join(taken), chain(taken, chunks)


def _without_start(blocks: Iterator[bytes], start_bytes: int) -> Iterator[bytes]:
    """The blocks without their first `start_bytes` bytes."""
    for block in blocks:
        kept = block[start_bytes:]
        start_bytes = max(0, start_bytes - len(block))
        if kept:
            yield kept

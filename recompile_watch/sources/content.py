"""The bytes of one file by offset: of a plain file as it grows, or of what a packed one holds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Protocol

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.limits import ReadLimits, Unread
from recompile_watch.sources.opening import OPEN_FLAGS, not_readable_kind, shown
from recompile_watch.sources.sniff import MAGIC_BYTES, Compression, compression_of
from recompile_watch.sources.unpack import unpack

_PACKED_BLOCK_BYTES = 64 << 10
_LIMITS = ReadLimits()


class Content(Protocol):
    """Bytes by offset. Every method may raise OSError."""

    @property
    def is_growing(self) -> bool:
        """More may come, or it may be cut short."""
        ...

    def status(self) -> os.stat_result:
        """The file's status; `st_size` counts its bytes on disk."""
        ...

    def read(self, position: int, most_bytes: int) -> bytes:
        """Up to `most_bytes` from `position` on; empty at the end. A packed content reads forward only."""
        ...

    def seek(self, position: int, most_bytes: int) -> bool:
        """Gets ready to read from `position`, working through `most_bytes` at most; False while it is not there yet."""
        ...

    def close(self) -> None:
        """Gives the descriptor back."""
        ...


class PlainContent:
    """A file's bytes as they stand on the disk, read at any offset."""

    is_growing = True

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def status(self) -> os.stat_result:
        """The status by descriptor."""
        return os.fstat(self._fd)

    def read(self, position: int, most_bytes: int) -> bytes:
        """One pread."""
        return os.pread(self._fd, most_bytes, position)

    def seek(self, position: int, most_bytes: int) -> bool:
        """Always there."""
        return True

    def close(self) -> None:
        """Closes the descriptor; reading raises OSError from then on, whatever file gets its number."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class PackedContent:
    """What a .gz or .zst file holds, read forward; it does not grow. Damage ends it after the last good byte.

    unread: why it ended early, if it did.
    """

    is_growing = False

    def __init__(self, fd: int, compression: Compression) -> None:
        self._fd = fd
        self.unread = Unread()
        self._blocks = unpack(self._packed(), compression, _LIMITS, self.unread)
        self._held = b""
        self._held_from = 0

    def _packed(self) -> Iterator[bytes]:
        position = 0
        while block := os.pread(self._fd, _PACKED_BLOCK_BYTES, position):
            position += len(block)
            yield block

    def status(self) -> os.stat_result:
        """The status of the packed file."""
        return os.fstat(self._fd)

    def seek(self, position: int, most_bytes: int) -> bool:
        """Unpacks and drops up to `most_bytes`."""
        dropped = 0
        while self._held_from + len(self._held) < position and dropped < most_bytes:
            dropped += len(self._held)
            self._held_from += len(self._held)
            self._held = next(self._blocks, b"")
            if not self._held:
                return True
        if self._held_from + len(self._held) < position:
            return False
        self._held = self._held[max(0, position - self._held_from) :]
        self._held_from = max(position, self._held_from)
        return True

    def read(self, position: int, most_bytes: int) -> bytes:
        """What comes from `position` on; empty outside of what is at hand, and at the end."""
        if not self._held_from <= position <= self._held_from + len(self._held):
            return b""
        pieces, held_bytes = [self._held], len(self._held)
        while held_bytes < position - self._held_from + most_bytes and (block := next(self._blocks, b"")):
            pieces.append(block)
            held_bytes += len(block)
        self._held = b"".join(pieces)
        start = position - self._held_from
        return self._held[start : start + most_bytes]

    def close(self) -> None:
        """Closes the descriptor; reading raises OSError from then on, whatever file gets its number."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def open_content(path: str) -> Content:
    """The file's content, packed or plain by its first bytes.

    Never waits. Raises OSError when it cannot be opened, SourceError for a folder, FIFO, socket or device.
    """
    # Asked before it is opened: opening a FIFO lets its writer go on, opening a device may move it.
    _require_file(path, os.stat(path).st_mode)
    fd = os.open(path, OPEN_FLAGS)
    try:
        _require_file(path, os.fstat(fd).st_mode)
        compression = compression_of(os.pread(fd, MAGIC_BYTES, 0))
        return PlainContent(fd) if compression is Compression.PLAIN else PackedContent(fd, compression)
    except BaseException:
        os.close(fd)
        raise


def _require_file(path: str, mode: int) -> None:
    if stat.S_ISFIFO(mode):
        raise SourceError(f"{shown(path)}: is a FIFO, which cannot be read again after a restart; have its writer write a file")
    if not stat.S_ISREG(mode):
        raise not_readable_kind(path, mode)
